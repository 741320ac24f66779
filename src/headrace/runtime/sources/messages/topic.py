"""A Kafka topic as a source: ranges of offsets, which any task reads from the brokers itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Final

from headrace.errors import AwayError, SourceError
from headrace.runtime.sources.files.files import overlaps
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.messages.librdkafka import ReachedOffsets, Reader
from headrace.runtime.sources.messages.messages import METADATA, Beside, MessageFormat, Messages, rows_of
from headrace.runtime.sources.messages.upserts import UpsertMessages
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.sources.rows.rows import gather
from headrace.schema import Schema

USER: Final = "FROM kafka"
"""Who needs the library, in errors."""

MESSAGE_BYTES: Final = 300
"""About how many bytes a message has, which is not known before it is read."""

PATIENCE: Final = 60.0
"""Seconds that a task waits for brokers from which nothing comes."""

_AT_ONCE: Final = 4_000
"""So many messages are taken over at once."""
_TOGETHER: Final = 32_000
"""So many messages are parsed at once, or fewer with so many bytes."""
_BYTES: Final = 16 * 2**20

RECONNECTING: Final = {"reconnect.backoff.max.ms": "1000"}
"""A broker that is there again is noticed within a second."""

_OURS: Final = {
    "group.id": "headrace",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    # What has been fetched beyond the end of a range is thrown away; below it no fetch is put off.
    "queued.min.messages": str(2 * _TOGETHER),
    "fetch.queue.backoff.ms": "5",
    # A range's messages are there. A fetch that waits for more would hold up that of the next range.
    "fetch.wait.max.ms": "5",
    "log_level": "0",
    **RECONNECTING,
}


@dataclass(frozen=True)
class Access:
    """How the brokers of topics are reached.

    Attributes:
        settings: those of librdkafka; secrets may be among them.
    """

    settings: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True)
class OffsetRange:
    """The offsets `[start, end)` of a partition of a topic; not every offset has a message."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class TopicSource:
    """Ranges of partitions of topics laid end to end; positions count offsets.

    Attributes:
        access: how the brokers are reached.
        form: how messages are read.
        schema: the columns.
        ranges: what is read, in order.
    """

    access: Access
    form: MessageFormat
    schema: Schema
    ranges: tuple[OffsetRange, ...]

    @cached_property
    def _sizes(self) -> list[int]:
        return [one.end - one.start for one in self.ranges]

    @property
    def size(self) -> int:
        """How many offsets these are."""
        return sum(self._sizes)

    @property
    def rows(self) -> int:
        """At most so many messages there are."""
        return self.size

    @property
    def borders(self) -> Sequence[int]:
        """None: messages are read singly."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """About how many bytes the messages have."""
        return MESSAGE_BYTES * (end - start)

    @property
    def paths(self) -> tuple[Place, ...]:
        """None."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing: commits have the offsets."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`, partition by partition, in the order of offsets.

        Raises:
            SourceError: the brokers do not answer, or the offsets are gone.
        """
        wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        return gather(self._pieces(start, end, wanted))

    def _pieces(self, start: int, end: int, wanted: Schema) -> Iterator[Read]:
        beside = METADATA.keys() & wanted.names
        if isinstance(self.form, UpsertMessages):
            beside = {*beside, "_key"}
        for index, first, last in overlaps(self._sizes, start, end):
            one = self.ranges[index]
            chosen = OffsetRange(one.topic, one.partition, one.start + first, one.start + last)
            for messages in messages_of(self.access, chosen, beside):
                yield rows_of(self.form, messages, wanted)


def messages_of(access: Access, chosen: OffsetRange, beside: Beside = frozenset()) -> Iterator[Messages]:
    """The messages of a range, in order, some at once.

    Offsets without a message (of compaction, of aborted transactions, of Kafka's own records) end with the
    next message, or with what the broker says of the end of the partition.

    Args:
        access: how the brokers are reached.
        chosen: the range.
        beside: what is wanted besides values.

    Raises:
        SourceError: the brokers do not answer, or the offsets are gone.
    """
    with _reader(access.settings) as reader:
        reader.assign(chosen.topic, chosen.partition, chosen.start)
        found, until = ReachedOffsets(chosen.start, 0, 0, False), time.monotonic() + PATIENCE
        while found.offset < chosen.end:
            before = found
            found = reader.await_some(min(_AT_ONCE, chosen.end - found.offset), 1.0, found)
            if found.is_gone:
                raise SourceError(
                    f"the topic {chosen.topic} no longer has offset {chosen.start} of partition "
                    f"{chosen.partition}",
                    hint="its retention has deleted messages that were not read yet",
                )
            if found.offset > before.offset:
                until = time.monotonic() + PATIENCE
            elif time.monotonic() > until:
                raise AwayError(
                    f"nothing has come of the topic {chosen.topic} for {PATIENCE:.0f} seconds",
                    hint="see whether its brokers run",
                )
            is_enough = found.rows >= _TOGETHER or found.size >= _BYTES
            if found.rows and (is_enough or found.offset >= chosen.end):
                yield reader.messages(chosen.topic, chosen.partition, chosen.end, beside)
                found = ReachedOffsets(found.offset, 0, 0, False)


_idle: Final[dict[tuple[tuple[str, str], ...], list[Reader]]] = {}
"""Connected readers of this process that nobody uses, by their settings."""
_lock: Final = Lock()


@contextmanager
def _reader(settings: tuple[tuple[str, str], ...]) -> Iterator[Reader]:
    """A reader for one range at a time; to connect takes longer than to read a small one."""
    with _lock:
        idle = _idle.setdefault(settings, [])
        reader = idle.pop() if idle else None
    if reader is None:
        reader = Reader(USER, tuple({**_OURS, **dict(settings)}.items()))
    try:
        yield reader
        reader.unassign()
    except BaseException:
        reader.close()
        raise
    with _lock:
        _idle[settings].append(reader)
