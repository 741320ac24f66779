"""Queries that read queries: FROM takes the name of one as the stream or the relation that it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.engine.catalog.texts import catalog_text
from headrace.errors import LanguageError

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
MEAN = "SELECT k, AVG(v) AS mean FROM s GROUP BY k"
LARGE = "SELECT k, v FROM s WHERE v > 1"
BIG = "CREATE QUERY big AS SELECT * FROM mean WHERE mean > 1"
WRITTEN = {
    "big": "SELECT * FROM {mean} WHERE mean > 1",
    "recent": "SELECT COUNT(*) AS n FROM {large} WINDOW(RANGE 3)",
    "both": "SELECT a.k, a.mean, b.v FROM {mean} a JOIN {large} b ON a.k = b.k",
    "inner": "SELECT k FROM {mean} WHERE k IN (SELECT k FROM {large} [RANGE 4])",
}


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as made:
        made.execute(f"{STREAM}; CREATE QUERY mean AS {MEAN}; CREATE QUERY large AS {LARGE}")
        yield made


def push(db: hr.Database, *instants: int) -> None:
    for ts in instants:
        db.push("s", {"k": ts % 2, "v": ts % 5, "ts": ts})


def test_a_query_is_read_as_a_derived_stream_of_its_text(db: hr.Database) -> None:
    db.execute(f"CREATE STREAM mean_s AS {MEAN}; CREATE STREAM large_s AS {LARGE}")
    pairs = [
        (
            db.query(text.format(mean="Mean", large="large")),
            db.query(text.format(mean="mean_s", large="large_s")),
        )
        for text in WRITTEN.values()
    ]
    db.start()
    push(db, *range(20))
    db.stop()
    for ours, theirs in pairs:
        assert ours.plan == theirs.plan
        assert ours.history() == theirs.history()
        assert ours.history().num_rows > 1


def test_a_name_means_the_query_that_has_it_now(db: hr.Database) -> None:
    for threshold in (1, 2, 3):
        db.query(f"SELECT k, mean FROM mean WHERE k > {threshold}", f"over_{threshold}")
    for name in ("over_1", "over_2", "over_3"):
        db.drop(name)
    db.drop("mean")
    db.query("SELECT k, MAX(v) AS mean FROM s [RANGE 2] GROUP BY k", "mean")
    assert "MAX" in str(db.execute("EXPLAIN SELECT k, mean FROM mean WHERE k > 4")[0])
    assert "MAX" in str(db.query("SELECT k, mean FROM mean WHERE k > 4").explain())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DROP QUERY mean", "the query mean cannot be dropped: it is read by the query big, the"),
        (
            "ALTER QUERY mean RENAME TO other",
            "mean cannot be renamed: the query mean is read by the",
        ),
        (f"CREATE OR REPLACE QUERY mean AS {LARGE}", "mean cannot be replaced: the query mean is"),
        ("CREATE STREAM mean AS SELECT k FROM s", "mean cannot be the name of a stream: the"),
        (STREAM.replace(" s ", " MEAN "), "MEAN cannot be the name of a stream"),
        ("CREATE OR REPLACE QUERY big AS SELECT k FROM big", "big would read itself"),
        ("SELECT * FROM meen", "there is no stream meen"),
    ],
)
def test_the_name_of_a_query_that_is_read_keeps_its_meaning(db: hr.Database, text: str, message: str) -> None:
    db.execute(f"{BIG}; CREATE STREAM top AS SELECT k FROM mean")
    with pytest.raises(LanguageError, match=message):
        db.execute(text)
    assert "read by the query big, the stream top" in str(db.execute("DESCRIBE mean")[0])


def test_a_stream_comes_before_a_query_of_its_name(db: hr.Database) -> None:
    db.query("SELECT COUNT(*) AS n FROM s", "s")
    assert db.query("SELECT * FROM s").schema.names == ("k", "v", "ts")
    db.execute("DROP QUERY s")


def test_all_that_reads_a_query_is_dropped_with_it(db: hr.Database) -> None:
    db.execute(f"{BIG}; CREATE STREAM top AS SELECT k FROM big")
    db.execute("CREATE QUERY topmost AS SELECT COUNT(*) AS n FROM top; DROP QUERY mean CASCADE")
    assert [query.name for query in db.queries] == ["large"]
    with pytest.raises(LanguageError, match="there is no stream top"):
        db.query("SELECT * FROM top")


def test_a_paused_query_is_read_all_the_same(db: hr.Database) -> None:
    db.start()
    db.execute(f"ALTER QUERY mean PAUSE; {BIG}")
    push(db, *range(10))
    assert db["big"].history().num_rows


def test_a_store_is_started_again_with_queries_that_read_others(tmp_path: Path) -> None:
    def opened() -> hr.Database:
        return hr.connect(runner="inline", storage=tmp_path)

    with opened() as db:
        db.execute(f"{STREAM}; CREATE QUERY first AS {LARGE}; CREATE QUERY mean AS {MEAN}")
        db.start()
        push(db, *range(10))
        # It reads one that was defined later.
        db.execute("CREATE OR REPLACE QUERY first AS SELECT k FROM mean WHERE mean > 1")
        push(db, *range(10, 20))
        before = db["first"].snapshot(18)
        text = catalog_text(db._core.definitions.records.known.values())
    with opened() as db:
        db.start()
        assert not db.differences
        push(db, *range(20, 30))
        assert db["first"].snapshot(18) == before
        assert db["first"].history().num_rows
    with hr.connect(runner="inline") as other:
        other.execute(text)
        assert [query.name for query in other.queries] == ["mean", "first"]


def test_what_is_read_by_what_a_text_names_stays_with_it(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{STREAM}; CREATE QUERY mean AS {MEAN}; CREATE QUERY large AS {LARGE}")
        db.execute(f"{BIG}; CREATE QUERY few AS SELECT k FROM large")
        db.start()
        push(db, 1, 2)
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{STREAM}; {BIG}")
        db.sync()
        assert sorted(query.name for query in db.queries) == ["big", "mean"]


def test_a_stream_that_has_yet_to_be_handed_over_is_not_taken_for_a_query_of_its_name(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"ts": [1, 2], "v": [10, 20]})
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.stream("t", table, timestamp="ts")
        db.execute("CREATE QUERY t AS SELECT v + 1 AS v FROM t; CREATE QUERY r AS SELECT v FROM t")
        db.run()
    with hr.connect(runner="inline", storage=tmp_path) as db:
        assert not db.queries
        db.stream("t", table, timestamp="ts")
        assert sorted(query.name for query in db.queries) == ["r", "t"]
        assert "+" not in str(db["r"].explain())
