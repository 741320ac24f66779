"""`headrace shell` without a terminal: statements and commands from standard input."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from headrace.cli import app
from headrace.cli.shell.json_rows import rows_of_json
from headrace.cli.shell.screen import error_text
from headrace.cli.shell.tables import text_of_table
from headrace.errors import LanguageError, Position, UserError
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, Field, Schema

PUSHED = """CREATE STREAM s (ts BIGINT, item STRING, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS
  SELECT item, SUM(v) AS t FROM s [RANGE 10] GROUP BY item;
\\push s [{"ts": 1, "item": "pen", "v": 3}, {"ts": 5, "item": "cup", "v": 4}]
"""


def typed(text: str, *options: object) -> tuple[int, list[str], str]:
    done = CliRunner().invoke(app, ["shell", "--runner", "inline", *map(str, options)], input=text)
    return done.exit_code, [" ".join(line.split()) for line in done.stdout.splitlines()], done.stderr


def test_answers_while_the_run_goes_on() -> None:
    code, lines, errors = typed(
        PUSHED + '\\answer q\n\\x\n\\answer q latest;\n\\x\n\\push s {"ts": 7, "item": "pen", "v": 1}\n'
        "\\status\n\\why q\n\\answer q changes\nSELECT item, t FROM HISTORY OF q ORDER BY t\n;\n"
        "\\q\nSELECT nothing;"
    )
    assert (code, errors) == (0, "")
    assert lines[:4] == ["item t valid_from valid_to", "---- - ---------- --------", "pen 3 1 5", "(1 row)"]
    assert lines[4:8] == ["-- row 1", "item pen", "t 3", "(1 row)"]
    assert lines[8] == "running, epoch 2"
    assert any(line.startswith("q waits for s") for line in lines)
    assert "1 pen 3 1 11 1" in lines
    assert lines[-5:] == ["item t", "---- -", "pen 3", "cup 4", "(2 rows)"]


def test_what_is_cut_says_where_the_newest_rows_are() -> None:
    code, lines, errors = typed(
        PUSHED + '\\push s [{"ts": 7, "item": "pen", "v": 1}, {"ts": 9, "item": "cup", "v": 2}]\n'
        "CREATE QUERY pens AS SELECT v FROM s WHERE item = 'pen';\n"
        '\\push s [{"ts": 10, "item": "pen", "v": 5}, {"ts": 11, "item": "pen", "v": 6}, {"ts": 12}]\n'
        "\\rows 1\n\\answer pens stream\n\\answer pens tail\n\\answer pens latest\n"
    )
    assert (code, errors) == (0, "")
    first = ["v ts", "- --", "5 10", "(2 rows)", "... and 1 row more: \\rows 2 shows them all"]
    newest = ["v ts", "- --", "6 11", "(1 row)"]
    assert lines[:10] == [*first, "\\answer pens tail shows the newest", *newest]


def test_parameters_have_values_until_they_are_unset() -> None:
    code, lines, errors = typed(
        "\\set item pen\n\\set least 1.5\n\\set\n"
        "CREATE STREAM s (ts BIGINT, item STRING, v BIGINT) FROM push TIMESTAMP BY ts;\n"
        "CREATE QUERY q AS SELECT item, v, :n AS n FROM s [RANGE 10] WHERE item = :item AND v > :least;\n"
        '\\push s [{"ts": 1, "item": "pen", "v": 3}, {"ts": 20, "item": "pen", "v": 1}]\n'
        "SELECT v, :item AS x FROM HISTORY OF q\n;\n\\ask SELECT :n + 1 AS m\n\\unset item\n"
        "-- :n\nSELECT v FROM s WHERE\nv = :n AND item = :item;",
        "-D", "n=7",
    )  # fmt: skip
    assert lines[:3] == ["n = 7", "item = pen", "least = 1.5"]
    assert lines[3:] == ["v x", "- ---", "3 pen", "(1 row)", "m", "-", "8", "(1 row)"]
    assert (code, errors.splitlines()[0].split(" (")[0]) == (
        2, "<stdin>:13:19: the parameter :item has no value",
    )  # fmt: skip


def test_expressions_that_read_no_row() -> None:
    code, lines, errors = typed(
        "\\set n 5\nSELECT :n * 2 AS m, EXTRACT(YEAR FROM DATE '2024-05-01') AS y; -- FROM\n"
        "SELECT 'FROM' AS f;\nSELECT 1,\n 1 / 0;"
    )
    assert lines == ["m y", "-- ----", "10 2024", "(1 row)", "f", "----", "FROM", "(1 row)"]
    assert (code, errors.splitlines()[0]) == (2, "<stdin>: division by zero")
    assert typed("SELECT\n price;")[2].startswith("<stdin>:2:2: there is no column price")
    for text in ("SELECT *", "SELECT 1 WHERE 2 > 1"):
        assert "FROM is missing" in typed(text)[2]


def test_bounded_streams_are_answered_by_run(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("ts,v\n1,10\n2,20\n")
    file = tmp_path / "first.sql"
    file.write_text("CREATE STREAM r FROM csv OPTIONS (path='v.csv') TIMESTAMP BY ts;")
    code, lines, _ = typed("SELECT SUM(v) AS t FROM r [RANGE 10];\n\\rows 2\n\\run\n\\d r\n\\d\n", file)
    assert code == 0
    assert lines[0] == "-- query_1"
    assert lines[3:7] == ["10 1 2", "30 2 11", "(3 rows)", "... and 1 row more: \\rows 3 shows them all"]
    assert lines[7].startswith("2 rows in ")
    assert "STREAM r" in lines
    assert {"-- streams", "-- relations", "-- queries", "-- sinks"} < set(lines)


def test_ends_with_the_first_error_and_its_place(tmp_path: Path) -> None:
    code, lines, errors = typed("SHOW DIALECT;\n-- why\nSELECT 1 FROM\n  nothing; SHOW DIALECT;\n")
    assert code == 2
    assert lines[2:] == ["sql", "(1 row)"]
    assert errors.startswith("<stdin>:4:3: there is no stream nothing")
    file = tmp_path / "a.sql"
    file.write_text("\\timing\n\\timing\n\nSELECT 1 FROM nothing")
    assert typed(f"\\i {file}\n")[2].startswith(f"{file}:4:15: there is no stream nothing")
    assert typed("", file)[2].startswith(f"{file}:4:15: there is no stream nothing")


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("\\timin", "there is no command \\timin", "did you mean \\timing?"),
        ("\\i", "something is missing", "write \\i FILE"),
        ("\\i nothing.sql", "there is no such file", ""),
        ("\\set x", "something is missing", "write \\set NAME VALUE"),
        ("\\set 1 2", "'1=2' is not a parameter with its value", ""),
        ("\\unset x", "the parameter :x has no value", "\\set lists all values"),
        ("\\rows 0", "0 is not a number of rows", "write \\rows 100"),
        ("\\watch q", "\\watch needs a terminal", "write \\answer q latest, or tail"),
        ("\\answer q lately", "there is no view lately", "ask for history, changes, stream, latest or tail"),
        ("\\answer r", "there is no query r", ""),
        ("\\push s {1}", "the row is not JSON", "write \\push stream"),
        ("\\push s 1", "1 is not a row", ""),
        ("\\run", "the database is running already", ""),
        ("\\ask SELECT x FROM HISTORY OF r", "there is no query r", ""),
    ],
)
def test_says_what_is_wrong(line: str, message: str, hint: str) -> None:
    code, _, errors = typed(f"{PUSHED}{line}\n")
    assert code == 2
    assert message in errors
    assert hint in errors


def test_a_query_that_fails_is_said_to() -> None:
    most = 2**63 - 1
    rows = f'[{{"ts": 6, "item": "pen", "v": {most}}}, {{"ts": 7, "item": "pen", "v": {most}}}]'
    code, _, errors = typed(PUSHED + f"\\push s {rows}\n\\answer q\n")
    assert code == 2
    assert "q failed: " in errors


def test_rows_have_the_values_that_their_texts_mean() -> None:
    schema = Schema((Field("ts", TIMESTAMP), Field("x", DOUBLE), Field("n", BIGINT), Field("s", STRING)))
    (row,) = rows_of_json('{"TS": "2024-01-01T00:00:00Z", "x": "NaN", "n": 1, "s": "2024-01-01"}', schema)
    table = pa.table({name: [value] for name, value in row.items()})
    assert str(table["TS"][0].as_py()) == "2024-01-01 00:00:00+00:00"
    assert row["x"] != row["x"]
    assert (row["n"], row["s"]) == (1, "2024-01-01")
    with pytest.raises(UserError, match='ts is not a valid TIMESTAMP: "soon"'):
        rows_of_json('[{"ts": "soon"}]', schema)


def test_a_place_in_an_error_is_marked() -> None:
    error = LanguageError("no", position=Position(2, 4), hint="yes")
    shown = error_text(error, "SELECT\n\tabc\n").plain
    assert shown == "error: no\n2 | \tabc\n    \t  ^\nhint: yes"
    assert error_text(UserError("no"), "SELECT").plain == "error: no"


def test_tables_fit_the_terminal() -> None:
    table = pa.table({"text": ["a" * 90, "b"], "n": [1, 2]})
    text = text_of_table(table, most=10, width=40, expanded=False)
    assert max(map(len, text.splitlines())) == 40
    assert "…" in text
    assert "a" * 90 in text_of_table(table, most=10, width=None, expanded=False)
    assert text_of_table(table, most=1, width=None, expanded=True).splitlines() == [
        "-- row 1",
        "text  " + "a" * 90,
        "n     1",
        "(2 rows)",
        "... and 1 row more: \\rows 2 shows them all",
    ]
