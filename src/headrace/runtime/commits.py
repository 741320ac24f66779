"""Commits: what makes an epoch count, and how a store tells where a run was.

A durable store is a folder:

    store.json            what the store is: layout version, queries, streams, buckets
    lock                  held by the driver that uses the store
    commits/<epoch>.json  one record per epoch: positions, heartbeats, changed state, results; some are
                          checkpoints, which hold all state
    segments/             runs of operator state, written by tasks
    results/              result elements and dead letters, written by tasks
    sinks/<query>-<sink>.json   how far each sink has come, replaced after every epoch it takes

An epoch has happened when its record exists, which one `link` brings about; everything it names was forced to
disk before. A record is JSON with a checksum, so that a person can read it and damage is noticed.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from headrace.errors import StoreError
from headrace.heartbeats.bounded import Arrivals
from headrace.operators.runs import Part, RunRef
from headrace.runtime.store import FolderStore
from headrace.runtime.work import Manifest, ResultRef, StateKey
from headrace.time import TimeDomain

LAYOUT: Final = 1
"""The version of everything below; a store of another one is refused."""

CHECKPOINT_EVERY: Final = 64
"""So many epochs lie between two records that hold all state."""


@dataclass(frozen=True)
class StreamPoint:
    """How far a stream has been read.

    Attributes:
        position: up to where, in the source's unit.
        heartbeat: its promise (instant).
        producers: for pushed rows, per producer the last sequence number.
    """

    position: int
    heartbeat: int
    producers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EpochResults:
    """What an epoch committed for the readers of results.

    Attributes:
        epoch: its number.
        heartbeats: per query, after the epoch (instants); a query that has failed has none.
        results: per query where its new elements lie.
        dead_letters: where the rows lie that failed.
        users: for each node that dead letters name, the queries that use it.
    """

    epoch: int
    heartbeats: Mapping[str, int]
    results: Mapping[str, tuple[ResultRef, ...]]
    dead_letters: tuple[ResultRef, ...]
    users: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Totals:
    """Counters of a run, from its first epoch on.

    Attributes:
        seconds: time spent in epochs.
        arrivals: per stream.
        emitted: elements yielded per query.
        dead_letters: rows set apart.
        state_rows_peak, state_bytes_peak: the most state held after any epoch.
    """

    epochs: int = 0
    seconds: float = 0.0
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)
    emitted: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    state_rows_peak: int = 0
    state_bytes_peak: int = 0


@dataclass(frozen=True)
class Commit:
    """One epoch's record.

    Attributes:
        epoch: its number, from 1.
        streams: how far each stream has been read, after the epoch.
        state: the manifests that the epoch changed; all of them in a checkpoint.
        checkpoint: whether `state` is everything.
        retained: the oldest epoch whose results are kept after this one.
        results: what readers of results see.
        failed: the queries that have ended early, with the reason and a hint.
        totals: the run's counters after the epoch.
    """

    epoch: int
    streams: Mapping[str, StreamPoint]
    state: Mapping[StateKey, Manifest]
    checkpoint: bool
    retained: int
    results: EpochResults
    failed: Mapping[str, tuple[str, str | None]]
    totals: Totals


@dataclass(frozen=True)
class Description:
    """What a store is for; a run that does not fit it is refused.

    Attributes:
        queries: per query the identity of its plan.
        streams: per stream what it is read from, and how it is timed.
        buckets: how many buckets its state is spread over.
        query_domains, stream_domains: what the instants of each count, for whoever looks into the store.
    """

    queries: Mapping[str, str]
    streams: Mapping[str, str]
    buckets: int
    query_domains: Mapping[str, TimeDomain] = field(default_factory=dict)
    stream_domains: Mapping[str, TimeDomain] = field(default_factory=dict)


class Journal:
    """The commits of a durable store, held by one driver at a time.

    Args:
        store: the store; its folder is made if it is missing.
        description: what the run is.

    Attributes:
        buckets: how many buckets the store's state is spread over, which does not change.

    Raises:
        StoreError: another driver holds the store, it is of another layout or for other queries, or it is
            no store of ours.
    """

    def __init__(self, store: FolderStore, description: Description) -> None:
        self._store = store
        self._oldest = 1
        self._lock = _locked(Path(store.path))
        try:
            self.buckets = _claim(store, description).buckets
        except StoreError:
            self.close()
            raise

    def append(self, commit: Commit) -> None:
        """Make an epoch count.

        Raises:
            StoreError: the record cannot be written, or another driver has committed the epoch.
        """
        if not self._store.put_if_absent(record_name(commit.epoch), _sealed(_packed(commit))):
            raise StoreError(
                f"epoch {commit.epoch} of {self._store.path} has been committed by someone else",
                hint="stop the other driver, then start again",
            )

    def load(self) -> list[Commit]:
        """The records that are still needed, in order; what a sweep left half done is finished.

        Raises:
            StoreError: a record is damaged or missing, or lacks a file that it names.
        """
        commits = load_commits(self._store)
        self._oldest = commits[0].epoch if commits else 1
        _check_present(self._store, commits)
        for name in self._store.names("commits"):
            if name < record_name(self._oldest):
                self._store.delete(name)
        for folder in ("", "commits"):
            self._store.drop_drafts(folder)
        return commits

    def outlived(self, epoch: int) -> set[str]:
        """The records that neither recovery nor results from an epoch on need."""
        needed = last_checkpoint(epoch)
        known = range(self._oldest, needed)
        self._oldest = max(self._oldest, needed)
        return {record_name(old) for old in known}

    def close(self) -> None:
        """Let another driver have the store."""
        self._lock.close()


def load_commits(store: FolderStore) -> list[Commit]:
    """The commit records of a store that are still needed, in order.

    Older ones are what a sweep that was cut short has left; they may have gaps, and are not looked at.

    Raises:
        StoreError: one is damaged or missing.
    """
    names = list(store.names("commits"))
    if not names:
        return []
    last = load_commit(store, names[-1])
    commits = []
    for epoch in range(last_checkpoint(last.retained), last.epoch):
        if record_name(epoch) not in names:
            raise StoreError(
                f"the store {store.path} lacks the commit of epoch {epoch}", hint="restore it from a copy"
            )
        commits.append(load_commit(store, record_name(epoch)))
    return [*commits, last]


def load_commit(store: FolderStore, name: str) -> Commit:
    """One commit record, by its file's name.

    Raises:
        StoreError: it is damaged.
    """
    return _unpacked(_opened(store, name))


def is_checkpoint(epoch: int) -> bool:
    """Whether the record of an epoch holds all state."""
    return epoch % CHECKPOINT_EVERY == 1


def last_checkpoint(epoch: int) -> int:
    """The last epoch up to this one whose record holds all state."""
    return epoch - (epoch - 1) % CHECKPOINT_EVERY


def load_description(store: FolderStore) -> Description:
    """What a store says it is for.

    Raises:
        StoreError: it is no store, or one of another layout.
    """
    try:
        content = json.loads(Path(store.path, "store.json").read_text())
    except FileNotFoundError as error:
        raise StoreError(f"{store.path} is no Headrace store", hint="name the folder of --storage") from error
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{store.path}/store.json cannot be read: {error}", hint="restore it from a copy"
        ) from error
    if not isinstance(content, dict) or content.get("product") != "headrace":
        raise StoreError(f"{store.path} is no Headrace store", hint="choose an empty folder")
    if content.get("layout") != LAYOUT:
        raise StoreError(
            f"{store.path} has layout {content.get('layout')}, and this Headrace reads layout {LAYOUT}",
            hint="use the version that wrote it, or choose an empty folder",
        )
    try:
        domains = [
            {name: TimeDomain(domain) for name, domain in content[kind].items()}
            for kind in ("query_domains", "stream_domains")
        ]
        return Description(content["queries"], content["streams"], content["buckets"], *domains)
    except (KeyError, ValueError) as error:
        raise StoreError(
            f"{store.path}/store.json is damaged: it lacks {error}", hint="restore it from a copy"
        ) from error


def state_after(commits: Sequence[Commit]) -> dict[StateKey, Manifest]:
    """The manifests that hold after the last of some commits."""
    state: dict[StateKey, Manifest] = {}
    for commit in commits:
        state = dict(commit.state) if commit.checkpoint else state | dict(commit.state)
    return state


def segments_of(state: Mapping[StateKey, Manifest]) -> set[str]:
    """The files that hold some state."""
    return {run.part.segment for manifest in state.values() for area in manifest.values() for run in area}


def result_files(results: EpochResults) -> set[str]:
    """The files that hold an epoch's results and dead letters."""
    refs = [ref for part in results.results.values() for ref in part]
    return {ref.part.segment for ref in (*refs, *results.dead_letters)}


def parts_of(commits: Sequence[Commit]) -> Iterator[Part]:
    """The parts of files that the commits still need: the state after the last one, and the kept results."""
    for manifest in state_after(commits).values():
        yield from (run.part for area in manifest.values() for run in area)
    for commit in commits:
        if commit.epoch >= commits[-1].retained:
            refs = [ref for refs in commit.results.results.values() for ref in refs]
            yield from (ref.part for ref in (*refs, *commit.results.dead_letters))


def _check_present(store: FolderStore, commits: Sequence[Commit]) -> None:
    """Look, before anything is swept, that every file is there and long enough."""
    for part in parts_of(commits):
        size = store.size(part.segment)
        if size is None or size < part.offset + part.length:
            what = "is missing" if size is None else "is truncated"
            raise StoreError(
                f"the segment {part.segment} of {store.path} {what}", hint="restore the store from a copy"
            )


def _locked(folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+")
    except OSError as error:
        raise StoreError(f"cannot use {folder} as a store: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "another one"
        file.close()
        raise StoreError(
            f"the store {folder} is in use by process {holder}",
            hint="stop it first, or choose another folder",
        ) from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _claim(store: FolderStore, ours: Description) -> Description:
    """Make the folder ours, or see that it is for the same run; what it says it is for."""
    folder = Path(store.path)
    if not (folder / "store.json").exists():
        foreign = [entry.name for entry in folder.iterdir() if entry.name != "lock" and entry.name[0] != "."]
        if foreign:
            raise StoreError(
                f"{folder} is not empty and no Headrace store: it holds {foreign[0]}",
                hint="choose an empty folder",
            )
        content = {"product": "headrace", "layout": LAYOUT, **asdict(ours)}
        text = json.dumps(content, indent=1, default=lambda domain: domain.value)
        store.put_if_absent("store.json", text.encode())
        return ours
    theirs = load_description(store)
    for what, mine, its in (
        ("query", ours.queries, theirs.queries),
        ("stream", ours.streams, theirs.streams),
    ):
        for name in sorted(mine.keys() | its.keys()):
            if mine.get(name) != its.get(name):
                raise StoreError(
                    f"the store {folder} is for another {what} {name} than the one given now",
                    hint="start with the text that made the store, or choose an empty folder",
                )
    return theirs


def record_name(epoch: int) -> str:
    """The file of an epoch's record; the order of names is that of epochs."""
    return f"commits/{epoch:012d}.json"


def _sealed(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, separators=(",", ":"))
    return f'{{"crc":{zlib.crc32(text.encode())},"body":{text}}}\n'.encode()


def _opened(store: FolderStore, name: str) -> dict[str, Any]:
    try:
        text = Path(store.path, name).read_text()
        head, _, tail = text.partition(',"body":')
        body = tail.removesuffix("}\n")
        if zlib.crc32(body.encode()) == int(head.removeprefix('{"crc":')):
            found: dict[str, Any] = json.loads(body)
            return found
    except (OSError, ValueError):
        pass
    raise StoreError(f"the commit record {store.path}/{name} is damaged", hint="restore it from a copy")


def _packed(commit: Commit) -> dict[str, Any]:
    results = commit.results
    return {
        "epoch": commit.epoch,
        "streams": {
            name: [point.position, point.heartbeat, dict(point.producers)]
            for name, point in commit.streams.items()
        },
        "checkpoint": commit.checkpoint,
        "retained": commit.retained,
        "state": [
            [identity, bucket, {name: [_packed_run(run) for run in runs] for name, runs in manifest.items()}]
            for (identity, bucket), manifest in commit.state.items()
        ],
        "heartbeats": dict(results.heartbeats),
        "results": {name: [_packed_ref(ref) for ref in refs] for name, refs in results.results.items()},
        "dead_letters": [_packed_ref(ref) for ref in results.dead_letters],
        "users": {str(node): list(names) for node, names in results.users.items()},
        "failed": {name: list(reason) for name, reason in commit.failed.items()},
        "totals": asdict(commit.totals),
    }


def _unpacked(body: dict[str, Any]) -> Commit:
    epoch = body["epoch"]
    results = EpochResults(
        epoch,
        body["heartbeats"],
        {name: tuple(map(_unpacked_ref, refs)) for name, refs in body["results"].items()},
        tuple(map(_unpacked_ref, body["dead_letters"])),
        {int(node): tuple(names) for node, names in body["users"].items()},
    )
    state = {
        (identity, bucket): {name: tuple(map(_unpacked_run, runs)) for name, runs in manifest.items()}
        for identity, bucket, manifest in body["state"]
    }
    totals = body["totals"]
    arrivals = {name: Arrivals(**seen) for name, seen in totals["arrivals"].items()}
    return Commit(
        epoch,
        {name: StreamPoint(*point) for name, point in body["streams"].items()},
        state,
        body["checkpoint"],
        body["retained"],
        results,
        {name: (message, hint) for name, (message, hint) in body["failed"].items()},
        Totals(**(totals | {"arrivals": arrivals})),
    )


def _packed_part(part: Part) -> list[Any]:
    return [part.segment, part.offset, part.length, part.crc]


def _packed_run(run: RunRef) -> list[Any]:
    return [_packed_part(run.part), run.rows, run.first, run.last, run.reach]


def _unpacked_run(packed: list[Any]) -> RunRef:
    part, *rest = packed
    return RunRef(Part(*part), *rest)


def _packed_ref(ref: ResultRef) -> list[Any]:
    return [ref.node, _packed_part(ref.part), ref.rows]


def _unpacked_ref(packed: list[Any]) -> ResultRef:
    node, part, rows = packed
    return ResultRef(node, Part(*part), rows)
