"""What `db.status` gives: how far the streams, queries and operators of a run are."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from headrace.algebra.tunings.tunings import Tunings
from headrace.engine.shown.display import html_of_rows
from headrace.engine.shown.lanes import LANES, lane_row, waiting_text
from headrace.errors import UserError
from headrace.heartbeats.estimated import DisorderChange
from headrace.lowering.graph import Graph
from headrace.runtime.delivery.clients import NamedReader
from headrace.runtime.delivery.contract import Reached
from headrace.runtime.driver.beside.starting_at import CatchingUp
from headrace.runtime.driver.endless.attempt import Attempt
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.status import (
    OperatorStatus,
    PausedStatus,
    QueryStatus,
    StreamStatus,
    operator_statuses,
    paused_statuses,
    query_statuses,
)
from headrace.runtime.driver.facts.stream_status import stream_statuses
from headrace.runtime.driver.lanes.status import LaneStatus, lane_of_query
from headrace.runtime.driver.manager.managed import Managed
from headrace.runtime.driver.shedder.findings import Shedding
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.writing.tables import write_table
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant, format_length

TextRow = tuple[str, ...]
TextTable = tuple[TextRow, list[TextRow]]
"""The names of columns, and rows of texts."""

_INSTANTS: Final = frozenset(["heartbeat", "horizon", "latest", "first", "last", "waiting_since"])
"""The attributes that hold instants."""


@dataclass(frozen=True, repr=False)
class Status:
    """How far a run is, after one of its commits.

    Attributes:
        running: whether an endless run is going on.
        epoch: the last epoch that was committed, 0 if none was.
        at: when that was (microseconds since 1970).
        streams, queries, operators: those of the run; operators in the order of the physical plan.
        graph: the physical plan.
        attempt: the epoch that is running, or None.
        catching_up: the query that is being brought from the past to the present, or None.
        clients: the readers with names, and how far each has come.
        sinks: where changes go, and how far they have come there.
        paused: the queries that are not answered until they are resumed.
        ended: what has ended an endless run before it was to end, or None.
        tunings: the sizes of windows within bounds that have changed.
        managed: the findings of the manager of memory; None without a limit, and before there are any.
        shedding: the findings of the shedder; None without a bound of latency, and before there are any.
        lanes: the queries in front, and the lanes of those that are behind; none where nobody has a priority.
    """

    running: bool
    epoch: int
    at: int
    streams: tuple[StreamStatus, ...]
    queries: tuple[QueryStatus, ...]
    operators: tuple[OperatorStatus, ...]
    graph: Graph
    attempt: Attempt | None = None
    catching_up: CatchingUp | None = None
    clients: tuple[NamedReader, ...] = ()
    sinks: tuple[Reached, ...] = ()
    paused: tuple[PausedStatus, ...] = ()
    ended: str | None = None
    tunings: Tunings = field(default_factory=dict)
    managed: Managed | None = None
    shedding: Shedding | None = None
    lanes: tuple[LaneStatus, ...] = ()

    def stream(self, name: str) -> StreamStatus:
        """The status of a stream, whatever the case of its name.

        Raises:
            UserError: no query reads a stream of that name.
        """
        found = next((part for part in self.streams if part.name.lower() == name.lower()), None)
        if found is None:
            raise UserError(f"no query that runs reads a stream {name}")
        return found

    def query(self, name: str) -> QueryStatus:
        """The status of a query, whatever the case of its name.

        Raises:
            UserError: no query of that name runs.
        """
        found = next((part for part in self.queries if part.name.lower() == name.lower()), None)
        if found is None:
            raise UserError(f"the query {name} is not part of the run", hint="call run() or start() again")
        return found

    def held_by(self, query: QueryStatus) -> str:
        """The stream that a query waits for, or what waits for it where it is behind; maybe empty."""
        lane = lane_of_query(self.lanes, query.name)
        waiting = "" if lane is None else waiting_text(lane)
        return f"its lane: {waiting}" if waiting else query.held_by or ""

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON, without the plan.

        An instant is None where nothing is final or was read yet, and `end` at the end of all time; those of
        TIMESTAMPs are texts, and lengths of their time are in microseconds.
        """
        return {
            "running": self.running,
            "epoch": self.epoch,
            "at": format_instant(self.at, TimeDomain.TIMESTAMP),
            "streams": [_plain(part) for part in self.streams],
            "queries": [_plain(part) for part in self.queries],
            "operators": [_plain(part) for part in self.operators],
            "catching_up": None if self.catching_up is None else asdict(self.catching_up),
            "paused": [_plain(part) for part in self.paused],
            "ended": self.ended,
            "attempt": None if self.attempt is None else _plain_attempt(self.attempt),
            "managed": None if self.managed is None else self.managed.to_dict(),
            "shedding": None if self.shedding is None else self.shedding.to_dict(),
            "lanes": [asdict(one) for one in self.lanes],
        }

    def __repr__(self) -> str:
        return f"<Status {self._title}; {'; '.join(map(self._in_short, self.queries))}>"

    def _in_short(self, query: QueryStatus) -> str:
        if query.failed is not None:
            return f"{query.name} failed"
        if query.heartbeat in (BEGINNING, INFINITY):
            return f"{query.name} {'final' if query.heartbeat == INFINITY else 'has nothing final yet'}"
        until = instant_text(query.heartbeat, query.domain)
        return f"{query.name} final below {until}, held by {self.held_by(query)}"

    def __str__(self) -> str:
        tables = (_text(names, rows) for names, rows in self._tables)
        return "\n\n".join([self._title, *tables])

    def _repr_html_(self) -> str:
        tables = self._tables
        titles = (self._title, *("",) * (len(tables) - 1))
        return "".join(html_of_rows(*table, title) for table, title in zip(tables, titles, strict=True))

    @property
    def _title(self) -> str:
        title = f"{'running' if self.running else 'at rest'}, epoch {self.epoch}"
        found = self.catching_up
        if found is None:
            return title
        rows = f"{found.rows:,} of {found.rows + found.left:,} rows"
        return f"{title}, {found.query} has taken {rows} of the past"

    @property
    def _tables(self) -> tuple[TextTable, ...]:
        return (
            (STREAM_COLUMNS, list(map(stream_row, self.streams))),
            (QUERY_COLUMNS, [query_row(one, self.held_by(one)) for one in self.queries]),
            *([(LANES, list(map(lane_row, self.lanes)))] if self.lanes else []),
            (OPERATOR_COLUMNS, list(map(operator_row, self.operators))),
        )


def status_of(
    reading: PublishedRun,
    results: Sequence[EpochResults],
    now: int,
    *,
    running: bool,
    problems: Mapping[str, str],
    troubles: Mapping[str, str] = MappingProxyType({}),
    attempt: Attempt | None = None,
    catching_up: CatchingUp | None = None,
    clients: tuple[NamedReader, ...] = (),
    sinks: tuple[Reached, ...] = (),
    ended: str | None = None,
    managed: Managed | None = None,
    shedding: Shedding | None = None,
    lanes: tuple[LaneStatus, ...] = (),
) -> Status:
    """The status of a run.

    Args:
        reading: what is to be seen of it.
        results: those that are kept, in order and without gaps.
        now: the instant of the clock up to which ages count (microseconds since 1970).
        running: whether an endless run is going on.
        problems: streams that were given up, with the reason.
        troubles: those that cannot be read for now.
        attempt: the epoch that is running, or None.
        catching_up: the query that is being brought from the past to the present, or None.
        clients: the readers with names.
        sinks: where changes go.
        ended: what has ended an endless run before it was to end, or None.
        managed: what the manager of memory has found, or None.
        shedding: what the shedder has found, or None.
        lanes: the lanes.
    """
    return Status(
        running,
        reading.totals.epochs,
        reading.statistics.at,
        tuple(stream_statuses(reading, now, problems, troubles)),
        tuple(query_statuses(reading, results)),
        tuple(operator_statuses(reading)),
        reading.queries.graph,
        attempt,
        catching_up,
        clients,
        sinks,
        tuple(paused_statuses(reading)),
        ended,
        reading.queries.tunings,
        managed,
        shedding,
        lanes,
    )


STREAM_COLUMNS: Final = ("stream", "rows", "late", "rejected", "rows/s", "heartbeat", "lag", "moved")
QUERY_COLUMNS: Final = ("query", "changes", "changes/s", "heartbeat", "lag", "held by")
OPERATOR_COLUMNS: Final = ("operator", "rows in", "rows out", "state", "bytes", "seconds", "%")


def stream_row(stream: StreamStatus) -> TextRow:
    """A stream as texts, for `STREAM_COLUMNS`."""
    return (
        stream.name,
        f"{stream.rows:,}",
        f"{stream.late:,}",
        f"{stream.rejected:,}",
        _rate(stream.rate),
        instant_text(stream.heartbeat, stream.domain),
        lag_text(stream),
        "" if stream.heartbeat == INFINITY else f"{stream.age:,.1f} s ago",
    )


def query_row(query: QueryStatus, held_by: str) -> TextRow:
    """A query as texts, for `QUERY_COLUMNS`.

    Args:
        query: it.
        held_by: what it waits for.
    """
    return (
        query.name,
        f"{query.changes:,}",
        _rate(query.rate),
        "failed" if query.failed is not None else instant_text(query.heartbeat, query.domain),
        lag_text(query),
        held_by,
    )


def operator_row(operator: OperatorStatus) -> TextRow:
    """An operator as texts, for `OPERATOR_COLUMNS`."""
    return (
        f"#{operator.number} {operator.text}",
        f"{operator.rows_in:,}",
        f"{operator.rows_out:,}",
        f"{operator.state_rows:,}" if operator.state_rows else "",
        f"{operator.state_bytes:,}" if operator.state_rows else "",
        f"{operator.seconds:.3f}",
        f"{100 * operator.share:.0f}",
    )


def instant_text(instant: int, domain: TimeDomain) -> str:
    """An instant as text; empty where there is none yet, `end` at the end of all time."""
    if instant == BEGINNING:
        return ""
    return "end" if instant == INFINITY else format_instant(instant, domain)


def lag_text(part: StreamStatus | QueryStatus) -> str:
    """How far a heartbeat is behind the newest row, as text; empty where nothing was read or all is final."""
    if BEGINNING in (part.heartbeat, part.latest) or part.heartbeat == INFINITY:
        return ""
    return format_length(max(0, part.latest - part.heartbeat), part.domain)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.0f}"


def _text(names: TextRow, rows: Sequence[TextRow]) -> str:
    """Rows of texts as a table of text, without their number below it."""
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(names))]
    text = io.StringIO()
    write_table(pa.table(columns, names=list(names)), "table", text)
    return text.getvalue().rstrip("\n").rpartition("\n")[0]


def _plain_attempt(attempt: Attempt) -> dict[str, Any]:
    seconds = round(time.monotonic() - attempt.since, 3)
    return {"epoch": attempt.epoch, "seconds": seconds, "failed": attempt.failed}


def _plain(part: StreamStatus | QueryStatus | OperatorStatus | PausedStatus) -> dict[str, Any]:
    """A part of a status for JSON."""
    found = {name: value for name, value in asdict(part).items() if name != "domain"}
    for name in _INSTANTS & found.keys():
        found[name] = _plain_instant(found[name], part.domain)
    if isinstance(part, StreamStatus):
        unknown = BEGINNING in (part.heartbeat, part.latest) or part.heartbeat == INFINITY
        found["lag"] = None if unknown else max(0, part.latest - part.heartbeat)
        found["disorder_changes"] = _plain_changes(part.disorder_changes)
        for shown, skew in zip(found["skews"], part.skews, strict=True):
            shown["changes"] = _plain_changes(skew.changes)
        if part.slowest is not None:
            for name in ("latest", "reaches"):
                found["slowest"][name] = _plain_instant(getattr(part.slowest, name), part.domain)
        if part.retained is not None:
            found["retained"]["since"] = _plain_instant(part.retained.since, part.domain)
    if isinstance(part, QueryStatus):
        found["watermark"] = _plain_instant(part.watermark, part.domain)
        found["chain"] = [
            {"node": link.node, "heartbeat": _plain_instant(link.heartbeat, part.domain)}
            for link in part.chain
        ]
        for window in found["windows"]:
            window["since"] = _plain_instant(window["since"], part.domain)
        if part.exchanged is not None:
            found["exchanged"]["at"] = _plain_instant(part.exchanged.at, part.domain)
    return found


def _plain_changes(changes: Sequence[DisorderChange]) -> list[dict[str, Any]]:
    return [
        {"at": format_instant(change.at, TimeDomain.TIMESTAMP), "disorder": change.disorder}
        for change in changes
    ]


def _plain_instant(instant: int | None, domain: TimeDomain) -> int | str | None:
    if instant is None or instant == BEGINNING:
        return None
    if instant == INFINITY:
        return "end"
    return instant if domain is TimeDomain.INTEGER else format_instant(instant, domain)
