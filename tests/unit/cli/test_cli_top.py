"""`headrace top`."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import headrace as hr
from headrace.cli import app
from headrace.cli.top import Look, picture
from headrace.runtime.journal.inspect import contents, glance

TEXT = """CREATE STREAM bid (ts BIGINT, item STRING) FROM push TIMESTAMP BY ts;
CREATE QUERY counts AS SELECT item, COUNT(*) AS n FROM bid [RANGE 10] GROUP BY item;
CREATE QUERY early CONSISTENCY MIDDLE AS SELECT MAX(ts) AS newest FROM bid [RANGE 10];
CREATE QUERY broken AS SELECT 1 / (ts - 2) AS x FROM bid"""


def top(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["top", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def words(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_shows_a_store_while_a_run_is_at_work_on_it(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(TEXT)
        db.start()
        db.push("bid", [{"ts": 1, "item": "pen"}, {"ts": 2, "item": "cup"}])
        db.push("bid", [{"ts": 1, "item": "late"}, {"ts": 5, "item": "pen"}])
        code, shown, _ = top(tmp_path / "s")
    assert code == 0
    lines = [words(line) for line in shown.splitlines() if line.strip()]
    assert ": 2 epochs, the last at" in shown
    assert ["bid", "3", "1", "0", "5", "0"] in lines
    (counts,) = [line for line in lines if line[0] == "counts"]
    assert counts[-1] == "5"
    (early,) = [line for line in lines if line[0] == "early"]
    assert early[-2:] == ["5", "6"]
    assert any("COUNT(*) AS n" in line[0] for line in lines)


def test_rates_are_those_between_two_looks(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(TEXT)
        db.start()
        db.push("bid", [{"ts": 1, "item": "pen"}])
        before = Look(glance(tmp_path / "s"), 10.0)
        db.push("bid", [{"ts": ts, "item": "pen"} for ts in range(2, 42)])
        now = Look(glance(tmp_path / "s"), 14.0)
    console = Console(width=160, file=io.StringIO(), record=True)
    console.print(picture(tmp_path, before, now, 2))
    text = console.export_text()
    assert "41 rows, 10/s" in text
    assert ["bid", "41", "10", "0", "0", "41", "0"] in [words(line) for line in text.splitlines()]
    assert "and 1 more" in text


def test_a_glance_is_the_last_of_the_contents(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(TEXT)
        db.start()
        for ts in range(1, 140):
            db.push("bid", [{"ts": ts, "item": f"item {ts % 7}"}])
        whole, seen = contents(tmp_path / "s"), glance(tmp_path / "s")
    assert (seen.epochs, dict(seen.streams), seen.state) == (whole.epochs, dict(whole.streams), whole.state)
    assert {part.identity for part in seen.state} <= seen.description.operators.keys()


@pytest.mark.parametrize(
    ("arguments", "message"), [(["/nowhere"], "nowhere"), ([".", "--interval", "0"], "above 0")]
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, said = top(*arguments)
    assert code == 2
    assert message in said
