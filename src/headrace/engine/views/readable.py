"""The answer of a query, in the views that people read, whether it is being run or lies in a store."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa

from headrace.engine.inputs.times import Length, check_unit, instant_of
from headrace.engine.shown.display import html_of_rows, html_of_table
from headrace.engine.views.frames import to_pandas, to_polars
from headrace.engine.views.plot import chart_of
from headrace.engine.views.span_ends import Now, beginning_of, ends_of
from headrace.errors import StoreError, UserError
from headrace.runtime.journal.gap import Gap
from headrace.runtime.results.answer_sizes import AnswerSizes
from headrace.runtime.results.newest import newest_rows
from headrace.runtime.results.past import as_of_epoch, differences, differences_at, epoch_at, epochs_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.results.spans import answer_within, next_instant
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant, in_words

View = Literal["history", "changes", "stream", "latest"]
"""A view of an answer that needs no instant."""


_OUTPUTS: Final = ("open", "final")
"""What readers get of an answer: the output policies of CEDR that follow from what is said."""


class Readable(ABC):
    """What can be read of a query.

    Attributes:
        name: the query's.
    """

    name: str

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The answer's columns."""

    @property
    @abstractmethod
    def domain(self) -> TimeDomain:
        """What the answer's instants count."""

    @property
    @abstractmethod
    def is_events(self) -> bool:
        """Whether the answer is a stream of events, whose rows are of an instant each."""

    @abstractmethod
    def _reader(self) -> ResultReader:
        """What has been committed so far."""

    @abstractmethod
    def _gaps(self) -> tuple[Gap, ...]:
        """The instants about which the answer says nothing, since the query was paused."""

    def gaps(self) -> pa.Table:
        """The instants about which the answer says nothing or not all since the query was paused or replaced.

        It says nothing from `lacks_from` to before `lacks_to`, which may be the same. From there to before
        `exact_from` its windows lack rows from before. The same is in the metadata of the schema of `history`
        and `between`, as `headrace.gaps`: these three in JSON.

        Returns:
            `lacks_from`, NULL where nothing is said before; `lacks_to`, NULL likewise, and while the query
            is paused; and `exact_from`, NULL while it is paused, and where no such instant is known.

        Raises:
            UserError: the query has no answer.
        """
        reader, gaps = self._reader(), self._gaps()
        begins = [INFINITY if gap.begin == BEGINNING else gap.begin for gap in gaps]
        ends = [INFINITY if gap.end in (None, BEGINNING) else gap.end for gap in gaps]
        exact = [INFINITY if gap.exact_from is None else gap.exact_from for gap in gaps]
        columns = {"lacks_from": begins, "lacks_to": ends, "exact_from": exact}
        return pa.table(
            {name: reader.instants(np.array(part, dtype=np.int64)) for name, part in columns.items()}
        )

    @abstractmethod
    def _sizes(self) -> AnswerSizes:
        """The sizes that its windows within bounds have had."""

    def _read(self, view: Callable[[ResultReader], pa.Table], as_of: object = None) -> pa.Table:
        """A view of it; what is no longer kept by the time it is read is left out, as if asked later."""
        reader = self._reader()
        while True:
            try:
                return view(self._past(reader, as_of))
            except StoreError:
                before, reader = reader, self._reader()
                if reader.oldest == before.oldest:
                    raise

    @staticmethod
    def _past(reader: ResultReader, as_of: object) -> ResultReader:
        """The answer as of an epoch; see `history`."""
        if as_of is None:
            return reader
        epoch = as_of if isinstance(as_of, int) else epoch_at(reader, instant_of(as_of, TimeDomain.TIMESTAMP))
        return as_of_epoch(reader, epoch)

    @abstractmethod
    def _newest(self) -> int:
        """The newest timestamp that was read of the query's streams (instant), BEGINNING if none was."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.schema}, {self.described()[2]}>"

    def _repr_html_(self) -> str:
        name, _, answer = self.described()
        try:
            return html_of_table(self.history(), f"{name}: {answer}")
        except UserError:
            return ""

    def described(self) -> tuple[str, str, str]:
        """The query's name, its columns and how far its answer has come, as texts."""
        try:
            reader = self._reader()
        except UserError as error:
            answer = error.message.removeprefix(f"{self.name} ")
        else:
            answer = _how_far(reader, self.domain)
        return self.name, str(self.schema), answer

    @property
    def heartbeat(self) -> int:
        """The instant below which the answer is final; `headrace.INFINITY` when all of it is.

        An instant of a TIMESTAMP is in microseconds since 1970 (UTC). `headrace.BEGINNING` where nothing is
        final yet.

        Raises:
            UserError: the query has no answer: it was not run, or it failed.
        """
        return self._reader().heartbeat

    @property
    def horizon(self) -> int:
        """The instant below which the answer is said; from `heartbeat` on it may still change.

        It is the heartbeat of a query that is strong, as all are that say nothing else by CONSISTENCY.

        Raises:
            UserError: the query has no answer: it was not run, or it failed.
        """
        return self._reader().horizon

    def history(self, as_of: object = None, *, tunings: bool = False) -> pa.Table:
        """The answer as coalesced intervals: the payload, `valid_from`, `valid_to` (NULL = for ever).

        Instants about which nothing is said, such as those of a pause, look empty; see `gaps`.
        Where `retain_epochs` has removed results, it begins at the last instant that they made final.

        Args:
            as_of: the epoch after which it is asked for, by its number; or a time of the clock, for the last
                epoch that took its rows by then (a datetime, UTC where it has no zone, or ISO 8601 text). The
                last one that is committed if None.
            tunings: whether rows are cut where other sizes of windows within bounds begin to count, and a
                column `tunings` says which these are, of granules and of the share of rows that was kept too.

        Returns:
            In `tunings` is a list, by window, the oldest size first. It begins with the size at the oldest
            instant whose rows may be in the answer, so that an answer with one size of a window is exactly
            that of a window of that size. It has structs: `streams`, `kind`, `smallest`, `largest` and
            `size`, as the stream `headrace.tunings` has them (instants, microseconds of a TIMESTAMP; rows;
            millionths of a share), and `since`, the first instant of the size, NULL for the one before all
            changes. Of a window of rows all sizes that are known from before the end of the row are named,
            since what has left it does not come back. NULL in place of a list is an answer by a plan that
            was replaced by one with other windows.

        Raises:
            UserError: the epoch is not committed, or no longer kept; or the query has no answer.
        """
        if not tunings:
            return self._with_gaps(self._read(ResultReader.history, as_of))
        # Asked after the rows are known: a size that is new by then is of later instants.
        sized = self._read(lambda reader: reader.sized_history(self._sizes()), as_of)
        return self._with_gaps(sized)

    def between(self, begin: object, end: object, as_of: object = None) -> pa.Table:
        """The answer at the instants from one to before another, as `history` gives it; rows are cut there.

        Args:
            begin, end: the instants, as of `snapshot`; or `Now`, before which there are no rows until
                something is said.
            as_of: after which epoch, as of `history`.

        Raises:
            UserError: the first one is not before the other, not all of it is final or kept; or as `history`
                does.
        """
        ends = ends_of(begin, end, self.domain, self._newest())

        def cut(reader: ResultReader) -> pa.Table:
            span = ends(reader)
            if span is None:
                return reader.history()
            first, last = span
            if first >= last:
                raise UserError(
                    f"{format_instant(first, self.domain)} is not before {format_instant(last, self.domain)}",
                    hint="give the first instant, then the first one after the last",
                )
            return reader.between(first, last)

        return self._with_gaps(self._read(cut, as_of))

    def within(self, begin: object, end: object, as_of: object = None) -> pa.Table:
        """The content over the instants from one to before another.

        It is what a standing query answers whose window gets its ends when it is asked (PSoup): of a stream
        each of its rows in the span, of other answers the rows that are there at some instant of it, each as
        often as it is at once at most.

        Args:
            begin, end: the first instant, and the first one after the last, as of `snapshot`; or `Now`,
                before which there are no rows until something is said.
            as_of: after which epoch, as of `history`.

        Raises:
            UserError: the first one is not before the other, not all of it is said or kept; or as `history`
                does.
        """
        ends = ends_of(begin, end, self.domain, self._newest())

        def cut(reader: ResultReader) -> pa.Table:
            span = ends(reader)
            return reader.nothing() if span is None else answer_within(reader, *span)

        return self._with_gaps(self._read(cut, as_of))

    def _with_gaps(self, table: pa.Table) -> pa.Table:
        """A part of the answer that says which instants only look empty."""
        gaps = self._gaps()
        if not gaps:
            return table
        said = json.dumps([[gap.begin, gap.end, gap.exact_from] for gap in gaps])
        return table.replace_schema_metadata({**(table.schema.metadata or {}), b"headrace.gaps": said})

    def changes(self, as_of: object = None, output: str = "open") -> pa.Table:
        """The elements as emitted: `epoch`, the payload, `valid_from`, `valid_to`, `change`.

        Args:
            as_of: up to which epoch, as of `history`.
            output: `open` for rows up to where they hold by what has come; `final` for the part of them that
                no rows in order take back, and the rest of them once that holds.

        Raises:
            UserError: as `history` does, or there is no such output.
        """
        check_output(output)
        return self._read(ResultReader.changes if output == "open" else ResultReader.settled_changes, as_of)

    def stream(self, as_of: object = None) -> pa.Table:
        """What ISTREAM, DSTREAM or RSTREAM yields: the payload and `ts`.

        Args:
            as_of: after which epoch, as of `history`.

        Raises:
            UserError: the query yields no stream of instants; or as `history` does.
        """
        return self._read(ResultReader.stream, as_of)

    def tail(self, rows: int = 10, as_of: object = None) -> pa.Table:
        """The newest rows, the newest one last.

        Of events only the newest epochs are read. Rows are as far as the answer is said, as its changes are:
        of a query that says what is not final yet the last ones may be taken back.

        Args:
            rows: so many of them at most.
            as_of: after which epoch, as of `history`.

        Returns:
            Where the answer is a stream of events (`is_events`), those of the last instants: the payload and
            `ts`, as `stream` has them. Else the rows that began last: the payload, `valid_from` and
            `valid_to`, as `history` has them; one that still holds ends where the answer is said.

        Raises:
            UserError: the number is below zero; or as `history` does.
        """
        if rows < 0:
            raise UserError(f"there are no {rows} rows", hint="ask for 0 rows or more")
        return self._read(lambda reader: newest_rows(reader, rows), as_of)

    def snapshot(
        self, at: object, as_of: object = None, *, last: Length | None = None, since: object = None
    ) -> pa.Table:
        """The content at an instant: an integer, an aware or naive (UTC) datetime, or ISO 8601 text.

        Args:
            at: the instant.
            as_of: after which epoch, as of `history`: what was known then.
            last: a length of time; the content over so many instants, of which `at` is the last one, as
                `within` says it.
            since: an instant; the content from it up to `at`.

        Raises:
            UserError: the answer is (or was) not final there yet, or no longer kept; nothing holds there, and
                the number is one of seconds or milliseconds; both `last` and `since` are given, or there is
                no instant between; or as `history` does.
        """
        instant = instant_of(at, self.domain)
        begin = beginning_of(instant + 1, last, since, self.domain)
        if begin is None:
            found = self._read(lambda reader: reader.snapshot(instant), as_of)
        else:
            found = self.within(begin, instant + 1, as_of)
        if not found.num_rows:
            check_unit(at, self.domain, self._newest())
        return found

    def difference(self, before: object, after: object = None, at: object = None) -> pa.Table:
        """How the answer as of an epoch differs from that as of an earlier one.

        Args:
            before: the earlier epoch, as of `history`.
            after: the later one; the last that is committed if None.
            at: the instant of the snapshots that are compared; all that was said is if None.

        Returns:
            The payload, then `valid_from` and `valid_to` unless snapshots are compared, and `change`: 1 for
            what only the later answer has, -1 for what only the earlier one had. Instants that the earlier
            answer did not speak of are only in the later one.

        Raises:
            UserError: as `snapshot` does.
        """
        instant = None if at is None else instant_of(at, self.domain)

        def compared(reader: ResultReader) -> pa.Table:
            earlier, later = self._past(reader, before), self._past(reader, after)
            if instant is None:
                return differences(earlier, later)
            return differences_at(earlier, later, instant)

        found = self._read(compared)
        if not found.num_rows:
            check_unit(at, self.domain, self._newest())
        return found

    def epochs(self) -> pa.Table:
        """The epochs as of which the answer can be asked for: `epoch`, `taken_at`, `heartbeat` and `horizon`.

        Returns:
            Per epoch after which something was said: when it took its rows, by the clock, the instant below
            which the answer was final after it, and that below which it was said. NULL is the end of time;
            `heartbeat` alone is NULL where nothing was final.

        Raises:
            UserError: the query has no answer.
        """
        return self._read(epochs_of)

    def latest(self, as_of: object = None, *, last: Length | None = None, since: object = None) -> pa.Table:
        """The snapshot at the last instant that is said and not after the newest row read: the answer now.

        What is said is final, unless the query says more: `CONSISTENCY MIDDLE` answers up to the newest row.

        The newest row is that of all streams that the query reads; if there is none, as over relations alone,
        it is the last final instant. A row that comes later may change the answer at its own instant, so that
        while a run goes on this is a moment behind the newest row.

        Before anything is said it has no rows.

        Args:
            as_of: after which epoch, as of `history`: what was known then.
            last, since: the content over so many instants up to that one, or from an instant up to it, as of
                `snapshot`.

        Raises:
            UserError: the query has no answer; or as `snapshot` does.
        """
        begin = beginning_of(Now(), last, since, self.domain)
        if begin is not None:
            return self.within(begin, Now(), as_of)
        # Asked first: what is read in between moves the heartbeat on, too.
        newest = self._newest()

        def newest_of(reader: ResultReader) -> pa.Table:
            after = next_instant(reader, newest)
            return reader.nothing() if after is None else reader.snapshot(after - 1)

        return self._read(newest_of, as_of)

    def to_pandas(self, view: View = "history") -> Any:
        """The answer as a pandas data frame; BIGINTs with NULLs among them are pandas' `Int64`.

        Args:
            view: the method of the same name that gives the rows.

        Raises:
            UserError: there is no such view, or as that method does.
        """
        return to_pandas(self._view(view))

    def to_polars(self, view: View = "history") -> Any:
        """The answer as a Polars data frame; see `to_pandas`.

        Raises:
            UserError: Polars is not installed, there is no such view, or as its method does.
        """
        return to_polars(self._view(view))

    def plot(
        self,
        value: str | None = None,
        by: Sequence[str] | None = None,
        *,
        kind: Literal["lines", "multiples", "heat"] = "lines",
        at: object = None,
    ) -> Any:
        """The answer as an Altair chart: a value over time, as a line of steps per group.

        An estimate `n` has its bounds `n_low` and `n_high` as a band around the line.

        Args:
            value: the column that is drawn; the last one with numbers that is no bound if None.
            by: the columns that make the groups; all others, but estimates and bounds, if None.
            kind: `lines`; `multiples`, a small drawing for each group; or `heat`, where the value is a
                colour: for one column of groups over time, for two, such as `first` and `second` of
                correlated pairs, as a square for each pair at an instant.
            at: the instant of such squares, as of `snapshot`; the last at which the answer changes if None.

        Raises:
            UserError: Altair is not installed, there is no such column or kind, or more than 20,000 rows; or
                as `history` and `snapshot` do.
        """
        if at is not None and kind != "heat":
            raise UserError("a chart of lines has all instants", hint="leave out at, or write kind='heat'")
        if at is None:
            return chart_of(self.history(), value, by, self.name, kind)
        return chart_of(self.snapshot(at), value, by, self.name, kind, at_instant=True)

    def _view(self, view: View) -> pa.Table:
        self._check_view(view)
        table: pa.Table = getattr(self, view)()
        return table

    def _check_view(self, view: str) -> None:
        if view not in get_args(View):
            raise UserError(f"there is no view {view}", hint=f"ask for {', '.join(get_args(View))}")

    def _html_of_columns(self) -> str:
        name, columns, answer = self.described()
        return html_of_rows((name,), [(columns,), (answer,)])


def _how_far(reader: ResultReader, domain: TimeDomain) -> str:
    """Up to where an answer is final, and said if that is further, as text."""
    heartbeat, horizon = reader.heartbeat, reader.horizon
    if heartbeat == INFINITY:
        return "final"
    final = "nothing is final yet"
    if heartbeat > BEGINNING:
        final = f"final below {in_words(format_instant(heartbeat, domain))}"
    return (
        f"{final}, said below {in_words(format_instant(horizon, domain))}" if horizon > heartbeat else final
    )


def check_output(output: str) -> None:
    """See that there is such an output policy of readers.

    Raises:
        UserError: there is none.
    """
    if output not in _OUTPUTS:
        raise UserError(
            f"there is no output {output}",
            hint="write output='open' or output='final'; what is maximal is said by a query with CONSISTENCY "
            "(OUTPUT MAXIMAL)",
        )
