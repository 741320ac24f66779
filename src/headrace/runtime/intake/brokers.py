"""The brokers of Kafka, as they are asked which topics there are, and what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from headrace.errors import SourceError
from headrace.runtime.outside.kafka import BESIDE, confluent_kafka
from headrace.runtime.sources.messages.topic import RECONNECTING, USER, Access
from headrace.suggestions import did_you_mean

SECONDS: Final = 10.0
"""How long brokers have for one answer."""

_CLOSE: Final = 3
"""So many names are suggested for one that is not there."""
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INTERNAL: Final = "__"
"""How the names of Kafka's own topics begin."""

Partition: TypeAlias = tuple[str, int]
"""A topic, and the number of a partition of it."""


@dataclass(frozen=True)
class WantedTopics:
    """The topics that are read.

    Attributes:
        names: they, where they are named.
        pattern: otherwise the regular expression that the whole name of each matches.
    """

    names: tuple[str, ...]
    pattern: str | None = None

    @classmethod
    def named(cls, text: str) -> WantedTopics:
        """The topics of the option `topic`: names with commas between them.

        Raises:
            SourceError: one cannot be the name of a topic, or is there twice.
        """
        names = tuple(name.strip() for name in text.split(","))
        for place, name in enumerate(names):
            if _LEGAL.fullmatch(name) is None:
                raise SourceError(
                    f"'{name}' is not the name of a topic",
                    hint="names have letters, digits, dots, _ and -, and commas between them; topic_pattern "
                    "'orders-.*' reads all topics whose names match it",
                )
            if name in names[:place]:
                raise SourceError(f"the topic {name} is named twice", hint="name it once")
        return cls(names)

    @classmethod
    def matching(cls, pattern: str) -> WantedTopics:
        """The topics of the option `topic_pattern`.

        Raises:
            SourceError: it is not a regular expression.
        """
        try:
            re.compile(pattern)
        except re.error as error:
            raise SourceError(
                f"the option topic_pattern is not a regular expression: {error}",
                hint="write 'orders-.*', for example",
            ) from None
        return cls((), pattern)

    def __str__(self) -> str:
        """As errors name them: `the topic a`."""
        if self.pattern is not None:
            return f"the topics that match {self.pattern}"
        return f"the topic{'s' * (len(self.names) > 1)} {', '.join(self.names)}"

    def of(self, names: Iterable[str]) -> list[str]:
        """Those that match the pattern, but for topics of Kafka's own and of sinks."""
        return sorted(
            name
            for name in names
            if re.fullmatch(self.pattern or "", name)
            and not name.startswith(_INTERNAL)
            and not name.endswith(BESIDE)
        )


@dataclass(frozen=True)
class TopicPartitions:
    """What is in the topics that are there.

    Attributes:
        identities: per topic what is another one when it is made anew under its name; empty where brokers do
            not say.
        begins: per partition the offset of the oldest message that is there.
        ends: per partition the offset up to which its messages can be read: that of the last stable one.
        missing: the topics that are named, and are not there.
    """

    identities: Mapping[str, str]
    begins: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopicsOverview:
    """Which topics are there.

    Attributes:
        absence: which are not, with the names of topics that are close; None if all are.
        partitions: how many those that are there have together.
    """

    absence: str | None
    partitions: int


class Brokers:
    """The brokers of some topics, as they are asked about them.

    Nothing that is asked makes a topic, also where brokers make those that clients name.

    Args:
        access: how they are reached.
        wanted: the topics.
        seconds: how long they have for one answer; `SECONDS` if None.
    """

    def __init__(self, access: Access, wanted: WantedTopics, seconds: float | None = None) -> None:
        self._access = access
        self._wanted = wanted
        self._seconds = seconds

    def partitions(self) -> TopicPartitions:
        """What is in the topics now.

        Raises:
            SourceError: they cannot be reached, or do not allow it.
        """
        found, missing = self._described()
        names = [(name, one.id) for name, topic in found.items() for one in topic.partitions]
        partitions = sorted(names)
        specs = self._kafka_admin.OffsetSpec
        begins = self._offsets(partitions, specs.earliest())
        ends = self._offsets(partitions, specs.latest())
        if any(at < 0 for at in (*begins.values(), *ends.values())):
            raise SourceError(f"the brokers of {self._wanted} do not know its offsets yet")
        identities = {name: str(topic.topic_id or "") for name, topic in found.items()}
        return TopicPartitions(identities, begins, ends, missing)

    def since(self, instant: int, partitions: TopicPartitions) -> dict[Partition, int]:
        """The offsets of the first messages that are not older than an instant, the ends where none is.

        Raises:
            SourceError: they cannot be reached.
        """
        found = self._offsets(
            [*partitions.ends], self._kafka_admin.OffsetSpec.for_timestamp(instant // 1_000)
        )
        ends = partitions.ends
        return {one: min(at, ends[one]) if at >= 0 else ends[one] for one, at in found.items()}

    def overview(self) -> TopicsOverview:
        """Which of the topics are there.

        Raises:
            SourceError: they cannot be reached, or do not allow it.
        """
        there = self._topics()
        names = self._wanted.names if self._wanted.pattern is None else self._wanted.of(there)
        counts = (len(there[name].partitions) for name in names if name in there)
        return TopicsOverview(self._absence([*there]), sum(counts))

    def _absence(self, there: list[str]) -> str | None:
        if self._wanted.pattern is not None:
            return None if self._wanted.of(there) else f"no topic matches {self._wanted.pattern} so far"
        missing = sorted({*self._wanted.names} - {*there})
        if not missing:
            return None
        known = [name for name in there if not name.startswith(_INTERNAL)]
        close = [did_you_mean(name, known, _CLOSE) for name in missing]
        hint = next(
            (one for one in close if one is not None),
            "check its name; it is read from its beginning once it is there",
        )
        return f"there is no topic {', '.join(missing)} ({hint})"

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

    @property
    def _patience(self) -> float:
        return SECONDS if self._seconds is None else self._seconds

    def _topics(self) -> dict[str, Any]:
        """All topics that are there and may be seen, with what brokers say of them, by name."""
        try:
            return dict(self._client.list_topics(timeout=self._patience).topics)
        except self._kafka.KafkaException as error:
            raise self._away(error) from error

    def _described(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """What brokers say of each topic that is there, and the names of those that are not."""
        names = [*self._wanted.names] if self._wanted.pattern is None else self._wanted.of(self._topics())
        if not names:
            return {}, ()
        asked = self._kafka.TopicCollection(names)
        found: dict[str, Any] = {}
        missing = []
        for name, future in self._client.describe_topics(asked, request_timeout=self._patience).items():
            try:
                found[name] = future.result(self._patience)
            except (self._kafka.KafkaException, TimeoutError) as error:
                if not self._is_missing(error):
                    raise self._away(error) from error
                missing.append(name)
        # One that matched a pattern has gone since.
        return found, tuple(missing) if self._wanted.pattern is None else ()

    def _is_missing(self, error: Exception) -> bool:
        is_kafkas = isinstance(error, self._kafka.KafkaException)
        return is_kafkas and error.args[0].name() == "UNKNOWN_TOPIC_OR_PART"

    def _offsets(self, partitions: list[Partition], spec: Any) -> dict[Partition, int]:
        if not partitions:
            return {}
        asked = {self._kafka.TopicPartition(*one): spec for one in partitions}
        stable = self._kafka.IsolationLevel.READ_COMMITTED
        found = self._client.list_offsets(asked, isolation_level=stable, request_timeout=self._patience)
        return {(one.topic, one.partition): self._answer(future).offset for one, future in found.items()}

    def _answer(self, future: Future[Any]) -> Any:
        try:
            return future.result(self._patience)
        except (self._kafka.KafkaException, TimeoutError) as error:
            raise self._away(error) from error

    def _away(self, error: Exception) -> SourceError:
        reason = error.args[0].str() if isinstance(error, self._kafka.KafkaException) else "no answer"
        return SourceError(
            f"the brokers of {self._wanted} cannot be reached: {reason}",
            hint="check the option brokers, and those for access",
        )


def _ignored(error: object) -> None:
    """Nothing: what is asked says what is wrong."""
