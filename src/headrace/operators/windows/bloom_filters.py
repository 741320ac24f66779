"""DISTINCT and EXCEPT by a Bloom filter whose cells say until when a value is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.kinds import BloomKind
from headrace.algebra.nodes import BloomFilter
from headrace.algebra.tunings.bloom import PROBES, block_of, cells_of, watched_every
from headrace.elements import Batch, BoolArray, Float64Array, Int64Array, concat, integers, record_batch
from headrace.kernels.rows.bloom import AFTER, BEFORE, LASTING, look_up
from headrace.kernels.rows.sampling import SALT, folded
from headrace.operators.contract import OperatorProgress, Report, evaluate_all
from headrace.operators.state.keys import encode_keys, hash_rows, normalise
from headrace.operators.state.netting import netted
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.operators.windows.kept_rows import RowColumns, WaitingRows
from headrace.operators.windows.watched_values import WatchedRows, WatchedValues, ends_of
from headrace.schema import BINARY
from headrace.time import BEGINNING, INFINITY

FILTER: Final = "filter"
"""The area with the blocks of the filter."""
_BLOCK: Final = "__block"
_BASE: Final = "__base"
_CELLS: Final = "__cells"
_LIVE: Final = "__live"
_KINDS: Final = {BloomKind.DISTINCT: LASTING, BloomKind.NEW: BEFORE, BloomKind.EXCEPT: AFTER}
_LEAST: Final = 1e-9


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Some blocks of the filter.

    Attributes:
        numbers: int64[b].
        bases: int64[b], the granule from which the cells of each count.
        cells: uint8[b * width], how many granules behind that a value is there.
    """

    numbers: Int64Array
    bases: Int64Array
    cells: np.ndarray


class BloomFilterOperator:
    """DISTINCT or EXCEPT as a Bloom filter tells them (a family of its own; STREAM, section 5.3).

    Definition:
        DISTINCT: at t, the values of which a row is there that is live only from t on or before by the rows
        before it. NEW and EXCEPT: at t, the values of the rows of t that are not live (`BloomFilter`).

    Retractions:
        Cancel a row that waits above the heartbeat. Below it all rows are known, and answered once.

    State:
        The rows above the heartbeat, and the blocks of the filter that a row has been in, each once. Of some
        blocks a few values with their ends besides, under a number below 0 (`WatchedValues`).

    Example:
        DISTINCT of `[RANGE 8]`, heartbeat 20; c has the cells of a and b:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        a      [1,2)    +        a      [1,9)    +
        b      [3,4)    +        b      [3,11)   +
        a      [5,6)    +        a      [9,13)   +
        c      [7,8)    +        c      [11,15)  +
        ====== ======= ==        ====== ======= ==

    Attributes:
        missed: about how many rows were not yielded, by the cells that are live; after `advance`.
        measured: float64[2], how much there was to yield of the values that are known exactly, and how much
            of that was missed; after `advance`.
    """

    def __init__(self, node: BloomFilter, report: Report) -> None:
        self._node, self._report = node, report
        self._waiting = WaitingRows(RowColumns(node.input.schema, ()))
        self._blocks = SweepArea(Layout((_BLOCK,), ints=(_LIVE,), netting=Netting.REPLACE))
        self._inputs: list[Batch] = []
        self._is_of_bits = node.size.length == INFINITY
        self.missed = 0.0
        self.measured = np.zeros(2)

    @property
    def areas(self) -> dict[str, Area]:
        """The rows above the heartbeat, and the filter."""
        return {"waiting": self._waiting.area, FILTER: self._blocks}

    def process(self, port: int, batch: Batch) -> None:
        """Take in rows."""
        self._inputs.append(batch)

    def advance(self, progress: OperatorProgress) -> Batch:
        """The rows below the new heartbeat that the filter does not know."""
        rows = netted(self._waiting.due(self._inputs, progress.window))
        rows = rows.filter(rows.w > 0)
        rows, (blocks,) = evaluate_all([block_of(self._node)], rows, self._report)
        if not len(rows):
            return concat(self._node.schema, [])
        return self._answer(rows, integers(blocks))

    def _answer(self, rows: Batch, blocks: Int64Array) -> Batch:
        order = np.lexsort((rows.ts, blocks))
        rows, node = rows.take(order), self._node
        width = len(node.schema)
        values = [normalise(column) for column in rows.payload.columns[:width]]
        looks, enters = self._sides(rows)
        codes = encode_keys([pa.array(blocks[order])], blocks[order])
        known = self._of(blocks[order][codes.first])
        now, ends = self._granules(rows.ts)
        cells = cells_of(node)
        is_empty = np.logical_not(known.cells.reshape(-1, cells).any(axis=1))
        if len(now) and not self._is_of_bits:
            # Nothing is live in a block before its first row, whenever that is.
            known.bases[is_empty] = now.min()
        hashes = _hashed(values, len(rows))
        granules, missed = look_up(
            *(codes.codes, rows.ts, now, ends, enters.view(np.uint8), _probes(hashes, cells)),
            *(cells, _KINDS[node.kind], known.bases, known.cells),
        )
        until = np.where(granules > now, self._instants(granules), rows.ts)
        te = self._instants(ends) if node.kind is BloomKind.DISTINCT else rows.ts + 1
        ts = np.maximum(until, rows.ts)
        said = looks & (ts < te)
        self.missed = _missed(missed[looks], int(np.count_nonzero(said)))
        lasting = np.where(said, te - ts, 0)
        watched = WatchedRows(codes.codes, rows.ts, looks, enters, hashes, lasting)
        self._keep(known, *self._watch(known.numbers, is_empty, watched))
        ones = np.ones(len(rows), dtype=np.int64)
        return Batch(record_batch(values, node.schema, len(rows)), ts, te, ones).filter(said)

    def _sides(self, rows: Batch) -> tuple[BoolArray, BoolArray]:
        """Which rows are looked up, and which enter; bool[n] each."""
        if self._node.kind is not BloomKind.EXCEPT:
            every = np.ones(len(rows), dtype=np.bool_)
            return every, every
        enters = integers(rows.payload.columns[-1]) == 1
        return ~enters, enters

    def _granules(self, instants: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The granules of instants, and those up to which rows of these are there; int64[n] each."""
        size, granule = self._node.size.length, self._node.granule
        if self._is_of_bits:
            return np.zeros_like(instants), np.ones_like(instants)
        ends = ends_of(instants, size)
        up = self._node.kind is not BloomKind.DISTINCT
        return instants // granule, -(-ends // granule) if up else ends // granule

    def _instants(self, granules: Int64Array) -> Int64Array:
        """The instants at which granules begin; INFINITY where nothing leaves."""
        granule = self._node.granule
        never = granules > (0 if self._is_of_bits else INFINITY // granule)
        whole: Int64Array = np.where(never, INFINITY, np.where(never, 0, granules) * granule)
        return whole

    def _of(self, numbers: Int64Array) -> _Blocks:
        """Some blocks as they are in state, empty where they are not."""
        width = cells_of(self._node)
        bases = np.zeros(len(numbers), dtype=np.int64)
        cells = np.zeros((len(numbers), width), dtype=np.uint8)
        there, kept = self._newest(numbers)
        if kept is not None:
            bases[there] = integers(kept.column(_BASE))
            packed = np.frombuffer(b"".join(kept.column(_CELLS).to_pylist()), dtype=np.uint8)
            packed = packed.reshape(len(there), -1)
            cells[there] = np.unpackbits(packed, axis=1) if self._is_of_bits else packed
        return _Blocks(numbers, bases, cells.reshape(-1))

    def _newest(self, numbers: Int64Array) -> tuple[Int64Array, pa.RecordBatch | None]:
        """The newest rows of state of some numbers, with the places of those that have one (int64[k])."""
        keys = [pa.array(numbers)]
        places, rows = self._blocks.gather(hash_rows(keys, len(numbers)), keys)
        if rows is None:
            return places, None
        # Older runs come first: of a block the newest row counts.
        last = np.full(len(numbers), -1, dtype=np.int64)
        last[places] = np.arange(len(places))
        there = np.flatnonzero(last >= 0)
        return there, rows.take(pa.array(last[there]))

    def _watch(
        self, numbers: Int64Array, is_empty: BoolArray, rows: WatchedRows
    ) -> tuple[Int64Array, list[bytes]]:
        """Measure what was missed of the values that are known exactly; these, under their numbers.

        Args:
            numbers: int64[b], of the blocks.
            is_empty: bool[b], whether nothing was in one before.
            rows: what was looked at.
        """
        chosen = numbers % watched_every(self._node) == 0
        if not chosen.any():
            return numbers[:0], []
        rows, under = rows.of_blocks(chosen), -1 - numbers[chosen]
        packed: list[bytes | None] = [None] * len(under)
        there, found = self._newest(under)
        for place, number in enumerate(there.tolist()):
            assert found is not None
            packed[number] = found.column(_CELLS)[place].as_py()
        # The filter may be older than what is known of its values: that is complete when these have left.
        first = rows.instants[np.unique(rows.blocks, return_index=True)[1]]
        since = np.where(is_empty[chosen], BEGINNING, ends_of(first, self._node.size.length))
        watched = WatchedValues.of(self._node, packed, since)
        self.measured = watched.missed(rows)
        return under, watched.packed()

    def _keep(self, blocks: _Blocks, watched: Int64Array, values: list[bytes]) -> None:
        count, width = len(blocks.numbers), cells_of(self._node)
        cells = blocks.cells.reshape(count, width)
        packed = np.packbits(cells, axis=1) if self._is_of_bits else cells
        numbers, more = np.concatenate([blocks.numbers, watched]), len(watched)
        binary = pa.array([*map(bytes, packed), *values], BINARY)
        live = np.append(np.count_nonzero(cells, axis=1), np.ones(more, dtype=np.int64))
        keys, none = [pa.array(numbers)], np.zeros(more, dtype=np.int64)
        columns = {HASH: pa.array(hash_rows(keys, count + more)), TIME: pa.array(np.zeros_like(numbers))}
        columns |= {_BLOCK: keys[0], _BASE: pa.array(np.append(blocks.bases, none)), _CELLS: binary}
        self._blocks.insert(columns | {_LIVE: pa.array(live.astype(np.int64))})
        # Rows of a block that was written again are few, so that the filter fits into its memory.
        again = sum(run.rows for run in self._blocks.runs[1:])
        self._blocks.expire(0, dead=again + again // 2)


def _hashed(values: list[pa.Array], count: int) -> Int64Array:
    """int64[n]: the hashes of the values of rows, from which others are drawn."""
    return folded(hash_rows(values, count), np.full(count, SALT, dtype=np.int64))


def _probes(hashes: Int64Array, width: int) -> Int64Array:
    """int64[n * k]: the cells of the values of rows in their blocks."""
    count = len(hashes)
    found = np.empty((count, PROBES), dtype=np.int64)
    for number in range(PROBES):
        drawn = folded(hashes, np.full(count, number, dtype=np.int64))
        found[:, number] = (drawn.view(np.uint64) % np.uint64(width)).astype(np.int64)
    return found.reshape(-1)


def _missed(odds: Float64Array, given: int) -> float:
    """About how many rows were not yielded, beside so many that were.

    Args:
        odds: float64[n], the part of a new value that is expected to be missed, where rows were looked up.
        given: the rows that were yielded.
    """
    rate = float(odds.mean()) if len(odds) else 0.0
    return rate / max(1 - rate, _LEAST) * max(given, 1)
