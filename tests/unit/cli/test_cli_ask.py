"""`headrace ask`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import headrace as hr
from headrace.cli import app


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.stream("s", pa.table({"ts": [1, 5], "v": [10, 20]}), timestamp="ts")
        db.query("SELECT SUM(v) AS total FROM s [RANGE 3]", name="totals")
        db.run()
    return tmp_path / "store"


def ask(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["ask", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_prints_the_answer(storage: Path) -> None:
    code, shown, _ = ask(storage, "SELECT MAX(total) AS most FROM HISTORY OF totals", "--format", "csv")
    assert (code, shown) == (0, "most\n20\n")


def test_writes_it_to_a_file(storage: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.parquet"
    code, _, _ = ask(storage, "FROM HISTORY OF totals", "--output", file)
    assert code == 0
    assert pq.read_table(file).equals(hr.open(storage)["totals"].history())


def test_a_mistake_has_its_place(storage: Path) -> None:
    code, _, said = ask(storage, "SELECT total FROM\n HISTORY OF total")
    assert code == 2
    assert "2:2: " in said
    assert "totals" in said
