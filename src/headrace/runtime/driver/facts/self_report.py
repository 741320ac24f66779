"""What an epoch has done, as rows of the streams in which a run describes itself.

Numbers of rows, changes and seconds are those of the epoch; heartbeats and state are as after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import pyarrow as pa

from headrace.algebra.system_streams import SystemStream, system_stream
from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.sizes import tuning_statuses
from headrace.runtime.driver.facts.status import operator_statuses, query_statuses
from headrace.runtime.driver.facts.stream_status import stream_statuses
from headrace.runtime.journal.held_state import held
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.dead_letters import letters_of
from headrace.runtime.store.segments import Store
from headrace.time import BEGINNING, INFINITY

ReportRow = dict[str, Any]


@dataclass(frozen=True)
class Epoch:
    """An epoch that is to be described.

    Attributes:
        before, after: the run before and after it.
        results: what was committed.
        store: where its dead letters are.
        problems: streams that were given up, with the reason.
        waiting: the rows that wait for the next epoch, of each stream where that is known.
        shares: the shares that were kept of its rows, as rows of `headrace.shedding`.
        lanes: the queries in front, and the lanes, as rows of `headrace.lanes`.
    """

    before: PublishedRun
    after: PublishedRun
    results: EpochResults
    store: Store
    problems: Mapping[str, str]
    waiting: Mapping[str, int]
    shares: Sequence[ReportRow] = ()
    lanes: Sequence[ReportRow] = ()


def describe(epoch: Epoch, stream: SystemStream) -> pa.Table:
    """The rows that one of the streams gets for an epoch."""
    match stream:
        case SystemStream.EPOCHS:
            rows: Iterable[ReportRow] = [_epoch(epoch)]
        case SystemStream.STREAMS:
            rows = _streams(epoch)
        case SystemStream.QUERIES:
            rows = _queries(epoch)
        case SystemStream.OPERATORS:
            rows = _operators(epoch)
        case SystemStream.DEAD_LETTERS:
            return _letters(epoch)
        case SystemStream.SHEDDING:
            rows = epoch.shares
        case SystemStream.TUNINGS:
            rows = _tunings(epoch)
        case SystemStream.LANES:
            rows = epoch.lanes
        case _:
            assert_never(stream)
    number = epoch.after.totals.epochs
    return pa.Table.from_pylist([{"epoch": number, **row} for row in rows], stream.schema.arrow())


def _epoch(epoch: Epoch) -> ReportRow:
    before, after = epoch.before.totals, epoch.after.totals
    sizes = held(epoch.after.state).sizes
    return {
        "taken_at": epoch.results.clock,
        "seconds": after.seconds - before.seconds,
        "rows_in": _of_users(epoch, lambda seen: seen.rows),
        "late": _of_users(epoch, lambda seen: seen.late),
        "dead_letters": after.dead_letters - before.dead_letters,
        "changes": sum(after.emitted.values()) - sum(before.emitted.values()),
        "state_rows": sizes.rows,
        "state_bytes": sizes.size,
    }


def _of_users(epoch: Epoch, count: Callable[[Arrivals], int]) -> int:
    """How many rows of the streams that users have defined came in the epoch."""
    before, after = (reading.totals.arrivals for reading in (epoch.before, epoch.after))
    return sum(
        count(seen) - count(before.get(name, Arrivals()))
        for name, seen in after.items()
        if system_stream(name) is None
    )


def _streams(epoch: Epoch) -> Iterator[ReportRow]:
    known = epoch.before.totals.arrivals
    for status in stream_statuses(epoch.after, epoch.results.clock, epoch.problems):
        if system_stream(status.name) is None:
            before = known.get(status.name, Arrivals())
            yield {
                "stream": status.name,
                "rows_in": status.rows - before.rows,
                "late": status.late - before.late,
                "rejected": status.rejected - before.rejected,
                "dropped": status.dropped - epoch.before.points[status.name].dropped,
                "rate": status.rate,
                "heartbeat": _instant(status.heartbeat),
                "latest": _instant(status.latest),
                "lag": _lag(status.latest, status.heartbeat),
                "waiting": epoch.waiting.get(status.name),
                "ended": status.heartbeat == INFINITY,
            }


def _queries(epoch: Epoch) -> Iterator[ReportRow]:
    known = epoch.before.totals.emitted
    for status in query_statuses(epoch.after, [epoch.results]):
        yield {
            "query": status.name,
            "changes": status.changes - known.get(status.id, 0),
            "heartbeat": _instant(status.heartbeat),
            "horizon": _instant(status.horizon),
            "lag": status.lag,
            "held_by": status.held_by,
            "failed": status.failed,
        }


def _operators(epoch: Epoch) -> Iterator[ReportRow]:
    known = {status.identity: status for status in operator_statuses(epoch.before)}
    for status in operator_statuses(epoch.after):
        before = known.get(status.identity)
        rows_in, rows_out, seconds = (
            (0, 0, 0.0) if before is None else (before.rows_in, before.rows_out, before.seconds)
        )
        yield {
            "operator": status.number,
            "what": status.text,
            "identity": status.identity,
            "rows_in": status.rows_in - rows_in,
            "rows_out": status.rows_out - rows_out,
            "seconds": status.seconds - seconds,
            "state_rows": status.state_rows,
            "state_bytes": status.state_bytes,
            "waiting": status.waiting_rows,
            "heartbeat": _instant(status.heartbeat),
        }


def _tunings(epoch: Epoch) -> Iterator[ReportRow]:
    queries = epoch.after.queries
    for status in dict.fromkeys(
        status for plan in queries.plans.values() for status in tuning_statuses(plan, queries.tunings)
    ):
        yield {
            "streams": ", ".join(status.streams),
            "kind": status.kind.value,
            "smallest": status.smallest,
            "largest": status.largest,
            "size": status.size,
            "since": _instant(status.since),
            "why": status.why or None,
        }


def _letters(epoch: Epoch) -> pa.Table:
    schema = SystemStream.DEAD_LETTERS.schema.arrow()
    tables = (
        table.rename_columns(["row_text" if name == "row" else name for name in table.column_names])
        for table in letters_of(epoch.store, [epoch.results], epoch.after.queries.name_of)
    )
    return pa.concat_tables([schema.empty_table(), *(table.select(schema.names) for table in tables)])


def _instant(instant: int) -> int | None:
    return None if instant in (BEGINNING, INFINITY) else instant


def _lag(latest: int, heartbeat: int) -> int | None:
    """How far a heartbeat is behind the newest row (instants); None where nothing was read, or all is."""
    return None if BEGINNING in (latest, heartbeat) or heartbeat == INFINITY else max(0, latest - heartbeat)
