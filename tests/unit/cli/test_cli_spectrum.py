"""`headrace spectrum`: what a query does at several levels of consistency."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import headrace as hr
from headrace.cli import app

EXAMPLES = Path(__file__).parents[3] / "examples" / "spectrum"
STREAM = "CREATE STREAM s (ts BIGINT) FROM csv OPTIONS (path 's.csv') TIMESTAMP BY ts DISORDER 4;\n"
COUNT = "-- how many\nSELECT COUNT(*) AS n FROM s [RANGE 2];"
ROWS = [0, 1, 2, 3, 4, 6, 5, 7, 8, 9, 10, 4, 11]
"""The row of 5 is one instant late, and that of 4 six, which is too much."""


@pytest.fixture
def sql(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("ts\n" + "".join(f"{ts}\n" for ts in ROWS))
    file = tmp_path / "counts.sql"
    file.write_text(STREAM + COUNT)
    return file


def run(file: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["spectrum", str(file), "--epochs", "13", *options])


def test_levels_are_listed_side_by_side(sql: Path) -> None:
    """A row an epoch: strong is behind by DISORDER and the newest instant, and blocks as many rows."""
    done = run(sql)
    assert done.exit_code == 0, done.output
    names, _, *lines = (line.split("  ") for line in done.stdout.splitlines())
    cells = [[cell.strip() for cell in line if cell.strip()] for line in (names, *lines[:-1])]
    assert cells[0] == [
        *("scenario", "level", "behind", "blocked", "remembered", "output", "taken back", "lost", "history")
    ]
    by_level = {line[1]: dict(zip(cells[0], line, strict=True)) for line in cells[1:]}
    assert list(by_level) == ["STRONG", "BLOCK 2", "MIDDLE", "REMEMBER 2", "WEAK"]
    assert [one["behind"][:3] for one in by_level.values()] == ["5.0", "2.0", "0.0", "3.0", "0.0"]
    assert [one["blocked"] for one in by_level.values()] == ["5", "2", "0", "3", "0"]
    assert [one["lost"] for one in by_level.values()] == ["1", "1", "1", "1", "2"]
    assert [one["history"] == "the same" for one in by_level.values()] == [True, True, True, True, False]
    taken_back = [int(one["taken back"]) for one in by_level.values()]
    assert taken_back[0] <= taken_back[1] < taken_back[2]
    assert int(by_level["STRONG"]["output"]) < int(by_level["MIDDLE"]["output"])


def test_only_levels_that_the_streams_allow_are_tried(sql: Path) -> None:
    sql.write_text(STREAM.replace("DISORDER 4", "DISORDER 4 LATENCY 2 SECONDS") + COUNT)
    assert [line.split()[1] for line in run(sql).stdout.splitlines()[2:-1]] == ["STRONG", "BLOCK", "MIDDLE"]
    sql.write_text(STREAM.replace("DISORDER 4", "STRICT") + COUNT)
    assert [line.split()[1] for line in run(sql).stdout.splitlines()[2:-1]] == ["STRONG", "MIDDLE"]


def test_levels_can_be_chosen(sql: Path) -> None:
    done = run(sql, "--level", "MIDDLE", "--level", "BLOCK 1")
    assert [line.split()[1] for line in done.stdout.splitlines()[2:-1]] == ["MIDDLE", "BLOCK"]
    assert "1.0 instants" in done.stdout


def test_a_picture_has_four_charts_for_each_file(sql: Path) -> None:
    pytest.importorskip("altair")
    picture = sql.with_suffix(".json")
    assert run(sql, "--plot", str(picture)).exit_code == 0
    charts = json.loads(picture.read_text())["concat"]
    assert len(charts) == 4
    assert charts[0]["title"]["text"] == "counts"
    assert [len(chart["layer"]) for chart in charts] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STREAM, "does not end with a SELECT"),
        (f"CREATE QUERY q AS {COUNT}", "does not end with a SELECT"),
        (f"{STREAM}{COUNT}{COUNT}", "only CREATE STREAM may come before the query"),
        (STREAM.replace("csv OPTIONS (path 's.csv')", "push") + COUNT, "do not arrive in an order"),
        (STREAM.replace("ts DISORDER 4", "ARRIVAL") + COUNT, "do not arrive in an order"),
        (STREAM.replace("csv OPTIONS (path 's.csv')", "rate") + COUNT, "the rows of rate come through Spark"),
        (STREAM + COUNT.replace("COUNT", "CUONT"), "no function CUONT"),
    ],
)
def test_what_cannot_be_compared_is_refused(sql: Path, text: str, message: str) -> None:
    sql.write_text(text)
    done = run(sql)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize("name", ["machines", "web", "ticker"])
def test_the_scenarios_use_all_rows_and_have_an_answer(name: str, tmp_path: Path) -> None:
    write = runpy.run_path(str(EXAMPLES / "rows.py"))["write"]
    write(tmp_path, 1)
    with hr.connect(runner="inline") as db:
        (query,) = db.execute((EXAMPLES / f"{name}.sql").read_text(), base=tmp_path)
        db.run()
        assert len(query.history()) > 10
        assert len(db.dead_letters()) == 0


def test_the_same_seed_makes_the_same_rows(tmp_path: Path) -> None:
    write = runpy.run_path(str(EXAMPLES / "rows.py"))["write"]
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        write(tmp_path / folder, seed)
    first, again, other = ((tmp_path / folder / "web.csv").read_text() for folder in "abc")
    assert first == again != other


def test_a_level_that_is_not_one_is_refused(sql: Path) -> None:
    done = run(sql, "--level", "STRANG")
    assert done.exit_code == 2
    assert "CONSISTENCY does not know" in done.stderr
