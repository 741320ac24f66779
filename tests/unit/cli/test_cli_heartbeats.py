"""`headrace heartbeats`: a table and a picture of heartbeats over wall-clock time."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli import app

STREAMS = """CREATE STREAM bid (item STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5;
CREATE STREAM recall (item STRING, ts BIGINT) FROM push TIMESTAMP BY ts IDLE AFTER 10 SECONDS;
"""
ARRIVALS = """clock,stream,ts
0,bid,100
0.5,recall,98
4,bid,110
5,bid,104
11,recall,
16,recall,104
"""


@pytest.fixture
def sql(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(ARRIVALS)
    file = tmp_path / "a.sql"
    file.write_text(STREAMS)
    return file


def test_arrivals_become_a_table(sql: Path) -> None:
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--arrivals", str(sql.with_suffix(".csv"))])
    assert done.stdout.splitlines()[2:] == [
        "0 s     bid     95         its row",
        "0.5 s   recall  98         its row",
        "4 s     bid     105        its row",
        "10.5 s  recall  105        idle",
        "(4 rows)",
    ]
    assert done.stderr.splitlines() == ["bid: 3 rows, 1 late", "recall: 2 rows, 1 late"]


def test_queries_say_which_streams_are_read_together(sql: Path) -> None:
    """Read alone, an idle stream follows nobody; what came is all there is."""
    sql.write_text(STREAMS + "SELECT item FROM bid; SELECT item FROM recall")
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--arrivals", str(sql.with_suffix(".csv"))])
    assert done.stdout.splitlines()[-3:] == [
        "16 s    recall  104        its row",
        "26 s    recall  105        idle",
        "(6 rows)",
    ]


def test_dates_on_both_axes(sql: Path) -> None:
    sql.write_text("CREATE STREAM s (ts TIMESTAMP) FROM push TIMESTAMP BY ts LATENCY 2 SECONDS")
    csv = "clock,stream,ts\n2024-01-01T09:00:00Z,s,2024-01-01T08:59:59Z\n"
    sql.with_suffix(".csv").write_text(csv)
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--arrivals", str(sql.with_suffix(".csv"))])
    assert done.stdout.splitlines()[2].split() == [
        "2024-01-01T09:00:02Z",
        "s",
        "2024-01-01T08:59:59Z",
        *("a", "wait", "is", "over"),
    ]


def test_simulated_sources_are_the_same_for_a_seed(sql: Path) -> None:
    first, again, other = (
        CliRunner().invoke(app, ["heartbeats", str(sql), "--seed", seed]).stdout for seed in "112"
    )
    assert first == again != other
    assert first.count("its row") >= 5


def test_a_picture_has_a_point_per_row_and_lines_to_the_end(sql: Path) -> None:
    pytest.importorskip("altair")
    csv, picture = str(sql.with_suffix(".csv")), sql.with_suffix(".json")
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--arrivals", csv, "--plot", str(picture)])
    assert done.exit_code == 0
    drawn = json.loads(picture.read_text())
    lines, points = drawn["layer"]
    assert lines["mark"]["orient"] == "vertical", "else steps over dates go along the other axis"
    data = [layer["data"]["values"] for layer in (lines, points)]
    assert [(point["clock"], point["at"], point["kind"]) for point in data[1]] == [
        (0, 100, "row"),
        (0.5, 98, "row"),
        (4, 110, "row"),
        (5, 104, "late row"),
        (16, 104, "late row"),
    ]
    assert [point["at"] for point in data[0] if point["clock"] > 16] == [105, 105]


def test_a_picture_is_drawn(sql: Path) -> None:
    pytest.importorskip("vl_convert")
    picture = sql.with_suffix(".svg")
    assert CliRunner().invoke(app, ["heartbeats", str(sql), "--plot", str(picture)]).exit_code == 0
    assert picture.read_text().startswith("<svg")


def test_what_draws_files_may_be_missing(sql: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--plot", "out.svg"])
    assert done.exit_code == 2
    assert "vl-convert is not installed" in done.stderr
    assert "hint: pip install vl-convert-python, or write an .html file" in done.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("clock,ts\n1,2\n", "has no column stream"),
        ("clock,stream,ts\n1,bids,2\n", "line 2: there is no stream bids\nhint: did you mean bid?"),
        ("clock,stream,ts\n1,bid,x\n", "line 2: 'x' is not an integer"),
        (f"clock,stream,ts\n1,bid,{10**30}\n", f"line 2: '{10**30}' is out of range"),
        ("clock,stream,ts\n1e200,bid,3\n", "line 2: '1e200' is out of range"),
        ("clock,stream,ts\n1e305,bid,3\n", "line 2: '1e305' is not a valid timestamp"),
        ("clock,stream,ts\nsoon,bid,2\n", "line 2: 'soon' is not a valid timestamp"),
        ("clock,stream,ts\nnan,bid,2\n", "line 2: 'nan' is not a valid timestamp"),
        (
            "clock,stream,ts\n1,bid,2\n2024-01-01T00:00:00Z,bid,3\n",
            "has seconds and dates in the column clock",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(sql: Path, lines: str, message: str) -> None:
    sql.with_suffix(".csv").write_text(lines)
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--arrivals", str(sql.with_suffix(".csv"))])
    assert done.exit_code == 2
    assert message in done.stderr


def test_there_has_to_be_a_stream_and_an_ending(sql: Path) -> None:
    done = CliRunner().invoke(app, ["heartbeats", str(sql), "--plot", "out.txt"])
    assert done.exit_code == 2
    assert "out.txt does not say its format" in done.stderr
    sql.write_text("")
    assert "there is no stream" in CliRunner().invoke(app, ["heartbeats", str(sql)]).stderr


def test_arrivals_have_no_values_to_be_bounded_on_their_own(sql: Path) -> None:
    sql.write_text("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts PER v OF (1)")
    done = CliRunner().invoke(app, ["heartbeats", str(sql)])
    assert done.exit_code == 2
    assert "the heartbeats of s are made from v, which arrivals do not have" in done.stderr


def test_a_stream_timed_by_arrival_has_nothing_to_show(sql: Path) -> None:
    sql.write_text("CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY ARRIVAL")
    done = CliRunner().invoke(app, ["heartbeats", str(sql)])
    assert done.exit_code == 2
    assert "s is timed by arrival, so that its heartbeat is the clock itself" in done.stderr
