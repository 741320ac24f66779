"""Readers with names, who go and come back: how far each has come in the answer of a query."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from headrace.errors import UserError
from headrace.lowering.query_id import first_name
from headrace.runtime.delivery.delivery import Results
from headrace.runtime.delivery.positions import SinkPosition, drop_position, named_positions, record_position
from headrace.runtime.journal.retention import since_of
from headrace.runtime.store.segments import FolderStore, Store
from headrace.suggestions import did_you_mean
from headrace.time import INFINITY

PATIENCE: Final = 10
"""Results are kept for a client who is away for so many times as many epochs as for everybody."""


@dataclass(frozen=True)
class NamedReader:
    """How far a reader with a name has come.

    Attributes:
        query: what the query is called whose answer it reads.
        name: what it calls itself.
        epoch: the last epoch that it has acknowledged; the one before its first before any.
        behind: how many epochs have been committed since then.
    """

    query: str
    name: str
    epoch: int
    behind: int


class Clients:
    """The named readers of a run, remembered in a durable store.

    Args:
        store: where the run's results are.
        results: says what is committed.
        name_of: says what queries are called.

    Raises:
        StoreError: what the store remembers is damaged.
    """

    def __init__(self, store: Store, results: Results, name_of: Callable[[str], str] = first_name) -> None:
        self._store = store if isinstance(store, FolderStore) and store.durable else None
        self._results = results
        self._name_of = name_of
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], SinkPosition] = {}
        self._readers: dict[tuple[str, str], object] = {}
        if self._store is not None:
            self._known = named_positions(self._store, _SINK)

    def begin(self, query: str, client: str, start: int, from_epoch: int, reader: object = None) -> int:
        """The epoch with which a client goes on; from here on results are kept for it.

        Whoever has read under its name so far does so no more: it may be the same client, which has lost its
        connection.

        Args:
            query: the query's identity.
            client: what the client calls itself.
            start: the epoch from which on the query answers; a client of an earlier answer is unknown.
            from_epoch: where a client begins that is not known.
            reader: who reads for it from now on.
        """
        with self._lock:
            self._readers[query, client] = reader
            known = self._known.get((query, client))
            if known is not None and known.first >= start:
                return known.epoch + 1
            first = max(from_epoch, start)
            self._record(query, client, SinkPosition(_SINK, first, first - 1, self._since(query, first)))
            return first

    def acknowledge(self, query: str, client: str, epoch: int, reader: object = None) -> None:
        """Remember that a client has an epoch; it is not given again.

        Args:
            query: the query's identity.
            client: what the client calls itself.
            epoch: the epoch.
            reader: who has read it.

        Raises:
            UserError: another one reads for the client by now; nothing is remembered.
            StoreError: it cannot be written.
        """
        with self._lock:
            if self._readers.get((query, client), reader) is not reader:
                raise UserError(
                    f"another reader has gone on as the client {client} of {self._name_of(query)}",
                    hint="give each reader a name of its own",
                )
            known = self._known.get((query, client))
            if known is not None and epoch > known.epoch:
                since = self._since(query, epoch + 1)
                self._record(query, client, replace(known, epoch=epoch, since=since))

    def forget(self, query: str, client: str) -> None:
        """Keep nothing for a client any more.

        Raises:
            UserError: there is no such client.
        """
        with self._lock:
            if (query, client) not in self._known:
                names = [name for of, name in self._known if of == query]
                hint = did_you_mean(client, names) or (f"there is {', '.join(names)}" if names else None)
                raise UserError(f"{self._name_of(query)} has no client {client}", hint=hint)
            self._drop(query, client)

    def drop(self, query: str) -> None:
        """Forget the clients of a query that was dropped."""
        with self._lock:
            for known, client in list(self._known):
                if known == query:
                    self._drop(query, client)

    def keep(self, queries: Collection[str]) -> None:
        """Forget the clients of all queries but some: of those that went in a kill.

        Args:
            queries: the identities of all queries.
        """
        for query in {query for query, _ in self._known} - {*queries}:
            self.drop(query)

    def needed(self, retain: int | None) -> int:
        """The oldest epoch whose results a client still has to read, within its bound; INFINITY for none.

        Args:
            retain: of how many epochs results are kept for everybody; of all if None.
        """
        with self._lock:
            oldest = min((position.since for position in self._known.values()), default=INFINITY)
        last = self._last
        return oldest if retain is None else max(oldest, last + 1 - PATIENCE * retain)

    def all(self) -> tuple[NamedReader, ...]:
        """All of them, by query and name."""
        with self._lock:
            known = [((self._name_of(query), name), at) for (query, name), at in self._known.items()]
        return tuple(
            NamedReader(query, name, at.epoch, max(0, self._last - at.epoch))
            for (query, name), at in sorted(known, key=lambda one: one[0])
        )

    @property
    def _last(self) -> int:
        results = self._results()
        return results[-1].epoch if results else 0

    def _since(self, query: str, epoch: int) -> int:
        results = self._results()
        if results and epoch < results[0].epoch:
            return epoch
        return since_of(query, results, epoch)

    def _record(self, query: str, client: str, position: SinkPosition) -> None:
        if self._store is not None:
            record_position(self._store, query, _SINK, client, position)
        self._known[query, client] = position

    def _drop(self, query: str, client: str) -> None:
        del self._known[query, client]
        self._readers.pop((query, client), None)
        if self._store is not None:
            drop_position(self._store, query, _SINK, client)


_SINK: Final = "client "
"""What the positions of clients are called by among those of sinks, which have no blank in their names."""
