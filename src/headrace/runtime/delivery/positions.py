"""How far a sink has come, remembered in a durable store."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from headrace.errors import StoreError
from headrace.runtime.store.segments import FolderStore, Store
from headrace.runtime.store.whole_files import make_folder, put


@dataclass(frozen=True)
class Position:
    """How far a sink has come.

    Attributes:
        delivery: identifies the delivery; see `Origin`.
        first: the first epoch that was meant for the sink.
        epoch: the last epoch that the sink took; before any, the one before the first.
        since: the oldest epoch whose results have to be read to go on: later than `epoch`, unless elements
            of earlier ones still wait for the heartbeat to pass their start.
    """

    delivery: str
    first: int
    epoch: int
    since: int


class Ledger:
    """Remembers a sink's position: in `sinks/<query>-<sink>.json` of a durable store, else only here.

    Args:
        store: where the run's results lie.
        query: the query's name.
        sink: the sink's name, without hyphens.
    """

    def __init__(self, store: Store, query: str, sink: str) -> None:
        self._names = {"query": query, "sink": sink}
        self._path: Path | None = None
        if isinstance(store, FolderStore) and store.durable:
            self._path = Path(store.path, "sinks", f"{quote(query, safe='')}-{sink}.json")

    def load(self) -> Position | None:
        """What was recorded last, or None.

        Raises:
            StoreError: the file is damaged.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            content = json.loads(self._path.read_bytes())
            numbers = (int(content[name]) for name in ("first", "epoch", "since"))
            return Position(str(content["delivery"]), *numbers)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self._path} cannot be read: {error!r}", hint="restore the store from a copy"
            ) from error

    def record(self, position: Position) -> None:
        """Remember a position in place of the last one.

        Raises:
            StoreError: it cannot be written.
        """
        if self._path is None:
            return
        try:
            make_folder(self._path.parent)
            put(self._path, json.dumps(self._names | asdict(position)).encode())
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror or error}") from error
