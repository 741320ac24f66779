"""Sorted, immutable runs of rows: what all operator state is made of.

A run is an Arrow record batch sorted by (key hash, time), with the permutation that sorts it by expiry (the
endpoint index, PIPES' secondary structure). It needs no rebuilding after it was loaded, so any worker can
take over a bucket's state at the price of mapping a file.

Columns: `__hash` int64, the payload, `__t` int64 (when the row takes effect), for elements `__te` and `__w`,
and, where the area is read by expiry, `__order` int32 (rows in order of expiry).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.elements import Int64Array, integers, widened
from headrace.kernels.instants.schedule import BLOCK
from headrace.kernels.rows.grouping import dense_codes
from headrace.kernels.rows.sorting import count_descents, stable_order
from headrace.operators.state.keys import order_by_hash
from headrace.time import BEGINNING, INFINITY

HASH = "__hash"
TIME = "__t"
END = "__te"
WEIGHT = "__w"
ORDER = "__order"


@dataclass(frozen=True)
class RunPart:
    """Where some bytes lie.

    Attributes:
        segment: the name of the file.
        offset, length: which of its bytes.
        crc: their CRC-32.
    """

    segment: str
    offset: int
    length: int
    crc: int


@dataclass(frozen=True)
class RunRef:
    """Where a stored run lies, and what is known of it without opening it.

    Attributes:
        part: its Arrow stream.
        rows: how many rows it has.
        first: the smallest time, last: the largest expiry (instants).
        reach: the longest interval of an element run (BEGINNING + 1 .. INFINITY), 0 for others.
    """

    part: RunPart
    rows: int
    first: int
    last: int
    reach: int


_SMALL = 4096
"""The rows of a run that are kept in memory as they are, not only as they are stored."""


class SortedRun:
    """One run, loaded when it is first looked at.

    What is stored in fewer bytes than it has is made wider only as far as it is looked at.

    Attributes:
        ref: where it is stored, or None while it is new. A new run gets its ref when the task writes it.
        rows: how many rows it has.
    """

    def __init__(
        self, ref: RunRef | None, load: Callable[[], pa.RecordBatch], rows: int, span: tuple[int, int, int]
    ) -> None:
        self.ref = ref
        self.rows = rows
        self.first, self.last, self.reach = span
        self._load = load
        self._columns: dict[str, pa.Array] = {}

    @cached_property
    def _loaded(self) -> pa.RecordBatch:
        rows = self._load()
        # What it is loaded from need not live as long as it does.
        self._load = lambda: rows
        return rows

    @property
    def is_loaded(self) -> bool:
        """Whether it has been looked at."""
        return "_loaded" in self.__dict__

    @cached_property
    def size(self) -> int:
        """So many bytes of memory it takes at most, if it is loaded from where it is stored."""
        assert self.ref is not None
        # Columns may be there in eight bytes twice: alone, and in a batch of all.
        rows: int = self.stored.num_rows
        return self.ref.part.length + 16 * rows * len(self.names)

    def under(self, ref: RunRef) -> SortedRun:
        """The same rows where another number of them counts.

        Args:
            ref: of the same part.
        """
        return stored_run(ref, lambda _: self._loaded)

    @cached_property
    def stored(self) -> pa.RecordBatch:
        """The rows as they are stored, of which `widened` makes what they are."""
        # What is stored beside the rows would be copied with every few of them.
        return self._loaded.replace_schema_metadata(None)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """The rows, sorted by (hash, time), with what is stored beside them."""
        if not self._is_small:
            return widened(self._loaded)
        return self._small.replace_schema_metadata(self._loaded.schema.metadata)

    @property
    def _is_small(self) -> bool:
        """Whether its rows are made wider once, rather than each time that some are looked at."""
        return self.rows <= _SMALL

    @cached_property
    def _small(self) -> pa.RecordBatch:
        return widened(self.stored)

    @cached_property
    def beside(self) -> Mapping[bytes, bytes]:
        """What is stored beside the rows, by name."""
        return self._loaded.schema.metadata or {}

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the columns, in order."""
        return tuple(self.stored.schema.names)

    @cached_property
    def hashes(self) -> Int64Array:
        """int64[rows], ascending."""
        return integers(self._column(HASH))

    @cached_property
    def times(self) -> Int64Array:
        """int64[rows], ascending within a hash."""
        return integers(self._column(TIME))

    @cached_property
    def expiries(self) -> Int64Array:
        """int64[rows]: when a row may be forgotten; its end, or its time where it has none."""
        return integers(self._column(END)) if END in self.names else self.times

    @cached_property
    def order(self) -> npt.NDArray[np.int32]:
        """int32[rows]: the rows in order of expiry."""
        return np.asarray(self.stored.column(ORDER).to_numpy())

    @cached_property
    def tops(self) -> Int64Array:
        """The hash of every `BLOCK`th row in `order`, where that is by hash."""
        return self.hashes[self.order[::BLOCK]]

    def columns(self, names: tuple[str, ...]) -> list[pa.Array]:
        """Some columns by name."""
        return list(map(self._column, names))

    def take(self, rows: npt.NDArray[np.integer], names: tuple[str, ...] | None = None) -> pa.RecordBatch:
        """Some rows, in the given order; all columns, or those of the names."""
        stored = self._small if self._is_small else self.stored
        taken = (stored if names is None else stored.select(names)).take(pa.array(rows))
        return taken if self._is_small else widened(taken)

    def slice(self, first: int, count: int) -> pa.RecordBatch:
        """Some rows that follow each other."""
        return self._small.slice(first, count) if self._is_small else widened(self.stored.slice(first, count))

    def _column(self, name: str) -> pa.Array:
        if self._is_small:
            return self._small.column(name)
        if name not in self._columns:
            self._columns[name] = widened(self.stored.select([name])).column(0)
        return self._columns[name]


class Area(Protocol):
    """Something that keeps rows as runs, the oldest first."""

    runs: list[SortedRun]

    def __len__(self) -> int:
        """How many rows it holds."""
        ...

    def content(self) -> pa.RecordBatch | None:
        """What it holds, in any order, without what it has yet to forget; None if that is nothing.

        Two areas with equal contents are the same to their operator, however they came about.
        """
        ...


TIER = 4
"""So many runs are merged into one."""
_FEW = 65_536
"""So many rows are merged in the time of a small epoch."""


def is_tier_full(runs: Sequence[SortedRun]) -> bool:
    """Whether the newest `TIER` runs are to be merged: the oldest is no larger than the others together.

    So each run is larger than the three after it together, whatever sizes come: there are about as many runs
    as the logarithm of the rows, and each row is merged about as often.

    No merge is of more than a quarter of the rows, unless they are few. It would hold up its epoch for as
    long as many others take, to have fewer runs by three; without it there are at most some sixteen more.
    """
    sizes = [run.rows for run in runs[-TIER:]]
    if len(sizes) < TIER or sizes[0] > sum(sizes[1:]):
        return False
    return sum(sizes) <= max(_FEW, sum(run.rows for run in runs) // TIER)


def stored_run(ref: RunRef, load: Callable[[RunRef], pa.RecordBatch]) -> SortedRun:
    """A run that lies in a segment."""
    return SortedRun(ref, lambda: load(ref), ref.rows, (ref.first, ref.last, ref.reach))


def new_run(columns: dict[str, pa.Array], indexed: bool = True) -> SortedRun:
    """A run of rows in any order; `columns` has `__hash`, `__t` and whatever else the area keeps.

    `indexed` adds the endpoint index, for areas that are read by expiry.
    """
    hashes, times = integers(columns[HASH]), integers(columns[TIME])
    ends = integers(columns[END]) if END in columns else times
    codes, first = dense_codes(hashes)
    by_time = stable_order(times)
    order = order_by_hash(codes, by_time, hashes[first])
    rows = pa.RecordBatch.from_pydict(columns)
    if count_descents(order):
        rows = rows.take(pa.array(order))
    if indexed:
        # Rows come almost in order of time, and so of expiry; in order of their hashes they no longer do.
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        by_expiry = by_time if ends is times else stable_order(ends)
        rows = rows.append_column(ORDER, pa.array(places[by_expiry]))
    return SortedRun(None, lambda: rows, rows.num_rows, _span(times, ends))


def unindexed(rows: pa.RecordBatch) -> pa.RecordBatch | None:
    """The rows alone, without the endpoint index and what is stored beside them; None without rows."""
    if not rows.num_rows:
        return None
    rows = rows.replace_schema_metadata(None)
    return rows.drop_columns([ORDER]) if ORDER in rows.schema.names else rows


def _span(times: Int64Array, ends: Int64Array) -> tuple[int, int, int]:
    if not len(times):
        return INFINITY, BEGINNING, 0
    # An interval that is open for ever, or that begins before all time, counts as infinitely long.
    endless = (ends == INFINITY).any() or (times == BEGINNING).any()
    reach = INFINITY if endless else int((ends - times).max())
    return int(times.min()), int(ends.max()), reach
