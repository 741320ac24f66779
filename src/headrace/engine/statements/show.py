"""SHOW: what a database knows, as tables of text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, assert_never

import pyarrow as pa

from headrace.algebra.bounds import bounded_by, has_unbounded_state
from headrace.algebra.changes import Changes
from headrace.algebra.events import Events
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import names_read
from headrace.algebra.tunings.tunings import Tunings
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.listed_sinks import listed_sinks
from headrace.engine.shown.lanes import LANES
from headrace.engine.shown.status import Status, instant_text, lag_text
from headrace.engine.statements.priority import lane_rows
from headrace.engine.statements.shedding import SHEDDING, shedding_rows
from headrace.engine.statements.skews import skew_rows
from headrace.engine.statements.tunings import manager_rows, step_rows, tuning_rows
from headrace.expressions.aggregates.aggregates import AGGREGATES, COMPOSED
from headrace.expressions.functions.functions import FUNCTIONS
from headrace.expressions.user import UserFunction
from headrace.heartbeats import bounded
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import DerivedStream, Functions, RelationInfo, StreamInfo
from headrace.language.quoted_names import DIALECT
from headrace.language.statements.statements import Show, Shown
from headrace.runtime.driver.facts.status import QueryStatus, StreamStatus
from headrace.runtime.intake.streams import RereadRelation
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count
from headrace.schema import STRING, Schema, sql_type
from headrace.time import ALWAYS, BEGINNING, TimeDomain, format_length

TextRows = list[tuple[str, ...]]

_STREAMS: Final = ("name", "reads", "timed_by", "disorder")
_STREAM_NEWS: Final = ("heartbeat", "lag", "late", "held_by")
_RELATIONS: Final = ("name", "key", "valid")
_QUERIES: Final = ("name", "reads", "timed_by", "state")
_QUERY_NEWS: Final = ("heartbeat", "lag", "late", "held_by")
_SINKS: Final = ("name", "query", "to", "place", "epoch", "behind", "problem")
_SKEWS: Final = ("from", "to", "wait", "behind")
_TUNINGS: Final = ("windows_of", "min", "max", "size", "since", "queries")
_STEPS: Final = ("windows_of", "min", "max", "size", "since", "until", "why")
_MANAGER: Final = ("what", "min", "max", "now", "would_be", "why")
_FUNCTIONS: Final = ("name", "kind", "defined", "arguments", "returns")


def show(
    statement: Show,
    definitions: Definitions,
    functions: Functions,
    status: Status | None,
    settings: TextRows,
    tunings: Tunings,
    still: Mapping[str, Plan],
) -> str:
    """The answer to a SHOW statement, as text; see `listing`.

    Raises:
        LanguageError: there is no query of that name.
    """
    if (name := statement.query) is None:
        table = listing(statement.what, definitions, functions, status, settings, tunings, still)
    else:
        query = definitions.query_named(name.text, name.position)
        table = _table(_STEPS, step_rows(query.plan, tunings))
    text = io.StringIO()
    write_table(table, "table", text)
    return text.getvalue().rstrip("\n")


def listing(
    what: Shown,
    definitions: Definitions,
    functions: Functions,
    status: Status | None,
    settings: Sequence[tuple[str, ...]] = (),
    tunings: Tunings = MappingProxyType({}),
    still: Mapping[str, Plan] = MappingProxyType({}),
) -> pa.Table:
    """What a database knows of one kind, in the order in which it was defined; functions by name.

    Args:
        what: what to list.
        definitions: the streams and queries.
        functions: the users' functions that whoever asks may call.
        status: of a run that goes on or is over, which adds columns for streams and queries; None if nothing
            has been run.
        settings: how runs go on, as rows.
        tunings: the sizes of windows within bounds that have changed.
        still: plans that were replaced and answer until others take over, by the identities of their queries.
    """
    match what:
        case Shown.STREAMS:
            return _streams(definitions, status)
        case Shown.RELATIONS:
            return _relations(definitions, status)
        case Shown.QUERIES:
            return _queries(definitions, status)
        case Shown.SINKS:
            return _sinks(definitions, status)
        case Shown.SKEWS:
            return _table(_SKEWS, skew_rows(definitions, status))
        case Shown.TUNINGS:
            return _table(_TUNINGS, tuning_rows(definitions, tunings, still))
        case Shown.MANAGER:
            return _table(_MANAGER, manager_rows(status, settings))
        case Shown.SHEDDING | Shown.LANES:
            return _load(what, status, settings)
        case Shown.FUNCTIONS:
            return _table(_FUNCTIONS, _functions(functions))
        case Shown.SETTINGS:
            return _table(("setting", "value", "said_by"), list(settings))
        case Shown.DIALECT:
            catalog = definitions.catalog
            return _table(("dialect",), [(DIALECT if catalog.quotes_names else catalog.defaults.value,)])
        case _:
            assert_never(what)


def _load(what: Shown, status: Status | None, settings: Sequence[tuple[str, ...]]) -> pa.Table:
    """The deeds where there is not enough time for all queries."""
    if what is Shown.LANES:
        return _table(LANES, lane_rows(status))
    return _table(SHEDDING, shedding_rows(status, settings))


def _streams(definitions: Definitions, status: Status | None) -> pa.Table:
    running = {} if status is None else {part.name: part for part in status.streams}
    news, known = _all_stream_news(status)
    if any(part.retained is not None for part in running.values()):
        news = (*news, "kept")
        known = {name: (*told, _kept(running[name])) for name, told in known.items()}
    rows: TextRows = []
    for entry in definitions.catalog.entries.values():
        told = known.get(entry.name, ("",) * len(news))
        match entry:
            case StreamInfo(name=name, content=schema, domain=domain):
                timestamp = _timed_by(entry)
                timing = definitions.inputs[name].stream.timing
                if timing.by_arrival:
                    timestamp, disorder = f"ARRIVAL AS {timestamp}", "none"
                elif timing.estimated is not None:
                    disorder = _estimated(running.get(name))
                else:
                    disorder = _disorder(timing, domain)
                rows.append((name, "its source", timestamp, disorder, *told, _columns(schema)))
            case DerivedStream(name=name, plan=plan):
                rows.append((name, definitions.read_by(name), "a query", "", *told, _columns(plan.schema)))
            case RelationInfo():
                pass
            case _:
                assert_never(entry)
    return _table((*_STREAMS, *news, "columns"), rows)


def _timed_by(info: StreamInfo) -> str:
    """The columns that say when the rows of a stream are valid."""
    match info.changes:
        case Events(ends=ends, change=change):
            period = "" if ends is None else f" to {ends}"
            return f"{info.timestamp}{period}" + ("" if change is None else f", changed by {change}")
        case Changes(operation=operation):
            return f"{info.timestamp}, changed by {operation}"
        case None:
            return info.timestamp
        case _:
            assert_never(info.changes)


def _relations(definitions: Definitions, status: Status | None) -> pa.Table:
    infos = [info for info in definitions.catalog.entries.values() if isinstance(info, RelationInfo)]
    moving = [info.name for info in infos if info.name in definitions.inputs]
    refreshed = status is not None and any(info.refreshed for info in infos)
    # Only those that are read as streams have a time of their own.
    news, known = _all_stream_news(status if moving else None)
    nothing = ("",) * len(news)
    rows = [
        (
            *(info.name, ", ".join(info.key), _valid(info, definitions)),
            *(known.get(info.name, nothing) if info.name in moving else nothing),
            *((_refreshed(info, status),) if refreshed else ()),
            _columns(info.schema),
        )
        for info in infos
    ]
    return _table((*_RELATIONS, *news, *(("refreshed",) if refreshed else ()), "columns"), rows)


def _refreshed(info: RelationInfo, status: Status | None) -> str:
    """From which instant on a relation is what was read last, and what came and went with that."""
    readings = () if status is None else status.streams
    for part in readings:
        content = part.content
        if content is None or part.name.partition(" since ")[0] != info.name:
            continue
        if content.inserted or content.deleted:
            at = "the beginning" if content.at == ALWAYS else instant_text(content.at, part.domain)
            return f"from {at} on: {content.inserted:,} inserted, {content.deleted:,} deleted"
    return ""


def _all_stream_news(status: Status | None) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The columns with what a run has seen of streams, and their values by stream."""
    if status is None:
        return (), {}
    return _STREAM_NEWS, {part.name: _stream_news(part) for part in status.streams}


def _valid(info: RelationInfo, definitions: Definitions) -> str:
    read = definitions.relations[info.name].relation if info.refreshed else None
    if isinstance(read, RereadRelation):
        every = read.every
        return "until read again, " + (
            "on demand" if every is None else f"every {format_length(every, TimeDomain.TIMESTAMP)}"
        )
    if info.changes is None:
        return " to ".join(info.valid or ("always",))
    by, timestamp = info.changes.by, info.changes.stream.timestamp
    return f"until changed by {by.operation} at {timestamp}" + (
        "" if by.version is None else f", {by.version}"
    )


def _stream_news(stream: StreamStatus) -> tuple[str, ...]:
    held_by = "idle" if stream.idle else ""
    if stream.waits is not None:
        held_by = f"WAIT, {stream.waits / 1e6:,.1f} s left"
    if stream.slowest is not None:
        held_by = f"{stream.slowest.column} {stream.slowest.value}"
    return instant_text(stream.heartbeat, stream.domain), lag_text(stream), f"{stream.late:,}", held_by


def _kept(stream: StreamStatus) -> str:
    """The rows of a stream that are kept."""
    kept = stream.retained
    if kept is None:
        return ""
    since = "" if kept.since == BEGINNING else f", all from {instant_text(kept.since, stream.domain)} on"
    return f"{kept.rows:,} rows, {kept.size:,} bytes{since}"


def _disorder(timing: Timing, domain: TimeDomain) -> str:
    """The bounds of how far rows may be out of order, in time and in rows."""
    rows = () if timing.rows is None else (count(timing.rows, "row"),)
    match timing.disorder:
        case None:
            length = () if rows else ("any",)
        case bounded.STRICT:
            length = ("strict",)
        case disorder:
            length = (format_length(disorder, domain),)
    return ", ".join((*length, *rows))


def _estimated(stream: StreamStatus | None) -> str:
    if stream is None or stream.disorder is None:
        return "estimated"
    return f"{format_length(stream.disorder, stream.domain)} (estimated)"


def _queries(definitions: Definitions, status: Status | None) -> pa.Table:
    found = () if status is None else status.queries
    # Few queries remember less than their streams allow.
    forgets = any(part.departures is not None for part in found)
    known = {part.name: _query_news(part, status, forgets=forgets) for part in found if status is not None}
    news = () if status is None else (*_QUERY_NEWS, *(("departures",) if forgets else ()))
    rows: TextRows = []
    for query in definitions.answered.values():
        reads = ", ".join(names_read(query.plan))
        timed = "TIMESTAMP" if query.plan.domain is TimeDomain.TIMESTAMP else "BIGINT"
        plan = definitions.plans[query.id]
        bounding = bounded_by(plan)
        state = "grows without bound" if has_unbounded_state(plan) else "bounded"
        state += f": {bounding}" if bounding else ""
        told = known.get(query.name, ("",) * len(news))
        rows.append((query.name, reads, timed, state, *told, _columns(query.plan.schema)))
    for known_as, query in definitions.paused.items():
        plan = definitions.queries[known_as].plan
        timed = "TIMESTAMP" if plan.domain is TimeDomain.TIMESTAMP else "BIGINT"
        reads = ", ".join(names_read(plan))
        rows.append((query.name, reads, timed, "paused", *("",) * len(news), _columns(query.schema)))
    for name, record in definitions.records.queries().items():
        why = definitions.records.waiting[record.key]
        rows.append((name, "", "", f"paused: {why}", *("",) * len(news), ""))
    return _table((*_QUERIES, *news, "columns"), rows)


def _query_news(query: QueryStatus, status: Status, *, forgets: bool) -> tuple[str, ...]:
    left = "" if query.departures is None else f"{query.departures:,}"
    late = sum(stream.late for stream in status.streams if stream.name in query.reads)
    heartbeat = "failed" if query.failed is not None else instant_text(query.heartbeat, query.domain)
    news = (heartbeat, lag_text(query), f"{late:,}", status.held_by(query))
    return (*news, left) if forgets else news


def _sinks(definitions: Definitions, status: Status | None) -> pa.Table:
    rows: TextRows = [
        (one.name, one.query, one.kind, one.place, _number(one.epoch), _number(one.behind), one.problem or "")
        for one in listed_sinks(definitions, () if status is None else status.sinks)
    ]
    return _table(_SINKS, rows)


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _functions(functions: Functions) -> TextRows:
    rows: TextRows = [(name, "function", "built in", "", "") for name in FUNCTIONS]
    rows += [(name, "aggregate", "built in", "", "") for name in (*AGGREGATES, *COMPOSED)]
    for user in functions.values():
        kind = "function" if isinstance(user, UserFunction) else "aggregate"
        arguments = ", ".join(map(sql_type, user.arguments))
        rows.append((user.name, kind, "in Python", arguments, sql_type(user.returns)))
    return sorted(rows, key=lambda row: row[0].upper())


def _columns(schema: Schema) -> str:
    return str(schema).removeprefix("(").removesuffix(")")


def _table(names: Sequence[str], rows: TextRows) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], STRING) for place in range(len(names))]
    return pa.table(columns, names=list(names))
