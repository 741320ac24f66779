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

_TABLES: Final = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP_LTZ(3)",
    "auction": "id BIGINT, seller BIGINT, ts TIMESTAMP_LTZ(3)",
}

_SETTINGS: Final = {
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
        """Insert the results of all texts, as one job; its seconds by Flink's own clock."""
        environment = _environment(data)
        statements = environment.create_statement_set()
        for number, text in enumerate(texts):
            columns = environment.sql_query(text).get_resolved_schema()
            descriptor = TableDescriptor.for_connector(sink["connector"]).schema(
                Schema.new_builder().from_resolved_schema(columns).build()
            )
            for name, value in sink.items():
                descriptor = descriptor if name == "connector" else descriptor.option(name, value)
            environment.create_temporary_table(f"sink_{number}", descriptor.build())
            statements.add_insert_sql(f"INSERT INTO sink_{number} {text}")
        result = statements.execute()
        result.wait()
        client = result.get_job_client()
        assert client is not None
        milliseconds: int = client.get_job_execution_result().result().get_net_runtime()
        return milliseconds / 1e3


def _environment(data: Path) -> TableEnvironment:
    settings = Configuration()
    for name, value in _SETTINGS.items():
        settings.set_string(name, value)
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings)
    environment = TableEnvironment.create(builder.build())
    for name, columns in _TABLES.items():
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}, WATERMARK FOR ts AS ts) "
            f"WITH ('connector' = 'preloaded', 'path' = '{data / 'columns' / name}')"
        )
    return environment


@contextmanager
def _start() -> Iterator[Peer]:
    yield _Flink()


if __name__ == "__main__":
    serve(_start)
