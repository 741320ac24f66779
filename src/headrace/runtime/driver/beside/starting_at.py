"""A query that is added and answers over rows from before it: `CREATE QUERY q STARTING AT ... AS`.

Rows that were kept run through operators of its own, in epochs that others do not see, with the heartbeats
that their streams had. Then these hold what those of a query would hold that was there from the beginning,
and what they have yielded is its answer so far. A change of the plan lets both count, and the query goes on
with the rows that come: none is missing, and none comes twice, since the change lies between two epochs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.exactness import exact_from, needed_from
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import Clip, Plan, RefreshedRelation
from headrace.algebra.properties import relations_of, sources_of
from headrace.elements import integers
from headrace.errors import UserError
from headrace.heartbeats.timing import Timing
from headrace.lowering.constants import constants_as_data
from headrace.lowering.early import at_horizon, horizon_of
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.memory import is_strong, memories_of, remembering, remembering_all
from headrace.lowering.node import reading_of
from headrace.lowering.outer_joins import expand
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.wanted import Redefine, Wanted
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.kept.letters import all_columns, require_kept
from headrace.runtime.driver.kept.replay import late_rows, source_of
from headrace.runtime.driver.query_record import Adoption
from headrace.runtime.intake.retained import RetainedSource, read_retained
from headrace.runtime.intake.streams import BoundedStream, Incoming, Intake, LiveStream, Streams
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.journal.retained import Retained
from headrace.runtime.tasks.messages import RetainedFile
from headrace.time import BEGINNING, INFINITY

_LOG: Final = logging.getLogger("headrace")

MOST_ROWS: Final = 500_000
"""About how many rows an epoch over the past takes, for which others wait."""

_PAST: Final = "{} cannot answer from the past: "

_AS_KEPT: Final = Timing(disorder=None)
"""Of rows that were accepted before: none is late, and heartbeats come with them."""


@dataclass(frozen=True)
class CatchingUp:
    """How far a query is that is being brought from the past to the present.

    Attributes:
        query: what it is called.
        rows: how many of the rows that are kept it has taken.
        left: how many there are besides, by now.
    """

    query: str
    rows: int
    left: int


@dataclass(frozen=True)
class AnswerStart:
    """Since when a query that is added is to answer.

    Attributes:
        at: from that instant on; BEGINNING for all that is kept.
        back: so long before its streams' heartbeat (instants), instead of an instant; or None.
        now: from the streams' heartbeats on, over the rows that come from then on alone.
        letters: whether it has the rows as well that came too late for the streams, as far as they are kept.
    """

    at: int = BEGINNING
    back: int | None = None
    now: bool = False
    letters: bool = False


class CatchUp:
    """A query that is brought from the past to the present.

    Args:
        run: the run that it is to join, between two epochs.
        name: the query.
        plan: its plan, optimized.
        start: since when it is to answer.
        streams: what is declared, by name.
        at_once: whether it answers from then on also where it is exact only later, if it ever is.

    Attributes:
        answers_from: the instant from which on it answers.
        exact: the one from which on it is exact.
        progress: how far it is.

    Raises:
        UserError: a stream's rows are not kept, or not all of those that the answer depends on.
    """

    def __init__(
        self,
        run: Run,
        name: str,
        plan: Plan,
        start: AnswerStart,
        streams: Streams,
        *,
        at_once: bool = False,
    ) -> None:
        self._run = run
        self._name = name
        self._called = run.reading.queries.name_of(name)
        self._plan = plan
        self._asked_for = not at_once
        # Kept rows are read at STRONG; the level changes at the end.
        plan = at_horizon(remembering_all(plan), None)
        self._streams = {
            source.name: _readable(self._called, source.name, streams, run.point(source.name))
            for source in sources_of(plan)
        }
        for relation in relations_of(plan):
            if isinstance(relation, RefreshedRelation):
                raise _cannot(
                    self._called,
                    f"what {relation.name} was before it was read again is not kept",
                    "leave out the relation, or declare it without REFRESH",
                )
        self._output = 0
        self._taken = dict.fromkeys(self._streams, 0)
        asked = self._asked(start)
        known = {source: self._kept(source).since for source in self._streams}
        self.exact = max(asked, exact_from(plan, known, self._nth_row))
        if self.exact == INFINITY:
            raise self._incomplete(known)
        self.answers_from = asked if at_once else self.exact
        self._needed = needed_from(plan, self.answers_from)
        clipped = plan if self.answers_from == BEGINNING else Clip(plan, self.answers_from)
        read: dict[str, Incoming] = {relation.name: streams[relation.name] for relation in relations_of(plan)}
        for source, stream in self._streams.items():
            read[source] = LiveStream(all_columns(stream), stream.timestamp, _AS_KEPT, stream.changes)
        self._clipped, self._read = clipped, read
        self._late = self._late_rows() if start.letters else {}
        self._inner = run.beside(name, clipped, read)
        left = sum(file.rows for _, _, file in self._left())
        left += sum(rows.num_rows for rows in self._late.values())
        self.progress = CatchingUp(self._called, 0, left)

    def step(self) -> bool:
        """Run an epoch over some of the rows that were kept; whether there were any left.

        Raises:
            UserError: the query fails on them.
            StoreError: they cannot be read.
        """
        if self._inner.reads_relations:
            self._advance(self._inner.next_share())
            return True
        if self._late:
            self._take_late_rows()
            return True
        chosen = self._next_files()
        if not chosen:
            return False
        intakes, rows = {}, 0
        for name, files in chosen.items():
            stream = self._streams[name]
            # Rows that no answer needs may be ones on which an expression fails.
            since = BEGINNING if stream.changes is not None else self._needed[name]
            source = RetainedSource(
                self._run.store, tuple(files), all_columns(stream), stream.timestamp, since
            )
            place = self._inner.point(name).position + 1
            intakes[name] = Intake(place, source, 0, source.size, promise=files[-1].heartbeat)
            self._taken[name] = files[-1].last
            rows += source.size
        self._advance(intakes)
        left = sum(file.rows for _, _, file in self._left())
        self.progress = CatchingUp(self._called, self.progress.rows + rows, left)
        return True

    def finish(self) -> Joining:
        """Bring the query to the streams' present heartbeats; what it begins with.

        Raises:
            UserError: the query fails.
        """
        self._advance(
            {
                name: Intake(self._inner.point(name).position, promise=self._run.point(name).heartbeat)
                for name in self._streams
                if self._run.point(name).heartbeat > BEGINNING
            }
        )
        self._come_to_level()
        reading, epoch = self._inner.reading, self._run.totals.epochs + 1
        queries = reading.queries
        known = queries.carried_out.get(self._name)
        carried_out = constants_as_data(expand(queries.plans[self._name]))[0] if known is None else known
        later = _alone(self._name, self._plan, carried_out, epoch)
        renamed = {
            old.identity: new.identity for old, new in zip(queries.graph.nodes, later.nodes, strict=True)
        }
        self._output = dict(later.outputs)[self._name]
        found = self._inner.results
        return Joining(
            self._name,
            Adoption(epoch, self.answers_from, carried_out),
            {(renamed[identity], bucket): held for (identity, bucket), held in reading.state.items()},
            {
                reading_of(relation.name, epoch): reading.points[relation.name]
                for relation in relations_of(self._plan)
            },
            tuple(
                replace(ref, node=self._output) for part in found for ref in part.results.get(self._name, ())
            ),
            tuple(ref for part in found for ref in part.dead_letters),
            tuple(queries.graph.users),
            tunings=queries.tunings,
            exact=self.exact,
        )

    def _come_to_level(self) -> None:
        """Let the query speak as early, and remember as much, as it is to.

        Raises:
            UserError: an expression fails for a row that would be said early.
        """
        if is_strong(self._plan):
            return
        remembered = remembering(self._clipped, memories_of(self._plan).values())
        plan = at_horizon(remembered, horizon_of(self._plan))
        self._inner.stand_as(self._run)
        self._inner.change(Redefine(Wanted({self._name: plan}, self._read)))

    def discard(self) -> None:
        """Remove what was written for a query that does not join."""
        self._inner.discard()

    def _late_rows(self) -> Mapping[str, pa.Table]:
        """The rows that came too late, by the stream that they are of.

        Raises:
            UserError: no stream keeps them.
        """
        kept = {name: one for name, one in self._streams.items() if one.letters_kept is not None}
        keeper = self._run.present.letter_keeper
        for name in kept or self._streams:
            require_kept(name, self._streams[name])
        found = {
            name: late_rows(name, stream, self._run.point(name), keeper) for name, stream in kept.items()
        }
        return {name: rows for name, rows in found.items() if rows.num_rows}

    def _take_late_rows(self) -> None:
        """Run an epoch over the rows that came too late; they are first, and so in time here."""
        late, self._late = self._late, {}
        keeper = self._run.present.letter_keeper
        sources = {name: source_of(rows, name, self._streams[name], keeper) for name, rows in late.items()}
        try:
            self._advance(
                {
                    name: Intake(self._inner.point(name).position + 1, source, 0, source.size)
                    for name, source in sources.items()
                }
            )
        finally:
            self._run.kept.sweep({file.part.segment for source in sources.values() for file in source.files})
        taken = sum(source.size for source in sources.values())
        self.progress = replace(
            self.progress, rows=self.progress.rows + taken, left=self.progress.left - taken
        )

    def _advance(self, intakes: Mapping[str, Intake]) -> None:
        self._inner.follow_sizes(self._run)
        self._inner.step(intakes)
        for reason, hint in self._inner.reading.queries.failed.values():
            without = "STARTING NOW leaves out the rows from before"
            hint = hint if self._asked_for else f"{hint}; {without}" if hint else without
            raise UserError(f"{self._called} fails on rows that were kept: {reason}", hint=hint)

    def _kept(self, stream: str) -> Retained:
        """The rows of a stream that are there."""
        point = self._run.point(stream)
        return point.retained or Retained((), BEGINNING if not point.time.rows else point.time.latest + 1)

    def _next_files(self) -> Mapping[str, Sequence[RetainedFile]]:
        """The files that come next, per stream: those of the oldest epochs, and enough for an epoch."""
        chosen: dict[str, list[RetainedFile]] = {}
        rows = 0
        for _, name, file in self._left():
            if chosen and rows + file.rows > MOST_ROWS:
                break
            chosen.setdefault(name, []).append(file)
            rows += file.rows
        return chosen

    def _left(self) -> list[tuple[int, str, RetainedFile]]:
        """The files that have yet to be taken, in the order of the epochs, each with its stream."""
        found = (
            (file.last, name, file)
            for name in self._streams
            for file in self._kept(name).files
            if file.first > self._taken[name] and file.newest >= self._needed[name]
        )
        return sorted(found, key=lambda one: one[:2])

    def _asked(self, start: AnswerStart) -> int:
        """The instant from which on the query is to answer."""
        if start.back is None:
            return start.at
        points = [self._run.point(name) for name in self._streams]
        reached = min((_reached(point) for point in points), default=BEGINNING)
        return BEGINNING if reached == BEGINNING else reached - start.back

    def _nth_row(self, stream: str, since: int, count: int) -> int:
        """The instant of the n-th row of a stream from an instant on; INFINITY where there are fewer."""
        times = np.sort(np.concatenate([np.empty(0, np.int64), *self._times(stream, since)]))
        return int(times[count - 1]) if len(times) >= count else INFINITY

    def _times(self, stream: str, since: int) -> Iterator[np.ndarray]:
        timestamp = self._streams[stream].timestamp
        for file in self._kept(stream).files:
            column = read_retained(self._run.store, file).column(timestamp).combine_chunks()
            times = integers(column)
            yield times[times >= since]

    def _incomplete(self, known: Mapping[str, int]) -> UserError:
        missing = [name for name, since in known.items() if since > BEGINNING]
        return _cannot(
            self._called,
            f"its answer depends on rows of {', '.join(missing)} that are no longer kept",
            "give it windows of time, or streams that RETAIN ALL from their first row on",
        )


def kept_for(run: Run, name: str, plan: Plan, streams: Streams) -> tuple[str, ...]:
    """The streams whose rows are to be kept while a query is paused, so that it can go on without a gap.

    Args:
        run: the run that answers it.
        name: the query's.
        plan: its plan, optimized.
        streams: what is declared, by name.

    Raises:
        UserError: rows are missing that its answer will depend on.
    """
    heartbeat = run.results[-1].heartbeats.get(name, BEGINNING) if run.results else BEGINNING
    if heartbeat == INFINITY:
        return ()
    called = run.reading.queries.name_of(name)
    read = tuple(dict.fromkeys(source.name for source in sources_of(plan)))
    for source in read:
        stream = streams[source]
        if isinstance(stream, BoundedStream | LiveStream) and stream.retain is None:
            raise _cannot_keep(
                called, f"the rows of {source} are not kept", f"ALTER STREAM {source} RETAIN ALL"
            )
    try:
        found = CatchUp(run, name, plan, AnswerStart(heartbeat), streams)
    except UserError as error:
        reason = error.message.removeprefix(_PAST.format(called))
        raise UserError(f"{called} cannot keep its input: {reason}", hint=error.hint) from error
    if found.answers_from > heartbeat:
        raise _cannot_keep(
            called,
            f"its answer will depend on rows of {', '.join(read)} that are no longer kept",
            f"let {read[0]} RETAIN as much as the query's windows",
        )
    return read


def _cannot_keep(name: str, reason: str, way: str) -> UserError:
    return UserError(f"{name} cannot keep its input: {reason}", hint=f"{way}; or leave out KEEPING INPUT")


def _alone(name: str, plan: Plan, carried_out: Plan, start: int) -> Graph:
    """The graph of a query that starts with an epoch."""
    return lower({name: plan}, {name: start}, {name: carried_out})


def _reached(point: StreamPoint) -> int:
    """How far a stream is: its heartbeat, or behind its newest row where it has ended."""
    return min(point.heartbeat, point.time.latest + 1) if point.time.rows else BEGINNING


def _readable(query: str, name: str, streams: Streams, point: StreamPoint) -> BoundedStream | LiveStream:
    """A stream that a query from the past reads, whose rows are kept if any have come."""
    stream = streams[name]
    if not isinstance(stream, BoundedStream | LiveStream):
        letters = stream_of_letters(name)
        raise _cannot(query, f"dead letters of {letters} are not kept as input", "leave them out")
    if stream.retain is None and point.time.rows:
        raise _cannot(
            query,
            f"the rows of {name} are not kept",
            f"write CREATE STREAM {name} ... RETAIN ALL; ALTER STREAM {name} RETAIN ALL keeps those that "
            "come from then on",
        )
    return stream


def _cannot(name: str, reason: str, hint: str) -> UserError:
    return UserError(f"{_PAST.format(name)}{reason}", hint=hint)
