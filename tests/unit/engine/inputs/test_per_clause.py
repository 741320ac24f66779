"""What is said of a PER that does not fit its stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import LanguageError, StoreError
from headrace.time import ManualClock


@pytest.mark.parametrize(
    ("clauses", "message", "hint"),
    [
        ("PER b", "one b that sends nothing any more would hold", "PER b OF (...)"),
        ("PER c IDLE AFTER 5 SECONDS", "s has no column c", "(a BIGINT, b STRING, ts TIMESTAMP)"),
        ("PER ts IDLE AFTER 5 SECONDS", "and ts is a TIMESTAMP", "name the column"),
        ("PER b OF (1)", "1 is not a value of b, which is a STRING", "OF ('a', 'b')"),
        ("PER a OF ('x')", "'x' is not a value of a, which is a BIGINT", "OF (1, 2)"),
        ("PER a OF (99999999999999999999)", "99999999999999999999 is not a value of a", "OF (1, 2)"),
        ("PER b OF ('x') LATENCY 1 SECOND", "PER and LATENCY cannot be combined", "DISORDER 5 SECONDS"),
        ("PER b OF ('x') DISORDER 5 ROWS", "PER and DISORDER n ROWS cannot", "DISORDER 5 SECONDS"),
        ("PER b OF ('x') HEARTBEATS FROM ts", "PER and HEARTBEATS FROM cannot", "DISORDER 5 SECONDS"),
        ("PER b OF ('x') ESTIMATED", "PER and an estimated disorder cannot", "DISORDER 5 SECONDS"),
    ],
)
def test_what_does_not_fit_is_refused(clauses: str, message: str, hint: str) -> None:
    created = "CREATE STREAM s (a BIGINT, b STRING, ts TIMESTAMP) FROM push TIMESTAMP BY ts"
    with hr.connect(runner="inline") as db:
        with pytest.raises(LanguageError) as raised:
            db.execute(f"{created} {clauses}")
        assert message in raised.value.message
        assert hint in (raised.value.hint or "")
        assert raised.value.position is not None
        assert raised.value.position.column == len(created) + 6
        # The same where the stream exists already.
        db.execute(created)
        with pytest.raises(LanguageError):
            db.execute(f"ALTER STREAM s {clauses}")


@pytest.mark.parametrize("timestamp", ["ts", "PER"])
def test_clauses_come_in_any_order(timestamp: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (a BIGINT, {timestamp} BIGINT) FROM push TIMESTAMP BY {timestamp} "
            "PER a OF (-1, 2, 2) WAIT 1 MINUTE DISORDER 3 IDLE AFTER 5 SECONDS"
        )
        db.execute(
            f"CREATE STREAM r (a BIGINT, {timestamp} BIGINT) FROM push TIMESTAMP BY {timestamp} "
            "IDLE AFTER 5 SECONDS DISORDER 3 PER a WAIT 1 MINUTE"
        )


def test_the_values_of_a_relation_are_listed() -> None:
    rooms = pa.table({"id": ["roof", "cellar", None, "roof"], "a": [1, 2, 3, 4]})
    created = "CREATE STREAM {} (a BIGINT, id STRING, ts BIGINT) FROM push TIMESTAMP BY ts {}"
    with hr.connect(runner="inline") as db:
        db.relation("room", rooms)
        db.relation("keyed", rooms.slice(0, 2), key="a")
        db.execute(created.format("s", "PER id OF room"))
        db.execute(created.format("r", "PER a OF keyed"))
        db.execute(created.format("q", "PER a OF Room (A) WAIT 5 SECONDS IDLE AFTER 1 MINUTE"))
        db.execute(created.format("p", ""))
        db.execute("ALTER STREAM p PER id OF room (id)")
        listed = {name: timing.per.listed for name, timing in db.timings.items() if timing.per is not None}
    two = ("roof", "cellar")
    assert listed == {"s": two, "r": (1, 2), "q": (1, 2, 3, 4), "p": two}


def test_a_relation_that_lists_values_cannot_be_dropped() -> None:
    """A store could not be started again without the values that its streams wait for."""
    created = "CREATE STREAM {} (a BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {}"
    with hr.connect(runner="inline") as db:
        db.relation("room", pa.table({"a": [1, 2]}))
        db.execute(created.format("s", "PER a OF Room"))
        db.execute(created.format("p", ""))
        db.execute("ALTER STREAM p PER a OF room; ALTER STREAM p IDLE AFTER 5 SECONDS")
        assert "PER a OF room IDLE AFTER 5 SECONDS" in str(db.execute("SHOW CREATE STREAM p")[0])
        db.execute("CREATE QUERY q AS SELECT a FROM s; CREATE STREAM r AS SELECT a FROM p")
        with pytest.raises(LanguageError, match="used by the stream s, the stream p ") as raised:
            db.execute("DROP RELATION room")
        assert "DROP RELATION room CASCADE" in (raised.value.hint or "")
        db.execute("ALTER STREAM p PER a OF (1, 2); DROP RELATION room CASCADE")
        assert [*db.streams] == ["p", "r"]
        assert not db.queries
        db.execute("DROP STREAM p CASCADE")


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ("OF rom", "not of rom", "did you mean room"),
        ("OF s", "not of s", "CREATE RELATION first"),
        ("OF prices", "not of prices", "CREATE RELATION first"),
        ("OF room (name)", "room has no column name", "id STRING"),
        ("OF room", "room has no column a", "id STRING"),
        ("OF room (id)", "'roof' is not a value of a, which is a BIGINT", "OF (1, 2)"),
        ("OF many (n)", "many has 100,001 values of n", "IDLE AFTER"),
        ("OF room (id", "')' is missing after the column", ""),
        ("OF 5", "a list of values in parentheses, or a relation, after OF is missing", ""),
    ],
)
def test_a_relation_that_does_not_fit_is_refused(values: str, message: str, hint: str) -> None:
    with hr.connect(runner="inline") as db:
        db.relation("room", pa.table({"id": ["roof"]}))
        db.relation("prices", pa.table({"a": [1], "since": [2], "til": [5]}), valid=("since", "til"))
        db.relation("many", pa.table({"n": range(100_001)}))
        db.execute("CREATE STREAM s (a BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        with pytest.raises(LanguageError) as raised:
            db.execute(f"CREATE STREAM r (a BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts PER a {values}")
        assert message in raised.value.message
        assert hint in (raised.value.hint or "")
        assert raised.value.position is not None


def declared(db: hr.Database, folder: Path, sensors: list[str], source: str) -> None:
    """A stream whose devices are listed in a file that nothing else reads."""
    pq.write_table(pa.table({"id": sensors}), folder / "sensors.parquet")
    db.execute(f"""
        CREATE RELATION sensor KEY (id) FROM parquet OPTIONS (path '{folder}/sensors.parquet');
        CREATE STREAM s {source} TIMESTAMP BY ts PER id OF sensor;
        CREATE QUERY q AS SELECT id, ts FROM s;
    """)


def test_a_restart_over_a_file_refuses_another_list(tmp_path: Path) -> None:
    """Which rows are late follows from it, and must not depend on whether the run was stopped."""
    pq.write_table(pa.table({"id": ["a", "b"], "ts": [5, 3]}), tmp_path / "rows.parquet")
    source = f"FROM parquet OPTIONS (path '{tmp_path}/rows.parquet')"
    many = [f"sensor {number}" for number in range(10_000)]
    for sensors, message in ((many, ""), (many, ""), ([*many[:-1], "b"], "'sensor 9998', 'b'[)]")):
        with hr.connect(runner="inline", storage=tmp_path / "store") as db:
            declared(db, tmp_path, sensors, source)
            if message:
                with pytest.raises(StoreError, match=message) as raised:
                    db.run()
                assert "the text that made the store" in (raised.value.hint or "")
                assert len(raised.value.message) < 2000
            else:
                db.run()


def test_a_restart_of_a_live_stream_waits_for_the_devices_of_the_new_list(tmp_path: Path) -> None:
    """As where they are listed in the text: one that is new holds the stream where it is until it comes."""
    clock = ManualClock()
    for sensors, rows, reached in (
        (["a", "b"], [("a", 5), ("b", 3)], 3),
        (["a", "b", "c"], [("a", 9), ("b", 8)], 3),
        (["a", "b", "c"], [("c", 7)], 7),
    ):
        with hr.connect(runner="inline", storage=tmp_path / "store", clock=clock) as db:
            declared(db, tmp_path, sensors, "(id STRING, ts BIGINT) FROM push")
            db.start()
            db.push("s", [{"id": id, "ts": ts} for id, ts in rows])
            # What the devices have come to moves the stream with the next epoch.
            db.push("s", {"id": rows[0][0], "ts": rows[0][1]})
            assert (db.status.stream("s").heartbeat, db.stop().late) == (reached, 0)
