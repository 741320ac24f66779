from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headrace.algebra.kinds import Filling
from headrace.errors import LanguageError, Position
from headrace.language.parsing.parser import parse, parse_one
from headrace.language.statements.statements import CreateQuery, CreateStreamAs, Explain, Select, Stage
from headrace.language.statements.streams import CreateStream
from headrace.language.syntax import (
    DerivedTable,
    JoinedTable,
    NamedTable,
    NowFrame,
    RangeWindowFrame,
    RowsWindowFrame,
    SelectQuery,
    StreamQuery,
    UnionQuery,
    WindowedTable,
)
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP
from headrace.time import INFINITY, Duration


def create(text: str) -> CreateStream:
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    return statement


def test_create_stream_with_everything() -> None:
    statement = create(
        "CREATE STREAM bid (auction INT, price DECIMAL(10, 2), at TIMESTAMP)\n"
        "  FROM csv OPTIONS (path 'in/bid', header = true, 'Delimiter' ';', skip -1, a.b=>x)\n"
        "  TIMESTAMP BY at DISORDER 5 SECONDS"
    )
    assert statement.name == "bid"
    assert statement.columns is not None
    assert str(statement.columns) == "(auction BIGINT, price DECIMAL(10, 2), at TIMESTAMP)"
    assert statement.format == "csv"
    assert statement.options == (
        ("path", "in/bid"),
        ("header", "true"),
        ("delimiter", ";"),
        ("skip", "-1"),
        ("a.b", "x"),
    )
    assert statement.timestamp == "at"
    assert statement.time.disorder == Duration(5_000_000)
    assert statement.position == Position(1, 1)
    assert statement.timestamp_position == Position(3, 16)


def test_the_form_of_pipes_means_the_same() -> None:
    ours = create("CREATE STREAM b (x INT) FROM parquet OPTIONS (path 'p') TIMESTAMP BY x")
    theirs = create("CREATE STREAM b (x INT) SOURCE parquet('p') ORDERED BY x")
    assert (ours.columns, ours.format, ours.options) == (theirs.columns, theirs.format, theirs.options)
    generated = create("create stream b source nexmark(events=1000, seed => 1) ordered by ts")
    assert generated.options == (("events", "1000"), ("seed", "1"))
    assert generated.columns is None


def test_column_types() -> None:
    names = "BOOLEAN TINYINT SMALLINT INT INTEGER BIGINT REAL FLOAT DOUBLE STRING VARCHAR TEXT DATE TIMESTAMP"
    columns = ", ".join(f"c{index} {name}" for index, name in enumerate(names.split()))
    statement = create(
        f"CREATE STREAM s ({columns}, d DOUBLE PRECISION, v VARCHAR(20), n NUMERIC, m DECIMAL(38, 38), "
        "t BIGINT) FROM json OPTIONS (path 'x') TIMESTAMP BY t"
    )
    assert statement.columns is not None
    assert [field.type for field in statement.columns] == [
        BOOLEAN,
        *[BIGINT] * 5,
        *[DOUBLE] * 3,
        *[STRING] * 3,
        DATE,
        TIMESTAMP,
        DOUBLE,
        STRING,
        pa.decimal128(10, 0),
        pa.decimal128(38, 38),
        BIGINT,
    ]


@pytest.mark.parametrize(
    ("disorder", "length"),
    [
        ("5 SECONDS", 5_000_000),
        ("1 second", 1_000_000),
        ("INTERVAL '5' SECONDS", 5_000_000),
        ("INTERVAL '5 seconds'", 5_000_000),
        ("INTERVAL 2 HOURS", 7_200_000_000),
        ("10 MILLISECONDS", 10_000),
    ],
)
def test_disorder(disorder: str, length: int) -> None:
    statement = create(
        f"CREATE STREAM s (t TIMESTAMP) FROM json OPTIONS (path 'x') TIMESTAMP BY t DISORDER {disorder}"
    )
    assert statement.time.disorder == Duration(length)


def test_disorder_of_integer_timestamps_has_no_unit() -> None:
    assert create("CREATE STREAM s FROM nexmark TIMESTAMP BY t DISORDER 7").time.disorder == Duration(7)


def test_several_statements_with_comments() -> None:
    statements = parse(
        """
        -- a comment; with a semicolon
        CREATE STREAM a FROM nexmark TIMESTAMP BY t;; /* another; SELECT
        over /* nested */ lines */
        CREATE STREAM b AS SELECT * FROM a;
        CREATE QUERY q AS SELECT x FROM b;
        SELECT 'a;b' FROM a; -- no semicolon follows
        EXPLAIN SELECT x FROM a; EXPLAIN LOGICAL SELECT x FROM a;
        """
    )
    kinds = [type(statement) for statement in statements]
    assert kinds == [CreateStream, CreateStreamAs, CreateQuery, Select, Explain, Explain]
    stages = [statement.stage for statement in statements if isinstance(statement, Explain)]
    assert stages == [None, Stage.LOGICAL]
    assert parse("") == parse(" ; -- nothing\n") == []


@pytest.mark.parametrize("stage", list(Stage))
def test_explain_takes_a_stage(stage: Stage) -> None:
    statement = parse_one(f"explain {stage.value.lower()} select * from a")
    assert isinstance(statement, Explain)
    assert statement.stage is stage


def tables_of(text: str) -> Any:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    assert isinstance(statement.query, SelectQuery)
    return statement.query.tables


MINUTES = 60_000_000


@pytest.mark.parametrize(
    ("written", "size", "slide"),
    [
        ("Bid WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE) B", 10 * MINUTES, MINUTES),
        ("Bid B WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE)", 10 * MINUTES, MINUTES),
        ("Bid AS B WINDOW (range 10 minute slide 1 minutes)", 10 * MINUTES, MINUTES),
        ("Bid [RANGE 10 MINUTES SLIDE 1 MINUTE] AS B", 10 * MINUTES, MINUTES),
        ("Bid [Range 10 Minutes] B", 10 * MINUTES, None),
        ("Bid B [RANGE 10 MINUTES]", 10 * MINUTES, None),
        ("Bid[RANGE INTERVAL '10' MINUTES] B", 10 * MINUTES, None),
        ("Bid [RANGE 10 SLIDE 5] B", 10, 5),
        ("Bid [RANGE 10MINUTES] B", 10 * MINUTES, None),
        ("Bid [NOW] B", None, None),
        ("Bid WINDOW(NOW) B", None, None),
        ("Bid WINDOW(RANGE UNBOUNDED) B", INFINITY, None),
        ("Bid [RANGE UNBOUNDED SLIDE 1 DAY] B", INFINITY, 1440 * MINUTES),
        ("Bid B [Range 10 Minutes Preceding]", 10 * MINUTES, None),
        ("Bid B [RANGE 10 PRECEDING SLIDE 5]", 10, 5),
        ("Bid B [Range Unbounded Preceding]", INFINITY, None),
        ("Bid WINDOW(UNBOUNDED) B", INFINITY, None),
        ("Bid [ROWS UNBOUNDED PRECEDING] B", INFINITY, None),
    ],
)
def test_windows(written: str, size: int | None, slide: int | None) -> None:
    (table,) = tables_of(f"SELECT * FROM {written} WHERE x = 1")
    assert isinstance(table, NamedTable)
    assert (table.name.text, table.alias and table.alias.text) == ("Bid", "B")
    assert table.window is not None
    every = None if slide is None else Duration(slide)
    assert table.window.frame == (NowFrame() if size is None else RangeWindowFrame(Duration(size), every))
    assert table.window.partition == ()


@pytest.mark.parametrize(
    ("written", "rows", "slide", "columns"),
    [
        ("WINDOW(ROWS 10)", 10, 1, []),
        ("[rows 10 preceding]", 10, 1, []),
        ("[ROWS 10 SLIDE 5]", 10, 5, []),
        ("[ROWS 10 PRECEDING SLIDE 5]", 10, 5, []),
        ("WINDOW(PARTITION BY seller ROWS 10)", 10, 1, [(None, "seller")]),
        ("[Partition By B.x, `y z` Rows 10 Preceding]", 10, 1, [("B", "x"), (None, "y z")]),
    ],
)
def test_row_windows(written: str, rows: int, slide: int, columns: list[tuple[str | None, str]]) -> None:
    (table,) = tables_of(f"SELECT * FROM Bid B {written}")
    assert isinstance(table, NamedTable)
    assert table.window is not None
    assert table.window.frame == RowsWindowFrame(rows, slide)
    names = [(key.table.text if key.table else None, key.name.text) for key in table.window.partition]
    assert names == columns


def test_window_filter() -> None:
    (table,) = tables_of("SELECT * FROM Bid [PARTITION BY x ROWS 10 PRECEDING WHERE x > 1 AND y = 2] B")
    assert isinstance(table, NamedTable)
    assert table.window is not None
    assert table.window.condition is not None
    assert table.window.condition.sql() == "x > 1 AND y = 2"


def test_windows_on_derived_tables() -> None:
    for text in ("(SELECT * FROM a) WINDOW(RANGE 5) P", "(SELECT * FROM a) P [RANGE 5]"):
        (table,) = tables_of(f"SELECT * FROM {text}")
        assert isinstance(table, DerivedTable)
        assert table.alias is not None
        assert table.window is not None
        assert (table.alias.text, table.window.frame) == ("P", RangeWindowFrame(Duration(5), None))


def test_stream_operators_around_queries_and_in_from() -> None:
    statement = parse_one("ISTREAM(SELECT a FROM b UNION ALL SELECT c FROM d)")
    assert isinstance(statement, Select)
    assert isinstance(statement.query, StreamQuery)
    assert isinstance(statement.query.query, UnionQuery)
    (table,) = tables_of("SELECT * FROM dstream(Person [RANGE 5]) P")
    assert isinstance(table, DerivedTable)
    assert isinstance(table.query, StreamQuery)
    assert table.query.operator == "DSTREAM"
    nested = parse_one("RSTREAM(ISTREAM((SELECT a FROM b)))")
    assert isinstance(nested, Select)


def test_leniencies_of_the_thesis() -> None:
    assert len(tables_of("SELECT x FROM a, b, WHERE x = 1")) == 2
    assert len(tables_of("SELECT x FROM a, GROUP BY x")) == 1
    (unnamed,) = tables_of("SELECT x FROM (SELECT x FROM a) WHERE x > 1")
    assert isinstance(unnamed, DerivedTable)
    assert unnamed.alias is None
    (bare,) = tables_of("SELECT DISTINCT(P.id, P.name) FROM SELECT P.id, P.name FROM N [RANGE 12 HOURS] P, O")
    assert isinstance(bare, DerivedTable)
    assert isinstance(bare.query, SelectQuery)
    assert len(bare.query.tables) == 2


def test_join_trees() -> None:
    (first, second) = tables_of("SELECT * FROM a, b JOIN c ON b.x = c.x CROSS JOIN d")
    assert isinstance(first, NamedTable)
    assert isinstance(second, JoinedTable)
    assert isinstance(second.left, JoinedTable)
    (grouped,) = tables_of("SELECT * FROM a JOIN (b JOIN c USING (x, y)) ON a.z = b.z")
    assert isinstance(grouped, JoinedTable)
    assert isinstance(grouped.right, JoinedTable)
    assert [name.text for name in grouped.right.using] == ["x", "y"]


def test_parentheses_around_queries() -> None:
    (table,) = tables_of("SELECT * FROM ((SELECT a FROM b) UNION ALL (SELECT c FROM d [NOW])) P")
    assert isinstance(table, DerivedTable)
    assert isinstance(table.query, UnionQuery)
    (inner,) = tables_of("SELECT * FROM ((SELECT a FROM b)) P")
    assert isinstance(inner, DerivedTable)
    (joined,) = tables_of("SELECT * FROM (a JOIN b ON TRUE)")
    assert isinstance(joined, JoinedTable)
    for text in (
        "((SELECT a FROM b) x JOIN c ON TRUE)",
        "(ISTREAM(a) JOIN b ON TRUE)",
        "((a JOIN b ON TRUE))",
    ):
        (joined,) = tables_of(f"SELECT * FROM {text}")
        assert isinstance(joined, JoinedTable)
    for text in ("(ISTREAM(a))", "(ISTREAM(a) UNION ALL SELECT b FROM c) x", "(((SELECT a FROM b)))"):
        (table,) = tables_of(f"SELECT * FROM {text}")
        assert isinstance(table, DerivedTable)


def test_one_statement() -> None:
    with pytest.raises(LanguageError, match="not 2"):
        parse_one("SELECT a FROM b; SELECT a FROM b")
    with pytest.raises(LanguageError, match="not 0"):
        parse_one("-- nothing")


def test_a_materialized_view_is_a_query() -> None:
    view, query = (
        parse_one(f"CREATE {what} v AS SELECT * FROM s") for what in ("MATERIALIZED VIEW", "QUERY")
    )
    assert isinstance(view, CreateQuery)
    assert isinstance(query, CreateQuery)
    assert (view.name.text, view.text, view.warm) == (query.name.text, query.text, query.warm)


def test_the_timestamp_of_a_table_function_may_be_a_bare_name() -> None:
    bare, described = (
        parse_one(f"SELECT COUNT(*) AS n FROM HOP(bid, {time}, INTERVAL '5' SECOND, INTERVAL '10' SECOND)")
        for time in ("ts", "DESCRIPTOR(ts)")
    )
    assert isinstance(bare, Select)
    assert isinstance(described, Select)
    (one,), (other,) = bare.query.tables, described.query.tables  # type: ignore[union-attr]
    assert one.function.time.text == other.function.time.text == "ts"  # type: ignore[union-attr]
    assert one.function.durations.keys() == other.function.durations.keys()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "arguments",
    [
        "DESCRIPTOR(ts), 2, 4, 'LINEAR'",
        "DESCRIPTOR(ts), 2, 4, LINEAR",
        "DESCRIPTOR(ts), 2, 4, FILL => 'linear'",
        "DESCRIPTOR(ts), STEP => 2, FILL => 'LINEAR', WITHIN => 4",
        "FILL => 'LINEAR', WITHIN => 4, STEP => 2, TIMECOL => DESCRIPTOR(ts)",
        "ts, FILL => 'LINEAR', 2, 4",
        "2, 4, 'LINEAR', TIMECOL => ts",
    ],
)
def test_arguments_of_gap_fill_come_in_any_order(arguments: str) -> None:
    statement = parse_one(f"SELECT * FROM GAP_FILL(TABLE s PARTITION BY (k), {arguments})")
    assert isinstance(statement, Select)
    assert isinstance(statement.query, SelectQuery)
    (table,) = statement.query.tables
    assert isinstance(table, WindowedTable)
    function = table.function
    assert {name: length for name, (length, _) in function.durations.items()} == {
        "STEP": Duration(2),
        "WITHIN": Duration(4),
    }
    assert function.time is not None
    assert function.filling is not None
    assert (function.time.text, function.filling[0]) == ("ts", Filling.LINEAR)
