"""Commits: what makes an epoch count, and how a store knows where a run was.

A durable store is a folder:

    store.json            what the store was made for: layout version, queries, streams, buckets
    lock                  held by the driver that uses the store
    commits/<epoch>.json  one record per epoch: positions, heartbeats, changed state, results; some are
                          checkpoints, which hold all state and producers, and the queries and streams
                          from then on
    segments/             runs of operator state, written by tasks
    results/              result elements and dead letters, written by tasks; by the driver what is carried
                          over from results that are no longer kept
    streams/<name>/       pushed rows on their way to the tasks; the log of Spark's streaming query
    sinks/<query>-<sink>.json   how far each sink has come, replaced after every epoch it takes

An epoch has happened when its record exists, which one `link` brings about; everything it names was forced to
disk before. All small files are JSON with a checksum, so that a person can read them and damage is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from headrace.algebra.arrival import NO_PAST, Past
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import Estimate
from headrace.heartbeats.state import NOTHING_SEEN, StreamState
from headrace.operators.state.runs import RunPart
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.followed import Followed, ReadFile
from headrace.runtime.journal.retained import Retained
from headrace.runtime.tasks.messages import (
    LetterFile,
    Manifest,
    ResultRef,
    StateKey,
    ValuesPoint,
)
from headrace.time import ALWAYS, BEGINNING

T = TypeVar("T")

CHECKPOINT_EVERY: Final = 64
"""So many epochs are between two records that hold all state and all producers."""


@dataclass(frozen=True)
class RelationContent:
    """What was read last of a relation that is refreshed.

    Attributes:
        part: where its rows are, all of them with all columns.
        rows: how many there are.
        clock: when it was read (microseconds since 1970-01-01 UTC).
        at: from which instant on it holds, ALWAYS if it was read first.
        inserted, deleted: how many rows it has more, and less, than what was read before.
    """

    part: RunPart
    rows: int
    clock: int
    at: int = ALWAYS
    inserted: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class StreamPoint:
    """How far a stream has been read.

    Attributes:
        position: up to where, in the source's unit.
        time: how far its time has come.
        producers: for pushed rows, per producer the last sequence number.
        mark: identifies the part of a bounded input that has been read; see `SplitSource.mark`.
        estimate: of its disorder, where that is estimated and rows have come.
        values: how far the values of the column named by PER have come, or None.
        skews: of how far it is behind others, where that is estimated, by the others' `Follow.key`.
        letters: its dead letters, as far as they are kept with their columns, oldest first.
        content: what was read last, of a relation that is refreshed.
        retained: the rows that are kept, if any are to be.
        past: what it had brought before, as far as queries look back to that; see `Graph.dials`.
        files: those that have been read, of a folder that is followed.
        dropped: how many pushed rows were dropped in all, by its OVERFLOW.
        arrived: how many positions of its sources have been read in all.
    """

    position: int
    time: StreamState = NOTHING_SEEN
    producers: Mapping[str, int] = field(default_factory=dict)
    mark: str = ""
    estimate: Estimate | None = None
    values: ValuesPoint | None = None
    skews: Mapping[str, Estimate] = field(default_factory=dict)
    letters: tuple[LetterFile, ...] = ()
    content: RelationContent | None = None
    retained: Retained | None = None
    past: Past = NO_PAST
    files: Followed = field(default_factory=dict)
    dropped: int = 0
    arrived: int = 0

    @property
    def heartbeat(self) -> int:
        """Its promise (instant)."""
        return self.time.heartbeat


@dataclass(frozen=True)
class Carried:
    """What results that are no longer kept leave behind in a query's answer.

    Attributes:
        first: the first epoch of which the released elements are not in it.
        boundary: the first instant that it says something about.
        part: where the elements are, or None; all of them begin at the boundary or later.
    """

    first: int
    boundary: int
    part: RunPart | None


@dataclass(frozen=True)
class EpochResults:
    """What an epoch committed for the readers of results.

    Attributes:
        epoch: its number.
        heartbeats: per query, after the epoch (instants); a query that has failed has none.
        results: per query that has new elements where they are.
        dead_letters: where the rows are that failed.
        users: for each node that dead letters name, the queries that use it.
        since: per query that has a heartbeat, the oldest epoch that yielded an element which no epoch before
            this one released; those for which it is this one are left out.
        carried: per query what older epochs leave behind whose results are no longer kept after this one.
        clock: the driver's reading of the clock when the epoch took its rows (microseconds since 1970-01-01
            UTC), which never goes back; an epoch that takes none has that of the one before.
        horizons: per query that says more than what is final, up to where it does (instants).
        departures: per query that left out rows of the epoch which are in time for their streams, how many.
        renamed: in a store of an earlier Headrace, which kept queries under their names, the queries that the
            epoch gave other names, by those so far. What is read of older epochs has the names of later ones.
    """

    epoch: int
    heartbeats: Mapping[str, int]
    results: Mapping[str, tuple[ResultRef, ...]]
    dead_letters: tuple[ResultRef, ...]
    users: Mapping[int, tuple[str, ...]]
    since: Mapping[str, int]
    carried: Mapping[str, Carried] = field(default_factory=dict)
    clock: int = 0
    horizons: Mapping[str, int] = field(default_factory=dict)
    departures: Mapping[str, int] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    def reach(self, query: str) -> int:
        """Up to where a query's answer was said after the epoch, final or not (instant)."""
        return self.horizons.get(query, self.heartbeats.get(query, BEGINNING))

    def under(self, names: Mapping[str, str]) -> EpochResults:
        """The same with other names for some queries, by the names so far."""
        if not names:
            return self
        # The results of an earlier query of the new name, which was dropped, are kept beside.
        others = dict(names) | {new: f"{new}, dropped" for new in names.values() if new not in names}

        def named(part: Mapping[str, T]) -> dict[str, T]:
            return {others.get(name, name): found for name, found in part.items()}

        return replace(
            self,
            heartbeats=named(self.heartbeats),
            results=named(self.results),
            since=named(self.since),
            carried=named(self.carried),
            horizons=named(self.horizons),
            departures=named(self.departures),
        )


@dataclass(frozen=True)
class Totals:
    """Counters of a run, from its first epoch on.

    Attributes:
        seconds: time spent in epochs.
        arrivals: per stream.
        emitted: elements yielded per query.
        dead_letters: rows set apart.
        state_rows_peak, state_bytes_peak: the most state held after any epoch.
        departures: rows in time for their streams that were left out, per query that remembers less.
        working: about how many bytes the largest of the last epochs has worked with; see
            `headrace.runtime.driver.facts.working_set`.
        working_row: about how many that were for each row that it took.
        sizes: by the name of a size of rows that are shed the smoothed sums of rows and of their sizes; see
            `headrace.runtime.driver.facts.row_sizes`.
    """

    epochs: int = 0
    seconds: float = 0.0
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)
    emitted: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    state_rows_peak: int = 0
    state_bytes_peak: int = 0
    departures: Mapping[str, int] = field(default_factory=dict)
    working: float = 0.0
    working_row: float = 0.0
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """One epoch's record.

    Attributes:
        epoch: its number, from 1.
        streams: how far each stream has been read, after the epoch; of the producers those that pushed in it,
            and of the files that are followed those read in it; all of them in a checkpoint.
        state: the manifests that the epoch changed; all of them in a checkpoint.
        checkpoint: whether `state`, the producers and the files that are followed are everything.
        retained: the oldest epoch whose results are kept after this one; see `retention`.
        results: what readers of results see.
        failed: the queries that have ended early, with the reason and a hint.
        totals: the run's counters after the epoch.
        plan: the queries and streams from this epoch on, in a checkpoint; else None.
    """

    epoch: int
    streams: Mapping[str, StreamPoint]
    state: Mapping[StateKey, Manifest]
    checkpoint: bool
    retained: int
    results: EpochResults
    failed: Mapping[str, tuple[str, str | None]]
    totals: Totals
    plan: Description | None = None


def is_checkpoint(epoch: int) -> bool:
    """Whether the record of an epoch holds all state."""
    return epoch % CHECKPOINT_EVERY == 1


def last_checkpoint(epoch: int) -> int:
    """The last epoch up to this one whose record holds all state."""
    return epoch - (epoch - 1) % CHECKPOINT_EVERY


def state_after(commits: Sequence[Commit]) -> dict[StateKey, Manifest]:
    """The manifests that hold after the last of some commits."""
    state: dict[StateKey, Manifest] = {}
    for commit in commits:
        state = dict(commit.state) if commit.checkpoint else state | dict(commit.state)
    return state


def points_after(commits: Sequence[Commit]) -> dict[str, StreamPoint]:
    """How far each stream has been read after the last of some commits, with all its producers and files."""
    producers: dict[str, dict[str, int]] = {}
    files: dict[str, dict[str, ReadFile]] = {}
    for commit in commits:
        if commit.checkpoint:
            producers, files = {}, {}
        for name, point in commit.streams.items():
            producers.setdefault(name, {}).update(point.producers)
            files.setdefault(name, {}).update(point.files)
    points = commits[-1].streams if commits else {}
    return {
        name: replace(point, producers=producers[name], files=files[name]) for name, point in points.items()
    }


def plan_after(commits: Sequence[Commit]) -> Description | None:
    """The queries and streams after the last of some commits; None where no checkpoint is among them."""
    return next((commit.plan for commit in reversed(commits) if commit.plan is not None), None)


def parts_of(commits: Sequence[Commit]) -> Iterator[RunPart]:
    """The parts of files that the commits still need: the state after the last one, and the kept results."""
    yield from state_parts(state_after(commits))
    yield from point_parts(points_after(commits))
    for commit in commits:
        if commit.epoch >= commits[-1].retained:
            yield from result_parts(commit.results)
    if commits:
        yield from carried_parts(commits[-1].results)


def state_parts(state: Mapping[StateKey, Manifest]) -> Iterator[RunPart]:
    """The parts of files that hold some state."""
    return (run.part for manifest in state.values() for area in manifest.values() for run in area)


def point_parts(points: Mapping[str, StreamPoint]) -> Iterator[RunPart]:
    """The parts of files that hold what points keep: values with bounds, dead letters, relations, rows."""
    for point in points.values():
        if point.values is not None:
            yield from (run.part for run in point.values.runs)
        yield from (file.part for file in point.letters)
        if point.content is not None:
            yield point.content.part
        if point.retained is not None:
            yield from (file.part for file in point.retained.files)


def result_parts(results: EpochResults) -> Iterator[RunPart]:
    """The parts of files that hold an epoch's results and dead letters."""
    refs = [ref for part in results.results.values() for ref in part]
    return iter(dict.fromkeys(ref.part for ref in (*refs, *results.dead_letters)))


def carried_parts(results: EpochResults) -> Iterator[RunPart]:
    """The parts of files that hold what is carried after an epoch."""
    return (carried.part for carried in results.carried.values() if carried.part is not None)


def carried_files(results: Sequence[EpochResults]) -> set[str]:
    """The files that hold what is carried after the last of some epochs."""
    return {part.segment for part in carried_parts(results[-1])} if results else set()


def segments_of(state: Mapping[StateKey, Manifest], points: Mapping[str, StreamPoint]) -> set[str]:
    """The files that hold some state of operators and of streams."""
    return {part.segment for part in (*state_parts(state), *point_parts(points))}


def result_files(results: EpochResults) -> set[str]:
    """The files that hold an epoch's results and dead letters."""
    return {part.segment for part in result_parts(results)}
