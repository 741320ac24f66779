"""Columns that are added to streams while queries run: as if the streams had always had them."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, example, given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.catalog.texts import catalog_text
from headrace.engine.database import Database
from headrace.runtime.journal.inspect import contents
from how_many import examples
from toxic_peers import toxic_site
from waiting import wait_for

END: Final = 10_000
NARROW: Final = "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT){key} FROM push {time} {kept}"
WIDE: Final = (
    "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT, c STRING, d BIGINT){key} FROM push {time} {kept}"
)
ADDING: Final = "ALTER STREAM s ADD COLUMN c STRING, ADD COLUMN d BIGINT"
BEFORE: Final = {
    "counted": "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 50] GROUP BY k",
    "joined": "SELECT a.k, a.v AS one, b.v AS b FROM s [RANGE 50] AS a, s [RANGE 50] AS b WHERE a.k = b.k",
    "whole": "SELECT ts, k, v FROM s [RANGE 50]",
}
AFTER: Final = {
    "sums": "SELECT c, SUM(d) AS d, COUNT(*) AS n FROM s [RANGE 50] GROUP BY c",
    "filled": "SELECT k, COALESCE(c, 'none') AS c, d FROM s [RANGE 50]",
    "both": "SELECT * FROM s [RANGE 50]",
}
KINDS: Final = {
    "events": ("", "TIMESTAMP BY ts DISORDER 3"),
    "changes": (" KEY (k)", "CHANGES BY op TIMESTAMP BY ts DISORDER 3"),
}

Rows = list[dict[str, Any]]


def made(text: str, kind: str) -> str:
    key, time = KINDS[kind]
    columns = text.replace("ts BIGINT, ", "ts BIGINT, op STRING, ") if kind == "changes" else text
    return columns.format(key=key, time=time, kept="RETAIN ALL DEAD LETTERS KEEP ALL")


def over(query: str, kind: str) -> str:
    """The query over rows of the kind: changes say themselves how long rows are valid."""
    return query.replace(" [RANGE 50]", "") if kind == "changes" else query


def content(db: Database, name: str) -> list[str]:
    """The answer at every instant, in any order of its rows."""
    rows = db[name].history().to_pylist()
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


rows_before = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 2), st.integers(0, 3)), max_size=8)
rows_after = st.lists(
    st.tuples(
        *(st.integers(0, 60), st.integers(1, 2), st.integers(0, 3)),
        *(st.sampled_from(("x", "y", None)), st.none() | st.integers(0, 3)),
    ),
    max_size=8,
)


def as_rows(rows: list[tuple[Any, ...]], kind: str) -> Rows:
    names = ("ts", "k", "v", "c", "d")
    found = [dict(zip(names, row, strict=False)) for row in rows]
    return [{"op": "u" if row["v"] else "d", **row} for row in found] if kind == "changes" else found


@examples(8, 40, phases=[Phase.explicit, Phase.generate])
@given(rows_before, rows_after, st.sampled_from(sorted(KINDS)), st.integers(1, 3), st.integers(0, 3))
@example([(1, 1, 1), (30, 2, 2), (2, 1, 3)], [(31, 1, 1, "x", 1), (3, 1, 1, "y", 2)], "events", 1, 1)
@example([(1, 1, 1), (2, 2, 2)], [(3, 1, 3, "x", 1), (4, 2, 0, None, None)], "changes", 1, 2)
def test_columns_are_added_while_queries_run(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]], kind: str, cut: int, restart: int
) -> None:
    """Old rows have NULL, late ones and those that are kept among them; restarts change nothing."""
    wide = hr.connect(runner="inline")
    wide.execute(made(WIDE, kind))
    for name, query in BEFORE.items():
        wide.execute(f"CREATE QUERY {name} AS {over(query, kind)}")
    wide.start()
    with tempfile.TemporaryDirectory() as store:
        db = hr.connect(runner="inline", storage=store)
        db.execute(made(NARROW, kind))
        for name, query in BEFORE.items():
            db.execute(f"CREATE QUERY {name} AS {over(query, kind)}")
        db.start()
        step = 0
        for rows in (as_rows(before, kind), as_rows(after, kind)):
            for place in range(0, len(rows), cut):
                for one in (wide, db):
                    one.push("s", rows[place : place + cut])
                step += 1
                if step == restart:
                    db.close()
                    db = hr.connect(runner="inline", storage=store)
                    db.start()
            if "sums" not in {query.name for query in db.queries}:
                db.execute(ADDING)
                for name, query in AFTER.items():
                    for one in (wide, db):
                        one.execute(f"CREATE QUERY {name} FROM BEGINNING AS {over(query, kind)}")
        for one in (wide, db):
            one.heartbeat("s", END)
        for name in (*BEFORE, *AFTER):
            assert content(db, name) == content(wide, name), name
        assert db.rows("s").to_pylist() == wide.rows("s").to_pylist()
        assert reasons(db) == reasons(wide)
        db.close()
    wide.close()


def reasons(db: Database) -> list[tuple[Any, ...]]:
    kept = db.dead_letters("s")
    return [tuple(row[name] for name in ("ts", "k", "v", "c", "d", "reason")) for row in kept.to_pylist()]


def pushed(db: Database, *rows: dict[str, Any]) -> None:
    db.push("s", list(rows))


def test_rows_that_are_kept_and_dead_letters_come_together_in_one_file(tmp_path: Path) -> None:
    """Files of both widths become one, and letters of both are taken once more."""
    db = hr.connect(runner="inline", storage=tmp_path)
    db.execute(made(NARROW, "events"))
    db.execute("CREATE QUERY q AS SELECT k, SUM(v) AS n FROM s [RANGE UNBOUNDED] GROUP BY k")
    db.start()
    late: dict[str, Any] = {"ts": 1, "k": 2, "v": 1}
    for number in range(20):
        pushed(db, {"ts": 10 * number + 10, "k": 1, "v": number}, late)
    db.execute(ADDING)
    late["c"] = "y"
    for number in range(20, 40):
        pushed(db, {"ts": 10 * number + 10, "k": 1, "v": number, "c": "x"}, late)
    assert [row["c"] for row in db.rows("s").to_pylist()] == [None] * 20 + ["x"] * 20
    assert [row["c"] for row in db.dead_letters("s").to_pylist()] == [None] * 20 + ["y"] * 20
    db.execute("CREATE QUERY lost AS SELECT c FROM DEAD LETTERS OF s [RANGE UNBOUNDED]")
    db.execute("REPLAY DEAD LETTERS OF s WHERE c = 'y'")
    pushed(db, {"ts": 500, "k": 1, "v": 1}, late)
    db.close()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_folder_that_is_followed(form: str, tmp_path: Path) -> None:
    """Files of both kinds, read on where the stream was; a restart reads none of them again."""
    folder, store = tmp_path / "in", tmp_path / "store"
    folder.mkdir()

    def write(name: str, rows: Rows) -> None:
        path = tmp_path / "part"
        match form:
            case "csv":
                lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
                path.write_text("\n".join(lines) + "\n")
            case "json":
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            case _:
                pq.write_table(pa.Table.from_pylist(rows), path)
        os.rename(path, folder / f"{name}.{form}")

    db = hr.connect(runner="inline", storage=store)
    db.execute(
        f"CREATE STREAM s (ts BIGINT, v BIGINT) FROM {form} OPTIONS (path '{folder}', follow true, "
        "ready 'renamed', poll '5 ms') TIMESTAMP BY ts; CREATE QUERY q AS SELECT * FROM s [RANGE UNBOUNDED]"
    )
    db.start()
    write("1", [{"ts": 1, "v": 1}])
    write("2", [{"ts": 2, "v": 2, "c": "seen too early"}])
    wait_for(lambda: db.status.streams[0].rows == 2)
    db.execute("ALTER STREAM s ADD COLUMN c STRING; CREATE QUERY r AS SELECT v, c FROM s [RANGE UNBOUNDED]")
    write("3", [{"ts": 3, "v": 3, "c": "x"}])
    wait_for(lambda: db.status.streams[0].rows == 3)
    db.close()
    db = hr.connect(runner="inline", storage=store)
    db.start()
    write("4", [{"ts": 4, "v": 4, "c": "y"}, {"ts": 5, "v": 5, "c": "z"}])
    wait_for(lambda: db.status.streams[0].rows == 5)
    assert db["r"].snapshot(4).to_pylist() == [{"v": 3, "c": "x"}, {"v": 4, "c": "y"}]
    assert [row["v"] for row in db["q"].snapshot(4).to_pylist()] == [1, 2, 3, 4]
    assert db["q"].schema.names == ("ts", "v")
    db.close()


def test_changes_of_debezium_with_a_further_column(tmp_path: Path) -> None:
    """A table got a column: from then on the rows have it, and keep it."""
    log = tmp_path / "log"
    log.mkdir()

    def write(number: int, key: int, after: dict[str, Any]) -> None:
        record = {"before": None, "after": {"id": key, **after}, "source": {"ts_ms": number}, "op": "u"}
        (tmp_path / "part").write_text(json.dumps(record) + "\n")
        os.rename(tmp_path / "part", log / f"{number}.json")

    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (id BIGINT, v BIGINT) KEY (id) FROM json OPTIONS (path '{log}', follow true, "
            "ready 'renamed', poll '5 ms') FORMAT DEBEZIUM; CREATE QUERY q AS SELECT id, v FROM s"
        )
        db.start()
        write(1, 1, {"v": 1})
        write(2, 2, {"v": 2})
        wait_for(lambda: db.status.streams[0].rows == 2)
        db.execute("ALTER STREAM s ADD COLUMN c STRING")
        db.execute("CREATE QUERY r AS SELECT id, c FROM s")
        write(3, 1, {"v": 3, "c": "x"})
        write(4, 3, {"v": 4, "c": "y"})
        wait_for(lambda: db.status.streams[0].rows == 4)
        assert db["q"].latest().to_pylist() == [{"id": 1, "v": 3}, {"id": 2, "v": 2}]
        db.stop()


def test_an_address_that_is_asked_again() -> None:
    """Its answers have the column from then on."""
    with toxic_site(b'[{"ts": 1, "v": 1}]') as site, hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (ts BIGINT, v BIGINT) FROM http OPTIONS (url '{site.url}', poll '5 ms') "
            "TIMESTAMP BY ts; CREATE QUERY q AS SELECT * FROM s [RANGE UNBOUNDED]"
        )
        db.start()
        wait_for(lambda: db.status.streams[0].rows == 1)
        db.execute(
            "ALTER STREAM s ADD COLUMN c STRING; CREATE QUERY r AS SELECT v, c FROM s [RANGE UNBOUNDED]"
        )
        for ts in (2, 3):
            site.body = json.dumps([{"ts": ts, "v": ts, "c": "x"}]).encode()
            wait_for(lambda rows=ts: db.status.streams[0].rows == rows)  # type: ignore[misc]
        assert db["r"].latest().to_pylist() == [{"v": 2, "c": "x"}]
        assert db["q"].latest().to_pylist() == [{"ts": 1, "v": 1}, {"ts": 2, "v": 2}]
        db.stop()


TEXT: Final = """
CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM derived AS SELECT * FROM s [RANGE UNBOUNDED] WHERE v > 0;
CREATE QUERY q AS SELECT * FROM s [RANGE UNBOUNDED];
CREATE QUERY p AS SELECT v FROM s [RANGE UNBOUNDED];
CREATE QUERY d AS SELECT * FROM derived;
"""
LATER: Final = "ALTER STREAM s ADD COLUMN c STRING; CREATE QUERY r AS SELECT * FROM s [RANGE UNBOUNDED];"


def test_a_store_knows_what_stars_mean(tmp_path: Path) -> None:
    """Without a text, with that which made it, and with one in which the stream has all its columns."""
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(TEXT)
        db.start()
        pushed(db, {"ts": 1, "v": 1})
        db.execute(LATER)
        pushed(db, {"ts": 2, "v": 2, "c": "x"})
        db.execute("CREATE OR REPLACE QUERY p AS SELECT * FROM s [RANGE UNBOUNDED] WHERE v > 1")
        db.stop()
    exported = catalog_text(contents(tmp_path).description.catalog or ())
    assert exported.count("older than c of s, which its * leaves out") == 2
    assert exported.count("the query p is older") == 0
    first = "CREATE QUERY p AS SELECT v FROM s [RANGE UNBOUNDED];"
    whole = TEXT.replace("v BIGINT)", "v BIGINT, c STRING)")
    changed = first.replace(" v FROM", " * FROM").replace(";", " WHERE v > 1;")
    texts = (
        "",
        TEXT.replace(first, "") + LATER + changed,
        whole.replace(first, changed) + LATER.partition(";")[2],
    )
    for number, text in enumerate(texts):
        with hr.connect(runner="inline", storage=tmp_path) as db:
            db.execute(text)
            db.start()
            pushed(db, {"ts": 10 + number, "v": 3, "c": "y"})
            assert db["q"].schema.names == ("ts", "v")
            assert db["r"].schema.names == ("ts", "v", "c")
            assert db["p"].schema.names == ("ts", "v", "c")
            assert len(db["q"].latest()) == 2 + number
            db.stop()
    other = TEXT.replace("v BIGINT)", "v BIGINT, other STRING)")
    with (
        hr.connect(runner="inline", storage=tmp_path) as db,
        pytest.raises(hr.UserError, match="another stream s"),
    ):
        db.execute(other)


def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def test_a_query_that_waits_for_its_function_means_the_same_star(tmp_path: Path) -> None:
    """It is made when the stream has the column already."""

    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.function("doubled", twice, arguments=["BIGINT"], returns="BIGINT", version="1")
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY q AS SELECT *, doubled(v) AS d FROM s [RANGE UNBOUNDED]")
        db.start()
        pushed(db, {"ts": 1, "v": 1})
        db.execute("ALTER STREAM s ADD COLUMN c STRING")
        pushed(db, {"ts": 2, "v": 1, "c": "x"})
        db.stop()
    with hr.connect(runner="inline", storage=tmp_path) as db:
        assert not db.queries
        db.function("doubled", twice, arguments=["BIGINT"], returns="BIGINT", version="1")
        db.start()
        pushed(db, {"ts": 3, "v": 1, "c": "x"})
        assert db["q"].schema.names == ("ts", "v", "d")
        assert len(db["q"].latest()) == 2
        db.stop()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER STREAM s ADD COLUMN V STRING", "1:14: s has a column V already"),
        ("ALTER STREAM s ADD COLUMN reason STRING", "1:14: reason is a column of the dead letters of s"),
        ("ALTER STREAM s ADD COLUMN c AS (v + 1)", "1:27: a column that is added comes with the rows"),
        ("ALTER STREAM s ADD COLUMN c STRING, ADD C BIGINT", "1:41: the column C is named twice"),
        ("ALTER STREAM s ADD COLUMN c STRING NOT NULL", "1:36: columns have no constraints"),
        ("ALTER STREAM s DROP COLUMN v", "1:16: columns of a stream stay as they are"),
        ("ALTER STREAM t ADD COLUMN c STRING", "1:14: the columns of t are those of what it is read from"),
        ("ALTER STREAM d ADD COLUMN c STRING", "1:14: d is defined by a query"),
    ],
)
def test_what_cannot_be_added(statement: str, message: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE STREAM d AS SELECT v FROM s [RANGE UNBOUNDED]")
        db.stream("t", pa.table({"ts": [1]}), timestamp="ts")
        with pytest.raises(hr.UserError) as refused:
            db.execute(statement)
        assert str(refused.value).startswith(message)
