"""Questions that are asked once, over what has been committed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.asking.references import AskedKind, resolved
from headrace.errors import LanguageError, Position
from headrace.language.named_values import ParameterValue
from headrace.runtime.writing.tables import write_table

BIDS = pa.table({"ts": [1, 2, 3, 9], "item": ["a", "b", "a", "b"], "price": [10, 20, 30, 5]})


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        db.stream("bid", BIDS, timestamp="ts")
        db.query("SELECT item, MAX(price) AS highest FROM bid [RANGE 5] GROUP BY item", name="top")
        db.query("ISTREAM (SELECT item, price FROM bid [NOW])", name="each")
        db.run()
        yield db


def test_a_history_is_a_table(db: hr.Database) -> None:
    asked = db.ask("SELECT item, valid_from, valid_to FROM HISTORY OF top WHERE highest >= 20 ORDER BY item")
    assert asked.to_pylist() == [
        {"item": "a", "valid_from": 3, "valid_to": 8},
        {"item": "b", "valid_from": 2, "valid_to": 7},
    ]


@pytest.fixture
def spans() -> Iterator[hr.Database]:
    values = [9, 12, 30, 7, 11, 3, 16, 13, 20, 15, 4, 19, 2, 22, 8, 21, 5, 1, 6, 10, 14, 25, 17, 18]
    rows = pa.table({"ts": list(range(1, 25)), "v": values})
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        db.query("SELECT v FROM s WHERE v > 2", name="a")
        db.query("SELECT v FROM s WHERE v > 2 AND v NOT IN (20, 15, 19, 22, 21)", name="b")
        db.query("SELECT v % 2 AS odd, COUNT(*) AS n FROM s [RANGE 4] GROUP BY odd", name="groups")
        db.run()
        yield db


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # The ranked tree of PSoup's section 6: another condition needs another tree.
        ("SELECT MAX(v) FROM SNAPSHOT OF a BEGIN 8 END 21", 22),
        ("SELECT MAX(v) FROM SNAPSHOT OF b BEGIN 8 END 21", 13),
        ("SELECT MAX(v) FROM SNAPSHOT OF a BEGIN (22) END (NOW)", 25),
        ("SELECT MAX(v) FROM SNAPSHOT OF a BEGIN (NOW - 2) END (NOW)", 18),
        ("SELECT MAX(v) FROM SNAPSHOT OF a BEGIN NOW - '3' END NOW AS OF EPOCH 1", 25),
        ("SELECT COUNT(*) FROM SNAPSHOT OF a", 1),
        ("SELECT COUNT(*) FROM SNAPSHOT OF a BEGIN 8 END NOW - 4", 11),
        ("SELECT list(v ORDER BY s.v) FROM SNAPSHOT OF a BEGIN 1 END 4 s", [9, 12, 30]),
        ("SELECT SUM(valid_to - valid_from) FROM HISTORY OF a BEGIN NOW - 5 END NOW", 5),
        ("SELECT list((odd, n) ORDER BY odd, n) FROM SNAPSHOT OF groups BEGIN 2 END 4",
         [(0, 1), (0, 2), (1, 1)]),
    ],
)  # fmt: skip
def test_a_snapshot_may_be_of_a_span(spans: hr.Database, question: str, expected: object) -> None:
    found = spans.ask(question)[0][0].as_py()
    if isinstance(found, list) and isinstance(found[0], dict):
        found = [tuple(one.values()) for one in found]
    assert found == expected


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("FROM SNAPSHOT OF a BEGIN 8", "BEGIN wants an instant, and END another one"),
        ("FROM SNAPSHOT OF a BEGIN NOW - END NOW", "BEGIN wants an instant, and END another one"),
        ("FROM SNAPSHOT OF a BEGIN (NOW END NOW", "BEGIN wants an instant, and END another one"),
        ("FROM SNAPSHOT OF a BEGIN 8 END 8", "a span from 8 to before 8 has no instant"),
        ("FROM HISTORY OF a BEGIN 8 END 8", "8 is not before 8"),
        ("FROM SNAPSHOT OF a BEGIN NOW - 5 MINUTES END NOW", "NOW - 5 MINUTES has a unit, but the stream"),
        ("FROM SNAPSHOT OF a BEGIN NOW - 0 END NOW", "NOW - 0 is not above 0"),
    ],
)
def test_a_span_that_is_none_is_refused_at_its_place(spans: hr.Database, question: str, message: str) -> None:
    with pytest.raises(hr.UserError, match=message) as caught:
        spans.ask(question)
    assert caught.value.position is not None
    assert caught.value.hint


QUERIES = {
    "plain": "SELECT v FROM s [RANGE 5]",
    "early": "CONSISTENCY MIDDLE AS SELECT v FROM s [RANGE 5]",
    "slid": "SELECT RSTREAM(v) FROM s [RANGE 6 SLIDE 3]",
    "came": "SELECT ISTREAM(v) FROM s [RANGE 5]",
}


def test_a_snapshot_now_is_the_latest_answer() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 3")
        for name, text in QUERIES.items():
            db.execute(f"CREATE QUERY {name} {'' if text.startswith('CONSISTENCY') else 'AS '}{text}")
        db.start()
        known: dict[str, dict[int, pa.Table]] = {name: {} for name in QUERIES}
        for at, v in ((None, 0), (0, 1), (4, 2), (9, 3), (7, 9), (30, 4)):
            if at is not None:
                db.push("s", [{"ts": at, "v": v}])
            for name, tables in known.items():
                now = db.ask(f"SELECT * FROM SNAPSHOT OF {name} ORDER BY v")
                assert now.to_pylist() == db[name].latest().sort_by("v").to_pylist(), (name, at)
                four = db.ask(f"SELECT * FROM SNAPSHOT OF {name} BEGIN NOW - 4 END NOW ORDER BY v")
                assert four.to_pylist() == db[name].latest(last=4).sort_by("v").to_pylist(), (name, at)
                if at is None:
                    part = db.ask(f"SELECT * FROM HISTORY OF {name} BEGIN NOW - 4 END NOW")
                    assert part.num_rows == now.num_rows == four.num_rows == 0
                for epoch in db[name].epochs()["epoch"].to_pylist()[-1:]:
                    tables[epoch] = now
        for name, tables in known.items():
            assert any(table.num_rows for table in tables.values()), name
            for epoch, now in tables.items():
                then = db.ask(f"SELECT * FROM SNAPSHOT OF {name} AS OF EPOCH {epoch} ORDER BY v")
                assert then.to_pylist() == now.to_pylist(), (name, epoch)


@pytest.mark.parametrize(
    ("length", "hint"),
    [
        ("1 MONTH", "months and years have no fixed length; write NOW - 30 DAYS"),
        ("INTERVAL '1' MINUTE", "write NOW - 1 MINUTE"),
        ("INTERVAL '2 hours'", "write NOW - 2 hours"),
        ("interval 3 seconds", "write NOW - 3 seconds"),
        ("1.5 SECONDS", "write NOW - 1500 MILLISECONDS"),
        ("10 min", "write NOW - '10 min'"),
        ("0 MINUTES", "give the length of the span, such as 10 MINUTES"),
        ("INTERVAL '5'", "write HISTORY OF q BEGIN 10 END 20, "),
        ("1.5", "write HISTORY OF q BEGIN 10 END 20, "),
        ("5 END v", "write HISTORY OF q BEGIN 10 END 20, "),
    ],
)
def test_a_length_before_now_says_what_to_write(length: str, hint: str) -> None:
    rows = pa.table({"ts": pa.array([datetime(2024, 5, 1, tzinfo=UTC)]), "v": [1]})
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        db.query("SELECT v FROM s [RANGE 5 MINUTES]", name="q")
        db.run()
        for begin in (f"NOW - {length}", f"(NOW - {length})"):
            with pytest.raises(hr.UserError) as caught:
                db.ask(f"SELECT v FROM SNAPSHOT OF q BEGIN {begin} END NOW")
            assert caught.value.hint is not None
            assert caught.value.hint.startswith(hint)
            written = caught.value.hint.rpartition("write ")[2]
        if written.startswith("NOW - "):
            assert db.ask(f"SELECT v FROM SNAPSHOT OF q BEGIN {written} END NOW").num_rows == 1
        with pytest.raises(hr.UserError) as caught:
            db["q"].latest(last=0)
        assert caught.value.hint == "give the length of the span, such as 10 MINUTES"
        assert db["q"].latest(last="10 MINUTES").num_rows == 1


def test_the_beginning_of_a_span_is_said_once(spans: hr.Database) -> None:
    assert spans["a"].latest(last=2) == spans["a"].latest(since=23) == spans["a"].snapshot(24, last=2)
    with pytest.raises(hr.UserError, match="last and since both say where the span begins"):
        spans["a"].snapshot(24, last=2, since=23)
    with pytest.raises(hr.UserError, match="last 0 is not above 0"):
        spans["a"].latest(last=0)


def test_parameters_are_values_of_duckdb(db: hr.Database) -> None:
    values: dict[str, ParameterValue] = {
        "least": 20, "item": "it's :least", "at": datetime(2024, 5, 1, tzinfo=UTC), "ratio": Decimal("1.50"),
        "nothing": None,
    }  # fmt: skip
    asked = db.ask(
        "SELECT item, :item AS x, ':item' AS y, '5'::INT + :ratio AS r, :at AS at, [7, 8][1:highest] AS cut, "
        ":nothing IS NULL AS n FROM HISTORY OF top WHERE highest > :least -- :item",
        parameters=values,
    )
    assert asked.to_pylist() == [
        {"item": "a", "x": "it's :least", "y": ":item", "r": Decimal("6.50"), "at": values["at"],
         "cut": [7, 8], "n": True}
    ]  # fmt: skip
    with pytest.raises(LanguageError, match="there is no parameter :less in the question"):
        db.ask("SELECT 1 FROM HISTORY OF top WHERE highest > :least", parameters={"less": 1, "least": 2})
    with pytest.raises(LanguageError, match=":at has no time zone"):
        db.ask("SELECT :at", parameters={"at": datetime(2024, 5, 1)})
    with pytest.raises(LanguageError) as caught:
        db.ask("SELECT 1 FROM HISTORY OF top\nWHERE highest > :least AND z", parameters={"least": 1})
    assert caught.value.position == Position(2, 28)


def test_what_is_named_is_joined_freely_and_columns_may_be_called_by_the_query(db: hr.Database) -> None:
    asked = db.ask(
        """
        WITH said AS (SELECT item, SUM(change) AS n FROM CHANGES OF top GROUP BY item)
        SELECT top.item, said.n, e.price FROM history of TOP
        JOIN said USING (item), -- HISTORY OF nothing
             Stream Of each AS e
        WHERE e.item = top.item AND e.ts = top.valid_from ORDER BY ALL
        """
    )
    changes = db["top"].changes().to_pylist()
    net = {item: sum(row["change"] for row in changes if row["item"] == item) for item in "ab"}
    assert asked.to_pylist() == [
        {"item": "a", "n": net["a"], "price": 10},
        {"item": "a", "n": net["a"], "price": 30},
        {"item": "b", "n": net["b"], "price": 5},
        {"item": "b", "n": net["b"], "price": 20},
    ]


def test_an_answer_as_it_was(db: hr.Database) -> None:
    (last,) = db.ask("SELECT MAX(epoch) AS epoch FROM EPOCHS OF top").to_pylist()
    asked = db.ask(f"SELECT count(h.item) AS n FROM HISTORY OF top AS OF EPOCH {last['epoch']} AS h")
    assert asked.to_pylist() == [{"n": db["top"].history().num_rows}]
    now = datetime.now(UTC).isoformat()
    assert db.ask(f"SELECT count(*) AS n FROM HISTORY OF top AS OF '{now}'").to_pylist() == asked.to_pylist()
    with pytest.raises(hr.UserError, match=r"^1:15: "):
        db.ask("SELECT * FROM HISTORY OF top AS OF EPOCH 99")


def test_dead_letters(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("ts,v\n1,1\nx,2\n3,3\n")
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        declared = f"s (ts BIGINT, v BIGINT) FROM csv OPTIONS (path '{rows}') TIMESTAMP BY ts"
        db.execute(f"CREATE STREAM {declared} DEAD LETTERS KEEP ALL; CREATE QUERY q AS SELECT v FROM s")
        db.run()
        asked = "SELECT l.stream, s.reason IS NOT NULL AS why FROM DEAD LETTERS AS l, DEAD LETTERS OF s"
        inside = db.ask(asked).to_pylist()
    assert inside == [{"stream": "s", "why": True}]
    stored = hr.open(tmp_path / "store")
    assert stored.ask(asked).to_pylist() == inside
    assert stored.ask("SELECT COUNT(*) AS n FROM HISTORY OF Q").to_pylist() == [{"n": 2}]
    with pytest.raises(hr.UserError, match="keeps no dead letters of nothing"):
        stored.ask("FROM DEAD LETTERS OF nothing")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/new'",
        "ATTACH '{folder}/new'",
        "EXPORT DATABASE '{folder}/new'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA database_list",
        "SET threads = 64",
        "RESET threads",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW history.top",
        "CALL pragma_version()",
        "FROM duckdb_settings()",
        'FROM "duckdb_Settings"()',
        "FROM (SELECT 1) JOIN pg_settings ON TRUE",
    ],
)
def test_nothing_else_is_reached(db: hr.Database, tmp_path: Path, question: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("secret\n1\n")
    text = question.format(file=file, folder=tmp_path)
    if text.startswith(("SELECT * FROM '", "DROP")):
        with pytest.raises(hr.UserError):
            db.ask(text)
    else:
        with pytest.raises(hr.PolicyError):
            db.ask(text)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_no_variable_of_the_caller_is_a_table(db: hr.Database) -> None:
    hidden = pa.table({"a": [1]})
    with pytest.raises(LanguageError, match="hidden does not exist"):
        db.ask("SELECT * FROM hidden")
    del hidden


def test_limits(db: hr.Database) -> None:
    with pytest.raises(hr.UserError, match=r"longer than 0[.]2 seconds"):
        db.ask(
            "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 5",
            seconds=0.2,
        )
    millions = "(SELECT h.item, n FROM HISTORY OF top AS h, range(1000000) AS r(n))"
    crossed = f"SELECT count(*) FROM {millions} AS a, {millions} AS b WHERE a.n % 7 = b.n % 5"
    with pytest.raises(hr.UserError, match=r"longer than 0[.]2 seconds"):
        db.ask(crossed, seconds=0.2)
    for threads in (1, 3):
        asked = db.ask("SELECT current_setting('threads') AS n", threads=threads).to_pylist()
        assert asked == [{"n": threads}]
    with pytest.raises(hr.UserError, match="more than 100 MB"):
        db.ask("SELECT list(range) FROM range(1000000000)", memory=100)
    with pytest.raises(hr.UserError, match="more than 1,000 rows"):
        db.ask("SELECT * FROM range(10000000) a, range(10000000) b", rows=1_000)
    with pytest.raises(hr.UserError, match="seconds must be above 0"):
        db.ask("SELECT 1", seconds=0)


@pytest.mark.parametrize(
    ("question", "place", "message", "hint"),
    [
        ("SELECT * FROM top", (1, 15), "top does not exist", "HISTORY OF top"),
        ("SELECT nothing\nFROM HISTORY OF top", (1, 8), "nothing", "DuckDB suggests"),
        ("SELECT item FROM HISTORY OF top,\n HISTORY\nOF nothing", (2, 2), "nothing", None),
        ("SELECT item FROM HISTORY OF top x y", (1, 35), "syntax error", None),
        ("SELECT 1; SELECT 2", None, "one question at a time, not 2", None),
        ("", None, "one question at a time, not 0", None),
        ("FROM HISTORY OF top AS OF yesterday", (1, 21), "an epoch or a time", "AS OF EPOCH 12"),
        ("FROM EPOCHS OF top AS OF EPOCH 1", (1, 20), "EPOCHS cannot be asked for", "column epoch"),
    ],
)
def test_mistakes(
    db: hr.Database, question: str, place: tuple[int, int] | None, message: str, hint: str | None
) -> None:
    with pytest.raises(hr.UserError, match=message) as caught:
        db.ask(question)
    assert caught.value.position == (place and Position(*place))
    assert hint is None or hint in (caught.value.hint or "")


def test_only_tables_are_references() -> None:
    text = """SELECT 'FROM HISTORY OF a', "HISTORY", history, $$ FROM CHANGES OF b $$,
    e'\\' FROM HISTORY OF c'
    /* FROM HISTORY OF d */ FROM ( HISTORY OF "e ""f" ) -- FROM HISTORY OF g
    JOIN dead letters ON history.of = 1"""
    asked, found = resolved(text)
    assert [(part.kind, part.name) for part in found] == [
        (AskedKind.HISTORY, 'e "f'),
        (AskedKind.DEAD_LETTERS, None),
    ]
    assert len(asked) == len(text)
    assert asked.replace('history."e ""f"', 'HISTORY OF "e ""f"')[: len(text)].count("\n") == 3
    assert 'FROM ( history."e ""f"    )' in asked


def test_rows_that_are_kept(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute("""
            CREATE STREAM bid (item STRING, price BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN 2 ROWS;
            CREATE STREAM other (ts BIGINT) FROM push TIMESTAMP BY ts;
            CREATE QUERY q AS SELECT MAX(price) AS top FROM bid [RANGE 10];
            CREATE QUERY o AS SELECT ts FROM other;
        """)
        db.start()
        assert db.rows("bid").num_rows == 0
        for ts, item in enumerate("abcd"):
            db.push("bid", [{"item": item, "price": 10 * ts, "ts": ts}])
        question = "SELECT b.item, top FROM ROWS OF bid b JOIN HISTORY OF q ON top = price ORDER BY 1"
        found = [{"item": "c", "top": 20}]
        assert db.ask(question).to_pylist() == found
        assert db.rows("BID")["item"].to_pylist() == ["c", "d"]
        with pytest.raises(hr.UserError, match="the rows of other are not kept"):
            db.ask("SELECT * FROM ROWS OF other")
        with pytest.raises(LanguageError, match="ROWS cannot be asked for AS OF an epoch"):
            db.ask("SELECT * FROM ROWS OF bid AS OF EPOCH 2")
        db.stop()
    store = hr.open(tmp_path / "store")
    assert store.ask(question).to_pylist() == found
    with pytest.raises(hr.UserError, match="the rows of other are not kept"):
        store.rows("other")


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ("INTERVAL 3 MONTHS", "3 months"),
        ("TIME '12:30:00'", "12:30:00"),
        ("TIMETZ '12:30:00+02'", "12:30:00+02"),
        ("'101'::BIT", "101"),
        ("'a'::ENUM ('a', 'b')", "a"),
        ("union_value(k := 1)", "1"),
        ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", "2024-01-01 00:00:00.123456789"),
        ("'12345678901234567890123456789012345678901'::BIGNUM", "12345678901234567890123456789012345678901"),
        ("[INTERVAL 1 DAY, NULL]", ["1 day", None]),
        ("[TIME '1:2:3']::TIME[1]", ["01:02:03"]),
        ("MAP {TIME '1:2:3': INTERVAL 1 DAY}", [("01:02:03", "1 day")]),
        ("{'time': TIME '1:2:3', 'x': [{'bit': '1'::BIT}]}", {"time": "01:02:03", "x": [{"bit": "1"}]}),
    ],
)
def test_values_of_types_that_headrace_lacks_are_texts(db: hr.Database, asked: str, value: object) -> None:
    found = db.ask(f"SELECT 1 AS n, {asked} AS x, {asked} AS x")
    assert found.column(2).to_pylist() == [value]
    for form in ("jsonl", "csv", "table"):
        written = io.BytesIO()
        write_table(found.select([1]), form, written)
        assert form != "jsonl" or json.loads(written.getvalue()).keys() == {"x"}


@pytest.mark.parametrize(
    "value", ["1E-999999999", "9" * 39, "1E38", "NaN", "Infinity", "1." + "1" * 38, "1E-38"]
)
def test_no_decimal_is_rounded(db: hr.Database, value: str) -> None:
    with pytest.raises(hr.UserError, match="DECIMAL"):
        db.ask("SELECT :p AS p", parameters={"p": Decimal(value)})


@pytest.mark.parametrize("value", ["1.50", "1E-37", "9" * 38, "1E37", "-0.0", "0"])
def test_decimals_are_values(db: hr.Database, value: str) -> None:
    assert db.ask("SELECT :p AS p", parameters={"p": Decimal(value)}).to_pylist() == [{"p": Decimal(value)}]
