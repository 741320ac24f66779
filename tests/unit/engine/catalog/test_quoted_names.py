"""Names in double quotes under SET dialect = 'ansi', and what is kept of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.language.quoted_names import with_backticks

ROWS = pa.table({"ts": [1, 2], "Group By": ["a", "b"], "v": [1, 2]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('SELECT "a" FROM s', "SELECT `a` FROM s"),
        ('SELECT \'say "a"\' FROM s -- "b"', 'SELECT \'say "a"\' FROM s -- "b"'),
        ('SELECT "a""b" + 1', 'SELECT `a"b`  + 1'),
        ('SELECT "a`b"', "SELECT `a``b`"),
        ('SELECT `a"b", c`', 'SELECT `a"b", c`'),
        ('SELECT "open', 'SELECT "open'),
        ("SET dialect = 'pipes'; SELECT \"a\"", "SET dialect = 'pipes'; SELECT \"a\""),
        ('SELECT "a"; SET dialect = "cql"; SELECT "a"', 'SELECT `a`; SET dialect = "cql"; SELECT "a"'),
    ],
)
def test_names_are_put_into_backticks(text: str, expected: str) -> None:
    assert with_backticks(text, True) == expected


def test_only_what_follows_the_statement_is_in_the_dialect() -> None:
    text = 'SELECT "a"; set DIALECT = \'ansi\'; SELECT "a"; SET dialect = \'pipes\'; SELECT "a"'
    wanted = "SELECT \"a\"; set DIALECT = 'ansi'; SELECT `a`; SET dialect = 'pipes'; SELECT \"a\""
    assert with_backticks(text, False) == wanted
    assert with_backticks('SELECT "dialect"', False) == 'SELECT "dialect"'


def test_a_query_with_names_in_double_quotes_is_kept_with_backticks(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.stream("s", ROWS, timestamp="ts")
        db.execute("""
            CREATE QUERY before AS SELECT "v" AS text FROM s;
            SET dialect = 'ansi';
            CREATE QUERY q AS SELECT "Group By" AS "order", 'x' AS x FROM "s" WHERE "v" > 1;
        """)
        db.query('SELECT SUM("v") AS "all" FROM s [RANGE UNBOUNDED]', name="sums")
        assert "ansi" in str(db.execute("SHOW DIALECT")[0])
        with pytest.raises(hr.UserError, match="no column w"):
            db.execute('SELECT "w" FROM s')
        db.execute("SET dialect = 'pipes'")
        assert "pipes" in str(db.execute("SHOW DIALECT")[0])
        db.run()
        assert [row["text"] for row in db["before"].stream().to_pylist()] == ["v", "v"]
        assert [(row["order"], row["x"]) for row in db["q"].stream().to_pylist()] == [("b", "x")]
        assert db["sums"].snapshot(at=2).to_pylist() == [{"all": 3}]
        (shown,) = db.execute("SHOW CREATE QUERY q")
        assert "SELECT `Group By` AS `order`" in str(shown)
        assert "dialect" not in str(shown)


def test_errors_are_where_the_text_is_wrong() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", ROWS, timestamp="ts")
        db.execute("SET dialect = 'ansi'")
        with pytest.raises(hr.UserError, match="1:13: ") as found:
            db.execute('SELECT "v", "nothing" FROM s')
        assert found.value.hint
        with pytest.raises(hr.UserError, match="there is no dialect"):
            db.execute("SET dialect = 'other'")
