"""From what CREATE STREAM, or a call in Python, says about a stream's time to what a run knows of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeAlias

import pyarrow as pa

from headrace.algebra.events import CEDR, PROMISE, Events
from headrace.errors import LanguageError, Position, UserError
from headrace.expressions.evaluation.parsing import parse_timestamp
from headrace.heartbeats.bounded import STRICT
from headrace.heartbeats.estimation import Adaptivity
from headrace.heartbeats.share import target
from headrace.heartbeats.skew import Bound, Rate, without_redundant
from headrace.heartbeats.timing import BY_ARRIVAL, Deviation, Estimated, Follow, PerValue, Timing
from headrace.language.catalog import StreamInfo, check_arrival_clauses
from headrace.language.lengths import check_behind, check_duration
from headrace.language.statements.past import StartClause
from headrace.language.statements.streams import (
    CreateSkew,
    DeviationClause,
    EstimationClause,
    RateClause,
    TimeClauses,
    ValuesOf,
)
from headrace.language.syntax import Name
from headrace.runtime.driver.change.wanted import AnswerStart
from headrace.runtime.intake.streams import Retain
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, sql_type
from headrace.time import (
    BEGINNING,
    INFINITY,
    MICROSECONDS,
    Duration,
    TimeDomain,
    duration_of,
    format_instant,
    parse_duration,
)

Length: TypeAlias = "str | int | timedelta"
"""A length of time: "5 seconds", a timedelta, or for integer timestamps a number."""

AHEAD: Final = MICROSECONDS["DAY"]
"""How far a timestamp may be ahead of the clock where rows come as they happen, if nothing else is said."""

WINDOW_ROWS: Final = 10_000
"""After how many rows that stay below it an estimate is lowered, if nothing else is said."""

ALPHA: Final = 0.5
"""The weight of the former estimate then, if nothing else is said."""


def timing_of(clauses: TimeClauses, info: StreamInfo, *, comes_now: bool, in_batches: bool = False) -> Timing:
    """How the time of a stream moves, as its CREATE STREAM says.

    Args:
        clauses: what it says after TIMESTAMP BY.
        info: the stream.
        comes_now: whether its rows come as they happen, so that none can be of the far future.
        in_batches: whether they come from Spark, in batches without an order.

    Raises:
        LanguageError: a clause does not fit the stream's timestamps, or names a column that cannot be used.
    """
    retain_of(clauses, info.domain)
    if info.by_arrival:
        check_arrival_clauses(clauses)
        return BY_ARRIVAL
    if clauses.per is not None and in_batches:
        raise LanguageError(
            "rows that come from Spark have no order, also those of one value",
            position=clauses.per.column.position,
            hint="read files with one of the formats parquet, csv, json or arrow, or push the rows",
        )
    is_timestamp = info.domain is TimeDomain.TIMESTAMP
    for word, length in (("AHEAD", clauses.ahead), ("BEHIND", clauses.behind)):
        if length is not None and not is_timestamp:
            raise LanguageError(
                f"AT MOST ... {word} compares with the clock, and the stream is timed by an integer",
                hint="leave it out, or time the stream by a TIMESTAMP",
            )
    ahead = _length(clauses.ahead)
    if ahead is None and comes_now and is_timestamp:
        ahead = AHEAD
    disorder: int | None = clauses.disorder.length if clauses.disorder is not None else 0
    estimated = _estimated(clauses, info)
    by_cti = _is_cti(clauses, info)
    by_source = clauses.heartbeats is not None
    if clauses.strict:
        disorder = STRICT
    elif clauses.disorder is None and (clauses.rows is not None or estimated is not None or by_source):
        disorder = None
    return Timing(
        disorder=disorder,
        rows=clauses.rows,
        latency=_length(clauses.latency) or 0,
        idle_after=_length(clauses.idle_after),
        timeout=_length(clauses.timeout),
        ahead=ahead,
        behind=_length(clauses.behind),
        heartbeats=None if by_cti else _heartbeats(clauses, info),
        by_cti=by_cti,
        counts=_counts(clauses, info, in_batches=in_batches),
        estimated=estimated,
        deviation=_deviation(clauses.deviation, info.domain),
        rate=_rate(clauses.rate, info.domain),
        per=_per_value(clauses, info),
    )


def _deviation(said: DeviationClause | None, domain: TimeDomain) -> Deviation | None:
    """The distance of the clock of a source from another one."""
    if said is None:
        return None
    check_behind(said.length, domain, "DEVIATION", said.position)
    return Deviation(said.length.length, None if said.clock is None else said.clock.text.lower(), domain)


def _rate(said: RateClause | None, domain: TimeDomain) -> Rate | None:
    """The least rate of the clock of a source."""
    if said is None:
        return None
    check_duration(said.gain, domain, "RATE", said.position)
    return Rate(said.gain.length, said.time.length)


def start_of(clause: StartClause, domain: TimeDomain) -> AnswerStart:
    """Since when a query answers, as its CREATE QUERY says.

    Args:
        clause: what it says.
        domain: what the query's instants count.

    Raises:
        LanguageError: the instant or the length is not of that kind.
    """
    if clause.now:
        return AnswerStart(now=True)
    if clause.back is not None:
        check_duration(clause.back, domain, "FROM -", clause.position)
        return AnswerStart(back=clause.back.length, letters=clause.letters)
    if clause.at is None:
        return AnswerStart(letters=clause.letters)
    if isinstance(clause.at, int) and domain is TimeDomain.TIMESTAMP:
        raise LanguageError(
            f"{clause.at} is not an instant of streams that are timed by a TIMESTAMP",
            position=clause.position,
            hint="write STARTING AT '2024-01-01T00:00:00Z'",
        )
    try:
        return AnswerStart(instant_of(clause.at, domain), letters=clause.letters)
    except UserError as error:
        raise LanguageError(error.message, position=clause.position, hint=error.hint) from None


def retain_of(clauses: TimeClauses, domain: TimeDomain) -> Retain | None:
    """Which rows of a stream are kept, as its CREATE STREAM says; None if none are.

    Args:
        clauses: what it says.
        domain: what the stream's instants count.

    Raises:
        LanguageError: the length does not fit the stream's timestamps.
    """
    clause = clauses.retain
    if clause is None:
        return None
    if clause.length is not None:
        check_duration(clause.length, domain, "RETAIN")
    return Retain(_length(clause.length), clause.rows)


def _estimated(clauses: TimeClauses, info: StreamInfo) -> Estimated | None:
    """How the disorder is estimated."""
    if clauses.percent is not None:
        return target(float(1 - clauses.percent / 100))
    return None if clauses.estimation is None else _adaptivity(clauses.estimation, info.domain)


def _adaptivity(said: EstimationClause, domain: TimeDomain, position: Position | None = None) -> Adaptivity:
    """How an estimate follows the rows."""
    alpha = ALPHA if said.alpha is None else float(said.alpha)
    if said.duration is None:
        wait = 0 if said.wait is None else said.wait.length
        return Adaptivity(said.rows or WINDOW_ROWS, alpha=alpha, wait=wait)
    check_duration(said.duration, domain, "WINDOW", position)
    return Adaptivity(said.duration.length, by_time=True, alpha=alpha)


def _length(duration: Duration | None) -> int | None:
    return None if duration is None else duration.length


def _per_value(clauses: TimeClauses, info: StreamInfo) -> PerValue | None:
    """Of what column each value is bounded on its own."""
    per = clauses.per
    if per is None:
        return None
    assert not isinstance(per.listed, ValuesOf), "relations are looked up before"
    column, position = _column(per.column, info), per.column.position
    if column.type not in (STRING, BIGINT):
        raise LanguageError(
            f"PER takes a STRING or a BIGINT, and {column.name} is a {sql_type(column.type)}",
            position=position,
            hint="name the column with the names or numbers of the devices",
        )
    if clauses.idle_after is None and not per.listed:
        raise LanguageError(
            f"one {column.name} that sends nothing any more would hold the stream back for ever",
            position=position,
            hint=f"add IDLE AFTER 30 SECONDS, or list the values: PER {column.name} OF (...)",
        )
    clashing = {
        "DISORDER n ROWS": clauses.rows,
        "LATENCY": clauses.latency,
        "HEARTBEATS FROM": clauses.heartbeats,
        "an estimated disorder": _estimated(clauses, info),
    }
    for clause, given in clashing.items():
        if given is not None:
            raise LanguageError(
                f"PER and {clause} cannot be combined",
                position=position,
                hint="say by how much the rows of one value are out of order: DISORDER 5 SECONDS",
            )
    kind = str if column.type == STRING else int
    for value in per.listed:
        if not isinstance(value, kind) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
            raise LanguageError(
                f"{value!r} is not a value of {column.name}, which is a {sql_type(column.type)}",
                position=position,
                hint="write OF ('a', 'b')" if kind is str else "write OF (1, 2)",
            )
    return PerValue(column.name, per.listed, _length(per.wait) or 0)


def _column(name: Name, info: StreamInfo) -> Field:
    """A stream's column by its name."""
    place = info.schema.find(name.text)
    if place is None:
        raise LanguageError(
            f"{info.name} has no column {name.text}",
            position=name.position,
            hint=f"the columns are {info.schema}",
        )
    return info.schema[place]


def _is_cti(clauses: TimeClauses, info: StreamInfo) -> bool:
    """Whether the source's heartbeats are the rows of type CTI of a physical stream.

    Raises:
        LanguageError: they are said to be in a column that such rows have for something else.
    """
    if clauses.heartbeats is None or not isinstance(info.changes, Events) or info.changes.shortened is None:
        return False
    name = clauses.heartbeats.text.lower()
    if name in CEDR:
        raise LanguageError(
            f"{name} is of every row of a physical stream, and only those of type CTI are heartbeats",
            position=clauses.heartbeats.position,
            hint="write HEARTBEATS FROM CTI",
        )
    return name == PROMISE.lower() and info.schema.find(name) is None


def _counts(clauses: TimeClauses, info: StreamInfo, *, in_batches: bool) -> str | None:
    """The column with the counts of external CTIs.

    Raises:
        LanguageError: the rows cannot be counted in one place, or not by what has come.
    """
    counts = info.changes.counts if isinstance(info.changes, Events) else None
    if counts is None:
        return None
    if in_batches:
        hint = "read files with one of the formats parquet, csv, json or arrow, or push the rows"
        raise LanguageError("rows that come from Spark are not counted in one place", hint=hint)
    clashing = {"PER": clauses.per, "LATENCY": clauses.latency, "DISORDER n ROWS": clauses.rows}
    for clause, given in clashing.items():
        if given is not None:
            raise LanguageError(
                f"COUNT BY and {clause} cannot be combined",
                hint="write HEARTBEATS FROM CTI, or say by how much rows are out of order: DISORDER 5",
            )
    return counts


def _heartbeats(clauses: TimeClauses, info: StreamInfo) -> str | None:
    """The column that the source writes its heartbeats to."""
    if clauses.heartbeats is None:
        return None
    column, position = _column(clauses.heartbeats, info), clauses.heartbeats.position
    timestamp = info.schema[info.schema.names.index(info.timestamp)]
    if column.type != timestamp.type:
        raise LanguageError(
            f"the heartbeats in {column.name} are {sql_type(column.type)}, and the stream is timed by a "
            f"{sql_type(timestamp.type)}",
            position=position,
            hint=f"heartbeats are of the type of {timestamp.name}",
        )
    return column.name


def follow_of(
    statement: CreateSkew, others: tuple[str, ...], followers: tuple[str, ...], domain: TimeDomain
) -> Follow | None:
    """How streams follow others by a CREATE SKEW; None for DROP SKEW.

    Args:
        statement: the statement.
        others: the streams that are followed.
        followers: the streams that follow them.
        domain: what the instants of all the streams count.

    Raises:
        LanguageError: a length does not fit the streams' timestamps.
    """
    if statement.estimation is not None:
        adaptivity = _adaptivity(statement.estimation, domain, statement.position)
        return Follow(others, (), adaptivity, followers)
    found = []
    for pair in statement.pairs:
        if pair.behind is not None:
            check_behind(pair.behind, domain, "the bound", statement.position)
        delta = 0 if pair.behind is None else pair.behind.length + 1
        found.append(Bound(delta, pair.wait.length, pair.rows))
    return Follow(others, without_redundant(found)) if found else None


def disorder_of(value: Length | None, domain: TimeDomain) -> Duration | None:
    """A disorder in units of the timestamps, or None.

    Raises:
        UserError: it is not a length of time, is negative, or does not fit the domain.
    """
    if value is None:
        return None
    duration = _read_length(value, "disorder")
    if duration.length < 0:
        raise UserError(f"the disorder {value!r} is negative", hint="give None where rows are in order")
    check_behind(duration, domain, "disorder")
    return duration


def span_of(value: Length, domain: TimeDomain, what: str) -> int:
    """A number of instants, one at least.

    Args:
        value: as its user writes it.
        domain: what the instants count.
        what: it is.

    Raises:
        UserError: it is not a length of time, is not above 0, or does not fit the domain.
    """
    duration = _read_length(value, what)
    if duration.length < 1:
        such = "1" if domain is TimeDomain.INTEGER else "10 MINUTES"
        raise UserError(
            f"{what} {value!r} is not above 0", hint=f"give the length of the span, such as {such}"
        )
    check_duration(duration, domain, what)
    return duration.length


def _read_length(value: Length, what: str) -> Duration:
    match value:
        case timedelta():
            return duration_of(value)
        case str():
            return parse_duration(value)
        case int() if not isinstance(value, bool):
            return Duration(value)
        case _:
            raise UserError(
                f"{value!r} is not a valid {what}",
                hint='give a text such as "5 seconds", a timedelta, or a number for integer timestamps',
            )


def instant_of(at: object, domain: TimeDomain) -> int:
    """An instant as users write it: a number, a datetime (UTC if it has no zone), or a text as CAST takes it.

    Raises:
        UserError: it is none of these, or not of the domain.
    """
    if isinstance(at, int):
        if not BEGINNING <= at <= INFINITY:
            raise UserError(f"{at} is not an instant", hint="instants have 62 bits at most")
        return at
    if domain is TimeDomain.INTEGER:
        raise UserError(f"{at!r} is not an instant of an integer timeline", hint="give a number")
    if isinstance(at, str):
        found = parse_timestamp(pa.array([at]), TIMESTAMP)[0][0]
        if not found.is_valid:
            raise _not_a_timestamp(at)
        return int(found.value)
    try:
        moment = pa.scalar(at)
        if pa.types.is_timestamp(moment.type) and moment.type.tz is None:
            moment = moment.cast(pa.timestamp("us"))
        return int(moment.cast(TIMESTAMP).value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _not_a_timestamp(at) from error


def check_unit(at: object, domain: TimeDomain, newest: int) -> None:
    """Refuse a number of seconds or milliseconds for an instant, at which there is nothing for that reason.

    Args:
        at: the instant, as its user has written it.
        domain: what instants of the answer are.
        newest: the newest timestamp of the rows (instant).

    Raises:
        UserError: the number is an instant soon after 1970, and the rows are of years after that.
    """
    # The first bound is 1973 in seconds, the second one in microseconds.
    first, last = 10**8, 10**14
    if not isinstance(at, int) or domain is TimeDomain.INTEGER or not first <= at < last <= newest:
        return
    meant = at * (1_000 if at >= 10**11 else 1_000_000)
    written, text = (format_instant(instant, domain) for instant in (at, meant))
    raise UserError(
        f"nothing holds at {at}, which is {written}",
        hint=f"instants are microseconds since 1970: write {meant} or '{text}'",
    )


def _not_a_timestamp(at: object) -> UserError:
    return UserError(f"{at!r} is not a valid timestamp", hint="write 2024-01-01T00:00:00Z")
