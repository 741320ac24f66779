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

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from headrace.algebra.arrival import NO_PAST, Moment, Past
from headrace.errors import StoreError
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import Estimate
from headrace.heartbeats.state import NOTHING_SEEN, StreamState
from headrace.operators.state.runs import RunPart, RunRef
from headrace.runtime.journal.description import Description, packed, unpacked
from headrace.runtime.journal.followed import Followed, ReadFile, packed_files, unpacked_files
from headrace.runtime.journal.parts import packed_part, unpacked_part
from headrace.runtime.journal.retained import Retained, packed_retained, unpacked_retained
from headrace.runtime.store.sealed import DamagedFileError, load_sealed, seal
from headrace.runtime.store.segments import FolderStore
from headrace.runtime.tasks.messages import (
    LetterFile,
    Manifest,
    ResultRef,
    SlowValue,
    StateKey,
    ValuesPoint,
    ValuesRun,
)
from headrace.time import ALWAYS, BEGINNING

T = TypeVar("T")

CHECKPOINT_EVERY: Final = 64
"""So many epochs are between two records that hold all state and all producers."""


_RECORD: Final = re.compile(r"commits/\d{12}\.json")


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
        renamed: the queries that this epoch gives other names, by the names so far. What is read of older
            epochs has their names of now.
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
    """

    epochs: int = 0
    seconds: float = 0.0
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)
    emitted: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    state_rows_peak: int = 0
    state_bytes_peak: int = 0
    departures: Mapping[str, int] = field(default_factory=dict)


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


def load_commits(store: FolderStore) -> list[Commit]:
    """The commit records of a store that are still needed, in order.

    Older ones are what a sweep that was cut short has left; they may have gaps, and are not looked at.

    Raises:
        StoreError: one is damaged or missing.
    """
    return _loaded(store, lambda last: last.retained)


def load_last_commits(store: FolderStore) -> list[Commit]:
    """The commit records that say how far a store is, in order: those since the last checkpoint.

    Raises:
        StoreError: one is damaged or missing.
    """
    return _loaded(store, lambda last: last.epoch)


def _loaded(store: FolderStore, since: Callable[[Commit], int]) -> list[Commit]:
    """The commit records from the checkpoint on that an epoch needs, given the last of them, in order."""
    names = record_names(store)
    if not names:
        return []
    last = load_commit(store, names[-1])
    commits = []
    for epoch in range(last_checkpoint(since(last)), last.epoch):
        if record_name(epoch) not in names:
            raise lacks_record(store, epoch)
        commits.append(load_commit(store, record_name(epoch)))
    return _with_present_names([*commits, last])


def _with_present_names(commits: Sequence[Commit]) -> list[Commit]:
    """Records in order, with what queries are called after the last of them."""
    found: list[Commit] = []
    for commit in commits:
        names = commit.results.renamed
        if names:
            found = [replace(one, results=one.results.under(names)) for one in found]
        found.append(commit)
    return found


def load_commit(store: FolderStore, name: str) -> Commit:
    """One commit record, by its file's name.

    Raises:
        DamagedFileError: it is damaged, or names files that are not its own to name.
    """
    body = load_sealed(store, name, "commit record")
    try:
        commit = _unpacked(body)
        if record_name(commit.epoch) != name:
            raise ValueError(f"it is that of epoch {commit.epoch}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"the commit record {store.path}/{name}", f"is not one of ours: {error}"
        ) from error
    return commit


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


def runs_of(state: Mapping[StateKey, Manifest]) -> Collection[RunRef]:
    """The runs of some state, those that several operators share once."""
    areas = (area for manifest in state.values() for area in manifest.values())
    return {run.part: run for area in areas for run in area}.values()


def segments_of(state: Mapping[StateKey, Manifest], points: Mapping[str, StreamPoint]) -> set[str]:
    """The files that hold some state of operators and of streams."""
    return {part.segment for part in (*state_parts(state), *point_parts(points))}


def result_files(results: EpochResults) -> set[str]:
    """The files that hold an epoch's results and dead letters."""
    return {part.segment for part in result_parts(results)}


def record_name(epoch: int) -> str:
    """The file of an epoch's record; the order of names is that of epochs."""
    return f"commits/{epoch:012d}.json"


def record_names(store: FolderStore) -> list[str]:
    """The files of all records that a store has, in order."""
    return [name for name in store.names("commits") if _RECORD.fullmatch(name)]


def lacks_record(store: FolderStore, epoch: int) -> StoreError:
    """What to say where the record of an epoch is missing."""
    return StoreError(
        f"the store {store.path} lacks the commit of epoch {epoch}", hint="restore it from a copy"
    )


def sealed(commit: Commit) -> bytes:
    """A record as the bytes of its file."""
    return seal(_packed(commit))


def _packed(commit: Commit) -> dict[str, Any]:
    results = commit.results
    return {
        "epoch": commit.epoch,
        "streams": {name: _packed_point(point) for name, point in commit.streams.items()},
        "checkpoint": commit.checkpoint,
        "retained": commit.retained,
        "state": [
            [identity, bucket, {name: [_packed_run(run) for run in runs] for name, runs in manifest.items()}]
            for (identity, bucket), manifest in commit.state.items()
        ],
        "heartbeats": dict(results.heartbeats),
        "results": {name: [_packed_ref(ref) for ref in refs] for name, refs in results.results.items()},
        "dead_letters": [_packed_ref(ref) for ref in results.dead_letters],
        "since": dict(results.since),
        "carried": {name: _packed_carried(carried) for name, carried in results.carried.items()},
        "users": {str(node): list(names) for node, names in results.users.items()},
        "failed": {name: list(reason) for name, reason in commit.failed.items()},
        "totals": asdict(commit.totals),
        "clock": results.clock,
        "plan": None if commit.plan is None else packed(commit.plan),
    } | {name: dict(found) for name in _SELDOM if (found := getattr(results, name))}


_SELDOM: Final = ("horizons", "departures", "renamed")
"""What few epochs have."""


def _unpacked(body: dict[str, Any]) -> Commit:
    epoch = body["epoch"]
    results = EpochResults(
        epoch,
        body["heartbeats"],
        {name: tuple(map(_unpacked_ref, refs)) for name, refs in body["results"].items()},
        tuple(map(_unpacked_ref, body["dead_letters"])),
        {int(node): tuple(names) for node, names in body["users"].items()},
        body["since"],
        {name: _unpacked_carried(carried) for name, carried in body["carried"].items()},
        body["clock"],
        *(body.get(name, {}) for name in _SELDOM),
    )
    state = {
        (identity, bucket): {name: tuple(map(_unpacked_run, runs)) for name, runs in manifest.items()}
        for identity, bucket, manifest in body["state"]
    }
    totals = body["totals"]
    arrivals = {name: Arrivals(**seen) for name, seen in totals["arrivals"].items()}
    return Commit(
        epoch,
        {name: _unpacked_point(*point) for name, point in body["streams"].items()},
        state,
        body["checkpoint"],
        body["retained"],
        results,
        {name: (message, hint) for name, (message, hint) in body["failed"].items()},
        Totals(**(totals | {"arrivals": arrivals})),
        None if body["plan"] is None else unpacked(body["plan"]),
    )


def _packed_point(point: StreamPoint) -> list[Any]:
    found = [point.position, point.time.to_json(), dict(point.producers), point.mark]
    followed = bool(point.files) or point.dropped > 0
    past = bool(point.past.moments) or followed
    last = point.content is not None or point.retained is not None or past
    kept = point.letters or last
    if point.estimate is not None or point.values is not None or point.skews or kept:
        found.append(point.estimate and point.estimate.to_json())
        found.append(point.values and _packed_values(point.values))
        found.append({others: skew.to_json() for others, skew in point.skews.items()})
    if kept:
        found.append([_packed_letters(file) for file in point.letters])
    if last:
        found.append(None if point.content is None else _packed_content(point.content))
    if point.retained is not None or past:
        found.append(point.retained and packed_retained(point.retained))
    if past:
        found.append(list(map(list, point.past.moments)))
    if followed:
        found.append(packed_files(point.files))
    if point.dropped:
        found.append(point.dropped)
    return found


def _unpacked_point(
    position: int,
    time: dict[str, Any],
    producers: dict[str, int],
    mark: str,
    estimate: dict[str, Any] | None = None,
    values: list[Any] | None = None,
    skews: Mapping[str, Any] = MappingProxyType({}),
    letters: Sequence[list[Any]] = (),
    content: list[Any] | None = None,
    retained: list[Any] | None = None,
    past: Sequence[list[int]] = (),
    files: Mapping[str, Sequence[int]] = MappingProxyType({}),
    dropped: int = 0,
) -> StreamPoint:
    estimated = None if estimate is None else Estimate.from_json(estimate)
    found = None if values is None else _unpacked_values(*values)
    behind = {others: Estimate.from_json(skew) for others, skew in skews.items()}
    kept = tuple(_unpacked_letters(*file) for file in letters)
    read = None if content is None else _unpacked_content(content)
    reached = StreamState.from_json(time)
    rows = None if retained is None else unpacked_retained(*retained)
    moments = Past(tuple(Moment(*one) for one in past))
    return StreamPoint(
        *(position, reached, producers, mark, estimated, found, behind, kept, read, rows, moments),
        files=unpacked_files(files),
        dropped=dropped,
    )


def _packed_content(content: RelationContent) -> list[Any]:
    news = [content.at, content.inserted, content.deleted]
    return [packed_part(content.part), content.rows, content.clock, *news]


def _unpacked_content(packed: list[Any]) -> RelationContent:
    part, *rest = packed
    return RelationContent(unpacked_part("segments", part), *rest)


def _packed_values(values: ValuesPoint) -> list[Any]:
    runs = [[packed_part(run.part), run.rows] for run in values.runs]
    due = [[*step, one.value, one.latest] for step, one in zip(values.due, values.slowest, strict=True)]
    return [values.column, runs, values.begun, due]


def _unpacked_values(column: str, runs: list[Any], begun: int, due: list[Any]) -> ValuesPoint:
    found = tuple(ValuesRun(unpacked_part("segments", part), rows) for part, rows in runs)
    steps = tuple((when, promise) for when, promise, *_ in due)
    slowest = tuple(SlowValue(value, latest) for *_, value, latest in due)
    return ValuesPoint(column, found, begun, steps, slowest)


def _packed_letters(file: LetterFile) -> list[Any]:
    return [packed_part(file.part), file.rows, file.last, file.clock, file.tier]


def _unpacked_letters(part: list[Any], rows: int, last: int, clock: int, tier: int) -> LetterFile:
    return LetterFile(unpacked_part("segments", part), rows, last, clock, tier)


def _packed_run(run: RunRef) -> list[Any]:
    return [packed_part(run.part), run.rows, run.first, run.last, run.reach]


def _unpacked_run(packed: list[Any]) -> RunRef:
    part, *rest = packed
    return RunRef(unpacked_part("segments", part), *rest)


def _packed_carried(carried: Carried) -> list[Any]:
    return [carried.first, carried.boundary, carried.part and packed_part(carried.part)]


def _unpacked_carried(packed: list[Any]) -> Carried:
    first, boundary, part = packed
    return Carried(first, boundary, part and unpacked_part("results", part))


def _packed_ref(ref: ResultRef) -> list[Any]:
    packed = [ref.node, packed_part(ref.part), ref.rows, ref.latest, ref.start]
    return [*packed, True] if ref.at_once else packed


def _unpacked_ref(packed: list[Any]) -> ResultRef:
    node, part, *rest = packed
    return ResultRef(node, unpacked_part("results", part), *rest)
