"""Records of commits as files: what is written, and what is read again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Final

from headrace.algebra.arrival import Moment, Past
from headrace.errors import StoreError
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import Estimate
from headrace.heartbeats.state import StreamState
from headrace.operators.state.runs import RunRef
from headrace.runtime.journal.description import packed, unpacked
from headrace.runtime.journal.followed import packed_files, unpacked_files
from headrace.runtime.journal.high_water import check_newest, newest_noted
from headrace.runtime.journal.parts import packed_part, unpacked_part
from headrace.runtime.journal.records import (
    Carried,
    Commit,
    EpochResults,
    RelationContent,
    StreamPoint,
    Totals,
    last_checkpoint,
)
from headrace.runtime.journal.retained import packed_retained, unpacked_retained
from headrace.runtime.store.sealed import DamagedFileError, load_sealed, seal
from headrace.runtime.store.segments import FolderStore
from headrace.runtime.tasks.messages import (
    LetterFile,
    ResultRef,
    SlowValue,
    ValuesPoint,
    ValuesRun,
)

_RECORD: Final = re.compile(r"commits/\d{12}\.json")


def load_commits(store: FolderStore, at: int | None = None) -> list[Commit]:
    """The commit records of a store that are still needed, in order.

    Older ones are what a sweep that was cut short has left; they may have gaps, and are not looked at.

    Args:
        store: the store.
        at: those that the store needed after this epoch, one that it has committed; after the last if None.

    Raises:
        StoreError: one is damaged or missing.
    """
    return _loaded(store, lambda last: last.retained, at)


def load_last_commits(store: FolderStore) -> list[Commit]:
    """The commit records that say how far a store is, in order: those since the last checkpoint.

    Raises:
        StoreError: one is damaged or missing.
    """
    return _loaded(store, lambda last: last.epoch)


def _loaded(store: FolderStore, since: Callable[[Commit], int], at: int | None = None) -> list[Commit]:
    """The commit records from the checkpoint on that an epoch needs, given the last of them, in order."""
    names = checked_names(store)
    if not names:
        return []
    if at is not None and record_name(at) not in names:
        raise lacks_record(store, at)
    last = load_commit(store, names[-1] if at is None else record_name(at))
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


def record_name(epoch: int) -> str:
    """The file of an epoch's record; the order of names is that of epochs."""
    return f"commits/{epoch:012d}.json"


def record_names(store: FolderStore) -> list[str]:
    """The files of all records that a store has, in order."""
    return [name for name in store.names("commits") if _RECORD.fullmatch(name)]


def checked_names(store: FolderStore) -> list[str]:
    """The files of all records that a store has, in order, when none of the newest is lost.

    Raises:
        StoreError: one is.
    """
    noted = newest_noted(store)
    names = record_names(store)
    check_newest(store, noted, _epoch_of(names[-1]) if names else 0)
    return names


def _epoch_of(name: str) -> int:
    return int(name.removeprefix("commits/").removesuffix(".json"))


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
        "totals": _packed_totals(commit.totals),
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
    return Commit(
        epoch,
        {name: _unpacked_point(*point) for name, point in body["streams"].items()},
        state,
        body["checkpoint"],
        body["retained"],
        results,
        {name: (message, hint) for name, (message, hint) in body["failed"].items()},
        _unpacked_totals(body["totals"]),
        None if body["plan"] is None else unpacked(body["plan"]),
    )


def _packed_totals(totals: Totals) -> dict[str, Any]:
    found = asdict(totals)
    sizes = found.pop("sizes")
    return found | ({"sizes": sizes} if sizes else {})


def _unpacked_totals(found: dict[str, Any]) -> Totals:
    arrivals = {name: Arrivals(**seen) for name, seen in found["arrivals"].items()}
    sizes = {name: (rows, total) for name, (rows, total) in found.get("sizes", {}).items()}
    return Totals(**(found | {"arrivals": arrivals, "sizes": sizes}))


def _packed_point(point: StreamPoint) -> list[Any]:
    found = [point.position, point.time.to_json(), dict(point.producers), point.mark]
    counted = point.dropped > 0 or point.arrived > 0
    followed = bool(point.files) or counted
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
    if counted:
        found += [point.dropped, point.arrived]
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
    arrived: int = 0,
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
        arrived=arrived,
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
