"""Flink among the peers, through PyFlink, in an environment of its own.

The texts are those that Headrace runs, but for the join, which SQL on Flink says with two timestamps. Rows
are not read from files but are in memory, mapped, before a job starts; see `PreloadedRows.java`. State is on
the heap, objects are reused, there are no checkpoints, and the cluster is the one that PyFlink starts in the
JVM beside this process.

The own clock is the job's net run time. The caller's also has what PyFlink does around it: planning, and
starting and ending that cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, Schema, TableDescriptor, TableEnvironment

from peer import CORES, Peer, serve
from spellings import SPELLED

JAR: Final = Path(__file__).parents[1] / ".peers" / "preloaded-rows.jar"

_JOIN: Final = (
    "SELECT b.auction, b.price, a.seller FROM bid b, auction a "
    "WHERE b.auction = a.id AND b.ts >= a.ts AND b.ts < a.ts + INTERVAL '60' SECONDS"
)
TEXTS: Final[Mapping[str, tuple[str, ...]]] = {**SPELLED, "join": (_JOIN,)}

_NOTHING: Final[Mapping[str, str]] = {}
_TABLES: Final = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP_LTZ(3)",
    "auction": "id BIGINT, seller BIGINT, ts TIMESTAMP_LTZ(3)",
}

SETTINGS: Final[Mapping[str, str]] = {
    "parallelism.default": str(CORES),
    "pipeline.jars": JAR.as_uri(),
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    # Of what a local cluster has by default, a hundred queries get too little each to start with.
    "taskmanager.memory.managed.size": "1g",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
}


class _Flink:
    def run(self, query: str, data: Path) -> float:
        return self._run(TEXTS[query], data, {"connector": "blackhole"})

    def save(self, query: str, data: Path, answer: Path) -> None:
        sink = {"connector": "filesystem", "format": "csv", "path": answer.as_uri()}
        self._run(TEXTS[query], data, sink)

    def _run(self, texts: Sequence[str], data: Path, sink: Mapping[str, str]) -> float:
        return insert(environment(data), texts, sink)


def insert(tables: TableEnvironment, texts: Sequence[str], sink: Mapping[str, str]) -> float:
    """Insert the results of all texts, as one job; its seconds by Flink's own clock.

    Args:
        tables: from `environment`.
        texts: the queries.
        sink: the connector and its options.
    """
    statements = tables.create_statement_set()
    for number, text in enumerate(texts):
        columns = tables.sql_query(text).get_resolved_schema()
        descriptor = TableDescriptor.for_connector(sink["connector"]).schema(
            Schema.new_builder().from_resolved_schema(columns).build()
        )
        for name, value in sink.items():
            descriptor = descriptor if name == "connector" else descriptor.option(name, value)
        tables.create_temporary_table(f"sink_{number}", descriptor.build())
        statements.add_insert_sql(f"INSERT INTO sink_{number} {text}")
    result = statements.execute()
    result.wait()
    client = result.get_job_client()
    assert client is not None
    milliseconds: int = client.get_job_execution_result().result().get_net_runtime()
    return milliseconds / 1e3


def environment(
    data: Path,
    settings: Mapping[str, str] = SETTINGS,
    watermark: str = "ts - INTERVAL '0.001' SECOND",
    options: Mapping[str, str] = _NOTHING,
) -> TableEnvironment:
    """An environment with the tables.

    Args:
        data: the folder with their columns.
        settings: of Flink.
        watermark: of both tables, in SQL. Rows of a millisecond come one after the other, and OVER leaves out
            those that come after a watermark of their own.
        options: of their connector.
    """
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration)
    tables = TableEnvironment.create(builder.build())
    for name, columns in _TABLES.items():
        given = {"connector": "preloaded", "path": str(data / "columns" / name), **options}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        tables.execute_sql(
            f"CREATE TABLE {name} ({columns}, WATERMARK FOR ts AS {watermark}) WITH ({listed})"
        )
    return tables


@contextmanager
def _start() -> Iterator[Peer]:
    yield _Flink()


if __name__ == "__main__":
    serve(_start)
