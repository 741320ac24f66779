"""A durable store knows what is defined in it, and a database goes on without the texts."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.access.policy import Policy
from headrace.engine.catalog.texts import definition_of
from headrace.errors import LanguageError, UserError
from headrace.language.defaults import Defaults
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.streams import CreateStream

STREAM = (
    "CREATE STREAM reading (sensor STRING, celsius BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2"
)
HOT = "CREATE STREAM hot AS SELECT * FROM reading WHERE celsius > 20"
WARM = "CREATE QUERY warm AS SELECT MAX(celsius) AS top FROM reading [RANGE 10]"
TEXT = f"{STREAM};\n{HOT};\n{WARM};\nSELECT COUNT(*) AS n FROM hot [RANGE 5];\n"


def connected(folder: Path, **options: object) -> hr.Database:
    return hr.connect(runner="inline", storage=folder / "store", **options)  # type: ignore[arg-type]


def push(db: hr.Database, *rows: tuple[int, int]) -> None:
    db.push("reading", [{"sensor": "a", "celsius": celsius, "ts": ts} for ts, celsius in rows])


def tops(db: hr.Database) -> list[tuple[int, ...]]:
    return [tuple(row.values()) for row in db["warm"].history().to_pylist()]


def begun(folder: Path, text: str = TEXT) -> None:
    """A store with some epochs."""
    with connected(folder) as db:
        db.execute(text)
        db.start()
        push(db, (1, 25), (9, 23))
        db.stop()


def test_a_store_is_started_again_without_the_text(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        assert [query.name for query in db.queries] == ["warm", "query_2"]
        db.start()
        assert not db.differences
        push(db, (20, 21))
        assert tops(db) == [(25, 1, 11), (23, 11, 18)]
        assert db["query_2"].history().to_pylist()[0] == {"n": 1, "valid_from": 1, "valid_to": 6}
        epoch = db.status.epoch
        db.stop()
    with connected(tmp_path) as db:
        db.execute(TEXT)
        db.start()
        assert db.status.epoch == epoch, "the same text changes nothing"


def test_every_kind_of_definition_is_there_again_without_the_text(tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").write_text("id,room\na,hall\nb,roof\n")
    text = f"""
        {STREAM};
        CREATE STREAM other (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
        CREATE RELATION rooms KEY (id) FROM csv OPTIONS (path '{tmp_path / "rooms.csv"}');
        {HOT};
        CREATE QUERY known AS SELECT h.celsius, r.room FROM hot AS h JOIN rooms AS r ON r.id = h.sensor;
        CREATE SINK board FOR known TO json OPTIONS (path '{tmp_path / "out"}');
        CREATE SKEW FROM reading TO other (1 SECOND, 5);
        SET retain_epochs = 7;
        COMMENT ON RELATION rooms IS 'where they are';
    """
    with connected(tmp_path) as db:
        db.execute(text)
        db.start()
        push(db, (1, 25))
        db.stop()
        before = [str(db.execute(f"SHOW {what}")[0]) for what in ("CREATE RELATION rooms", "SKEWS", "SINKS")]
    with connected(tmp_path) as db:
        assert "where they are" in str(db.execute("DESCRIBE rooms")[0])
        assert "retain_epochs     7 " in str(db.execute("SHOW SETTINGS")[0])
        db.start()
        push(db, (9, 30), (20, 1))
        db.stop()
        after = [str(db.execute(f"SHOW {what}")[0]) for what in ("CREATE RELATION rooms", "SKEWS", "SINKS")]
        assert after[:2] == before[:2]
        assert "board" in after[2]
        assert db["known"].stream().column("room").to_pylist() == ["hall", "hall"]
    lines = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.jsonl"))
    assert lines.count("hall") == 2


def test_what_is_defined_while_it_runs_is_there_again(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        db.start()
        db.execute("CREATE STREAM other (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("ALTER STREAM reading DISORDER 7; CREATE SKEW FROM reading TO other (1 SECOND, 5)")
        db.execute("COMMENT ON QUERY warm IS 'the highest'; COMMENT ON COLUMN warm.TOP IS 'in degrees'")
        db.execute("COMMENT ON STREAM other IS 'nobody reads it'; DROP QUERY query_2; DROP STREAM hot")
    with connected(tmp_path) as db:
        shown = "\n".join(map(str, db.execute("SHOW CREATE STREAM reading; DESCRIBE warm; DESCRIBE other")))
        assert "DISORDER 7;" in shown
        assert "QUERY warm: the highest" in shown
        assert "top     BIGINT  in degrees" in shown
        assert "STREAM other: nobody reads it" in shown
        assert "reading" in str(db.execute("SHOW SKEWS")[0])
        assert {*db.streams} == {"reading", "other"}
        assert [query.name for query in db.queries] == ["warm"]


def test_a_text_adds_what_is_missing_and_drops_nothing(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        (added,) = db.execute(
            f"{STREAM}; CREATE QUERY low AS SELECT MIN(celsius) AS v FROM reading [RANGE 10]"
        )
        db.start()
        assert db.differences.added == ("low",)
        push(db, (20, 5), (40, 5))
        assert added.history().num_rows == 1
        assert [query.name for query in db.queries] == ["warm", "query_2", "low"]
        db.stop()
    with connected(tmp_path) as db:
        db.execute(f"{STREAM}; {WARM}")
        db.sync()
        db.start()
        assert db.differences.dropped == ("low", "query_2")
        assert {*db.streams} == {"reading"}
        db.stop()
    with connected(tmp_path) as db:
        assert [query.name for query in db.queries] == ["warm"]


@pytest.mark.parametrize(
    ("text", "place", "theirs", "ours"),
    [
        (STREAM.replace("DISORDER 2", "DISORDER 3"), "1:1", "DISORDER 2;", "DISORDER 3"),
        (f"{STREAM};\n{HOT.replace('20', '30')}", "2:1", "celsius > 20;", "celsius > 30"),
        (f"{STREAM};\n  {WARM.replace('10', '11')}", "2:3", r"\[RANGE 10\];", r"\[RANGE 11\]"),
        (WARM.replace("QUERY warm", "QUERY warm CONSISTENCY MIDDLE"), "1:1", "warm AS", "MIDDLE AS"),
    ],
)
def test_a_text_that_differs_is_refused_with_both(
    tmp_path: Path, text: str, place: str, theirs: str, ours: str
) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        with pytest.raises(
            LanguageError, match=f"^{place}: the store has another .*{theirs}.* here it is .*{ours}"
        ):
            db.execute(text)
        db.execute("DROP QUERY warm")
        with pytest.raises(LanguageError, match="it is used by the stream hot"):
            db.execute("DROP STREAM reading")


def test_the_same_said_in_other_words_is_the_same(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        db.execute("""
            -- the same
            CREATE STREAM reading (sensor VARCHAR, celsius INT, ts LONG,
                                   WATERMARK FOR ts AS ts - 2) FROM push;
            CREATE QUERY warm AS select max(celsius) as top from reading WINDOW(RANGE 10)
        """)
        db.start()
        assert not db.differences


def test_what_sql_cannot_say_is_asked_for_again(tmp_path: Path) -> None:
    table = pa.table({"id": ["a"], "room": ["hall"]})
    with connected(tmp_path) as db:
        db.execute(TEXT)
        db.function("twice", lambda v: pa.compute.multiply(v, 2), arguments=["BIGINT"], returns="BIGINT")
        db.relation("sensor", table, key="id")
        db.query("SELECT twice(celsius) AS v FROM reading", name="doubled")
        db.query("SELECT r.celsius, s.room FROM reading r JOIN sensor s ON s.id = r.sensor", name="rooms")
        db.start()
        push(db, (1, 25), (9, 23))
        db.stop()
    with connected(tmp_path) as db:
        with pytest.raises(UserError, match=r"the query doubled cannot be answered: .*twice"):
            db.run()
        with pytest.warns(hr.HeadraceWarning, match=r"doubled.*twice.*\n.*rooms"):
            db.start()
        assert [query.name for query in db.queries] == ["warm", "query_2"]
        assert "rooms is paused: " in str(db.execute("WHY rooms")[0])
        assert "db.relation('sensor', ...)" in str(db.execute("DESCRIBE sensor")[0])
        db.relation("sensor", table, key="id")
        with pytest.raises(LanguageError, match="used by the query rooms"):
            db.execute("DROP RELATION sensor")
        assert [query.name for query in db.queries] == ["warm", "query_2", "rooms"]
        db.function("twice", lambda v: pa.compute.multiply(v, 2), arguments=["BIGINT"], returns="BIGINT")
        push(db, (20, 1), (30, 2), (40, 3))
        assert [row["celsius"] for row in db["rooms"].stream().to_pylist()] == [25, 1, 2]
        assert db["doubled"].stream().column("v").to_pylist() == [50, 2, 4]
        db.stop()
    with connected(tmp_path) as db, warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HeadraceWarning)
        db.execute("DROP QUERY doubled; DROP QUERY rooms; DROP RELATION sensor")
        db.start()
        db.stop()


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    statement = parse_one("CREATE STREAM s FROM mq OPTIONS (host 'h', password 'sesame') TIMESTAMP BY ts")
    assert isinstance(statement, CreateStream)
    found = definition_of(statement, tmp_path, Policy.open(), Defaults.PIPES)
    assert found.text is None
    assert "password" in found.lacks
    assert "sesame" not in found.lacks


def test_dropping_with_what_is_written_over_it(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        db.start()
        with pytest.raises(LanguageError, match="used by the stream hot, the query warm") as raised:
            db.execute("DROP STREAM reading")
        assert "DROP STREAM reading CASCADE" in (raised.value.hint or "")
        db.execute("DROP STREAM hot CASCADE")
        assert [query.name for query in db.queries] == ["warm"]
        db.execute("DROP STREAM reading CASCADE")
        assert not db.queries
        assert not db.streams


def test_a_query_that_pauses_keeps_what_is_final(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        db.start()
        (said,) = db.execute("ALTER QUERY warm PAUSE")
        assert said == "warm is paused; its answer ends before 7"
        push(db, (20, 99), (30, 98))
        assert tops(db) == [(25, 1, 7)]
        texts = [one.text for one in db.status.operators]
        assert any("COUNT(*)" in text for text in texts)
        assert not any("MAX(celsius)" in text for text in texts), "a paused query costs nothing"
        assert "paused" in str(db.execute("SHOW QUERIES")[0])
        with pytest.raises(LanguageError, match="paused already"):
            db.execute("ALTER QUERY warm PAUSE")
        for text in ("EXPLAIN ANALYZE warm", "ALTER QUERY warm REOPTIMIZE"):
            with pytest.raises(LanguageError, match="the query warm is paused"):
                db.execute(text)
        db.stop()
    with connected(tmp_path) as db:
        db.execute(WARM)
        db.start()
        assert not db.differences
        push(db, (40, 97))
        assert tops(db) == [(25, 1, 7)]
        (said,) = db.execute("ALTER QUERY warm RESUME")
        assert str(said).startswith("warm is resumed, over the rows since epoch ")
        assert str(said).endswith(
            "it says nothing about the instants from 7 to before 38; "
            "it is exact from 50 on, since rows from before are missing"
        )
        push(db, (41, 1), (60, 2))
        assert tops(db) == [(25, 1, 7), (1, 41, 51)]
        assert db["warm"].changes().to_pylist()[-1]["change"] == 1
        db.stop()
    stored = hr.open(tmp_path / "store")["warm"].history().to_pylist()
    assert [row["top"] for row in stored] == [25, 1]


def test_a_paused_query_holds_no_results_back(tmp_path: Path) -> None:
    with connected(tmp_path, retain_epochs=4) as db:
        db.execute(TEXT)
        db.start()
        push(db, (1, 25), (9, 23))
        db.execute("ALTER QUERY warm PAUSE")
        for at in range(20, 60):
            push(db, (at, 30))
        oldest = db["query_2"].epochs().column("epoch").to_pylist()[0]
        assert oldest > 30
        assert tops(db) == [(25, 6, 7)]
        db.execute("ALTER QUERY warm RESUME")
        push(db, (70, 1), (90, 1))
        assert tops(db)[-1] == (1, 70, 80)


def test_what_another_process_has_defined_meanwhile_is_not_dropped(tmp_path: Path) -> None:
    begun(tmp_path)
    with connected(tmp_path) as db:
        assert [query.name for query in db.queries] == ["warm", "query_2"]
        begun(tmp_path, "CREATE QUERY late AS SELECT sensor FROM reading")
        with pytest.raises(UserError, match="the query late is new in the store"):
            db.start()
    with connected(tmp_path) as db:
        db.execute("DROP QUERY late")
        db.start()
        assert db.differences.dropped == ("late",)


def test_dialects_are_remembered(tmp_path: Path) -> None:
    with connected(tmp_path) as db:
        db.execute(f"{STREAM}; SET dialect = 'cql'; CREATE QUERY q AS SELECT celsius FROM reading")
        plan = db["q"].plan
        db.start()
        push(db, (1, 25))
        assert str(db.execute("SHOW CREATE QUERY q")[0]).startswith("SET dialect = 'cql';\nCREATE QUERY q")
        db.stop()
    with connected(tmp_path) as db:
        assert db["q"].plan == plan
        assert str(db.execute("SHOW DIALECT")[0]).endswith("sql\n(1 row)")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("SHOW CREATE QUERY warn", "1:19: there is no query warn", "warm"),
        ("DESCRIBE nothing", "1:10: there is nothing called nothing", "there is reading"),
        ("COMMENT ON COLUMN warm.tip IS 'x'", "1:24: warm has no column tip", "top"),
        ("ALTER QUERY warm RESUME", "1:13: the query warm is not paused", ""),
        ("ALTER QUERY other PAUSE", "1:13: there is no query other", "there is warm"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with connected(tmp_path) as db:
        db.execute(TEXT)
        with pytest.raises(LanguageError) as raised:
            db.execute(text)
        assert str(raised.value).startswith(message)
        assert hint in (raised.value.hint or "")
