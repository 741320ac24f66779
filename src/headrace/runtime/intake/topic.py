"""Kafka topics that are followed, as the options of their stream say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import pyarrow as pa

from headrace.errors import SourceError
from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.intake.brokers import Brokers, WantedTopics
from headrace.runtime.intake.message_form import FORMAT_OPTIONS, form_of
from headrace.runtime.outside.kafka import confluent_kafka
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.messages.messages import MessageFormat
from headrace.runtime.sources.messages.topic import USER, Access, OffsetRange, TopicSource
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.options import check_known, renamed, required, seconds
from headrace.runtime.sources.rows.values import parse_texts
from headrace.runtime.sources.text.csv import SYNONYMS
from headrace.schema import TIMESTAMP

OPTIONS: Final = ("brokers", "topic", "topic_pattern", "format", "start", "on_data_loss", "poll")
"""The options of a topic, besides those of formats, and settings of librdkafka, whose names have a dot."""

_POLL: Final = "100 milliseconds"


class TopicStart(Enum):
    """Where a stream begins in the partitions that there are when it is first read."""

    EARLIEST = "earliest"
    """With the oldest message that is there."""
    LATEST = "latest"
    """With what comes from then on."""


@dataclass(frozen=True)
class Topic:
    """What is read, and how.

    Attributes:
        access: how the brokers are reached.
        wanted: the topics.
        form: how its messages are read.
        columns: what they are made of, and which are computed.
        start: where to begin; an instant (microseconds since 1970-01-01 UTC) for the first message that is
            not older by its own timestamp.
        goes_on: whether messages that are gone, before they were read, are passed over.
        every: seconds between two questions for what has come.
    """

    access: Access
    wanted: WantedTopics
    form: MessageFormat
    columns: ComputedColumns
    start: TopicStart | int
    goes_on: bool
    every: float

    def source(self, ranges: tuple[OffsetRange, ...]) -> SplitSource:
        """What reads some of it."""
        return self.columns.over(TopicSource(self.access, self.form, self.columns.given, ranges))

    @property
    def origin(self) -> str:
        """What a durable store knows it by; the brokers may be others when it is read on."""
        if self.wanted.pattern is not None:
            return f"topics that match {self.wanted.pattern!r}"
        return f"topic {', '.join(self.wanted.names)!r}"

    def brokers(self, seconds: float | None = None) -> Brokers:
        """Those that have it.

        Args:
            seconds: how long they have for one answer; as long as usual if None.
        """
        return Brokers(self.access, self.wanted, seconds)


def open_topic(
    options: Mapping[str, str],
    columns: ComputedColumns,
    records: ChangeRecords | None,
    base: Path = Path(),
    allowed: tuple[Path, ...] | None = None,
    key: Sequence[str] = (),
) -> Topic:
    """The topic that the options name; its brokers are not asked for it.

    Args:
        options: of the source, secrets in their places.
        columns: those that are declared.
        records: how change records of Debezium are read; None where messages are rows.
        base: the folder that relative paths are relative to.
        allowed: the folders in which files may be read; None for all.
        key: the columns that are in the keys of messages, of upserts.

    Raises:
        SourceError: an option is wrong, or a column cannot be read.
        UserError: confluent-kafka is not installed.
    """
    confluent_kafka(USER)
    settings = {name: value for name, value in options.items() if "." in name}
    ours = renamed({name: value for name, value in options.items() if "." not in name}, SYNONYMS)
    check_known("kafka", ours, (*OPTIONS, *FORMAT_OPTIONS))
    if "bootstrap.servers" in settings:
        raise SourceError("bootstrap.servers is the option brokers", hint="write brokers 'host:9092'")
    access = Access(tuple(sorted({**settings, "bootstrap.servers": required(ours, "brokers")}.items())))
    wanted = _wanted(ours)
    if records is ChangeRecords.UPSERT and len(wanted.names) != 1:
        raise SourceError(
            "upserts are of one topic: a key of one says nothing of the same key of another",
            hint="create a relation of each, and write UNION ALL",
        )
    Brokers(access, wanted).check()
    form = form_of(ours, columns.given, records, base, allowed, key)
    loss = ours.get("on_data_loss", "fail").lower()
    if loss not in ("fail", "continue"):
        raise SourceError(f"the option on_data_loss is '{loss}'", hint="it must be 'fail' or 'continue'")
    start, every = _start(ours.get("start", "earliest")), seconds(ours, "poll", _POLL)
    return Topic(access, wanted, form, columns, start, loss == "continue", every)


def _wanted(options: Mapping[str, str]) -> WantedTopics:
    if "topic_pattern" not in options:
        return WantedTopics.named(required(options, "topic"))
    if "topic" in options:
        raise SourceError("topic and topic_pattern both say what is read", hint="leave one of them out")
    return WantedTopics.matching(options["topic_pattern"])


def _start(text: str) -> TopicStart | int:
    if text.lower() in (one.value for one in TopicStart):
        return TopicStart(text.lower())
    (found,), bad = parse_texts(pa.array([text]), TIMESTAMP, trim=True, null=None)
    if bad.any():
        raise SourceError(
            f"the option start is '{text}'",
            hint="it must be 'earliest', 'latest' or a timestamp such as '2026-01-31T12:00:00Z'",
        )
    instant: int = found.value
    return instant
