"""What `headrace top` has seen of a run, in the status of a process or in the last commits of a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from headrace.algebra.system_streams import system_stream
from headrace.algebra.tunings.tunings import TuningKind
from headrace.byte_sizes import format_bytes
from headrace.core_counts import format_cores
from headrace.engine.shown.lanes import waiting_text
from headrace.engine.shown.status import instant_text
from headrace.heartbeats.bounded import Arrivals
from headrace.lowering.behind import lane_of
from headrace.runtime.driver.lanes.status import AnswerWorth, LaneStatus, lane_of_query
from headrace.runtime.journal.inspect import Glance
from headrace.runtime.writing.texts import count
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_length, in_words


@dataclass(frozen=True)
class StreamSeen:
    """A stream.

    Attributes:
        name: it.
        rows, late, rejected: how many rows there have been.
        heartbeat, lag: where it is, and how far that is behind its newest row, as texts.
        rate: rows per second, smoothed; None where that is not known.
    """

    name: str
    rows: int
    late: int
    rejected: int
    heartbeat: str
    lag: str
    rate: float | None = None


@dataclass(frozen=True)
class QuerySeen:
    """A query.

    Attributes:
        name: it.
        changes: how many elements it has yielded.
        final, said: up to where its answer is final, and up to where it is said if that is later, as texts.
        held_by: the stream that it waits for; empty where that is not known.
        note: that it is paused, why it has failed, or how much waits for it where it is behind others.
        rate: changes per second, smoothed; None where that is not known.
    """

    name: str
    changes: int
    final: str
    said: str
    held_by: str
    note: str
    rate: float | None = None


@dataclass(frozen=True)
class OperatorWork:
    """What an operator has done since its process began.

    Attributes:
        rows_in, rows_out: rows.
        seconds: of tasks.
        heartbeat: that of its output, as text.
        rates: rows in and out per second, smoothed; None where they are not known.
    """

    rows_in: int
    rows_out: int
    seconds: float
    heartbeat: str
    rates: tuple[float, float] | None = None


@dataclass(frozen=True)
class OperatorSeen:
    """An operator.

    Attributes:
        identity: what names it across changes.
        title: its number, where it is known, and what it does.
        state_rows, state_bytes: what it keeps.
        work: what it has done; None where no process says it.
    """

    identity: str
    title: str
    state_rows: int
    state_bytes: int
    work: OperatorWork | None = None


@dataclass(frozen=True)
class WindowSeen:
    """A window or granule that the manager of memory may change.

    Attributes:
        streams: the names of its streams, after its kind where it is not a window of time.
        smallest, largest, size: its bounds and its size, as people read them.
        place: how far it is from the smallest to the largest.
        why: why it has that size, where nobody has asked for it.
    """

    streams: str
    smallest: str
    largest: str
    size: str
    place: float
    why: str


@dataclass(frozen=True)
class MemorySeen:
    """The state and the processor time of a run beside their limits.

    Attributes:
        title: what there is, what is expected, and the limit.
        windows: those that the manager may change, the shortest for their bounds first.
    """

    title: str
    windows: tuple[WindowSeen, ...]


@dataclass(frozen=True)
class Seen:
    """A run at a moment.

    Attributes:
        title: what there is to say of all of it.
        notes: what needs attention.
        streams, queries, operators: it.
        memory: its state beside its limit; None without one.
        lanes: the queries in front, and the lanes of those that are behind; none where nobody has a priority.
    """

    title: str
    notes: tuple[str, ...]
    streams: tuple[StreamSeen, ...]
    queries: tuple[QuerySeen, ...]
    operators: tuple[OperatorSeen, ...]
    memory: MemorySeen | None = None
    lanes: tuple[LaneStatus, ...] = ()

    @property
    def rows(self) -> int:
        """The rows of the streams that users have defined."""
        return sum(one.rows for one in self.streams if system_stream(one.name) is None)


def seen_in_status(place: str, status: Mapping[str, Any]) -> Seen:
    """What the status of a process says.

    Args:
        place: where it runs.
        status: as `Status.to_dict` gives it, with `problems` beside.
    """
    state = "running" if status["running"] else "at rest"
    lanes = tuple(_lanes(status.get("lanes", ())))
    at = f", the last at {status['at']}" if status["epoch"] else ""
    return Seen(
        f"{place}: {state}, {count(status['epoch'], 'epoch')}{at}",
        tuple(_notes(status)),
        tuple(map(_stream, status["streams"])),
        (
            *(_query(one, lane_of_query(lanes, one["name"])) for one in status["queries"]),
            *(_paused(one["name"], _text(one["heartbeat"])) for one in status["paused"]),
        ),
        tuple(map(_operator, status["operators"])),
        _memory(status.get("managed")),
        lanes,
    )


def _lanes(found: Sequence[Mapping[str, Any]]) -> Iterator[LaneStatus]:
    """Lanes as they are told; none where an earlier Headrace tells less."""
    names = {field.name for field in fields(LaneStatus)}
    for one in found:
        if names <= one.keys():
            told = {name: one[name] for name in names}
            worth = tuple(AnswerWorth(part["query"], part["utility"], part["late"]) for part in one["worth"])
            yield LaneStatus(**{**told, "queries": tuple(one["queries"]), "worth": worth})


def _memory(managed: Mapping[str, Any] | None) -> MemorySeen | None:
    """The findings of the manager; None without one, and where an earlier Headrace tells less."""
    if managed is None or "text" not in managed:
        return None
    used, expected = format_bytes(managed["used"]), format_bytes(managed["expected"])
    windows = sorted(managed["windows"], key=lambda window: window["place"])
    working = f"; an epoch works with {format_bytes(managed['working'])}" if managed.get("working") else ""
    title = f"state: {used}, {expected} expected with full windows{working}; {managed['text']}"
    if (time := managed.get("time")) is not None:
        used, expected = format_cores(time["used"]), format_cores(time["expected"])
        title += f"\nprocessor time: {used}, {expected} expected with full windows; {time['text']}"
    return MemorySeen(title, tuple(map(_window, windows)))


def _window(one: Mapping[str, Any]) -> WindowSeen:
    domain, kind = TimeDomain(one["domain"]), TuningKind(one.get("kind", TuningKind.WINDOW))
    smallest, largest, size = (kind.text(one[name], domain) for name in ("smallest", "largest", "size"))
    what = "" if kind is TuningKind.WINDOW else f"{kind.noun} of "
    return WindowSeen(what + ", ".join(one["streams"]), smallest, largest, size, one["place"], one["why"])


def _stream(one: Mapping[str, Any]) -> StreamSeen:
    numbers = one["rows"], one["late"], one["rejected"]
    return StreamSeen(one["name"], *numbers, _text(one["heartbeat"]), _lag(one), one["rate"])


def _notes(status: Mapping[str, Any]) -> Iterator[str]:
    attempt, past = status["attempt"], status["catching_up"]
    if attempt is not None and attempt["failed"] is not None:
        yield f"epoch {attempt['epoch']:,} is tried again: {attempt['failed']}"
    elif attempt is not None:
        yield f"epoch {attempt['epoch']:,} has been running for {attempt['seconds']:,.1f} s"
    if status["ended"] is not None:
        yield f"the run has ended with: {status['ended']}"
    if past is not None:
        rows = past["rows"], past["rows"] + past["left"]
        yield f"{past['query']} has taken {rows[0]:,} of {rows[1]:,} rows of the past"
    for name, what in status["problems"].items():
        yield f"{name}: {what}"


def _query(one: Mapping[str, Any], lane: LaneStatus | None) -> QuerySeen:
    said = "" if one["horizon"] == one["heartbeat"] else _text(one["horizon"])
    # The message of a failure may come with its hint.
    failed = one["failed"][0] if isinstance(one["failed"], list) and one["failed"] else one["failed"]
    waiting = "" if lane is None else waiting_text(lane)
    note = f"behind by {waiting}" if waiting else ""
    note = note if not failed else f"failed: {failed}"
    final, held_by = _text(one["heartbeat"]), one["held_by"] or ""
    return QuerySeen(one["name"], one["changes"], final, said, held_by, note, one["rate"])


def _paused(name: str, final: str, changes: int = 0) -> QuerySeen:
    return QuerySeen(name, changes, final, "", "", "paused")


def _operator(one: Mapping[str, Any]) -> OperatorSeen:
    rates = None if one["rates"] is None else (one["rates"][0], one["rates"][1])
    work = OperatorWork(one["rows_in"], one["rows_out"], one["seconds"], _text(one["heartbeat"]), rates)
    return OperatorSeen(
        one["identity"], f"#{one['number']} {one['text']}", one["state_rows"], one["state_bytes"], work
    )


def _text(instant: object) -> str:
    return "" if instant is None else in_words(str(instant))


def _lag(one: Mapping[str, Any]) -> str:
    """How far a heartbeat is behind, as text: a stream of TIMESTAMPs has texts for instants."""
    if one["lag"] is None:
        return ""
    domain = TimeDomain.TIMESTAMP if isinstance(one["latest"], str) else TimeDomain.INTEGER
    return format_length(one["lag"], domain)


def seen_in_store(folder: Path, seen: Glance) -> Seen:
    """What the last commits of a store say, while no process answers.

    Args:
        folder: the store's.
        seen: its last commits.
    """
    at = f", the last at {instant_text(seen.clock, TimeDomain.TIMESTAMP)}" if seen.epochs else ""
    described = seen.description.operators
    return Seen(
        f"{folder}: {count(seen.epochs, 'epoch')}{at}; {count(seen.totals.dead_letters, 'dead letter')}",
        ("no process answers: this is what was committed last",),
        tuple(_stream_in(seen, name) for name in sorted(seen.streams) if lane_of(name) is None),
        tuple(_queries_in(seen)),
        tuple(
            OperatorSeen(part.identity, described.get(part.identity, part.identity), part.rows, part.bytes)
            for part in seen.state
        ),
    )


def _stream_in(seen: Glance, name: str) -> StreamSeen:
    found = seen.totals.arrivals.get(name, Arrivals())
    domain, heartbeat = seen.description.domain_of(name), seen.streams[name].heartbeat
    known = BEGINNING not in (found.latest, heartbeat) and heartbeat != INFINITY
    lag = format_length(max(0, found.latest - heartbeat), domain) if known else ""
    return StreamSeen(
        name, found.rows, found.late, found.rejected, _text(instant_text(heartbeat, domain)), lag
    )  # fmt: skip


def _queries_in(seen: Glance) -> Iterator[QuerySeen]:
    emitted, name_of = seen.totals.emitted, seen.description.name_of
    for query in sorted(seen.description.answered, key=name_of):
        name, domain = name_of(query), seen.description.domain_of_answer(query)
        heartbeat = seen.heartbeats.get(query, BEGINNING)
        horizon = seen.horizons.get(query, heartbeat)
        said = _text(instant_text(horizon, domain)) if horizon > heartbeat else ""
        note = f"failed: {seen.failed[query][0]}" if query in seen.failed else ""
        yield QuerySeen(name, emitted.get(query, 0), _text(instant_text(heartbeat, domain)), said, "", note)
    for query, one in sorted(seen.description.paused.items(), key=lambda known: name_of(known[0])):
        until = _text(instant_text(one.heartbeat, one.form.domain))
        yield _paused(name_of(query), until, emitted.get(query, 0))
