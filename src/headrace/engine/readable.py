"""The answer of a query, in the views that people read, whether it is being run or lies in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import pyarrow as pa

from headrace.engine.display import html_of_rows, html_of_table
from headrace.engine.frames import to_pandas, to_polars
from headrace.engine.plotting import chart_of
from headrace.engine.times import instant_of
from headrace.errors import StoreError, UserError
from headrace.runtime.results.reader import ResultReader
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant

View = Literal["history", "changes", "stream", "latest"]
"""A view of an answer that needs no instant."""


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

    @abstractmethod
    def _reader(self) -> ResultReader:
        """What has been committed so far."""

    def _read(self, view: Callable[[ResultReader], pa.Table]) -> pa.Table:
        """A view of it; what is no longer kept by the time it is read is left out, as if asked later."""
        reader = self._reader()
        while True:
            try:
                return view(reader)
            except StoreError:
                before, reader = reader, self._reader()
                if reader.oldest == before.oldest:
                    raise

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
            heartbeat = self.heartbeat
        except UserError as error:
            answer = error.message.removeprefix(f"{self.name} ")
        else:
            answer = _how_far(heartbeat, self.domain)
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

    def history(self) -> pa.Table:
        """The answer as coalesced intervals: the payload, `valid_from`, `valid_to` (NULL = for ever).

        Where `retain_epochs` has removed results, it begins at the last instant that they made final.
        """
        return self._read(ResultReader.history)

    def changes(self) -> pa.Table:
        """The elements as emitted: `epoch`, the payload, `valid_from`, `valid_to`, `change`."""
        return self._read(ResultReader.changes)

    def stream(self) -> pa.Table:
        """What ISTREAM, DSTREAM or RSTREAM yields: the payload and `ts`.

        Raises:
            UserError: the query yields no stream of instants.
        """
        return self._read(ResultReader.stream)

    def snapshot(self, at: object) -> pa.Table:
        """The content at an instant: an integer, an aware or naive (UTC) datetime, or ISO 8601 text.

        Raises:
            UserError: the answer is not final there yet, or no longer kept.
        """
        instant = instant_of(at, self.domain)
        return self._read(lambda reader: reader.snapshot(instant))

    def latest(self) -> pa.Table:
        """The snapshot at the last final instant that is not after the newest row read: the answer now.

        The newest row is that of all streams that the query reads; if there is none, as over relations alone,
        it is the last final instant. A row that comes later may change the answer at its own instant, so that
        while a run goes on this is a moment behind the newest row.

        Raises:
            UserError: nothing is final yet, or the query has no answer.
        """
        # Asked first: what is read in between moves the heartbeat on, too.
        newest = self._newest()
        newest = INFINITY if newest == BEGINNING else newest
        return self._read(
            lambda reader: reader.snapshot(
                max(reader.boundary, min(newest, max(reader.heartbeat, BEGINNING + 1) - 1))
            )
        )

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

    def plot(self, value: str | None = None, by: Sequence[str] | None = None) -> Any:
        """The history as an Altair chart: a value over time, as a line of steps per group.

        Args:
            value: the column that is drawn; the last one with numbers if None.
            by: the columns that make the groups; all others if None.

        Raises:
            UserError: Altair is not installed, there is no such column, or more than 20,000 rows; or as
                `history` does.
        """
        return chart_of(self.history(), value, by, self.name)

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


def _how_far(heartbeat: int, domain: TimeDomain) -> str:
    """Up to where an answer is final, as text."""
    if heartbeat in (BEGINNING, INFINITY):
        return "nothing is final yet" if heartbeat == BEGINNING else "final"
    return f"final below {format_instant(heartbeat, domain)}"
