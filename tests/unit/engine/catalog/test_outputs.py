"""Output policies: what no rows in order take back, the open segment as well, and all that follows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import Batch
from headrace.errors import LanguageError, UserError
from headrace.history import clip, equivalent
from headrace.time import INFINITY
from how_many import examples

STREAM = "CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER {};"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k"
LEVELS = ("STRONG", "MIDDLE", "(BLOCK 2)", "(BLOCK 3 ROWS)", "(OUTPUT MAXIMAL)")
QUERIES = (
    COUNTS,
    "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k)",
    "SELECT a.k FROM s [RANGE 5] a JOIN s [RANGE 3] b ON a.k = b.k",
)
ROWS = st.tuples(st.sampled_from("ab"), st.integers(0, 6))


def batch_of(table: pa.Table) -> Batch:
    columns = table.combine_chunks().to_batches()
    rows = columns[0] if columns else pa.RecordBatch.from_pylist([], schema=table.schema)
    ts, te = (rows.column(name).fill_null(INFINITY).to_numpy() for name in ("valid_from", "valid_to"))
    payload = rows.drop_columns(["epoch", "valid_from", "valid_to", "change"])
    return Batch(payload, ts, te, rows["change"].to_numpy())


def test_what_is_final_ends_before_the_newest_row() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM.format(10) + f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
        db.start()
        for ts in (20, 22, 30):
            db.push("s", [{"k": "a", "ts": ts}])
        final = [tuple(row.values()) for row in db["q"].changes(output="final").to_pylist()]
        assert final == [(2, "a", 1, 20, 22, 1), (3, "a", 2, 22, 24, 1), (3, "a", 1, 24, 26, 1)]
        with db["q"].subscribe(output="final") as changes, db["q"].subscribe() as opened:
            given = [next(changes) for _ in range(3)]
            assert pa.concat_tables([one.rows for one in given]).equals(db["q"].changes(output="final"))
            assert [one.watermark for one in given] == [20, 22, 30]
            status = db.status
            assert status.query("q").watermark == status.to_dict()["queries"][0]["watermark"] == 30
            # The row of 20 ends at 24, unless another comes.
            assert [next(opened).watermark for _ in range(3)] == [24, 24, 34]
        with db["q"].subscribe(3, output="final") as changes:
            assert next(changes).rows.equals(given[2].rows)


def test_a_late_row_corrects_what_was_final_for_rows_in_order() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM.format(10) + f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
        db.start()
        for ts in (20, 30, 21):
            db.push("s", [{"k": "a", "ts": ts}])
        final = [tuple(row.values()) for row in db["q"].changes(output="final").to_pylist()]
        assert sorted(final) == [
            *[(2, "a", 1, 20, 24, 1), (3, "a", 1, 21, 24, -1), (3, "a", 1, 24, 25, 1), (3, "a", 2, 21, 24, 1)]
        ]


def test_all_that_follows_is_said_at_once() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM.format(10) + f"CREATE QUERY q CONSISTENCY (OUTPUT MAXIMAL) AS {COUNTS}")
        db.start()
        db.push("s", [{"k": "a", "ts": 20}, {"k": "a", "ts": 22}])
        said = [tuple(row.values())[1:] for row in db["q"].changes().to_pylist()]
        assert said == [("a", 1, 20, 22, 1), ("a", 2, 22, 24, 1), ("a", 1, 24, 26, 1)]
        assert db["q"].horizon == INFINITY
        assert db.status.query("q").watermark == db["q"].heartbeat == 12
        assert db["q"].snapshot(25).to_pylist() == [{"k": "a", "n": 1}]
        assert db["q"].snapshot(25).schema.metadata == {b"final": b"false"}
        # Of it only what is below the heartbeat cannot be taken back.
        assert not len(db["q"].changes(output="final"))


@examples(4, 12)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 6)), max_size=3), min_size=2, max_size=5
    ),
    st.booleans(),
)
def test_each_policy_keeps_its_promise(epochs: list[list[tuple[str, int]]], in_order: bool) -> None:
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute(STREAM.format(20))
        names = [(text, level) for text in QUERIES for level in LEVELS]
        for place, (text, level) in enumerate(names):
            db.execute(f"CREATE QUERY q{place} CONSISTENCY {level} AS {text}")
        db.start()
        newest = 0
        for place, rows in enumerate(epochs):
            times = [(k, 6 * place + ts) for k, ts in rows]
            for k, ts in sorted(times, key=lambda row: row[1]) if in_order else times:
                newest = max(newest, ts) if in_order else ts
                db.push("s", [{"k": k, "ts": newest}])
        for place, (_, level) in enumerate(names):
            query = db[f"q{place}"]
            final, opened = (batch_of(query.changes(output=output)) for output in ("final", "open"))
            if in_order:
                assert (final.w > 0).all(), level
            cut = max(query.heartbeat, -1 if query.horizon == INFINITY else query.horizon - 1)
            assert equivalent(final, clip(opened, cut))


def test_from_an_epoch_of_which_older_ones_are_gone(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path, retain_epochs=2) as db:
        db.execute(STREAM.format(0) + f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
        db.start()
        for ts in range(20, 40):
            db.push("s", [{"k": "a", "ts": ts}])
        final = db["q"].changes(output="final").to_pylist()
        assert all(row["change"] == 1 for row in final)
        assert final[-1] | {"epoch": 0} == {
            "epoch": 0,
            "k": "a",
            "n": 4,
            "valid_from": 38,
            "valid_to": 39,
            "change": 1,
        }


def test_other_outputs_are_refused() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM.format(10) + f"CREATE QUERY q AS {COUNTS}")
        db.start()
        with pytest.raises(UserError, match="no output maximal"):
            db["q"].changes(output="maximal")
        with pytest.raises(LanguageError, match="OUTPUT is MAXIMAL"):
            db.execute("ALTER QUERY q SET CONSISTENCY (OUTPUT FINAL)")
