"""Views of a query's committed results: history, changes, stream, snapshot.

A strong answer says nothing above the heartbeat, and one that does not wait nothing above its horizon.
Operators that need not wait pass elements on as they come (decision 0001), so it is here that an element is
held back: it is released by the first epoch whose heartbeat, or horizon, has passed its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, Int64Array, concat, empty
from headrace.errors import UserError
from headrace.expressions.tree import Column
from headrace.history import canonical, clip, snapshot
from headrace.lowering.query_id import first_name
from headrace.operators.state.order import rank_rows
from headrace.runtime.journal.forms import Form
from headrace.runtime.journal.records import Carried, EpochResults
from headrace.runtime.journal.retention import whole_from
from headrace.runtime.results.answer_sizes import SIZES, AnswerSizes, cut_by_sizes, sizes_of
from headrace.runtime.results.carried import read_carried, release_of
from headrace.runtime.results.instants import expanded, stream_instants
from headrace.runtime.results.release import Release, Settled
from headrace.runtime.store.segments import Store
from headrace.schema import BIGINT, TIMESTAMP, Field, Schema, unique_names
from headrace.time import ALWAYS, BEGINNING, INFINITY, TimeDomain, format_instant


@dataclass(frozen=True)
class ResultReader:
    """Reads what a run committed for one query.

    Attributes:
        query: its identity.
        form: what there is to know of its plan.
        store: where the segments are.
        epochs: what was committed, in order.
        carried: what older epochs leave behind, of which results are no longer kept; None if none have gone.
        start: the first epoch of the query.
        called: what the query is called; as it was created if empty.
    """

    query: str
    form: Form
    store: Store
    epochs: Sequence[EpochResults]
    carried: Carried | None = None
    start: int = 1
    called: str = ""

    @property
    def name(self) -> str:
        """What the query is called."""
        return self.called or first_name(self.query)

    @property
    def domain(self) -> TimeDomain:
        """What the result's instants count."""
        return self.form.domain

    @property
    def heartbeat(self) -> int:
        """Up to where the result is final."""
        return self.heartbeat_of(self.epochs[-1]) if self.epochs else BEGINNING

    @property
    def horizon(self) -> int:
        """Up to where the result is said; beyond the heartbeat it may change."""
        return self.epochs[-1].reach(self.query) if self.epochs else BEGINNING

    @property
    def boundary(self) -> int:
        """The first instant about which what is kept says something; BEGINNING if that is everything."""
        boundary = BEGINNING if self.carried is None else self.carried.boundary
        # Nothing holds before that.
        return BEGINNING if boundary <= ALWAYS else boundary

    @property
    def oldest(self) -> int | None:
        """The oldest epoch that is kept, if there is one."""
        return self.epochs[0].epoch if self.epochs else None

    @property
    def first(self) -> int:
        """The first epoch whose changes can be read in full."""
        return whole_from(self.query, self.epochs)

    def released(self) -> Iterator[tuple[int, Batch]]:
        """Per epoch the elements that became part of the answer, in order of `ts`."""
        release, first = Release(self.form.schema), self.first
        for part in self.epochs:
            batch = self.release(release, part)
            if len(batch) and part.epoch >= first:
                yield part.epoch, batch

    def release(self, release: Release, part: EpochResults) -> Batch:
        """What an epoch releases, in order of `ts`, after those before it."""
        return release_of(release, self.query, self.store, part)

    def elements(self) -> Batch:
        """All released elements."""
        return concat(self.form.schema, [batch for _, batch in self.released()])

    def content(self) -> Batch:
        """All released elements, those before the boundary folded into what they leave behind.

        Raises:
            UserError: some have gone and nothing was carried, since the query was dropped.
        """
        if self.carried is None and self.first > self.start:
            raise UserError(
                f"the answer of {self.name} is no longer kept: results before epoch {self.first} are gone, "
                "and the query was dropped",
                hint="read the changes from that epoch on, or keep more with retain_epochs",
            )
        first = self.start if self.carried is None else self.carried.first
        known = read_carried(self.form.schema, self.store, self.carried)
        news = [batch for epoch, batch in self.released() if epoch >= first]
        return concat(self.form.schema, [known, *news])

    def yielded(self) -> Batch:
        """All elements, those that are not yet final included; those before the boundary are folded."""
        release = Release(self.form.schema)
        for part in self.epochs:
            self.release(release, part)
        return concat(self.form.schema, [self.content(), release.next(0, INFINITY, [])])

    def history(self) -> pa.Table:
        """The final content from the boundary on as coalesced intervals, by `valid_from`, then payload.

        Returns:
            The payload, `valid_from` and `valid_to`, which are NULL where a row has always been there, and
            where it holds for ever.
        """
        return self.history_table(self.final())

    def between(self, begin: int, end: int) -> pa.Table:
        """The final content from an instant to before another, in the form of `history`, cut at both.

        Raises:
            UserError: not all of it is final, or kept.
        """
        if begin < self.boundary:
            raise self._no_longer_kept(begin)
        if end > self.heartbeat:
            raise self._not_final(end - 1)
        final = clip(self.final(), end)
        late = final.filter(final.te > begin)
        return self.history_table(Batch(late.payload, np.maximum(late.ts, begin), late.te, late.w))

    def final(self) -> Batch:
        """The final content of everything that is kept, as coalesced intervals."""
        return canonical(clip(self.content(), self.heartbeat))

    def sized_history(self, known: AnswerSizes) -> pa.Table:
        """The same, cut where other sizes count, with these in a column `tunings`; see `sizes_of`.

        Args:
            known: the sizes that they have had.
        """
        final = cut_by_sizes(self.final(), known)
        table = self.history_table(final)
        return table.append_column(_free(table, SIZES), sizes_of(final, known, self.instants))

    def history_table(self, final: Batch) -> pa.Table:
        """Final rows in the form of `history`."""
        return self._table(final, {"valid_from": final.ts, "valid_to": final.te})

    def changes(self) -> pa.Table:
        """The elements as they were emitted, corrections included.

        Returns:
            `epoch`, the payload, `valid_from`, `valid_to` and `change` (+1, -1, ...).
        """
        parts = [self.change_table(epoch, batch) for epoch, batch in self.released()]
        return pa.concat_tables(parts) if parts else self.change_table(0, concat(self.form.schema, []))

    def settled(self) -> Iterator[tuple[int, Batch]]:
        """Per epoch what it says that no input in order takes back; see `Settled`.

        Of epochs that are no longer kept the first one that is says it all, from the boundary on.
        """
        release, settled, first = Release(self.form.schema), Settled(self.form.schema), self.first
        for place, part in enumerate(self.epochs):
            batch = self.release(release, part)
            if part.epoch < first:
                continue
            if part.epoch == first > self.start:
                batch = replace(self, epochs=self.epochs[: place + 1]).content()
            batch = settled.next(batch, self.heartbeat_of(part), part.reach(self.query))
            if len(batch):
                yield part.epoch, batch

    def settled_changes(self) -> pa.Table:
        """What was said that no input in order takes back, in the form of `changes`."""
        parts = [self.change_table(epoch, batch) for epoch, batch in self.settled()]
        return pa.concat_tables(parts) if parts else self.change_table(0, concat(self.form.schema, []))

    def change_table(self, epoch: int, batch: Batch) -> pa.Table:
        """Elements that an epoch released, in the form of `changes`."""
        table = self.signed_table(batch)
        return table.add_column(0, _free(table, "epoch"), pa.array(np.full(len(batch), epoch, np.int64)))

    def change_schema(self) -> Schema:
        """The columns of `changes`."""
        names = unique_names([*self.form.schema.names, "valid_from", "valid_to"])
        *names, change = unique_names([*names, "change"])
        *names, epoch = unique_names([*names, "epoch"])
        instant = TIMESTAMP if self.domain is TimeDomain.TIMESTAMP else BIGINT
        types = [BIGINT, *(field.type for field in self.form.schema), instant, instant, BIGINT]
        return Schema(tuple(map(Field, [epoch, *names, change], types)))

    def signed_table(self, batch: Batch) -> pa.Table:
        """Elements as rows: the payload, `valid_from`, `valid_to` and `change`."""
        table = self._table(batch, {"valid_from": batch.ts, "valid_to": batch.te})
        return table.append_column(_free(table, "change"), pa.array(batch.w))

    def stream(self) -> pa.Table:
        """What the query's relation-to-stream operator yields: the payload and `ts`, in order of `ts`.

        Raises:
            UserError: the result is not a stream of instants.
        """
        step, phase = stream_instants(self.name, self.form)
        final = self.final()
        rows, times = expanded(final, step, phase)
        order = np.argsort(times, kind="stable")
        return self.stream_table(final.take(rows[order]), times[order])

    def stream_table(self, rows: Batch, instants: Int64Array) -> pa.Table:
        """Rows and their instants in the form of `stream`."""
        return self._table(rows, {"ts": instants})

    def snapshot(self, instant: int) -> pa.Table:
        """The content at an instant, sorted by the query's ORDER BY, then by payload.

        Beyond the heartbeat it is what follows from the rows that have come, and may change: the table's
        metadata says `final` by `true` or `false`.

        Raises:
            UserError: the instant is beyond what is said, or before what is kept.
        """
        self.check_said(instant)
        return self.content_table(snapshot(self.content(), instant), final=instant < self.heartbeat)

    def nothing(self) -> pa.Table:
        """A snapshot without rows, as long as nothing is said."""
        return self.content_table(empty(self.form.schema).payload, final=False)

    def content_table(self, rows: pa.RecordBatch, *, final: bool) -> pa.Table:
        """Rows in the form of `snapshot`.

        Args:
            rows: sorted by payload.
            final: whether nothing of them may change.
        """
        if order := self.form.order:
            places = [key.expression.index for key in order if isinstance(key.expression, Column)]
            ranks = rank_rows([rows.column(place) for place in places], order)
            rows = rows.take(pa.array(np.argsort(ranks, kind="stable")))
        table = pa.Table.from_batches([rows], schema=self.form.schema.arrow())
        return table.replace_schema_metadata({b"final": b"true" if final else b"false"})

    def check_said(self, instant: int) -> None:
        """See that the content at an instant is said, final or not, and kept.

        Raises:
            UserError: it is not.
        """
        if instant < self.boundary:
            raise self._no_longer_kept(instant)
        if instant >= max(self.heartbeat, self.horizon):
            raise self._not_said(instant)

    def _no_longer_kept(self, instant: int) -> UserError:
        asked, kept = (format_instant(at, self.domain) for at in (instant, self.boundary))
        return UserError(
            f"the answer of {self.name} at {asked} is no longer kept, only from {kept} on",
            hint="ask for a later instant, or keep more with retain_epochs",
        )

    def _not_final(self, instant: int) -> UserError:
        if self.heartbeat == BEGINNING:
            return UserError(f"nothing of the answer of {self.name} is final yet", hint="wait for rows")
        asked = format_instant(instant, self.domain)
        below = format_instant(self.heartbeat, self.domain)
        return UserError(
            f"the answer at {asked} is not final yet, only below {below}",
            hint="ask for an instant before that, or for latest()",
        )

    def _not_said(self, instant: int) -> UserError:
        """The error for an instant of which nothing is said, not even what may still be corrected."""
        if self.horizon <= self.heartbeat:
            return self._not_final(instant)
        asked, said = (format_instant(at, self.domain) for at in (instant, self.horizon))
        final = f"final below {format_instant(self.heartbeat, self.domain)}"
        return UserError(
            f"nothing is said of the answer at {asked} yet, only below {said}, "
            f"{'of which nothing is final' if self.heartbeat == BEGINNING else final}",
            hint="ask for an instant before that, or for latest()",
        )

    def heartbeat_of(self, part: EpochResults) -> int:
        """Up to where the result was final after an epoch."""
        return part.heartbeats.get(self.query, BEGINNING)

    def _table(self, batch: Batch, times: dict[str, Int64Array]) -> pa.Table:
        schema = self.form.schema
        names = unique_names([*schema.names, *times])
        arrays = [*batch.payload.columns, *(self.instants(column) for column in times.values())]
        return pa.table(dict(zip(names, arrays, strict=True)))

    def instants(self, values: Int64Array) -> pa.Array:
        """Instants as a column of the answer's time domain; NULL for the ends of time."""
        column = pa.array(values, BIGINT, mask=(values == INFINITY) | (values == ALWAYS))
        return column.cast(TIMESTAMP) if self.domain is TimeDomain.TIMESTAMP else column


def _free(table: pa.Table, name: str) -> str:
    return unique_names([*table.schema.names, name])[-1]
