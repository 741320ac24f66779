"""The rows that are kept over which a query may be brought from the past to the present."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.exactness import exact_from, needed_from
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import Clip, Plan, RefreshedRelation
from headrace.algebra.properties import relations_of, sources_of
from headrace.elements import integers
from headrace.errors import UserError
from headrace.lowering.early import at_horizon
from headrace.lowering.memory import remembering_all
from headrace.runtime.driver.change.turn import Present
from headrace.runtime.driver.change.wanted import AnswerStart
from headrace.runtime.driver.kept.behind import kept_part
from headrace.runtime.driver.kept.letters import require_kept
from headrace.runtime.driver.kept.replay import late_rows
from headrace.runtime.intake.retained import read_retained
from headrace.runtime.intake.streams import BoundedStream, Incoming, LiveStream, Streams
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.journal.retained import Retained
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import RetainedFile
from headrace.time import BEGINNING, INFINITY

PAST: Final = "{} cannot answer from the past: "
"""The words before the reason why a query cannot answer from the past."""


@dataclass(frozen=True, eq=False)
class KeptInput:
    """The rows that are kept over which a query is brought to the present before it begins.

    Attributes:
        plan: its plan, optimized.
        clipped: what reads the rows, at STRONG.
        read: what is declared of its inputs while they are read.
        streams: the streams of them, by name, as they are declared.
        needed: per stream from which instant on its rows matter.
        answers_from: the instant from which on it answers.
        exact: the one from which on it is exact.
        late: the rows that came too late and are taken as well, by stream.
        left: how many rows there are by now.
        asked_for: whether it was asked for since when it answers.
        takes_over: whether it takes the place of another one, below whose answer's end it says nothing.
        goes_on: whether the answer of that one goes on in its own.
    """

    plan: Plan
    clipped: Plan
    read: Streams
    streams: Mapping[str, BoundedStream | LiveStream]
    needed: Mapping[str, int]
    answers_from: int
    exact: int
    late: Mapping[str, pa.Table] = field(default_factory=dict)
    left: int = 0
    asked_for: bool = False
    takes_over: bool = False
    goes_on: bool = False


def kept_input_of(
    present: Present,
    query: str,
    plan: Plan,
    start: AnswerStart,
    streams: Streams,
    *,
    at_once: bool = False,
) -> KeptInput:
    """The kept rows over which a query is brought to the present.

    Args:
        present: the run that it is to join, between two epochs.
        query: the query.
        plan: its plan, optimized.
        start: since when it is to answer.
        streams: what is declared, by name.
        at_once: whether it answers from then on also where it is exact only later.

    Raises:
        UserError: a stream's rows are not kept, or not all of those that the answer depends on.
    """
    called = present.known.queries.name_of(query)
    # Kept rows are read at STRONG; the level changes at the end.
    strong = at_horizon(remembering_all(plan), None)
    sources = dict.fromkeys(source.name for source in sources_of(strong))
    found = {name: _readable(called, name, streams, present.point(name)) for name in sources}
    for relation in relations_of(strong):
        if isinstance(relation, RefreshedRelation):
            raise cannot(
                called,
                f"what {relation.name} was before it was read again is not kept",
                "leave out the relation, or declare it without REFRESH",
            )
    asked = _asked(start, [present.point(name) for name in found])
    known = {name: retained(present.point(name)).since for name in found}
    exact = max(asked, exact_from(strong, known, _NthRow(present, found)))
    if exact == INFINITY:
        raise _incomplete(called, known)
    begins = asked if at_once else exact
    needed = needed_from(strong, begins)
    read: dict[str, Incoming] = {relation.name: streams[relation.name] for relation in relations_of(strong)}
    for name, stream in found.items():
        read[name] = kept_part(stream)
    late = _late_rows(present, found) if start.letters else {}
    left = sum(file.rows for _, _, file in files_left(found, needed, present.point))
    return KeptInput(
        plan,
        clipped=strong if begins == BEGINNING else Clip(strong, begins),
        read=read,
        streams=found,
        needed=needed,
        answers_from=begins,
        exact=exact,
        late=late,
        left=left + sum(rows.num_rows for rows in late.values()),
        asked_for=not at_once,
    )


def files_left(
    streams: Mapping[str, BoundedStream | LiveStream],
    needed: Mapping[str, int],
    point: Callable[[str], StreamPoint],
    taken: Mapping[str, int] | None = None,
) -> list[tuple[int, str, RetainedFile]]:
    """The files of kept rows that have yet to be taken, in the order of the epochs, each with its stream.

    Args:
        streams: the streams that are read.
        needed: per stream from which instant on its rows matter.
        point: how far a stream has been read, by its name.
        taken: per stream the last epoch whose rows have been taken; none if None.
    """
    found = (
        (file.last, name, file)
        for name in streams
        for file in retained(point(name)).files
        if file.first > (taken or {}).get(name, 0) and file.newest >= needed[name]
    )
    return sorted(found, key=lambda one: one[:2])


def retained(point: StreamPoint) -> Retained:
    """The rows of a stream that are there."""
    return point.retained or Retained((), BEGINNING if not point.time.rows else point.time.latest + 1)


def kept_for(present: Present, query: str, plan: Plan, streams: Streams) -> tuple[str, ...]:
    """The streams whose rows are to be kept while a query is paused, so that it can go on without a gap.

    Args:
        present: the run that answers it.
        query: the query.
        plan: its plan, optimized.
        streams: what is declared, by name.

    Raises:
        UserError: rows are missing that its answer will depend on.
    """
    heartbeat = present.final_until(query)
    if heartbeat == INFINITY:
        return ()
    called = present.known.queries.name_of(query)
    read = tuple(dict.fromkeys(source.name for source in sources_of(plan)))
    for source in read:
        stream = streams[source]
        if isinstance(stream, BoundedStream | LiveStream) and stream.retain is None:
            raise _cannot_keep(
                called, f"the rows of {source} are not kept", f"ALTER STREAM {source} RETAIN ALL"
            )
    try:
        found = kept_input_of(present, query, plan, AnswerStart(heartbeat), streams)
    except UserError as error:
        reason = error.message.removeprefix(PAST.format(called))
        raise UserError(f"{called} cannot keep its input: {reason}", hint=error.hint) from error
    if found.answers_from > heartbeat:
        raise _cannot_keep(
            called,
            f"its answer will depend on rows of {', '.join(read)} that are no longer kept",
            f"let {read[0]} RETAIN as much as the query's windows",
        )
    return read


def cannot(name: str, reason: str, hint: str) -> UserError:
    """The error for a query that cannot answer from the past."""
    return UserError(f"{PAST.format(name)}{reason}", hint=hint)


@dataclass(frozen=True)
class _NthRow:
    """Finds the instant of the n-th row of a stream from an instant on; INFINITY where there are fewer."""

    present: Present
    streams: Mapping[str, BoundedStream | LiveStream]

    def __call__(self, stream: str, since: int, count: int) -> int:
        times = np.sort(np.concatenate([np.empty(0, np.int64), *self._times(stream, since)]))
        return int(times[count - 1]) if len(times) >= count else INFINITY

    def _times(self, stream: str, since: int) -> Iterator[np.ndarray]:
        store: Store = self.present.store
        for file in retained(self.present.point(stream)).files:
            column = read_retained(store, file).column(self.streams[stream].timestamp).combine_chunks()
            times = integers(column)
            yield times[times >= since]


def _late_rows(present: Present, streams: Mapping[str, BoundedStream | LiveStream]) -> Mapping[str, pa.Table]:
    """The rows that came too late, by the stream that they are of.

    Raises:
        UserError: no stream keeps them.
    """
    kept = {name: one for name, one in streams.items() if one.letters_kept is not None}
    keeper = present.letter_keeper
    for name in kept or streams:
        require_kept(name, streams[name])
    found = {name: late_rows(name, stream, present.point(name), keeper) for name, stream in kept.items()}
    return {name: rows for name, rows in found.items() if rows.num_rows}


def _asked(start: AnswerStart, points: list[StreamPoint]) -> int:
    """The instant from which on a query is to answer."""
    if start.back is None:
        return start.at
    reached = min((_reached(point) for point in points), default=BEGINNING)
    return BEGINNING if reached == BEGINNING else reached - start.back


def _reached(point: StreamPoint) -> int:
    """The instant that a stream has reached: its heartbeat, or behind its newest row where it has ended."""
    return min(point.heartbeat, point.time.latest + 1) if point.time.rows else BEGINNING


def _readable(query: str, name: str, streams: Streams, point: StreamPoint) -> BoundedStream | LiveStream:
    """A stream that a query from the past reads, whose rows are kept if any have come."""
    stream = streams[name]
    if not isinstance(stream, BoundedStream | LiveStream):
        letters = stream_of_letters(name)
        raise cannot(query, f"dead letters of {letters} are not kept as input", "leave them out")
    if stream.retain is None and point.time.rows:
        raise cannot(
            query,
            f"the rows of {name} are not kept",
            f"write CREATE STREAM {name} ... RETAIN ALL; ALTER STREAM {name} RETAIN ALL keeps those that "
            "come from then on",
        )
    return stream


def _incomplete(query: str, known: Mapping[str, int]) -> UserError:
    missing = [name for name, since in known.items() if since > BEGINNING]
    return cannot(
        query,
        f"its answer depends on rows of {', '.join(missing)} that are no longer kept",
        "give it windows of time, or streams that RETAIN ALL from their first row on",
    )


def _cannot_keep(name: str, reason: str, way: str) -> UserError:
    return UserError(f"{name} cannot keep its input: {reason}", hint=f"{way}; or leave out KEEPING INPUT")
