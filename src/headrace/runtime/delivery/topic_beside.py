"""A compacted topic with the state of a sink, read again when the sink begins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headrace.errors import AwayError, DeliveryError
from headrace.runtime.outside.kafka import confluent_kafka

_USER: Final = "a TopicSink"
_AT_ONCE: Final = 1_000


class TopicBeside:
    """A topic with one partition, whose newest record of each key counts.

    Args:
        name: its name.
        settings: those of librdkafka with which its brokers are reached.
        seconds: how long they have for one answer.
    """

    def __init__(self, name: str, settings: Mapping[str, str], seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._settings = dict(settings)
        self._kafka = confluent_kafka(_USER)

    def make(self) -> None:
        """Make it, unless it is there.

        Raises:
            DeliveryError: the brokers do not allow that.
        """
        admin = confluent_kafka(_USER, "admin")
        client = admin.AdminClient({**self._settings, "log_level": 0})
        made = admin.NewTopic(self._name, 1, config={"cleanup.policy": "compact"})
        try:
            client.create_topics([made], request_timeout=self._seconds)[self._name].result(self._seconds)
        except self._kafka.KafkaException as error:
            if error.args[0].code() != self._kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                raise DeliveryError(
                    f"the topic {self._name} cannot be made: {error.args[0].str()}",
                    hint="make it, with one partition and cleanup.policy=compact",
                ) from error

    def records(self, consumer: Any) -> Iterator[tuple[bytes, bytes | None]]:
        """Its records up to its end: keys and values.

        Args:
            consumer: that reads what is committed, and says where a partition ends.

        Raises:
            AwayError: nothing has come of it for long.
            DeliveryError: it cannot be read.
        """
        until = time.monotonic() + self._seconds
        consumer.assign([self._kafka.TopicPartition(self._name, 0, self._kafka.OFFSET_BEGINNING)])
        while True:
            found = consumer.consume(_AT_ONCE, min(1.0, self._seconds))
            if found:
                until = time.monotonic() + self._seconds
            elif time.monotonic() > until:
                raise AwayError(f"nothing has come of the topic {self._name} for {self._seconds:.0f} seconds")
            for one in found:
                if one.error() is None:
                    yield one.key(), one.value()
                elif one.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                    return
                elif not one.error().retriable():
                    raise DeliveryError(f"the topic {self._name} cannot be read: {one.error().str()}")
