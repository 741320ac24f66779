"""NEXMark's queries together on Spark: the histories that they have in one process, which are DuckDB's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from headrace import Database, Query, connect
from headrace.workloads.nexmark import TABLES, Nexmark, generate
from headrace.workloads.nexmark.queries import SIDE_INPUT, nexmark_queries

pytestmark = pytest.mark.spark

BY_CLOCK = "q12"
SPEC = Nexmark(6_000, rate=100, disorder_us=1_000_000)


def answers(db: Database) -> Mapping[str, pa.Table]:
    for table, schema in TABLES.items():
        rows = generate(SPEC, table, 0, SPEC.events, schema.names)
        db.stream(table, rows, timestamp="ts", disorder="1 second")
    db.relation("side_input", SIDE_INPUT, key="key")
    made = {}
    for query in nexmark_queries():
        if query.name != BY_CLOCK:
            made[query.name] = db.execute(query.text)[-1]
    summary = db.run()
    assert summary.dead_letters == 0
    return {name: query.history() for name, query in made.items() if isinstance(query, Query)}


def test_all_queries_answer_as_in_one_process(spark: Any) -> None:
    with connect(runner="inline") as db:
        expected = answers(db)
    with connect(spark=spark, buckets=2, epoch_rows=3_000) as db:
        found = answers(db)
    assert len(found) == len(nexmark_queries()) - 1
    for name, history in expected.items():
        assert history.num_rows, name
        assert found[name] == history, name
