"""A Kafka topic as a source: ranges of offsets, which any task reads from the brokers itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Final

from headrace.errors import SourceError
from headrace.runtime.sources.contract import Read
from headrace.runtime.sources.files import overlaps
from headrace.runtime.sources.kafka import confluent_kafka
from headrace.runtime.sources.messages import Message, MessageFormat, rows_of
from headrace.runtime.sources.remote import Place
from headrace.runtime.sources.rows import gather
from headrace.schema import Schema

USER: Final = "FROM kafka"
"""Who needs the library, in errors."""

MESSAGE_BYTES: Final = 300
"""About how many bytes a message has, which is not known before it is read."""

PATIENCE: Final = 60.0
"""Seconds that a task waits for brokers from which nothing comes."""

_AT_ONCE: Final = 1_000
"""So many messages are asked for at once; ten times as many take twice the time each."""
_TOGETHER: Final = 32_000
"""So many messages are parsed at once."""

_OURS: Final = {
    "group.id": "headrace",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    # What has been fetched beyond the end of a range is thrown away; below it no fetch is put off.
    "queued.min.messages": 2 * _TOGETHER,
    "fetch.queue.backoff.ms": 5,
    # A range's messages are there. A fetch that waits for more would hold up that of the next range.
    "fetch.wait.max.ms": 5,
    "log_level": 0,
}


@dataclass(frozen=True)
class Access:
    """Where a topic is.

    Attributes:
        topic: its name.
        settings: those of librdkafka with which its brokers are reached; secrets may be among them.
    """

    topic: str
    settings: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True)
class OffsetRange:
    """The offsets `[start, end)` of a partition; not every offset has a message."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class TopicSource:
    """Ranges of a topic's partitions laid end to end; positions count offsets.

    Attributes:
        access: where the topic is.
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
        for index, first, last in overlaps(self._sizes, start, end):
            one = self.ranges[index]
            chosen = OffsetRange(one.partition, one.start + first, one.start + last)
            for messages in messages_of(self.access, chosen):
                yield rows_of(self.form, self.access.topic, one.partition, messages, wanted)


def messages_of(access: Access, chosen: OffsetRange) -> Iterator[list[Message]]:
    """The messages of a range, in order, some at once.

    Offsets without a message (of compaction, of aborted transactions, of Kafka's own records) end with the
    next message, or with what the broker says of the end of the partition.

    Raises:
        SourceError: the brokers do not answer, or the offsets are gone.
    """
    kafka = confluent_kafka(USER)
    with _consumer(access.settings) as consumer:
        consumer.assign([kafka.TopicPartition(access.topic, chosen.partition, chosen.start)])
        reached, until = chosen.start, time.monotonic() + PATIENCE
        found: list[Message] = []
        while reached < chosen.end:
            come = consumer.consume(min(_AT_ONCE, chosen.end - reached), 1.0)
            if come:
                until = time.monotonic() + PATIENCE
            elif time.monotonic() > until:
                raise SourceError(
                    f"nothing has come of the topic {access.topic} for {PATIENCE:.0f} seconds",
                    hint="see whether its brokers run",
                )
            # Of most messages nothing else is asked than whether they are errors.
            rows = [one for one in come if one.error() is None]
            found += rows
            reached = rows[-1].offset() + 1 if rows else reached
            if len(rows) < len(come):
                ends = [one.offset() for one in come if _is_end(kafka, one.error(), access, chosen)]
                reached = max([reached, *ends])
            if len(found) >= _TOGETHER and reached < chosen.end:
                yield found
                found = []
        # After a gap at the end of the range comes a message that is not of it.
        if found and (rest := [one for one in found if one.offset() < chosen.end]):
            yield rest


def _is_end(kafka: Any, error: Any, access: Access, chosen: OffsetRange) -> bool:
    """Whether an error of a message is that there are no more; others but one pass by themselves."""
    if error is not None and error.code() == kafka.KafkaError._AUTO_OFFSET_RESET:
        raise SourceError(
            f"the topic {access.topic} no longer has offset {chosen.start} of partition {chosen.partition}",
            hint="its retention has deleted messages that were not read yet",
        )
    return error is not None and error.code() == kafka.KafkaError._PARTITION_EOF


_idle: Final[dict[tuple[tuple[str, str], ...], list[Any]]] = {}
"""Connected consumers of this process that nobody uses, by their settings."""
_lock: Final = Lock()


@contextmanager
def _consumer(settings: tuple[tuple[str, str], ...]) -> Iterator[Any]:
    """A consumer for one range at a time; to connect takes longer than to read a small one."""
    with _lock:
        idle = _idle.setdefault(settings, [])
        consumer = idle.pop() if idle else None
    if consumer is None:
        kafka = confluent_kafka(USER)
        # Errors are those of messages, and of what does not come.
        consumer = kafka.Consumer({**_OURS, **dict(settings), "error_cb": _ignored})
    try:
        yield consumer
        consumer.unassign()
    except BaseException:
        consumer.close()
        raise
    with _lock:
        _idle[settings].append(consumer)


def _ignored(error: object) -> None:
    """Nothing: librdkafka tries again by itself."""
