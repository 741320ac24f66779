"""What a query does at a level of consistency: how long it blocks, what it remembers, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.algebra.events import Events
from headrace.elements import Int64Array, integers
from headrace.engine.access.policy import Policy
from headrace.engine.database import Database
from headrace.engine.inputs.declared import declared
from headrace.engine.inputs.inputs import Input
from headrace.errors import LanguageError, Position, UserError
from headrace.heartbeats.timing import Timing
from headrace.language.parsing.parser import parse
from headrace.language.statements.statements import CreateStreamAs, Select
from headrace.language.statements.streams import CreateStream
from headrace.runtime.intake.streams import BoundedStream
from headrace.runtime.sources.composed.tables import read_table
from headrace.runtime.tasks.events import sync_times
from headrace.time import BEGINNING, INFINITY, MICROSECONDS, TimeDomain, format_length

_UNITS: Final = (("DAY", "days"), ("HOUR", "hours"), ("MINUTE", "minutes"))

ANSWER: Final = "answer"
"""What the query is called in a run."""

_QUERY: Final = "write CREATE STREAM for each stream, and then one SELECT, to which CONSISTENCY is added"


@dataclass(frozen=True)
class Scenario:
    """Streams that end, and a query over them.

    Attributes:
        name: what it is called.
        streams: the text up to the query.
        query: the text of the query.
        base: the folder that relative paths start from.
        arrivals: int64[n] per stream: from which instants on its rows change what holds, as they arrive.
        disorder: how late a row may be, where streams say so (instants of `domain`), else 0.
        forgets: whether a query may remember the streams for less.
        domain: what instants count.
    """

    name: str
    streams: str
    query: str
    base: Path
    arrivals: Mapping[str, Int64Array]
    disorder: int
    forgets: bool
    domain: TimeDomain

    @property
    def rows(self) -> int:
        """How many rows arrive."""
        return sum(map(len, self.arrivals.values()))

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that differ most, and one between each two of them."""
        if self.disorder <= 1:
            return ("STRONG", "MIDDLE")
        half = format_length(self.disorder // 2, self.domain)
        less = (f"REMEMBER {half}", "WEAK") if self.forgets else ()
        return ("STRONG", f"BLOCK {half}", "MIDDLE", *less)


@dataclass(frozen=True)
class Figures:
    """What a query did at a level.

    Attributes:
        level: the level.
        behind: how far what was answered was behind the newest row (instants), on average over the epochs.
        blocked: how many rows had come that the answer did not speak of yet, at most.
        remembered: how many rows the operators kept, at most.
        output: how many elements were said.
        taken_back: how many of them take back what was said before.
        lost: how many rows came too late to be used, for their streams or for what the query remembers.
        history: the answer at the end.
    """

    level: str
    behind: float
    blocked: int
    remembered: int
    output: int
    taken_back: int
    lost: int
    history: pa.Table

    def differs(self, other: Figures) -> int:
        """How many rows one history has that the other has not, and the other way round."""
        mine, others = (
            {tuple(map(repr, row.values())) for row in one.history.to_pylist()} for one in (self, other)
        )
        return len(mine ^ others)


def scenario_of(text: str, file: Path) -> Scenario:
    """The streams and the query of a text.

    Args:
        text: statements that define streams, and a SELECT at the end.
        file: where the text is from.

    Raises:
        LanguageError: there is another statement, or none that is a query.
        UserError: a stream never ends, is timed by arrival, or cannot be read.
    """
    statements = parse(text)
    last = statements[-1] if statements else None
    if not isinstance(last, Select):
        position = None if last is None else last.position
        raise LanguageError("the text does not end with a SELECT", position=position, hint=_QUERY)
    found: dict[str, Input] = {}
    for statement in statements[:-1]:
        if isinstance(statement, CreateStream):
            found[statement.name] = declared(statement, file.parent, Policy.open(), _no_spark)
        elif not isinstance(statement, CreateStreamAs):
            message = "only CREATE STREAM may come before the query"
            raise LanguageError(message, position=statement.position, hint=_QUERY)
    arrivals = {name: _arrivals(one) for name, one in found.items()}
    with hr.connect(runner="inline") as db:
        # Errors of the query have their place in the text as it was written.
        domain = db.execute(text, base=file.parent)[-1].plan.domain
    offset = _offset(text, last.position)
    timings = [one.stream.timing for one in found.values()]
    disorder = max((timing.disorder or 0 for timing in timings), default=0)
    forgets = all(timing == Timing(timing.disorder, ahead=timing.ahead) for timing in timings)
    pieces = text[:offset], text[offset:]
    return Scenario(file.stem, *pieces, file.parent, arrivals, disorder, forgets, domain)


def measured(scenario: Scenario, level: str, epochs: int) -> Figures:
    """Run a scenario at a level.

    Args:
        scenario: the scenario.
        level: as after CONSISTENCY; parentheses may be left out.
        epochs: in about how many epochs.

    Raises:
        UserError: the level is not valid for the query, or the run fails.
    """
    seen = _Seen(scenario)
    clause = level if level.isalpha() or level.startswith("(") else f"({level})"
    with hr.connect(runner="inline", epoch_rows=max(1, scenario.rows // epochs)) as db:
        db.execute(scenario.streams, base=scenario.base)
        text = f"CREATE QUERY {ANSWER} CONSISTENCY {clause} AS {scenario.query}"
        db.execute(text, base=scenario.base)
        db.run(progress=seen.watch(db))
        change = db[ANSWER].changes().column("change").to_numpy()
        return Figures(
            level,
            fmean(seen.behind) if seen.behind else 0.0,
            seen.blocked,
            seen.remembered,
            len(change),
            int(np.count_nonzero(change < 0)),
            len(db.dead_letters()) + (db.status.query(ANSWER).departures or 0),
            db[ANSWER].history(),
        )


def unit_of(figures: Sequence[Figures], domain: TimeDomain) -> tuple[str, int]:
    """In what to say how far answers are behind: its name, and how many instants it has.

    Args:
        figures: those that are compared.
        domain: what instants count.
    """
    if domain is TimeDomain.INTEGER:
        return "instants", 1
    longest = max(one.behind for one in figures)
    fitting = ((name, MICROSECONDS[unit]) for unit, name in _UNITS if longest >= 2 * MICROSECONDS[unit])
    return next(fitting, ("seconds", MICROSECONDS["SECOND"]))


@dataclass
class _Seen:
    """What is seen of a run, epoch by epoch."""

    scenario: Scenario
    behind: list[int] = field(default_factory=list)
    blocked: int = 0
    remembered: int = 0

    def watch(self, db: Database) -> Callable[[Any], None]:
        """What is called after every epoch."""

        def look(_: object) -> None:
            status = db.status
            query = status.query(ANSWER)
            self.remembered = max(self.remembered, sum(one.state_rows for one in status.operators))
            if query.horizon in (BEGINNING, INFINITY):
                return
            self.behind.append(max(0, query.latest + 1 - query.horizon))
            waiting = 0
            for stream in status.streams:
                come = self.scenario.arrivals[stream.name][: stream.rows + stream.late]
                waiting += int(np.count_nonzero(come >= query.horizon))
            self.blocked = max(self.blocked, waiting)

        return look


def _arrivals(stream: Input) -> Int64Array:
    """From which instants on the rows of a stream change what holds, in the order in which they arrive."""
    if not isinstance(stream.stream, BoundedStream) or stream.info.by_arrival:
        raise UserError(
            f"the rows of {stream.name} do not arrive in an order that can be repeated",
            hint="read a file, and time it by a column",
        )
    events = stream.info.changes if isinstance(stream.info.changes, Events) else None
    timestamp = stream.info.timestamp
    names: Sequence[str] = (timestamp, *(() if events is None else events.columns))
    rows = read_table(stream.stream.source, stream.stream.source.size, dict.fromkeys(names))
    timed = rows.filter(rows.column(timestamp).is_valid()).combine_chunks()
    batch = pa.RecordBatch.from_arrays([one.combine_chunks() for one in timed.columns], timed.column_names)
    return sync_times(events, batch, integers(batch.column(timestamp)))


def _no_spark(format_: str, *_: object) -> Any:
    raise UserError(f"the rows of {format_} come through Spark", hint="read a file")


def _offset(text: str, position: Position) -> int:
    """Where in a text a position is."""
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1
