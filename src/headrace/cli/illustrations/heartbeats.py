"""`headrace heartbeats`: what the declared bounds make of arrivals, as a table and a picture."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Final

import pyarrow as pa
import typer

import headrace as hr
from headrace.cli.errors import read_text, reported, script_of
from headrace.cli.illustrations.heartbeats_chart import Axis, check_file, draw
from headrace.engine.inputs.times import instant_of
from headrace.errors import UserError
from headrace.heartbeats.rules import Rules
from headrace.heartbeats.timeline import Arrival, ArrivalTimeline, timeline
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import StreamInfo
from headrace.runtime.driver.clock.timekeeper import read_together, rules_of
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count
from headrace.suggestions import did_you_mean
from headrace.time import MAX_INSTANT, MICROSECONDS, MIN_INSTANT, TimeDomain, format_instant
from headrace.workloads.simulated import Behaviour, Sources

_COLUMNS: Final = ("clock", "stream", "ts")
_SECOND: Final = MICROSECONDS["SECOND"]
_BEGIN: Final = 1_704_099_600 * _SECOND
"""2024-01-01 9:00, at which simulated TIMESTAMPs begin."""


def heartbeats(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.sql", help="The text with the streams; - is standard input.")
    ],
    arrivals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="What arrives: clock (seconds, or ISO 8601), stream, and ts, empty for nothing. "
            "Sources that obey the bounds are simulated where this is not given.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Draw it: .svg, .png, .html or .json.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, other simulated sources.")] = 1,
    seconds: Annotated[int, typer.Option(metavar="N", min=1, help="How long they are simulated.")] = 30,
) -> None:
    """Show how the heartbeats of streams move over wall-clock time; runs no query and reads no stream."""
    script = script_of(file, None)
    with reported(script.file), hr.connect(runner="inline") as db:
        db.execute(script.text, base=script.file.parent)
        timings = dict(db.timings)
        if not timings:
            raise UserError("there is no stream", hint="add a CREATE STREAM ... FROM push")
        for name, timing in timings.items():
            if timing.by_arrival:
                raise UserError(
                    f"{name} is timed by arrival, so that its heartbeat is the clock itself",
                    hint="leave it out",
                )
            if timing.per is not None:
                raise UserError(
                    f"the heartbeats of {name} are made from {timing.per.column}, which arrivals do not have",
                    hint="leave out PER and what follows it",
                )
        if plot is not None:
            check_file(plot)
        together = set(read_together(query.plan for query in db.queries)) or {frozenset(timings)}
        rules = rules_of(timings, together)
        known = {info.name: info.domain for info in db.streams.values() if isinstance(info, StreamInfo)}
        domains = [known[name] for name in timings]
        if arrivals is None:
            timed, found = False, _simulated(rules, domains, seed, seconds)
        else:
            timed, found = _read(arrivals, dict(zip(timings, domains, strict=True)))
        seen = timeline(rules, timings, found)
        across = Axis(tuple(timings), tuple(domains), TimeDomain.TIMESTAMP if timed else None)
        _print(seen, across)
        _summarize(seen, timings)
        if plot is not None:
            draw(seen, across, plot)


def _simulated(rules: Rules, domains: Sequence[TimeDomain], seed: int, seconds: int) -> list[Arrival]:
    """What sources send that obey the bounds, and pause, reorder and lose rows."""
    is_timestamp = TimeDomain.TIMESTAMP in domains
    if is_timestamp and TimeDomain.INTEGER in domains:
        raise UserError(
            "some streams are timed by TIMESTAMPs and some by integers",
            hint="give --arrivals, or a file with the streams of one kind",
        )
    spread, begin = (3 * _SECOND, _BEGIN) if is_timestamp else (3, 0)
    sources = Sources(
        rules.matrix.expanded(), Behaviour(_SECOND, spread=spread, rate=spread // 3), Random(seed)
    )
    # Whole milliseconds are easier to read.
    return [
        Arrival(row.arrives // 1000 * 1000, row.stream, begin + row.instant) for row in sources.run(seconds)
    ]


def _read(path: Path, domains: Mapping[str, TimeDomain]) -> tuple[bool, list[Arrival]]:
    """The arrivals that a file lists, and whether its clock is a date and time.

    Raises:
        UserError: a column is missing, or a line cannot be read.
    """
    lines = csv.DictReader(read_text(path).splitlines())
    missing = [name for name in _COLUMNS if name not in (lines.fieldnames or ())]
    if missing:
        raise UserError(f"{path} has no column {missing[0]}", hint=f"it begins with {','.join(_COLUMNS)}")
    spelled = {name.lower(): name for name in domains}
    found, kinds = [], set()
    for line in lines:
        try:
            is_number, clock = _clock(line["clock"] or "")
            name = spelled.get((line["stream"] or "").lower())
            if name is None:
                raise UserError(
                    f"there is no stream {line['stream']}",
                    hint=did_you_mean(line["stream"] or "", domains) or f"there is {', '.join(domains)}",
                )
            instant = _instant(line["ts"], domains[name])
        except UserError as error:
            error.message = f"{path}, line {lines.line_num}: {error.message}"
            raise
        kinds.add(is_number)
        found.append(Arrival(clock, list(domains).index(name), instant))
    if len(kinds) > 1:
        raise UserError(f"{path} has seconds and dates in the column clock", hint="use one of them")
    return kinds == {False}, found


def _clock(text: str) -> tuple[bool, int]:
    """Whether a reading of the clock is a number of seconds, and the microseconds it means."""
    try:
        clock = round(float(text) * _SECOND)
    except (ValueError, OverflowError):
        return False, instant_of(text, TimeDomain.TIMESTAMP)
    return True, _in_range(clock, text)


def _instant(text: str | None, domain: TimeDomain) -> int | None:
    if not text:
        return None
    if domain is TimeDomain.TIMESTAMP:
        return _in_range(instant_of(text, domain), text)
    try:
        return _in_range(int(text), text)
    except ValueError:
        raise UserError(f"'{text}' is not an integer", hint="the stream is timed by integers") from None


def _in_range(instant: int, text: str) -> int:
    if not MIN_INSTANT <= instant <= MAX_INSTANT:
        raise UserError(f"'{text}' is out of range")
    return instant


def _print(seen: ArrivalTimeline, axis: Axis) -> None:
    rows = list(_lines(seen, axis))
    names = ("clock", "stream", "heartbeat", "moved by")
    columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(names)}
    write_table(pa.table(columns), "table", None)


def _lines(seen: ArrivalTimeline, axis: Axis) -> Iterator[tuple[str, ...]]:
    for move in seen.moves:
        heartbeat = format_instant(move.heartbeat, axis.domains[move.stream])
        yield axis.clock_text(move.clock), axis.names[move.stream], heartbeat, move.cause


def _summarize(seen: ArrivalTimeline, timings: Mapping[str, Timing]) -> None:
    """Say on standard error how many rows of each stream came, and how many of them were late."""
    for place, name in enumerate(timings):
        late = [row.is_late for row in seen.rows if row.arrival.stream == place]
        typer.echo(f"{name}: {count(len(late), 'row')}, {sum(late)} late", err=True)
