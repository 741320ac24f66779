"""Results of queries of one shape: written together, read apart."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace
from headrace.elements import Batch, decode, from_rows, to_rows
from headrace.expressions.tree import Literal
from headrace.runtime.store.segments import MemoryStore, SegmentWriter, read_part
from headrace.runtime.tasks import results
from headrace.runtime.tasks.results import GroupedResult
from headrace.schema import BIGINT, STRING, Field, Schema

SCHEMA = Schema((Field("n", BIGINT), Field("e", STRING)))
GROUPS = {7: Literal("a", STRING), 9: Literal("", STRING), 8: Literal("c", STRING), 10: Literal("d", STRING)}


def batch(*rows: tuple[int, str | None]) -> Batch:
    return from_rows(SCHEMA, [(row, place, place + 1, 1) for place, row in enumerate(rows)])


def parts(grouped: GroupedResult) -> dict[int, list[tuple[object, ...]]]:
    """What is written, by group."""
    store = MemoryStore()
    writer = SegmentWriter(store, "results/x")
    refs = list(grouped.write(writer))
    writer.close()
    found = {}
    for ref in refs:
        rows = decode(read_part(store, ref.part)).slice(ref.start, ref.rows)
        assert rows.payload.schema.names == ["n"]
        assert ref.latest == rows.ts.max()
        found[ref.node] = [payload for payload, *_ in to_rows(rows)]
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_each_group_gets_its_elements_in_their_order(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "PART_ROWS", limit)
    rows = batch((1, "c"), (2, "a"), (3, None), (4, "c"), (5, "x"), (6, ""), (7, "c"))
    grouped = GroupedResult(rows, GROUPS)
    assert grouped.counts == {7: 1, 9: 1, 8: 3}
    assert parts(grouped) == {7: [(2,)], 9: [(6,)], 8: [(1,), (4,), (7,)]}


def test_a_result_that_nobody_asks_for_is_not_written() -> None:
    grouped = GroupedResult(batch((1, "x"), (2, None)), GROUPS)
    assert grouped.counts == {}
    assert parts(grouped) == {}


def test_groups_may_have_no_columns_of_their_own() -> None:
    rows = from_rows(Schema((Field("e", STRING),)), [(("a",), 0, 1, 1), (("c",), 1, 2, 1), (("a",), 2, 3, 1)])
    store = MemoryStore()
    writer = SegmentWriter(store, "results/x")
    refs = list(GroupedResult(rows, GROUPS).write(writer))
    writer.close()
    sizes = {ref.node: len(decode(read_part(store, ref.part)).slice(ref.start, ref.rows)) for ref in refs}
    assert sizes == {7: 2, 8: 1}


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_not_kept_is_counted(keep: bool) -> None:
    """Rows that pass, of two streams in one task, and groups of one result, in two epochs."""
    rows = pa.table({"v": [0, 1, 1, 2, 2, 2, 9], "ts": range(7)})
    with headrace.connect(runner="inline", keep_results=keep, epoch_rows=10) as db:
        for name in ("s", "t"):
            db.stream(name, rows, timestamp="ts")
        db.query("SELECT v FROM s UNION ALL SELECT v FROM t", "all_rows")
        for number in range(3):
            db.query(f"SELECT COUNT(*) AS n FROM s [RANGE 1] WHERE v = {number}", f"of_{number}")
        db.query("SELECT v + 1 AS w FROM s WHERE v = 100", "nothing")
        emitted = db.run().emitted
    assert emitted == {"all_rows": 14, "of_0": 1, "of_1": 2, "of_2": 3, "nothing": 0}
