"""How far a sink has come, remembered in a durable store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace

from headrace.runtime.journal.records import EpochResults
from headrace.runtime.journal.retention import since_of
from headrace.runtime.store.paths import file_name
from headrace.runtime.store.sealed import DamagedFileError, load_sealed, seal
from headrace.runtime.store.segments import FolderStore, Store


@dataclass(frozen=True)
class SinkPosition:
    """How far a sink has come.

    Attributes:
        delivery: identifies the delivery; see `Origin`.
        first: the first epoch that was meant for the sink.
        epoch: the last epoch that the sink took; before any, the one before the first.
        since: the oldest epoch whose results have to be read to go on: later than `epoch`, unless elements
            of earlier ones still wait for the heartbeat to pass their start.
        copied: the epoch as of which the store was copied last; None if it never was.
        branch: identifies what is delivered after that epoch; empty until the sink was opened after it. What
            the store that was copied has delivered since then has nothing to do with it.
    """

    delivery: str
    first: int
    epoch: int
    since: int
    copied: int | None = None
    branch: str = ""

    @property
    def most(self) -> int | None:
        """The last epoch that the sink's target may have where it is opened after a copy; else None."""
        return None if self.branch else self.copied

    def as_of(self, epoch: int, results: Sequence[EpochResults], query: str) -> SinkPosition:
        """The position in a copy of its store.

        Args:
            epoch: the last epoch of the copy.
            results: what the copy keeps, in order and without gaps.
            query: the query's identity.
        """
        if self.epoch <= epoch:
            return replace(self, copied=epoch, branch="")
        return replace(self, epoch=epoch, since=since_of(query, results, epoch + 1), copied=epoch, branch="")


class Ledger:
    """Remembers a sink's position: in `sinks/<query>-<sink>.json` of a durable store, else only here.

    Args:
        store: where the run's results are.
        query: the query's identity.
        sink: the sink's name, without hyphens.
    """

    def __init__(self, store: Store, query: str, sink: str) -> None:
        self._names = {"query": query, "sink": sink}
        self._name = f"sinks/{file_name(query)}-{file_name(sink)}.json"
        self._store = store if isinstance(store, FolderStore) and store.durable else None

    def load(self) -> SinkPosition | None:
        """What was recorded last, or None.

        Raises:
            StoreError: the file is damaged, or cannot be read.
        """
        if self._store is None or self._store.size(self._name) is None:
            return None
        return load_position(self._store, self._name, self._names)

    def record(self, position: SinkPosition) -> None:
        """Remember a position in place of the last one.

        Raises:
            StoreError: it cannot be written.
        """
        if self._store is not None:
            self._store.put(self._name, seal(self._names | asdict(position)))

    def forget(self) -> None:
        """Remove what is remembered."""
        if self._store is not None:
            self._store.delete(self._name)


def copy_positions(
    store: FolderStore, copy: FolderStore, epoch: int, results: Sequence[EpochResults]
) -> None:
    """Write the positions of a store into a copy of it.

    Args:
        store: the store.
        copy: where to write.
        epoch: the last epoch of the copy.
        results: what the copy keeps, in order and without gaps.

    Raises:
        StoreError: a position is damaged, or cannot be written.
    """
    for name in store.names("sinks"):
        try:
            content = load_sealed(store, name, "position of a sink")
            position = load_position(store, name, {})
        except DamagedFileError:
            if store.size(name) is None:
                continue  # It was removed meanwhile.
            raise
        if position.first <= epoch + 1:
            there = position.as_of(epoch, results, str(content["query"]))
            copy.put(name, seal(content | asdict(there)))


def load_position(store: FolderStore, name: str, names: Mapping[str, str]) -> SinkPosition:
    """The position in a file.

    Args:
        store: the store.
        name: the file's name in it.
        names: what it says of the query and the sink that it belongs to, as far as that is known.

    Raises:
        DamagedFileError: it is damaged, or that of another sink.
    """
    content = load_sealed(store, name, "position of a sink")
    needed = {part.name for part in fields(SinkPosition) if part.default is MISSING}
    if names.items() <= content.items() and needed <= content.keys():
        known = needed | {part.name for part in fields(SinkPosition)} & content.keys()
        return SinkPosition(**{part: content[part] for part in known})
    raise DamagedFileError(f"the position of a sink {store.path}/{name}", "is that of another sink")


def named_positions(store: FolderStore, kind: str) -> dict[tuple[str, str], SinkPosition]:
    """The positions of a kind that a store remembers, by query and name.

    Args:
        store: the store.
        kind: how the names of their sinks begin.

    Raises:
        DamagedFileError: one is damaged.
    """
    found = {}
    for name in store.names("sinks"):
        if f"-{file_name(kind)}" in name:
            names = load_sealed(store, name, "position of a sink")
            position = load_position(store, name, {})
            found[str(names["query"]), str(names["sink"]).removeprefix(kind)] = position
    return found


def sink_positions(store: FolderStore) -> dict[tuple[str, str], SinkPosition]:
    """The positions of all sinks that a store remembers, by query and name; not those of clients.

    Args:
        store: the store.

    Raises:
        DamagedFileError: one is damaged.
    """
    found = {}
    for name in store.names("sinks"):
        names = load_sealed(store, name, "position of a sink")
        if " " not in str(names.get("sink")):
            found[str(names["query"]), str(names["sink"])] = load_position(store, name, {})
    return found


def record_position(store: FolderStore, query: str, kind: str, name: str, position: SinkPosition) -> None:
    """Remember a position of a kind in place of the last one.

    Raises:
        StoreError: it cannot be written.
    """
    Ledger(store, query, f"{kind}{name}").record(position)


def drop_position(store: FolderStore, query: str, kind: str, name: str) -> None:
    """Remember a position of a kind no longer.

    Raises:
        StoreError: its file cannot be removed.
    """
    Ledger(store, query, f"{kind}{name}").forget()
