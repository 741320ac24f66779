"""A Kafka topic that is followed: what its options say, and what its brokers say of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from headrace.errors import SourceError
from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.intake.message_form import FORMAT_OPTIONS, form_of
from headrace.runtime.outside.kafka import confluent_kafka
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.messages.messages import MessageFormat
from headrace.runtime.sources.messages.topic import RECONNECTING, USER, Access, OffsetRange, TopicSource
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.options import check_known, renamed, required, seconds
from headrace.runtime.sources.rows.values import parse_texts
from headrace.runtime.sources.text.csv import SYNONYMS
from headrace.schema import TIMESTAMP

OPTIONS: Final = ("brokers", "topic", "format", "start", "on_data_loss", "poll")
"""The options of a topic, besides those of formats, and settings of librdkafka, whose names have a dot."""

SECONDS: Final = 10.0
"""How long brokers have for one answer."""

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
        access: where it is.
        form: how its messages are read.
        columns: what they are made of, and which are computed.
        start: where to begin; an instant (microseconds since 1970-01-01 UTC) for the first message that is
            not older by its own timestamp.
        goes_on: whether messages that are gone, before they were read, are passed over.
        every: seconds between two questions for what has come.
    """

    access: Access
    form: MessageFormat
    columns: ComputedColumns
    start: TopicStart | int
    goes_on: bool
    every: float

    def source(self, ranges: tuple[OffsetRange, ...]) -> SplitSource:
        """What reads some of it."""
        return self.columns.over(TopicSource(self.access, self.form, self.columns.given, ranges))

    def brokers(self) -> Brokers:
        """Those that have it."""
        return Brokers(self.access)


@dataclass(frozen=True)
class TopicPartitions:
    """What is in a topic.

    Attributes:
        identity: another one when the topic is made anew under its name; empty where brokers do not say.
        begins: per partition the offset of the oldest message that is there.
        ends: per partition the offset up to which its messages can be read: that of the last stable one.
    """

    identity: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]


class Brokers:
    """The brokers of a topic, as they are asked about it.

    Args:
        access: where it is.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    def partitions(self) -> TopicPartitions:
        """What is in the topic now.

        Raises:
            SourceError: they cannot be reached, or there is no such topic.
        """
        admin = self._kafka_admin
        numbers = self._numbers()
        specs = admin.OffsetSpec
        begins = self._offsets(numbers, specs.earliest())
        ends = self._offsets(numbers, specs.latest())
        if any(at < 0 for at in (*begins.values(), *ends.values())):
            raise SourceError(f"the brokers of the topic {self._access.topic} do not know its offsets yet")
        return TopicPartitions(self._identity(), begins, ends)

    def since(self, instant: int, partitions: TopicPartitions) -> dict[int, int]:
        """The offsets of the first messages that are not older than an instant, the ends where none is.

        Raises:
            SourceError: they cannot be reached.
        """
        found = self._offsets(
            [*partitions.ends], self._kafka_admin.OffsetSpec.for_timestamp(instant // 1_000)
        )
        ends = partitions.ends
        return {number: min(at, ends[number]) if at >= 0 else ends[number] for number, at in found.items()}

    def check(self) -> None:
        """See that they may be asked, without asking them.

        Raises:
            SourceError: a setting is wrong.
        """
        _ = self._client

    @cached_property
    def _kafka(self) -> Any:
        return confluent_kafka(USER)

    @cached_property
    def _kafka_admin(self) -> Any:
        return confluent_kafka(USER, "admin")

    @cached_property
    def _client(self) -> Any:
        settings = {"log_level": 0, **RECONNECTING, **dict(self._access.settings), "error_cb": _ignored}
        try:
            return self._kafka_admin.AdminClient(settings)
        except self._kafka.KafkaException as error:
            raise SourceError(
                f"the brokers cannot be reached in this way: {error.args[0].str()}",
                hint="names with a dot are settings of librdkafka",
            ) from None

    def _numbers(self) -> list[int]:
        try:
            found = self._client.list_topics(self._access.topic, SECONDS).topics[self._access.topic]
        except self._kafka.KafkaException as error:
            raise self._away(error) from error
        if found.error is not None:
            raise SourceError(
                f"the topic {self._access.topic} cannot be read: {found.error.str()}", hint="check its name"
            )
        return sorted(found.partitions)

    def _identity(self) -> str:
        asked = self._kafka.TopicCollection([self._access.topic])
        (found,) = self._client.describe_topics(asked, request_timeout=SECONDS).values()
        return str(self._answer(found).topic_id or "")

    def _offsets(self, numbers: list[int], spec: Any) -> dict[int, int]:
        asked = {self._kafka.TopicPartition(self._access.topic, number): spec for number in numbers}
        stable = self._kafka.IsolationLevel.READ_COMMITTED
        found = self._client.list_offsets(asked, isolation_level=stable, request_timeout=SECONDS)
        return {one.partition: self._answer(future).offset for one, future in found.items()}

    def _answer(self, future: Future[Any]) -> Any:
        try:
            return future.result(SECONDS)
        except (self._kafka.KafkaException, TimeoutError) as error:
            raise self._away(error) from error

    def _away(self, error: Exception) -> SourceError:
        reason = error.args[0].str() if isinstance(error, self._kafka.KafkaException) else "no answer"
        return SourceError(
            f"the brokers of the topic {self._access.topic} cannot be reached: {reason}",
            hint="check the option brokers, and those for access",
        )


def open_topic(
    options: Mapping[str, str],
    columns: ComputedColumns,
    records: ChangeRecords | None,
    base: Path = Path(),
    allowed: tuple[Path, ...] | None = None,
) -> Topic:
    """The topic that the options name; its brokers are not asked for it.

    Args:
        options: of the source, secrets in their places.
        columns: those that are declared.
        records: how change records of Debezium are read; None where messages are rows.
        base: the folder that relative paths are relative to.
        allowed: the folders in which files may be read; None for all.

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
    brokers, topic = required(ours, "brokers"), required(ours, "topic")
    access = Access(topic, tuple(sorted({**settings, "bootstrap.servers": brokers}.items())))
    Brokers(access).check()
    form = form_of(ours, columns.given, records, base, allowed)
    loss = ours.get("on_data_loss", "fail").lower()
    if loss not in ("fail", "continue"):
        raise SourceError(f"the option on_data_loss is '{loss}'", hint="it must be 'fail' or 'continue'")
    start, every = _start(ours.get("start", "earliest")), seconds(ours, "poll", _POLL)
    return Topic(access, form, columns, start, loss == "continue", every)


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


def _ignored(error: object) -> None:
    """Nothing: what is asked says what is wrong."""
