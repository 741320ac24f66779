"""A query's changes as records of a Kafka topic, one transaction per epoch."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from headrace.errors import DeliveryError, UserError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.results.changes import Change
from headrace.runtime.sources.kafka import confluent_kafka
from headrace.runtime.writing.tables import write_table
from headrace.suggestions import did_you_mean

SECONDS: Final = 30.0
"""How long Kafka has for one answer before the epoch is tried again."""

_OURS: Final = ("transactional.id", "group.id", "bootstrap.servers", "isolation.level", "enable.auto.commit")
_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


class TopicSink:
    """Sends each change as a record of a Kafka topic: the value is the whole row as JSON.

    Promise: exactly once for those who read with `isolation.level=read_committed`, also after a crash, as
    long as the run's store is durable. The records of an epoch and its number are one transaction of Kafka:
    the number is an offset that the consumer group `headrace-...`, named after this delivery, commits for
    partition 0 of the topic. Kafka is asked for it at every start, and an epoch that it has is not sent
    again. The transactional id is always the same for a delivery, so that an earlier process that still
    runs can commit nothing more.

    The records of an epoch are sent in order of `valid_from`, so those of one key keep their order. The
    topic must exist. Needs the package confluent-kafka (`pip install 'headrace[kafka]'`).

    Args:
        topic: where to.
        brokers: Kafka's bootstrap servers, such as `host:9092`, separated by commas.
        key: the columns that make the record's key, as a JSON object; no key if empty.
        options: more settings of librdkafka, such as `security.protocol`.

    Raises:
        UserError: confluent-kafka is not installed, or an option is one that the sink sets itself.
    """

    def __init__(
        self,
        topic: str,
        brokers: str,
        key: str | Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        for option in options or {}:
            if option in _OURS:
                raise UserError(f"the sink sets {option} itself", hint="leave the option out")
        self._topic = topic
        self._settings = {**(options or {}), "bootstrap.servers": brokers}
        self._key = [key] if isinstance(key, str) else list(key)
        self._kafka = confluent_kafka("a TopicSink")
        self._id = ""
        self._producer: Any = None
        self._group: Any = None
        self._epoch = 0
        self._fenced = False

    @property
    def name(self) -> str:
        """`topic`."""
        return "topic"

    def open(self, origin: Origin) -> None:
        """Take the topic over from any earlier process, and ask Kafka which epoch it has.

        Raises:
            DeliveryError: the key has no such column, Kafka cannot be reached, there is no such topic, or
                Kafka lacks an epoch that was delivered.
        """
        for column in self._key:
            if column not in origin.schema.names:
                names = origin.schema.names
                raise DeliveryError(
                    f"{origin.query} has no column {column}",
                    hint=did_you_mean(column, names) or f"its columns are {', '.join(names)}",
                )
        self._id, self._fenced = f"headrace-{origin.delivery}", False
        known = self._connect()
        if known is None and origin.epoch >= origin.first:
            raise DeliveryError(
                f"Kafka does not know any more that the topic {self._topic} has what was delivered up to "
                f"epoch {origin.epoch}",
                hint="give the sink another name to deliver everything again; a broker forgets it after "
                "offsets.retention.minutes without a delivery",
            )
        if known is not None and known < origin.epoch:
            raise DeliveryError(
                f"the topic {self._topic} is at epoch {known}, and was at epoch {origin.epoch}",
                hint="name another topic and another sink to deliver everything again",
            )

    def write(self, change: Change) -> None:
        """Send the epoch's changes, unless Kafka has them already.

        Raises:
            DeliveryError: another process has taken this delivery over, or Kafka did not take the epoch.
        """
        if self._fenced:
            raise self._taken_over()
        if self._producer is None:
            self._connect()
        if change.epoch <= self._epoch:
            return
        try:
            self._producer.begin_transaction()
            self._produce(change.rows)
            reached = self._kafka.TopicPartition(self._topic, 0, change.epoch)
            self._producer.send_offsets_to_transaction([reached], self._group, SECONDS)
            self._commit()
        except self._kafka.KafkaException as error:
            raise self._failed(error) from error
        self._epoch = change.epoch

    def _commit(self) -> None:
        self._producer.commit_transaction(SECONDS)

    def _produce(self, rows: pa.Table) -> None:
        """Hand the rows over to be sent; the transaction's commit waits until Kafka has them."""
        keys = _lines(rows.select(self._key)) if self._key else [None] * rows.num_rows
        for key, value in zip(keys, _lines(rows), strict=True):
            while True:
                try:
                    self._producer.produce(self._topic, value=value, key=key)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def _connect(self) -> int | None:
        """Begin anew: fence whoever was here before, and ask how far the topic is; None if it has nothing.

        Raises:
            DeliveryError: Kafka cannot be reached, or there is no such topic.
        """
        settings = {**self._settings, "group.id": self._id, "enable.auto.commit": False}
        producer = self._kafka.Producer({**self._settings, "transactional.id": self._id})
        consumer = self._kafka.Consumer({**settings, "isolation.level": "read_committed"})
        try:
            found = consumer.list_topics(self._topic, SECONDS).topics[self._topic]
            if found.error is not None:
                raise DeliveryError(
                    f"the topic {self._topic} cannot be used: {found.error.str()}",
                    hint="make the topic before the run, and check its name",
                )
            # What an earlier process left open is decided when this returns, so the offset is the last one.
            producer.init_transactions(SECONDS)
            group = consumer.consumer_group_metadata()
            (reached,) = consumer.committed([self._kafka.TopicPartition(self._topic, 0)], SECONDS)
        except self._kafka.KafkaException as error:
            raise DeliveryError(
                f"Kafka at {self._settings['bootstrap.servers']} cannot be used: {error.args[0].str()}",
                hint="check brokers, and the options for access",
            ) from error
        finally:
            consumer.close()
        known = reached.offset if reached.offset >= 0 else None
        self._producer, self._group, self._epoch = producer, group, known or 0
        return known

    def _failed(self, error: Any) -> DeliveryError:
        """What to raise after a failure; whether the epoch was committed is asked at the next attempt."""
        reason, producer = error.args[0], self._producer
        self._producer = None
        self._fenced = reason.name() in _FENCED
        if self._fenced:
            return self._taken_over()
        with suppress(self._kafka.KafkaException):
            producer.abort_transaction(SECONDS)
        return DeliveryError(f"Kafka did not take the changes for {self._topic}: {reason.str()}")

    def _taken_over(self) -> DeliveryError:
        return DeliveryError(
            f"another process has taken over what is delivered to the topic {self._topic}",
            hint="run a store in one process only",
        )


def _lines(rows: pa.Table) -> list[bytes]:
    """Each row as a JSON object."""
    text = io.BytesIO()
    write_table(rows, "jsonl", text)
    return text.getvalue().split(b"\n")[:-1]
