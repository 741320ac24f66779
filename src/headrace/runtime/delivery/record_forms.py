"""What a topic gets of the changes of an answer: each change, or the present row of each key.

The present rows are those of the heartbeat. What has been said of later instants is kept until the heartbeat
has reached them, in a topic beside, so that it survives the process (as Kafka Streams keeps its state).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, TypeAlias

from headrace.errors import DeliveryError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.records import Encoder
from headrace.runtime.outside.kafka import BESIDE
from headrace.runtime.results.changes import Change
from headrace.suggestions import did_you_mean
from headrace.time import INFINITY


@dataclass(frozen=True)
class Record:
    """A record.

    Attributes:
        topic: where it goes.
        key: its key, or None.
        value: its value; None is a tombstone, by which Kafka forgets the key.
    """

    topic: str
    key: bytes | None
    value: bytes | None


class ChangesForm:
    """Each change is a record: the whole row, with `epoch`, `valid_from`, `valid_to` and `change`.

    Args:
        topic: where they go.
        key: the columns of the key; records have none without them.
        encoder: how they are written.
    """

    def __init__(self, topic: str, key: Sequence[str], encoder: Encoder) -> None:
        self._topic = topic
        self._key = list(key)
        self._encoder = encoder

    def open(self, origin: Origin) -> None:
        """See that the key is among the columns.

        Raises:
            UserError: it is not, or the encoder does not have a column.
        """
        check_key(self._key, origin)
        self._encoder.check(origin.schema.arrow())

    def records(self, change: Change) -> list[Record]:
        """A record for each row."""
        values = self._encoder.encode("value", change.rows)
        if not self._key:
            return [Record(self._topic, None, value) for value in values]
        keys = self._encoder.encode("key", change.rows.select(self._key))
        return [Record(self._topic, key, value) for key, value in zip(keys, values, strict=True)]

    def committed(self) -> None:
        """Nothing is kept."""


ValueEndpoint: TypeAlias = tuple[int, bytes, int]
"""An instant, a value that comes or goes at it, and how often: less than 0 if it goes."""


class UpsertForm:
    """The present row of each key: a record where it has changed, a tombstone where there is none any more.

    Args:
        topic: where they go.
        key: the columns of which no two rows at one instant have the same values. If there are none, what
            follows from the query.
        encoder: how they are written.
    """

    def __init__(self, topic: str, key: Sequence[str], encoder: Encoder) -> None:
        self._topic = topic
        self._given = list(key)
        self._encoder = encoder
        self._key: list[str] = []
        self._columns: list[str] = []
        self._delivery = self._query = ""
        self._later: dict[bytes, list[ValueEndpoint]] = {}
        self._news: dict[bytes, list[ValueEndpoint]] = {}
        # When something is due of a key for the first time; there may be entries without a meaning any more.
        self._due: list[tuple[int, bytes]] = []
        self._taken: list[tuple[int, bytes]] = []

    def open(self, origin: Origin) -> None:
        """Find the key.

        Raises:
            UserError: there is none, or it may have two rows; or changes were left out.
        """
        self._key = self._given or list(origin.key or ())
        check_key(self._key, origin)
        if not self._key:
            raise DeliveryError(
                f"it does not follow from {origin.query} which columns say which row it is",
                hint="add the option key 'column', or group by columns",
            )
        if origin.key is not None and not set(origin.key) <= set(self._key):
            raise DeliveryError(
                f"{', '.join(self._key)} may have two rows at one instant",
                hint=f"the key of {origin.query} is {', '.join(origin.key)}",
            )
        if origin.first > origin.start:
            raise DeliveryError(
                f"the topic {self._topic} would lack what {origin.query} has said before epoch "
                f"{origin.first}",
                hint="leave out from_epoch",
            )
        self._columns, self._query = list(origin.schema.names), origin.query
        self._delivery = origin.delivery
        self._encoder.check(origin.schema.arrow())

    def restore(self, kept: Iterator[tuple[bytes, bytes | None]]) -> None:
        """Take up what the topic beside has.

        Args:
            kept: its records in order, keys and values.
        """
        self._later, self._news = {}, {}
        for name, value in kept:
            delivery, key = json.loads(name)
            if delivery != self._delivery:
                continue
            endpoints = [] if value is None else json.loads(value)
            self._later[_data(key)] = [(at, _data(text), change) for at, text, change in endpoints]
        self._later = {key: endpoints for key, endpoints in self._later.items() if endpoints}
        self._due, self._taken = sorted((kept[0][0], key) for key, kept in self._later.items()), []

    def records(self, change: Change) -> list[Record]:
        """A record for each key whose row has changed at the new heartbeat, and what is kept of later rows.

        Raises:
            DeliveryError: a key has two rows.
        """
        come = self._endpoints(change)
        found, self._news = [], {}
        for key in dict.fromkeys((*self._take_due(change.heartbeat), *come)):
            before = self._later.get(key, [])
            known = [*before, *come.get(key, [])]
            after = _netted(one for one in known if one[0] >= change.heartbeat)
            found += self._present(key, [one for one in known if one[0] < change.heartbeat])
            if after != before:
                self._news[key] = after
                found.append(self._kept(key, after))
        return found

    def committed(self) -> None:
        """Keep what is said of later instants."""
        self._later |= self._news
        for key, endpoints in self._news.items():
            if endpoints:
                heappush(self._due, (endpoints[0][0], key))
            else:
                del self._later[key]
        self._news, self._taken = {}, []

    def _take_due(self, heartbeat: int) -> list[bytes]:
        """The keys of which something is due, again unless it was committed."""
        for one in self._taken:
            heappush(self._due, one)
        self._taken = []
        while self._due and self._due[0][0] < heartbeat:
            self._taken.append(heappop(self._due))
        return [key for _, key in self._taken if key in self._later]

    def _endpoints(self, change: Change) -> dict[bytes, list[ValueEndpoint]]:
        rows = change.rows
        if not rows.num_rows:
            return {}
        keys = self._encoder.encode("key", rows.select(self._key))
        values = self._encoder.encode("value", rows.select(self._columns))
        elements, found = change.elements, dict[bytes, list[ValueEndpoint]]()
        spans = zip(elements.ts.tolist(), elements.te.tolist(), elements.w.tolist(), strict=True)
        for key, value, (start, end, weight) in zip(keys, values, spans, strict=True):
            mine = found.setdefault(key, [])
            mine.append((start, value, weight))
            if end != INFINITY:
                mine.append((end, value, -weight))
        return found

    def _present(self, key: bytes, endpoints: Sequence[ValueEndpoint]) -> list[Record]:
        moments: Counter[bytes] = Counter()
        for _, value, change in endpoints:
            moments[value] += change
        come = [value for value, change in moments.items() if change > 0]
        if len(come) > 1 or any(moments[value] > 1 for value in come):
            raise DeliveryError(
                f"{self._query} has two rows of the key {key.decode('utf-8', 'replace')}",
                hint="name the columns that say which row it is: key 'a, b'",
            )
        if come:
            return [Record(self._topic, key, come[0])]
        return [Record(self._topic, key, None)] if any(change < 0 for change in moments.values()) else []

    def _kept(self, key: bytes, endpoints: Sequence[ValueEndpoint]) -> Record:
        name = json.dumps([self._delivery, _text(key)]).encode()
        told = [(at, _text(value), change) for at, value, change in endpoints]
        return Record(self._topic + BESIDE, name, json.dumps(told).encode() if told else None)


def check_key(key: Sequence[str], origin: Origin) -> None:
    """See that a key is among the columns.

    Raises:
        DeliveryError: it is not.
    """
    names = origin.schema.names
    for column in key:
        if column not in names:
            raise DeliveryError(
                f"{origin.query} has no column {column}",
                hint=did_you_mean(column, names) or f"its columns are {', '.join(names)}",
            )


def _netted(endpoints: Iterator[ValueEndpoint]) -> list[ValueEndpoint]:
    found: Counter[tuple[int, bytes]] = Counter()
    for at, value, change in endpoints:
        found[at, value] += change
    return sorted((at, value, change) for (at, value), change in found.items() if change)


def _text(data: bytes) -> str:
    """Any bytes as a text of as many characters."""
    return data.decode("latin-1")


def _data(text: Any) -> bytes:
    data: bytes = text.encode("latin-1")
    return data
