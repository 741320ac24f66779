"""Results for Spark's batch writers: tables, files, Kafka, or whatever a function does with a data frame.

All of them promise the same: at least once, in order, no epoch left out. Spark's writers have no memory of
epochs, so after a crash or a failure the last epoch may be written again, with the same rows; the column
`epoch` distinguishes them. An epoch that changed nothing is not written. An epoch is a Spark job of its own,
beside the jobs of the run, and takes executor cores while it lasts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, struct, to_json

from headrace.errors import DeliveryError, UserError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.results.changes import Change
from headrace.runtime.spark.types import SPARK_ERRORS, reason_of


class _SparkSink(ABC):
    """What Spark's sinks have in common: the changes of an epoch become a data frame."""

    def __init__(self, spark: SparkSession | None) -> None:
        self._spark = spark

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called where it gets no other name."""

    @abstractmethod
    def write_frame(self, frame: DataFrame, epoch: int) -> None:
        """Write the changes of an epoch."""

    def open(self, origin: Origin) -> None:
        """Find the session."""
        self._spark = self._spark or SparkSession.builder.getOrCreate()

    def write(self, change: Change) -> None:
        """Make the epoch's data frame and write it.

        Raises:
            DeliveryError: Spark fails; the reason is its first line.
        """
        if not change.rows.num_rows:
            return
        assert self._spark is not None
        try:
            self.write_frame(self._spark.createDataFrame(change.rows), change.epoch)
        except SPARK_ERRORS as error:
            raise DeliveryError(f"Spark cannot write: {reason_of(error)}") from error


class SparkFunctionSink(_SparkSink):
    """Calls a function with each epoch's changes as a Spark data frame, as `foreachBatch` does.

    Promise: at least once; see above. With a writer that can replace, such as a table format with
    transactions, a function that replaces the rows of its epoch gets everything exactly once.

    Args:
        function: called with the data frame and the epoch's number; what it does is done when it returns.
        spark: the session; the one that is running if None.
    """

    def __init__(
        self, function: Callable[[DataFrame, int], object], spark: SparkSession | None = None
    ) -> None:
        super().__init__(spark)
        self._function = function

    @property
    def name(self) -> str:
        """`spark`."""
        return "spark"

    def write_frame(self, frame: DataFrame, epoch: int) -> None:
        """Call the function."""
        self._function(frame, epoch)


class SparkTableSink(_SparkSink):
    """Appends each epoch's changes to a table, or to a folder, in any format that Spark can write.

    Promise: at least once; see above. Rows that were written twice are equal in all columns, `epoch`
    included, and are those of one epoch: the last one before a failure or a crash.

    Args:
        table: the table's name; without one, the option `path` says where the rows go.
        format: as in `DataFrameWriter.format`; the session's default if None.
        options: as in `DataFrameWriter.options`.
        partition_by: columns that the rows are laid out by.
        spark: the session; the one that is running if None.

    Raises:
        UserError: neither a table nor a path is given.
    """

    def __init__(
        self,
        table: str | None = None,
        *,
        format: str | None = None,
        options: Mapping[str, str] | None = None,
        partition_by: Sequence[str] = (),
        spark: SparkSession | None = None,
    ) -> None:
        super().__init__(spark)
        self._table = table
        self._format = format
        self._options = dict(options or {})
        self._partition_by = tuple(partition_by)
        if table is None and format is None and "path" not in self._options:
            raise UserError("the sink has no place to write to", hint="name a table, or the option path")

    @property
    def name(self) -> str:
        """`table`."""
        return "table"

    def write_frame(self, frame: DataFrame, epoch: int) -> None:
        """Append the rows."""
        writer = frame.write.mode("append").options(**self._options)
        if self._format is not None:
            writer = writer.format(self._format)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        if self._table is None:
            writer.save()
        else:
            writer.saveAsTable(self._table)


class KafkaSink(_SparkSink):
    """Sends each change as a Kafka record: the value is the whole row as JSON, `epoch` and `change` included.

    Promise: at least once; see above. The changes of an epoch are sent by one task, in order of
    `valid_from`, so that those of one key keep their order. The session needs Spark's package for Kafka,
    `org.apache.spark:spark-sql-kafka-0-10_2.13` of Spark's own version.

    Args:
        topic: where to.
        servers: Kafka's bootstrap servers, such as `host:9092`.
        key: the columns that make the record's key, as JSON; no key if empty.
        options: more options of Spark's Kafka writer, such as `kafka.security.protocol`.
        spark: the session; the one that is running if None.
    """

    def __init__(
        self,
        topic: str,
        servers: str,
        key: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        super().__init__(spark)
        self._options = {**(options or {}), "kafka.bootstrap.servers": servers, "topic": topic}
        self._key = tuple(key)

    @property
    def name(self) -> str:
        """`kafka`."""
        return "kafka"

    def write_frame(self, frame: DataFrame, epoch: int) -> None:
        """Send the rows."""
        records = kafka_records(frame.coalesce(1), self._key)
        records.write.format("kafka").options(**self._options).save()


def kafka_records(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows as Kafka's writer wants them.

    Args:
        frame: the rows.
        key: the columns of the key.

    Returns:
        `value`, and `key` where there is one: JSON objects with all fields, those that are NULL included.
    """
    columns = [to_json(struct(*map(col, frame.columns)), {"ignoreNullFields": "false"}).alias("value")]
    if key:
        columns.append(to_json(struct(*map(col, key)), {"ignoreNullFields": "false"}).alias("key"))
    return frame.select(*columns)
