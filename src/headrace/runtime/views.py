"""Views of a query's committed results: history, changes, stream, snapshot.

A strong answer says nothing above the heartbeat. Operators without a horizon pass elements on as they come
(decision 0001), so it is here that an element is held back: it is released by the first epoch whose heartbeat
has passed its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import (
    Filter,
    Granularity,
    HopWindow,
    Plan,
    Project,
    Rstream,
    TimeWindow,
    TopK,
)
from headrace.elements import Batch, Int64Array, concat, decode
from headrace.errors import HistoryError, UserError
from headrace.expressions.tree import Column
from headrace.history import canonical, clip, snapshot
from headrace.operators.state.order import rank_rows
from headrace.runtime.commits import EpochResults
from headrace.runtime.retention import whole_from
from headrace.runtime.store import Store, read_part
from headrace.schema import BIGINT, TIMESTAMP, unique_names
from headrace.time import BEGINNING, INFINITY, TimeDomain


@dataclass(frozen=True)
class ResultReader:
    """Reads what a run committed for one query.

    Attributes:
        name: the query.
        plan: its plan.
        store: where the segments lie.
        epochs: what was committed, in order.
    """

    name: str
    plan: Plan
    store: Store
    epochs: Sequence[EpochResults]

    @property
    def domain(self) -> TimeDomain:
        """What the result's instants count."""
        return self.plan.domain

    @property
    def heartbeat(self) -> int:
        """Up to where the result is final."""
        return self.heartbeat_of(self.epochs[-1]) if self.epochs else BEGINNING

    @property
    def first(self) -> int:
        """The first epoch whose changes can be told."""
        return whole_from(self.name, self.epochs)

    def released(self) -> Iterator[tuple[int, Batch]]:
        """Per epoch the elements that became part of the strong answer, in order of `ts`."""
        release, first = Release(self), self.first
        for part in self.epochs:
            batch = release.next(part)
            if len(batch) and part.epoch >= first:
                yield part.epoch, batch

    def elements(self) -> Batch:
        """All released elements."""
        return concat(self.plan.schema, [batch for _, batch in self.released()])

    def history(self) -> pa.Table:
        """The final content as coalesced intervals, sorted by `valid_from`, then payload.

        Returns:
            The payload, `valid_from` and `valid_to`, which is NULL where a row holds for ever.
        """
        return self.history_table(self._final())

    def _final(self) -> Batch:
        """The final content of everything that is kept."""
        try:
            return canonical(clip(self.elements(), self.heartbeat))
        except HistoryError as error:
            if self.first == 1:
                raise
            raise UserError(
                f"the answer of {self.name} cannot be told: results before epoch {self.first} are "
                "no longer kept",
                hint="read the changes from that epoch on, or keep more with retain_epochs",
            ) from error

    def history_table(self, final: Batch) -> pa.Table:
        """Final rows in the form of `history`."""
        return self._table(final, {"valid_from": final.ts, "valid_to": final.te})

    def changes(self) -> pa.Table:
        """The elements as they were emitted, corrections included.

        Returns:
            `epoch`, the payload, `valid_from`, `valid_to` and `change` (+1, -1, ...).
        """
        parts = [self.change_table(epoch, batch) for epoch, batch in self.released()]
        return pa.concat_tables(parts) if parts else self.change_table(0, concat(self.plan.schema, []))

    def change_table(self, epoch: int, batch: Batch) -> pa.Table:
        """Elements that an epoch released, in the form of `changes`."""
        table = self._table(batch, {"valid_from": batch.ts, "valid_to": batch.te})
        table = table.append_column(_free(table, "change"), pa.array(batch.w))
        return table.add_column(0, _free(table, "epoch"), pa.array(np.full(len(batch), epoch, np.int64)))

    def stream(self) -> pa.Table:
        """What the query's relation-to-stream operator yields: the payload and `ts`, in order of `ts`.

        Raises:
            UserError: the result is no stream of instants.
        """
        step, phase = stream_instants(self.name, self.plan)
        final = self._final()
        rows, times = _expanded(final, step, phase)
        order = np.argsort(times, kind="stable")
        chosen = final.take(rows[order])
        return self._table(chosen, {"ts": times[order]})

    def snapshot(self, instant: int) -> pa.Table:
        """The content at an instant, sorted by the query's ORDER BY, then by payload.

        Raises:
            UserError: the instant is not final yet.
        """
        if instant >= self.heartbeat:
            raise UserError(f"the answer at {instant} is not final yet")
        rows = snapshot(self.elements(), instant)
        if isinstance(self.plan, TopK) and self.plan.order:
            places = [key.expression.index for key in self.plan.order if isinstance(key.expression, Column)]
            ranks = rank_rows([rows.column(place) for place in places], self.plan.order)
            rows = rows.take(pa.array(np.argsort(ranks, kind="stable")))
        return pa.Table.from_batches([rows], schema=self.plan.schema.arrow())

    def heartbeat_of(self, part: EpochResults) -> int:
        """Up to where the result was final after an epoch."""
        return part.heartbeats.get(self.name, BEGINNING)

    def read(self, part: EpochResults) -> list[Batch]:
        """The elements that an epoch wrote."""
        return [decode(read_part(self.store, ref.part)) for ref in part.results.get(self.name, ())]

    def _table(self, batch: Batch, times: dict[str, Int64Array]) -> pa.Table:
        schema = self.plan.schema
        names = unique_names([*schema.names, *times])
        arrays = [*batch.payload.columns, *(self._instants(column) for column in times.values())]
        return pa.table(dict(zip(names, arrays, strict=True)))

    def _instants(self, values: Int64Array) -> pa.Array:
        column = pa.array(values, BIGINT, mask=values == INFINITY)
        return column.cast(TIMESTAMP) if self.domain is TimeDomain.TIMESTAMP else column


class Release:
    """Holds elements back until the heartbeat has passed their start."""

    def __init__(self, reader: ResultReader) -> None:
        self._reader = reader
        self._waiting = concat(reader.plan.schema, [])
        self._epochs = np.empty(0, np.int64)

    @property
    def oldest(self) -> int | None:
        """The oldest epoch that yielded an element which still waits, or None."""
        return int(self._epochs.min()) if len(self._epochs) else None

    def next(self, part: EpochResults) -> Batch:
        """What the next epoch releases, in order of `ts`."""
        everything = concat(self._reader.plan.schema, [self._waiting, *self._reader.read(part)])
        new = np.full(len(everything) - len(self._waiting), part.epoch)
        ready = everything.ts < self._reader.heartbeat_of(part)
        self._waiting = everything.take(np.flatnonzero(~ready))
        self._epochs = np.concatenate([self._epochs, new])[~ready]
        released = everything.take(np.flatnonzero(ready))
        return released.take(np.argsort(released.ts, kind="stable"))


class Finals:
    """Turns released elements into final rows of the history, each told once: when its end has passed.

    A row that is still open at the heartbeat is kept, and told when it ends, or when everything does.
    """

    def __init__(self, reader: ResultReader) -> None:
        self._schema = reader.plan.schema
        self._heartbeat = BEGINNING
        self._kept = concat(self._schema, [])

    def next(self, released: Batch, heartbeat: int) -> Batch:
        """The rows that ended below the new heartbeat, coalesced, in order of `ts`."""
        known = concat(self._schema, [self._kept, released])
        final = canonical(clip(known, heartbeat))
        is_open = (final.te == heartbeat) & (heartbeat != INFINITY)
        beyond = known.take(np.flatnonzero(known.te > heartbeat))
        beyond = Batch(beyond.payload, np.maximum(beyond.ts, heartbeat), beyond.te, beyond.w)
        self._kept = concat(self._schema, [final.take(np.flatnonzero(is_open)), beyond])
        self._heartbeat = heartbeat
        return final.take(np.flatnonzero(~is_open))

    def rest(self) -> Batch:
        """The rows that are open at the last heartbeat, up to it: what `next` has not told of the history."""
        return canonical(clip(self._kept, self._heartbeat))


@dataclass(frozen=True, eq=False)
class Change:
    """What one epoch changed in a query's answer.

    Attributes:
        epoch: its number.
        heartbeat: up to where the answer is final after it (instant).
        elements: what was released, in order of `ts`; may be empty.
        rows: the same as in `changes`: `epoch`, the payload, `valid_from`, `valid_to`, `change`.
    """

    epoch: int
    heartbeat: int
    elements: Batch
    rows: pa.Table


def dead_letters(store: Store, epochs: Sequence[EpochResults]) -> pa.Table:
    """The rows that no query could use.

    Returns:
        `epoch`, `stream`, `query` (which queries did without the row; NULL for all of its stream's),
        `reason`, `row` (as JSON or text) and `place`.
    """
    tables = [_LETTERS.empty_table()]
    for part in epochs:
        for ref in part.dead_letters:
            with pa.ipc.open_stream(read_part(store, ref.part)) as reader:
                rows = reader.read_all()
            tables.append(_with_queries(rows, part))
    return pa.concat_tables(tables)


_LETTERS = pa.schema(
    [("epoch", pa.int64()), *((name, pa.string()) for name in ("stream", "query", "reason", "row", "place"))]
)


def _with_queries(rows: pa.Table, part: EpochResults) -> pa.Table:
    names = {node: ", ".join(queries) for node, queries in part.users.items()}
    queries = pa.array([names.get(node) for node in rows["node"].to_pylist()], pa.string())
    columns = {name: rows[name] for name in _LETTERS.names if name != "query"}
    return pa.table(columns | {"query": queries}).select(_LETTERS.names)


def _free(table: pa.Table, name: str) -> str:
    return unique_names([*table.schema.names, name])[-1]


def stream_instants(name: str, plan: Plan) -> tuple[int, int]:
    """At which instants a query yields its stream: all, or those of the slide or granule under an RSTREAM.

    Returns:
        How far apart they lie, and by how much they lie above multiples of that.

    Raises:
        UserError: the query yields no stream of instants.
    """
    found = _changes(plan) if isinstance(plan, Rstream) else (1, 0)
    if found is None or not (isinstance(plan, Rstream) or plan.is_chronon):
        raise UserError(
            f"{name} is no stream: its rows are valid for longer than an instant",
            hint="wrap the query in ISTREAM(...) or DSTREAM(...), or in RSTREAM(...) over a window with "
            "a SLIDE or a GRANULARITY, or ask for the history",
        )
    return found


def _changes(plan: Plan) -> tuple[int, int] | None:
    """When the window that an RSTREAM stands over changes: its slide or granule, and their phase; or None."""
    below = plan
    while isinstance(below, Rstream | Filter | Project):
        below = below.input
    if hasattr(below, "input") and not isinstance(below, TimeWindow | HopWindow | Granularity):
        below = below.input
        while isinstance(below, Filter | Project):
            below = below.input
    match below:
        case TimeWindow(slide=slide) if slide.length > 1:
            return slide.length, -1
        case Granularity(granule=granule):
            return granule.length, 0
        case HopWindow(size=size, slide=slide, offset=offset) if slide.length > 1:
            # The stream is told at multiples of the slide, less one, where windows without an offset change.
            return (slide.length, -1) if (size.length + offset.length) % slide.length == 0 else None
        case _:
            return None


def _expanded(final: Batch, step: int, phase: int) -> tuple[Int64Array, Int64Array]:
    """The instants k * step + phase (all, for step 1) in each interval: the row and the instant of each."""
    bounded = np.concatenate([final.ts, final.te[final.te != INFINITY]])
    end = int(bounded.max()) if len(bounded) else 0
    first = -(-(final.ts - phase) // step)
    last = -(-(np.minimum(final.te, end) - phase) // step)
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(final)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, (first[rows] + offsets) * step + phase
