"""Streams whose rows have lifetimes and take others back, as users have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.engine.connection import RunnerName
from headrace.engine.database import Database
from headrace.errors import LanguageError
from headrace.time import BEGINNING

Row = dict[str, int | str | None]
NOTHING = "it takes back a row that is not there"
ROWS = pa.table({"ts": [1, 2, 3, 5, 8, 9], "k": ["a", "b", "a", "b", "a", "a"], "v": [1, 2, 3, 4, 5, 6]})
COUNTS = "SELECT k, COUNT(*) AS n, MAX(v) AS most FROM s WINDOW(RANGE 4) GROUP BY k"
AS_CHANGES = "CHANGES BY change VALID FROM valid_from TO valid_to VERSION BY epoch"
COLUMNS = "k STRING, n BIGINT, most BIGINT, valid_from BIGINT, valid_to BIGINT, change BIGINT, epoch BIGINT"


PHYSICAL = "CREATE STREAM e (type STRING, vs BIGINT, ve BIGINT, vnewe BIGINT, p STRING) FROM push FORMAT CEDR"


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline") as database:
        yield database


def history(query: Any) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in query.history().to_pylist()]


def reasons(db: Database) -> list[str]:
    return [str(reason) for reason in db.dead_letters().column("reason").to_pylist()]


def counted() -> tuple[pa.Table, pa.Table]:
    """The changes and the history of a query that corrects what it has said, a row per epoch."""
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, k STRING, v BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query(COUNTS)
        db.start()
        for row in ROWS.to_pylist():
            db.push("s", row)
        db.stop()
        changes = query.changes()
        assert -1 in changes.column("change").to_pylist()
        return changes, query.history()


def test_what_changes_writes_is_read_from_a_file(db: Database, tmp_path: Path) -> None:
    changes, expected = counted()
    pq.write_table(changes, tmp_path / "changes.parquet")
    db.execute(f"CREATE STREAM c FROM parquet OPTIONS (path '{tmp_path / 'changes.parquet'}') {AS_CHANGES}")
    found = db.query("SELECT * FROM c")
    db.run()
    assert found.history().equals(expected)
    assert reasons(db) == []


def test_what_changes_writes_is_pushed(db: Database) -> None:
    changes, expected = counted()
    db.execute(f"CREATE STREAM c ({COLUMNS}) FROM push {AS_CHANGES}")
    found, total = db.query("SELECT * FROM c"), db.query("SELECT SUM(n) AS n FROM c")
    db.start()
    for row in changes.to_pylist():
        db.push("c", row)
    db.heartbeat("c", 9)
    db.stop()
    assert found.history().equals(expected)
    assert history(total) == [(1, 1, 2), (2, 2, 3), (3, 3, 6), (2, 6, 7), (1, 7, 8), (2, 8, 9)]
    assert reasons(db) == []


def test_what_history_writes_is_read(db: Database, tmp_path: Path) -> None:
    _, expected = counted()
    pq.write_table(expected, tmp_path / "history.parquet")
    db.execute(
        f"CREATE STREAM h FROM parquet OPTIONS (path '{tmp_path / 'history.parquet'}') "
        "VALID FROM valid_from TO valid_to"
    )
    found = db.query("SELECT k, n, most FROM h")
    seen = db.query("SELECT valid_from, valid_to FROM h")
    db.run()
    assert found.history().equals(expected)
    assert all(row[:2] == row[2:] for row in history(seen)), "the lifetime is a part of the row"


TRADES = """
CREATE STREAM trade (ts BIGINT, op STRING, price BIGINT) FROM push
  CHANGES BY op TIMESTAMP BY ts CORRECTIONS WITHIN 10;
"""


def test_a_window_over_events_that_are_taken_back(db: Database) -> None:
    db.execute(TRADES)
    highest = db.query("SELECT MAX(price) AS price FROM trade WINDOW(RANGE 3)")
    first = db.query("SELECT price FROM trade WINDOW(ROWS 1)")
    db.start()
    trades = [(1, "insert", 7), (2, "insert", 9), (4, "+I", 8), (2, "delete", 9), (2, "-", 5), (30, "+", 1)]
    for ts, op, price in trades:
        db.push("trade", {"ts": ts, "op": op, "price": price})
    db.stop()
    # The row of 5 was never there, so that nothing is taken back by it.
    assert history(highest) == [(7, 1, 4), (8, 4, 7)]
    assert history(first) == [(7, 1, 4), (8, 4, 20)]
    assert reasons(db) == [NOTHING]


def test_a_correction_that_takes_back_nothing_is_said_once_it_is_final(db: Database) -> None:
    """At every level; what it takes back may come after it, until then nothing is said."""
    db.execute(TRADES)
    for level in ("STRONG", "MIDDLE"):
        db.execute(f"CREATE QUERY {level} CONSISTENCY {level} AS SELECT price FROM trade")
    db.start()
    for ts, op, price in [(2, "-", 9), (3, "-", 5), (4, "+", 8), (2, "+", 9)]:
        db.push("trade", {"ts": ts, "op": op, "price": price})
    assert reasons(db) == []
    db.push("trade", {"ts": 30, "op": "+", "price": 1})
    db.push("trade", {"ts": 31, "op": "+", "price": 1})
    db.stop()
    letters = db.dead_letters().select(["query", "reason", "row"]).to_pylist()
    assert {letter.pop("query") for letter in letters} <= {"STRONG", "MIDDLE", "STRONG, MIDDLE"}
    assert letters
    assert all(one == {"reason": NOTHING, "row": '{"ts": 3, "price": 5}'} for one in letters)
    assert history(db["STRONG"]) == history(db["MIDDLE"]) == [(8, 4, 5)]
    assert f"1 row could not be used, the last in epoch 5: {NOTHING}" in str(db.why("STRONG"))


def test_rows_of_a_delta_table(db: Database) -> None:
    feed = pa.table(
        {
            "id": [1, 2, 1, 1, 2],
            "v": ["a", "b", "a", "c", "b"],
            "_change_type": ["insert", "insert", "update_preimage", "update_postimage", "delete"],
            "_commit_version": [0, 0, 1, 1, 2],
            "_commit_timestamp": [10, 10, 20, 20, 30],
        }
    )
    db.stream(
        "t", feed, valid=("_commit_timestamp", None), changes_by="_change_type", version="_commit_version"
    )
    found = db.query("SELECT * FROM t")
    db.run()
    assert history(found) == [(1, "a", 10, 20), (2, "b", 10, 30), (1, "c", 20, None)]


def test_a_stream_that_is_changed_by_key(db: Database) -> None:
    changes = pa.table({"op": ["c", "u", "d"], "id": [1, 1, 1], "v": [5, 6, None], "ts": [1, 4, 9]})
    db.stream("t", changes, timestamp="ts", changes_by="op", key="id")
    found, begun = db.query("SELECT id, v FROM t"), db.query("SELECT v FROM ISTREAM(t) WINDOW(RANGE 2)")
    db.run()
    assert history(found) == [(1, 5, 1, 4), (1, 6, 4, 9)]
    assert history(begun) == [(5, 1, 3), (6, 4, 6)]


def test_a_correction_that_comes_too_late_is_set_apart(db: Database) -> None:
    db.execute(TRADES)
    found = db.query("SELECT price FROM trade")
    db.start()
    for ts, op in [(1, "+"), (2, "+"), (12, "+"), (2, "-"), (13, "+"), (2, "-")]:
        db.push("trade", {"ts": ts, "op": op, "price": 7})
    assert db.status.stream("trade").heartbeat == 3
    db.execute("ALTER STREAM trade CORRECTIONS WITHIN 1")
    db.push("trade", {"ts": 14, "op": "+", "price": 7})
    db.stop()
    assert found.heartbeat == 13
    assert history(found) == [(7, 1, 2), (7, 12, 13)]
    assert len(reasons(db)) == 1
    assert reasons(db)[0].startswith("late")


def test_a_chain_of_corrections_in_any_order(db: Database) -> None:
    db.execute(
        "CREATE STREAM e (a BIGINT, b BIGINT, w BIGINT, x STRING) FROM push "
        "CHANGES BY w VALID FROM a TO b DISORDER 20"
    )
    found, count = db.query("SELECT x FROM e"), db.query("SELECT COUNT(*) AS n FROM e EMIT EMPTY")
    db.start()
    for a, b, w in [(4, 6, -1), (6, 8, -1), (0, 10, 1), (8, 10, -1), (12, None, -1), (12, 15, 2)]:
        db.push("e", {"a": a, "b": b, "w": w, "x": "p"})
    db.push("e", {"a": 40, "b": 41, "w": 1, "x": "q"})
    db.stop()
    assert history(found) == [("p", 0, 4), ("p", 12, 15)]
    assert history(count) == [(1, 0, 4), (0, 4, 12), (1, 12, 15), (0, 15, 20)]


def test_the_worked_example_of_finalize(db: Database) -> None:
    """CEDR, table 5, with a CTI once all is there; the printed one for [0, 8) counts an event at 8 too."""
    db.execute(f"{PHYSICAL} CORRECTIONS WITHIN 100")
    found, early = db.query("SELECT p FROM e"), db.query("SELECT p, vs FROM e", name="all")
    db.start()
    for type_, vs, ve, new, p in [
        ("Retract", 0, 10, 8, "P0"),
        ("Retract", 0, 6, 4, "P0"),
        ("Retract", 0, 8, 6, "P0"),
        ("Insert", 0, 10, None, "P0"),
        ("Insert", 1, 5, None, "P1"),
    ]:
        db.push("e", {"type": type_, "vs": vs, "ve": ve, "vnewe": new, "p": p})
    db.push("e", {"type": "CTI", "vs": None, "ve": 9, "vnewe": None, "p": None})
    assert found.heartbeat == 9
    db.stop()
    assert history(found) == [("P0", 0, 4), ("P1", 1, 5)]
    assert history(early) == [("P0", 0, 0, 4), ("P1", 1, 1, 5)]
    assert reasons(db) == []


def cedr(type_: str, vs: int | None, ve: int | None, new: int | None = None, p: str | None = None) -> Row:
    """A row of a physical stream."""
    return {"type": type_, "vs": vs, "ve": ve, "vnewe": new, "p": p}


def test_corrections_that_a_query_does_not_remember() -> None:
    """It answers as over a stream whose corrections come within so little."""
    said: list[object] = []
    for within, level in ((100, "CONSISTENCY (BLOCK 0, REMEMBER 3)"), (3, "CONSISTENCY (BLOCK 0)")):
        with hr.connect(runner="inline", buckets=2) as db:
            db.execute(f"{PHYSICAL} CORRECTIONS WITHIN {within}; CREATE QUERY q {level} AS SELECT p FROM e")
            db.start()
            for row in [
                cedr("Insert", 1, 9, p="P1"),
                cedr("Retract", 1, 9, 5, "P1"),
                cedr("Insert", 8, 20, p="P2"),
                cedr("Retract", 1, 5, 3, "P1"),
                cedr("Insert", 4, 10, p="P3"),
                cedr("Retract", 4, 10, 7, "P3"),
                cedr("Retract", 8, 20, 12, "P2"),
                cedr("CTI", None, 10),
                cedr("Retract", 8, 12, 10, "P2"),
            ]:
                db.push("e", row)
                said.append((db["q"].heartbeat, db["q"].horizon))
            db.stop()
            said += [db["q"].changes().to_pylist(), history(db["q"])]
            left = sum(change.departures for change in db["q"].subscribe())
            # The chain of the correction that is left out is broken, which the next one shows.
            assert left + len(reasons(db)) == 3
    half = len(said) // 2
    assert said[:half] == said[half:]


def test_ctis_alone_say_how_far_a_stream_is(db: Database) -> None:
    """CEDR, table 1: an event of any age above the last CTI is taken, and one below it is set apart."""
    db.execute(f"{PHYSICAL} HEARTBEATS FROM CTI")
    found = db.query("SELECT p FROM e")
    heartbeats = []
    db.start()
    for row in [
        cedr("Insert", 1, None, p="P1"),
        cedr("CTI", None, 1),
        cedr("Insert", 90, 95, p="P3"),
        cedr("Retract", 1, None, 10, "P1"),
        cedr("Retract", 1, 10, 5, "P1"),
        cedr("Insert", 4, 9, p="P2"),
        cedr("CTI", None, 10),
        cedr("Retract", 4, 9, 8, "P2"),
        cedr("CTI", None, 9),
    ]:
        db.push("e", row)
        heartbeats.append(found.heartbeat)
    db.stop()
    assert heartbeats == [BEGINNING, 1, 1, 1, 1, 1, 10, 10, 10]
    assert history(found) == [("P1", 1, 5), ("P2", 4, 9)]
    assert len(reasons(db)) == 1
    assert reasons(db)[0].startswith("late")


def test_ctis_go_on_after_a_restart(tmp_path: Path) -> None:
    rows = [
        cedr("Insert", 1, 5, p="a"),
        cedr("CTI", None, 4),
        cedr("Insert", 3, 5, p="b"),
        cedr("CTI", None, 9),
    ]
    for number, row in enumerate(rows):
        with hr.connect(runner="inline", storage=tmp_path) as db:
            db.execute(f"{PHYSICAL} HEARTBEATS FROM CTI; CREATE QUERY q AS SELECT p FROM e")
            db.start()
            for _ in range(2):
                db.push("e", row, producer="p", sequence=number)
            db.stop()
            heartbeat, letters = db["q"].heartbeat, reasons(db)
    assert heartbeat == 9
    assert len(letters) == 1
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(f"{PHYSICAL} HEARTBEATS FROM CTI; CREATE QUERY q AS SELECT p FROM e")
        db.start()
        db.stop()
        assert history(db["q"]) == [("a", 1, 5)]


COUNTED = (
    "CREATE STREAM e (type STRING, vs BIGINT, ve BIGINT, vnewe BIGINT, n BIGINT, p STRING) FROM push "
    "FORMAT CEDR COUNT BY n HEARTBEATS FROM CTI"
)


def test_an_external_cti_holds_once_all_that_it_counts_has_come(db: Database) -> None:
    """CEDR, table 5; the event with the new end 8 is not in [0, 8), so that four are."""
    db.execute(COUNTED)
    found = db.query("SELECT p FROM e", name="found")
    heartbeats = []
    db.start()
    for row in [
        cedr("Retract", 0, 10, 8, "P0"),
        cedr("Retract", 0, 6, 4, "P0"),
        cedr("Retract", 0, 8, 6, "P0"),
        cedr("Insert", 0, 10, p="P0"),
        {**cedr("ExternalCTI", None, 8), "n": 4},
        cedr("Insert", 1, 5, p="P1"),
        {**cedr("ExternalCTI", 12, 20), "n": 1},
        cedr("Insert", 12, 15, p="P2"),
        {**cedr("ExternalCTI", 8, 12), "n": 1},
    ]:
        db.push("e", {"n": None, **row})
        heartbeats.append(found.heartbeat)
    db.stop()
    assert heartbeats == [*[BEGINNING] * 5, 8, 8, 8, 20]
    assert history(found) == [("P0", 0, 4), ("P1", 1, 5), ("P2", 12, 15)]
    assert reasons(db) == []


def test_external_ctis_count_on_after_a_restart(tmp_path: Path) -> None:
    rows = [
        {**cedr("externalcti", None, 10), "n": 2},
        {**cedr("Insert", 1, 5, p="a"), "n": None},
        {**cedr("Insert", 3, 5, p="b"), "n": None},
        {**cedr("Insert", 4, 5, p="c"), "n": None},
    ]
    heartbeats = []
    for number, row in enumerate(rows):
        with hr.connect(runner="inline", storage=tmp_path) as db:
            db.execute(f"{COUNTED}; CREATE QUERY q AS SELECT p FROM e")
            db.start()
            for _ in range(2):
                db.push("e", row, producer="p", sequence=number)
            db.stop()
            heartbeats.append(db["q"].heartbeat)
            letters = reasons(db)
    assert heartbeats == [BEGINNING, BEGINNING, 10, 10]
    assert len(letters) == 1
    assert letters[0].startswith("late")


@pytest.mark.parametrize("runner", ["inline", pytest.param("spark", marks=pytest.mark.spark)])
def test_external_ctis_of_a_file_count_over_epochs(
    runner: RunnerName, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Nothing comes too late, however the rows are cut, although the counts come first."""
    spark = request.getfixturevalue("spark") if runner == "spark" else None
    counts = [f"ExternalCTI,{10 * begin if begin else ''},{10 * begin + 10},,10,\n" for begin in range(4)]
    inserts = [f"Insert,{39 - at},{45 - at},,,x\n" for at in range(40)]
    (tmp_path / "e.csv").write_text("".join(["type,vs,ve,vnewe,n,p\n", *reversed(counts), *inserts]))
    with hr.connect(runner, spark=spark, epoch_rows=5) as db:
        db.execute(COUNTED.replace("push", f"csv OPTIONS (path '{tmp_path / 'e.csv'}')"))
        found = db.query("SELECT COUNT(*) AS n FROM e")
        db.run()
        assert history(found)[:6] == [(n, n - 1, n) for n in range(1, 6)] + [(6, 5, 40)]
        assert reasons(db) == []


def test_external_ctis_that_cannot_be_used_are_set_apart(db: Database) -> None:
    db.execute(COUNTED)
    found = db.query("SELECT p FROM e")
    db.start()
    db.push("e", {**cedr("CTI", None, 5), "n": None})
    for start, end, count in [(0, 9, 1), (7, 7, 1), (7, None, 1), (7, 9, None), (7, 9, -1)]:
        db.push("e", {**cedr("ExternalCTI", start, end), "n": count})
    db.push("e", {**cedr("ExternalCTI", 0, 5), "n": 1})
    db.push("e", {**cedr("ExternalCTI", 5, 6), "n": 0})
    assert found.heartbeat == 6
    db.stop()
    assert [reason.split(" of ")[0] for reason in reasons(db)] == [
        "a part",
        "the interval vs TO ve",
        "the end ve",
        "the count n",
        "the count n",
    ]


def test_a_physical_stream_is_read(db: Database) -> None:
    """CEDR, table 2; a full retraction besides, and one that lengthens."""
    db.execute(PHYSICAL + " DISORDER 50")
    found = db.query("SELECT p FROM e", name="found")
    db.start()
    for type_, vs, ve, new, p in [
        ("Insert", 1, None, None, "P1"),
        ("Retract", 1, None, 10, "P1"),
        ("Retract", 1, 10, 5, "P1"),
        ("Insert", 4, 9, None, "P2"),
        ("Insert", 3, 9, None, "P3"),
        ("Retract", 3, 9, 3, "P3"),
        ("Retract", 4, 9, 12, "P2"),
        ("Retract", 4, 9, None, "P2"),
        ("Retract", 7, 9, 8, "P2"),
        ("Insert", 90, 91, None, "P4"),
    ]:
        db.push("e", {"type": type_, "vs": vs, "ve": ve, "vnewe": new, "p": p})
    db.stop()
    assert history(found) == [("P1", 1, 5), ("P2", 4, 9)]
    assert len(reasons(db)) == 3
    assert reasons(db)[2] == NOTHING, "P2 is not from 7 on"


def test_early_answers_over_corrections(db: Database) -> None:
    db.execute(TRADES)
    text = "AS SELECT MAX(price) AS price FROM trade WINDOW(RANGE 3)"
    db.execute(f"CREATE QUERY late {text}; CREATE QUERY early CONSISTENCY MIDDLE {text}")
    db.start()
    for ts, op, price in [(1, "+", 7), (2, "+", 9), (4, "+", 8), (2, "-", 9), (2, "-", 5), (30, "+", 1)]:
        db.push("trade", {"ts": ts, "op": op, "price": price})
    db.stop()
    assert history(db["late"]) == [(7, 1, 4), (8, 4, 7)]
    assert db["early"].history().equals(db["late"].history())


def test_rows_that_cannot_be_used_are_set_apart(db: Database) -> None:
    db.execute(
        "CREATE STREAM e (a BIGINT, b BIGINT, w BIGINT) FROM push CHANGES BY w VALID FROM a TO b DISORDER 9"
    )
    db.execute("CREATE STREAM t (ts BIGINT, op STRING) FROM push CHANGES BY op TIMESTAMP BY ts")
    found = db.query("SELECT COUNT(*) AS n FROM e"), db.query("SELECT ts FROM t")
    db.start()
    for a, b, w in [(1, 1, 1), (1, 2, 0), (1, 2, None), (1, 2**62, 1), (None, 3, 1), (1, 2, -(2**63))]:
        db.push("e", {"a": a, "b": b, "w": w})
    db.push("t", {"ts": 1, "op": "update"})
    db.push("e", {"a": 1, "b": None, "w": 1})
    db.push("e", {"a": 11, "b": 12, "w": 1})
    db.stop()
    assert history(found[0]) == [(1, 1, 2)]
    texts = "\n".join(reasons(db))
    for reason in ("the period a TO b is empty", "w is not a known change", "b is out of range", "a is NULL"):
        assert reason in texts
    assert texts.count("w is not a known change") == 3
    assert "op is not a known change" in texts
    assert "an update needs KEY" in texts


DECLARED = "CREATE STREAM s (a BIGINT, b BIGINT, c STRING, d DOUBLE, t TIMESTAMP) "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DECLARED + "FROM push VALID FROM a TO t", "a is BIGINT, and t TIMESTAMP"),
        (DECLARED + "FROM push VALID FROM a TO a", "a says when a row begins, and cannot be the end"),
        (DECLARED + "FROM push VALID FROM a TO e", "s has no column e"),
        (DECLARED + "FROM push FORMAT CEDR", "s has no column vs"),
        (DECLARED + "FROM push FORMAT avro", "there is no FORMAT"),
        (PHYSICAL.replace("type STRING", "type BIGINT"), "the column type is BIGINT"),
        (f"{PHYSICAL} COUNT BY p", "the column p is STRING"),
        (f"{PHYSICAL} COUNT BY vs", "vs says when a row begins, and cannot be the count"),
        (f"{COUNTED} LATENCY 5 SECONDS", "COUNT BY and LATENCY cannot be combined"),
        (f"{PHYSICAL} HEARTBEATS FROM ve", "only those of type CTI are heartbeats"),
        (DECLARED + "FROM push VALID FROM a TO b HEARTBEATS FROM CTI", "s has no column CTI"),
        (DECLARED + "FROM push VALID FROM a TO b VERSION BY c", "VERSION BY goes with CHANGES BY"),
        (DECLARED + "FROM push CHANGES BY d TIMESTAMP BY a", "the column d is DOUBLE"),
        (DECLARED + "FROM push CHANGES BY c TIMESTAMP BY ARRIVAL", "take nothing back"),
        (DECLARED + "FROM push TIMESTAMP BY a DISORDER 1 CORRECTIONS WITHIN 2", "contradict each other"),
        (DECLARED + "FROM push TIMESTAMP BY a CORRECTIONS 2", "WITHIN is missing"),
        (DECLARED + "KEY (b) FROM push TIMESTAMP BY a", "has no key"),
        (DECLARED + "KEY (b) FROM push CHANGES BY c VALID FROM a", "VALID FROM and KEY cannot be combined"),
        (DECLARED + "KEY (c) FROM push CHANGES BY c TIMESTAMP BY a", "cannot be the key or the version"),
        (DECLARED + "FROM push CHANGES BY b VALID FROM a VERSION BY b", "b is the change, and cannot be"),
        (
            DECLARED.replace("t TIMESTAMP", "WATERMARK FOR b AS b - 3") + "FROM push VALID FROM a",
            "the watermark is for b",
        ),
    ],
)
def test_what_does_not_fit_is_refused(db: Database, text: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as raised:
        db.execute(text)
    assert raised.value.position is not None
    assert raised.value.hint


def test_a_window_over_rows_with_lifetimes_is_refused(db: Database) -> None:
    db.execute(DECLARED + "FROM push VALID FROM a TO b")
    with pytest.raises(LanguageError, match="valid for as long as they say") as raised:
        db.query("SELECT a FROM s WINDOW(RANGE 3)")
    assert "ISTREAM(s)" in (raised.value.hint or "")


def test_the_form_is_shown_and_remembered(db: Database) -> None:
    db.execute(DECLARED + "FROM push CHANGES BY c VALID FROM a TO b")
    shown = str(db.execute("SHOW STREAMS")[0])
    assert "a to b, changed by c" in shown
    assert "d DOUBLE, t TIMESTAMP" in shown
    assert "c STRING" not in shown
