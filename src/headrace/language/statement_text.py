"""Statements as text: what defines a stream, a relation, a query or a sink again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from headrace.algebra.arrival import Unit
from headrace.language.names import quoted_name, quoted_text
from headrace.language.statements.formats import ChangeRecords
from headrace.language.statements.secret import SecretName
from headrace.language.statements.sinks import CreateSink
from headrace.language.statements.statements import Consistency, CreateQuery, Heartbeats
from headrace.language.statements.streams import (
    NOTHING_SAID,
    ByArrival,
    CreateRelation,
    CreateSkew,
    CreateStream,
    EstimationClause,
    EventsClause,
    PerClause,
    TimeClauses,
    ValuesOf,
)
from headrace.language.syntax import Name
from headrace.schema import Schema, sql_type
from headrace.time import INFINITY, Duration


def stream_text(statement: CreateStream) -> str:
    """The CREATE STREAM from which the parser makes the statement again."""
    parts = (f"CREATE STREAM {_input(statement)}", _events(statement), *_time(statement.time))
    return " ".join(filter(None, parts))


def relation_text(statement: CreateRelation) -> str:
    """The CREATE RELATION from which the parser makes the statement again."""
    parts = [f"CREATE RELATION {_input(statement)}"]
    if statement.changes is not None:
        changes = statement.changes
        version = "" if changes.version is None else f" VERSION BY {_name(changes.version)}"
        timed = _timestamp(changes.stream.timestamp)
        of_records = changes.stream.records
        by = f"CHANGES BY {_name(changes.operation)} " if of_records is None else _records(of_records)
        parts += [f"{by}{timed}{version}", *_time(changes.stream.time)]
    if statement.valid is not None:
        begin, end = map(_name, statement.valid)
        parts.append(f"VALID FROM {begin} TO {end}")
    if statement.refresh is not None:
        every = statement.refresh.every
        parts.append("REFRESH ON DEMAND" if every is None else f"REFRESH EVERY {every}")
    return " ".join(parts)


def derived_text(name: str, query: str) -> str:
    """The CREATE STREAM of a derived stream.

    Args:
        name: its name.
        query: the query as it is written.
    """
    return f"CREATE STREAM {quoted_name(name)} AS {query}"


def query_text(statement: CreateQuery) -> str:
    """The CREATE QUERY that defines a query, without how it once started."""
    clauses = statement.priority.clauses
    clauses += [] if statement.loss is None else [statement.loss.text]
    clauses += _consistency(statement.consistency)
    if statement.start is not None:
        clauses.append(str(statement.start))
    if statement.heartbeats is not Heartbeats.OPERATOR:
        clauses.append(f"HEARTBEATS {statement.heartbeats.value}")
    return " ".join(["CREATE QUERY", _name(statement.name), *clauses, "AS", statement.text])


def sink_text(statement: CreateSink) -> str:
    """The CREATE SINK from which the parser makes the statement again."""
    name, query, kind = _name(statement.name), _name(statement.query), statement.kind.text.lower()
    kind = kind if kind.isidentifier() else quoted_name(kind)
    return f"CREATE SINK {name} FOR {query} TO {kind}{_given_options(statement.options)}"


def skew_text(statement: CreateSkew) -> str:
    """The CREATE SKEW from which the parser makes the statement again."""
    firsts, seconds = _streams(statement.firsts), _streams(statement.seconds)
    if not statement.seconds:
        streams = f"AMONG {firsts}"
    elif statement.both:
        streams = f"BETWEEN {firsts} AND {seconds}"
    else:
        streams = f"FROM {firsts} TO {seconds}"
    if statement.estimation is not None:
        return f"CREATE SKEW {streams} {_estimation(statement.estimation)}"
    pairs = (
        f"({f'{pair.rows} ROWS' if pair.rows else pair.wait}, {pair.behind or 'STRICT'})"
        for pair in statement.pairs
    )
    return f"CREATE SKEW {streams} {', '.join(pairs)}"


def _input(statement: CreateStream | CreateRelation) -> str:
    listed = [] if statement.columns is None else _columns(statement.columns)
    if isinstance(statement, CreateStream):
        listed += [f"{quoted_name(column.name)} AS {column.text}" for column in statement.computed]
    columns = f" ({', '.join(listed)})" if listed else ""
    key = f" KEY ({', '.join(map(_name, statement.key))})" if statement.key else ""
    given = _given_options(statement.options)
    return f"{quoted_name(statement.name)}{columns}{key} FROM {quoted_name(statement.format)}{given}"


def _given_options(options: Sequence[tuple[str, str]]) -> str:
    listed = ", ".join(f"{_option(name)} {_given(value)}" for name, value in options)
    return f" OPTIONS ({listed})" if listed else ""


def _given(value: str) -> str:
    """The value of an option; of a secret its name."""
    return f"SECRET {quoted_text(value)}" if isinstance(value, SecretName) else quoted_text(value)


def _columns(schema: Schema) -> list[str]:
    return [f"{quoted_name(field.name)} {sql_type(field.type)}" for field in schema]


def _option(name: str) -> str:
    return name if name.isidentifier() and quoted_name(name) == name else quoted_text(name)


def _events(statement: CreateStream) -> str:
    events = statement.events
    if events is None:
        return _timestamp(statement.timestamp)
    if statement.records is not None:
        version = "" if events.version is None else f" VERSION BY {_name(events.version)}"
        return f"{_records(statement.records)}{_timestamp(statement.timestamp)}{version}"
    if events.shortened is not None:
        return "FORMAT CEDR" + ("" if events.counts is None else f" COUNT BY {_name(events.counts)}")
    return " ".join(_changing(events, statement.timestamp))


def _records(records: ChangeRecords) -> str:
    """What says that records of changes are read; of upserts it is an option."""
    return "" if records is ChangeRecords.UPSERT else "FORMAT DEBEZIUM "


def _changing(events: EventsClause, timestamp: str | ByArrival) -> Iterator[str]:
    if events.change is not None:
        yield f"CHANGES BY {_name(events.change)}"
    if events.lasting:
        assert isinstance(timestamp, str)
        yield f"VALID FROM {quoted_name(timestamp)}"
        if events.ends is not None:
            yield f"TO {_name(events.ends)}"
    else:
        yield _timestamp(timestamp)
    if events.version is not None:
        yield f"VERSION BY {_name(events.version)}"


def _timestamp(timestamp: str | ByArrival) -> str:
    match timestamp:
        case ByArrival(column=column):
            return "TIMESTAMP BY ARRIVAL" + (
                "" if column == ByArrival.column else f" AS {quoted_name(column)}"
            )
        case str():
            name = quoted_name(timestamp)
            # The bare word means the clock's reading.
            return f"TIMESTAMP BY {f'`{name}`' if name.upper() == 'ARRIVAL' else name}"
        case _:
            assert_never(timestamp)


def time_text(clauses: TimeClauses) -> str:
    """What is said of a stream's time, as clauses."""
    return " ".join(_time(clauses))


def _time(clauses: TimeClauses) -> Iterator[str]:
    if clauses == NOTHING_SAID:
        return
    yield from _order(clauses)
    if clauses.per is not None:
        yield _per(clauses.per)
    for words, length in (
        ("LATENCY {}", clauses.latency),
        ("IDLE AFTER {}", clauses.idle_after),
        ("TIMEOUT {}", clauses.timeout),
        ("AT MOST {} AHEAD", clauses.ahead),
        ("AT MOST {} BEHIND", clauses.behind),
    ):
        if length is not None:
            yield words.format(length)
    if (deviation := clauses.deviation) is not None:
        clock = "" if deviation.clock is None else f" FROM {_name(deviation.clock)}"
        yield f"DEVIATION {deviation.length}{clock}"
    if clauses.rate is not None:
        yield f"RATE {clauses.rate.gain} PER {clauses.rate.time}"
    if clauses.heartbeats is not None:
        yield f"HEARTBEATS FROM {_name(clauses.heartbeats)}"
    if clauses.retain is not None:
        yield str(clauses.retain)
    if clauses.overflow is not None:
        yield f"OVERFLOW {clauses.overflow.value}"
    if clauses.letters is not None:
        yield f"DEAD LETTERS KEEP {'ALL' if clauses.letters.length == INFINITY else clauses.letters}"


def _order(clauses: TimeClauses) -> Iterator[str]:
    """The bounds of how far rows may be out of order: one, or one in time and one in rows."""
    if clauses.strict:
        yield "STRICT"
    elif clauses.percent is not None:
        yield f"DISORDER FOR {clauses.percent:f} PERCENT"
    elif clauses.estimation is not None:
        yield _estimation(clauses.estimation)
    else:
        if clauses.disorder is not None:
            yield f"DISORDER {clauses.disorder}"
        if clauses.rows is not None:
            yield f"DISORDER {clauses.rows} ROWS"


def _estimation(clause: EstimationClause) -> str:
    parts = []
    if clause.rows is not None:
        parts.append(f"WINDOW {clause.rows} ROWS")
    if clause.duration is not None:
        parts.append(f"WINDOW {clause.duration}")
    if clause.alpha is not None:
        parts.append(f"ALPHA {clause.alpha:f}")
    if clause.wait is not None:
        parts.append(f"WAIT {clause.wait}")
    return "ESTIMATED" + (f" ({', '.join(parts)})" if parts else "")


def _per(clause: PerClause) -> str:
    wait = "" if clause.wait is None else f" WAIT {clause.wait}"
    match clause.listed:
        case ValuesOf(relation=relation, column=column):
            of = f" OF {_name(relation)}" + ("" if column is None else f" ({_name(column)})")
        case ():
            of = ""
        case values:
            of = f" OF ({', '.join(_value(value) for value in values)})"
    return f"PER {_name(clause.column)}{of}{wait}"


def _value(value: str | int) -> str:
    return quoted_text(value) if isinstance(value, str) else str(value)


def _consistency(level: Consistency) -> Iterable[str]:
    if level.is_strong:
        return
    at_once = level.block == Duration(0) and not level.maximal
    if at_once and level.remember in (None, Duration(0)):
        yield f"CONSISTENCY {'MIDDLE' if level.remember is None else 'WEAK'}"
        return
    units = {Unit.TIME: "", Unit.ARRIVAL: " BY ARRIVAL", Unit.ROWS: " ROWS"}
    block = [] if level.block is None else [f"BLOCK {level.block}{units[level.unit]}"]
    block = ["OUTPUT MAXIMAL"] if level.maximal else block
    remember = [] if level.remember is None else [f"REMEMBER {level.remember}{units[level.memory]}"]
    yield f"CONSISTENCY ({', '.join(block + remember)})"


def _streams(names: Sequence[Name]) -> str:
    listed = ", ".join(map(_name, names))
    return f"({listed})" if len(names) > 1 else listed


def _name(name: Name) -> str:
    return quoted_name(name.text)
