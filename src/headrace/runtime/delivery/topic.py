"""A query's answer as records of a Kafka topic, one transaction per epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from headrace.errors import AwayError, DeliveryError, UserError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.record_forms import ChangesForm, Record, UpsertForm
from headrace.runtime.delivery.records import AvroRecords, Encoder, JsonRecords
from headrace.runtime.delivery.topic_beside import TopicBeside
from headrace.runtime.outside.kafka import BESIDE, confluent_kafka, is_away_of_kafka
from headrace.runtime.results.changes import Change

SECONDS: Final = 30.0
"""How long Kafka has for one answer before the epoch is tried again."""

_OURS: Final = ("transactional.id", "group.id", "bootstrap.servers", "isolation.level", "enable.auto.commit")
_FENCED: Final = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


class TopicSink:
    """Sends an answer to a Kafka topic: each change as a record, or the present row of each key.

    Promise: exactly once for those who read with `isolation.level=read_committed`, also after a crash, as
    long as the run's store is durable. The records of an epoch and its number are one transaction of Kafka:
    the number is an offset that the consumer group `headrace-...`, named after this delivery, commits for
    partition 0 of the topic. Kafka is asked for it at every start, and an epoch that it has is not sent
    again. The transactional id is always the same for a delivery, so that an earlier process that still
    runs can commit nothing more.

    The records of an epoch are sent in order of `valid_from`, so those of one key keep their order. The
    topic must exist. Needs the package confluent-kafka (`pip install 'headrace[kafka]'`).

    In the form `upsert` a record has the row of its key at the heartbeat, and is sent when that has changed;
    without a row it is a tombstone. What is said of later instants is in the compacted topic
    `<topic>-headrace-later`, which is made if it is missing, and is written in the same transaction.

    Args:
        topic: where to.
        brokers: Kafka's bootstrap servers, such as `host:9092`, separated by commas.
        key: the columns that make the record's key; no key if empty, and for `upsert` the one that follows
            from the query.
        options: more settings of librdkafka, such as `security.protocol`.
        form: `changes`, or `upsert`.
        format: of keys and values: `json`, or `avro` with a schema registry.
        schema_registry: its address, for `avro`.

    Raises:
        UserError: a package is not installed, an option is one that the sink sets itself, or there is no such
            form or format.
    """

    def __init__(
        self,
        topic: str,
        brokers: str,
        key: str | Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        form: str = "changes",
        format: str = "json",
        schema_registry: str | None = None,
    ) -> None:
        for option in options or {}:
            if option in _OURS:
                raise UserError(f"the sink sets {option} itself", hint="leave the option out")
        self._topic = topic
        # Within a transaction a broker that is silent is waited for as long as the connection allows.
        waits = {"socket.timeout.ms": str(int(1_000 * SECONDS))}
        self._settings = {**waits, **(options or {}), "bootstrap.servers": brokers}
        self._form = _form(form, topic, key, _encoder(format, schema_registry, topic))
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
            UserError: the form does not fit the query, Kafka cannot be reached, there is no such topic, or
                Kafka lacks an epoch that was delivered, or has one that the store, which is a copy, does not
                have.
        """
        self._form.open(origin)
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
        origin.check_most(f"the topic {self._topic}", known or 0)

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
            self._produce(self._form.records(change))
            reached = self._kafka.TopicPartition(self._topic, 0, change.epoch)
            self._producer.send_offsets_to_transaction([reached], self._group, SECONDS)
            self._commit()
        except self._kafka.KafkaException as error:
            raise self._failed(error) from error
        self._form.committed()
        self._epoch = change.epoch

    def _commit(self) -> None:
        self._producer.commit_transaction(SECONDS)

    def _produce(self, records: Sequence[Record]) -> None:
        """Hand the records over to be sent; the transaction's commit waits until Kafka has them."""
        for one in records:
            while True:
                try:
                    self._producer.produce(one.topic, value=one.value, key=one.key)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def _connect(self) -> int | None:
        """Begin anew: fence whoever was here before, and ask how far the topic is; None if it has nothing.

        Raises:
            DeliveryError: Kafka cannot be reached, or there is no such topic.
        """
        reading = {"group.id": self._id, "enable.auto.commit": False, "enable.partition.eof": True}
        producer = self._kafka.Producer({**self._settings, "transactional.id": self._id})
        consumer = self._kafka.Consumer({**self._settings, **reading, "isolation.level": "read_committed"})
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
            if isinstance(self._form, UpsertForm):
                beside = TopicBeside(self._topic + BESIDE, self._settings, SECONDS)
                beside.make()
                self._form.restore(beside.records(consumer))
        except self._kafka.KafkaException as error:
            kind = AwayError if is_away_of_kafka(error.args[0]) else DeliveryError
            raise kind(
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


def _form(name: str, topic: str, key: str | Sequence[str], encoder: Encoder) -> ChangesForm | UpsertForm:
    """The form of that name.

    Raises:
        UserError: there is none.
    """
    columns = [key] if isinstance(key, str) else key
    match name.lower():
        case "changes":
            return ChangesForm(topic, columns, encoder)
        case "upsert":
            return UpsertForm(topic, columns, encoder)
        case _:
            raise UserError(f"the option form is '{name}'", hint="it must be 'changes' or 'upsert'")


def _encoder(name: str, registry: str | None, topic: str) -> Encoder:
    """What writes the format of that name.

    Raises:
        UserError: there is none, or it lacks what it needs.
    """
    match name.lower():
        case "json" if registry is None:
            return JsonRecords()
        case "json":
            raise UserError("the option schema_registry is for the format avro", hint="leave it out")
        case "avro" if registry is not None and registry.startswith(("http://", "https://")):
            return AvroRecords(registry, topic)
        case "avro":
            raise UserError(
                "the format avro needs the address of a schema registry",
                hint="write schema_registry 'https://host:8081'",
            )
        case _:
            raise UserError(f"the option format is '{name}'", hint="it must be 'json' or 'avro'")
