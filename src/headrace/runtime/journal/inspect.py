"""What is in a durable store, read without its lock, and whether it is whole.

Nothing here writes. A store whose driver is at work may be looked at too: what is swept meanwhile can then
look missing, so a check that finds something is only final when no driver runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.errors import StoreError
from headrace.heartbeats.bounded import Arrivals
from headrace.operators.state.runs import RunPart
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.journal import load_description, refuse_foreign
from headrace.runtime.journal.record_files import (
    checked_names,
    load_commit,
    load_commits,
    load_last_commits,
    record_name,
    record_names,
)
from headrace.runtime.journal.records import (
    Commit,
    EpochResults,
    StreamPoint,
    Totals,
    last_checkpoint,
    parts_of,
    plan_after,
    points_after,
    state_after,
)
from headrace.runtime.journal.retained import Retained
from headrace.runtime.store.paths import inside
from headrace.runtime.store.sealed import DamagedFileError, load_sealed
from headrace.runtime.store.segments import FolderStore, cannot_use
from headrace.runtime.tasks.messages import LetterFile
from headrace.time import INFINITY


@dataclass(frozen=True)
class OperatorState:
    """The state of one operator, over all buckets.

    Attributes:
        identity: the digest of its plan.
        buckets: in how many buckets it holds something.
        rows, bytes: how much.
    """

    identity: str
    buckets: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class KeptResults:
    """What is kept of a query's results: in how many files, how many elements and bytes.

    Attributes:
        heartbeat: up to where the answer is final (instant), or None before the first epoch.
        failed: why the query ended early, or None.
        dropped: whether the query is no longer answered.
        paused: whether it is not answered until it is resumed.
    """

    query: str
    heartbeat: int | None
    files: int
    rows: int
    bytes: int
    failed: str | None
    dropped: bool = False
    paused: bool = False


@dataclass(frozen=True)
class Contents:
    """What a store holds.

    Attributes:
        description: what it is for.
        epochs: how many have been committed.
        retained: the oldest epoch whose results are kept, or None before the first.
        streams: how far each stream has been read.
        state: per operator, in order of identity.
        results: per query.
        dead_letters: rows set apart in all epochs, kept or not.
    """

    description: Description
    epochs: int
    retained: int | None
    streams: Mapping[str, StreamPoint]
    state: tuple[OperatorState, ...]
    results: tuple[KeptResults, ...]
    dead_letters: int


@dataclass(frozen=True)
class CommittedStore:
    """What a store has committed, for readers of its results.

    Attributes:
        store: where the results lie.
        description: what it is for.
        results: those that are kept, in order.
        failed: the queries that have ended early, with the reason and a hint.
        arrivals: what was read of each stream.
        letters: the dead letters of each stream, as far as they are kept with their columns, oldest first.
        retained: the rows of each stream, as far as they are kept.
    """

    store: FolderStore
    description: Description
    results: tuple[EpochResults, ...]
    failed: Mapping[str, tuple[str, str | None]]
    arrivals: Mapping[str, Arrivals]
    letters: Mapping[str, tuple[LetterFile, ...]]
    retained: Mapping[str, Retained]


@dataclass(frozen=True)
class Glance:
    """What a store's last commit says, to be looked at again and again.

    Attributes:
        description: what it is for.
        epochs: how many have been committed.
        clock: when the last of them took its rows (microseconds since 1970-01-01 UTC).
        streams: how far each stream has been read.
        state: per operator, in order of identity.
        heartbeats, horizons: up to where the answer of each query is final, and said (instants).
        failed: the queries that have ended early, with the reason and a hint.
        totals: the run's counters.
    """

    description: Description
    epochs: int
    clock: int
    streams: Mapping[str, StreamPoint]
    state: tuple[OperatorState, ...]
    heartbeats: Mapping[str, int]
    horizons: Mapping[str, int]
    failed: Mapping[str, tuple[str, str | None]]
    totals: Totals


@dataclass(frozen=True)
class Problem:
    """A file that is damaged or missing.

    Attributes:
        file: its name within the store.
        reason: what is wrong with it.
    """

    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


@dataclass(frozen=True)
class Check:
    """What reading everything found.

    Attributes:
        problems: what is damaged or missing.
        files, bytes: how much was read.
    """

    problems: tuple[Problem, ...]
    files: int
    bytes: int


def contents(path: Path) -> Contents:
    """What a store holds, as its commits say.

    Raises:
        StoreError: it is not a store, has another layout, or its records are damaged.
    """
    _, commits, description = _loaded(path)
    last = commits[-1] if commits else None
    return Contents(
        description,
        last.epoch if last else 0,
        last.retained if last else None,
        points_after(commits),
        _operators(commits),
        _results(description, commits),
        last.totals.dead_letters if last else 0,
    )


def committed(path: Path) -> CommittedStore:
    """What a store has committed so far; its driver may be at work.

    Raises:
        StoreError: it is not a store, has another layout, or its records are damaged.
    """
    store, commits, description = _loaded(path)
    if not commits:
        return CommittedStore(store, description, (), {}, {}, {}, {})
    last = commits[-1]
    results = tuple(commit.results for commit in commits if commit.epoch >= last.retained)
    points = points_after(commits)
    letters = {name: point.letters for name, point in points.items() if point.letters}
    rows = {name: point.retained for name, point in points.items() if point.retained is not None}
    return CommittedStore(store, description, results, last.failed, last.totals.arrivals, letters, rows)


def glance(path: Path) -> Glance:
    """What a store's last commit says; reads few of its records. Its driver may be at work.

    Raises:
        StoreError: it is not a store, has another layout, or its records are damaged.
    """
    store = _store(path)
    made_for = load_description(store)
    commits = read_again(lambda: load_last_commits(store))
    last = commits[-1] if commits else None
    return Glance(
        plan_after(commits) or made_for,
        last.epoch if last else 0,
        last.results.clock if last else 0,
        points_after(commits),
        _operators(commits),
        last.results.heartbeats if last else {},
        last.results.horizons if last else {},
        last.failed if last else {},
        last.totals if last else Totals(),
    )


def is_store(folder: Path) -> bool:
    """Whether a folder is a store; where it is none, one may be made in it.

    Raises:
        StoreError: it is another thing, or lacks `store.json`.
    """
    try:
        if not folder.exists():
            return False
        refuse_foreign(folder)
        return (folder / "store.json").exists()
    except OSError as error:
        raise cannot_use(folder, error) from error


def described(path: Path) -> Description:
    """What a store is for by now; only as many records are read as it takes to know it.

    Raises:
        StoreError: it is not a store, has another layout, or a record is damaged.
    """
    store = _store(path)
    made_for = load_description(store)
    commits = (load_commit(store, name) for name in reversed(checked_names(store)))
    return next((commit.plan for commit in commits if commit.plan is not None), made_for)


def verify(path: Path) -> Check:
    """Read `store.json`, the records, all that they name, and the sinks' positions; compare the checksums.

    A driver may be at work, and remove what later commits no longer name. So a problem counts only when a
    second look, by the commits that exist by then, finds it again.

    Raises:
        StoreError: it is not a store, or has another layout.
    """
    store = _store(path)
    check = _verified(store)
    if not check.problems:
        return check
    suspects = {problem.file for problem in check.problems}
    again = _verified(store)
    return replace(again, problems=tuple(part for part in again.problems if part.file in suspects))


def _verified(store: FolderStore) -> Check:
    label = list(_damaged_label(store))
    commits, problems = _readable_commits(store)
    problems = [*label, *problems, *_damaged_positions(store)]
    parts = list(dict.fromkeys(parts_of(commits)))
    names = {part.segment for part in parts} | {record_name(commit.epoch) for commit in commits}
    names |= {"store.json", *store.names("sinks")}
    problems += _damaged(store, parts)
    return Check(tuple(problems), len(names), sum(store.size(name) or 0 for name in names))


def named_files(path: Path) -> set[str]:
    """The files of a store that it needs: commit records, segments, results.

    Raises:
        StoreError: a record is damaged or missing.
    """
    commits = load_commits(_store(path))
    return {record_name(commit.epoch) for commit in commits} | {part.segment for part in parts_of(commits)}


def _loaded(path: Path) -> tuple[FolderStore, list[Commit], Description]:
    """A store, the records that are needed of it, and what it is for."""
    store = _store(path)
    made_for = load_description(store)
    commits = _commits(store)
    return store, commits, plan_after(commits) or made_for


def _commits(store: FolderStore) -> list[Commit]:
    """The records that are needed."""
    return read_again(lambda: load_commits(store))


def read_again(read: Callable[[], list[Commit]]) -> list[Commit]:
    """The records that are read; a driver at work may remove one between listing and reading them.

    Raises:
        StoreError: a record is damaged or missing, twice in a row the same one.
    """
    said = ""
    while True:
        try:
            return read()
        except StoreError as error:
            if str(error) == said:
                raise
            said = str(error)


def _store(path: Path) -> FolderStore:
    return FolderStore(str(path), durable=True)


def _operators(commits: Sequence[Commit]) -> tuple[OperatorState, ...]:
    found: dict[str, OperatorState] = {}
    for (identity, _), manifest in state_after(commits).items():
        runs = [run for area in manifest.values() for run in area]
        before = found.get(identity, OperatorState(identity, 0, 0, 0))
        found[identity] = OperatorState(
            identity,
            before.buckets + bool(runs),
            before.rows + sum(run.rows for run in runs),
            before.bytes + sum(run.part.length for run in runs),
        )
    return tuple(found[identity] for identity in sorted(found))


def _results(description: Description, commits: Sequence[Commit]) -> tuple[KeptResults, ...]:
    """The kept results of the queries that are answered, then of those that no longer are."""
    kept = [commit.results for commit in commits if commit.epoch >= commits[-1].retained]
    failed = commits[-1].failed if commits else {}
    now, before = [], []
    for name in sorted(description.queries):
        start = description.start_of(name)
        parts = [part for part in kept if part.epoch >= start]
        now.append(replace(_kept(name, parts, failed.get(name)), paused=name in description.paused))
    for name in sorted({name for part in kept for name in (*part.heartbeats, *part.results)}):
        start = description.start_of(name) if name in description.queries else INFINITY
        parts = [
            part for part in kept if part.epoch < start and (name in part.heartbeats or name in part.results)
        ]
        if parts:
            before.append(replace(_kept(name, parts, None), dropped=True))
    return (*now, *before)


def _kept(query: str, parts: Sequence[EpochResults], failed: tuple[str, str | None] | None) -> KeptResults:
    refs = [ref for part in parts for ref in part.results.get(query, ())]
    return KeptResults(
        query,
        parts[-1].heartbeats.get(query) if parts else None,
        len({ref.part.segment for ref in refs}),
        sum(ref.rows for ref in refs),
        sum(part.length for part in {ref.part for ref in refs}),
        failed[0] if failed else None,
    )


def _readable_commits(store: FolderStore) -> tuple[list[Commit], list[Problem]]:
    """The records that are needed and can be read, and what is wrong with the others."""
    found: dict[str, Commit] = {}
    problems: list[Problem] = []
    for name in record_names(store):
        try:
            found[name] = load_commit(store, name)
        except DamagedFileError as error:
            problems.append(Problem(name, error.reason))
    if not found:
        return [], problems
    last = found[max(found)]
    needed = [record_name(epoch) for epoch in range(last_checkpoint(last.retained), last.epoch + 1)]
    damaged = {problem.file for problem in problems}
    problems = [problem for problem in problems if problem.file >= needed[0]]
    problems += [Problem(name, "is missing") for name in needed if name not in found and name not in damaged]
    return [found[name] for name in needed if name in found], problems


def _damaged_label(store: FolderStore) -> Iterator[Problem]:
    try:
        load_description(store)
    except DamagedFileError as error:
        yield Problem("store.json", error.reason)


def _damaged_positions(store: FolderStore) -> Iterator[Problem]:
    for name in store.names("sinks"):
        try:
            load_sealed(store, name, "position of a sink")
        except DamagedFileError as error:
            yield Problem(name, error.reason)


def _damaged(store: FolderStore, parts: Sequence[RunPart]) -> Iterator[Problem]:
    """What is wrong with each file that some parts lie in; one problem per file."""
    files: dict[str, list[RunPart]] = {}
    for part in parts:
        files.setdefault(part.segment, []).append(part)
    for name in sorted(files):
        size = store.size(name)
        needed = max(part.offset + part.length for part in files[name])
        if size is None:
            yield Problem(name, "is missing")
        elif size < needed:
            yield Problem(name, f"is truncated: it has {size:,} bytes, and {needed:,} are needed")
        else:
            yield from _mismatch(store, name, files[name])


def _mismatch(store: FolderStore, name: str, parts: Sequence[RunPart]) -> Iterator[Problem]:
    try:
        content = memoryview(inside(store.path, name).read_bytes())
    except OSError as error:
        yield Problem(name, f"cannot be read: {error.strerror}")
        return
    for part in parts:
        if zlib.crc32(content[part.offset : part.offset + part.length]) != part.crc:
            yield Problem(name, f"is damaged: the bytes from {part.offset:,} on have another checksum")
            return
