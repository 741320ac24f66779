"""Rows that are added up for several windows together go to each of them, whatever fails on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.operators.before_exchange import InPanes

_QUERIES = (
    "SELECT v, SUM(v) AS total, MAX(v) AS top FROM s [RANGE 2 SLIDE 2] GROUP BY v",
    "SELECT v, SUM(v) AS total, MAX(v) AS top FROM s [RANGE 4 SLIDE 4] GROUP BY v",
    "SELECT v, COUNT(*) AS n FROM s [RANGE 8 SLIDE 4] GROUP BY v",
)

_Rows = list[dict[str, object]]


def _answers(folder: Path) -> list[_Rows | None]:
    """What windows that share panes answer over several batches of one task; None for a query that failed."""
    with hr.connect(runner="inline", threads=1) as db:
        db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path='{folder}') TIMESTAMP BY ts")
        queries = [db.query(text) for text in _QUERIES]
        failed = [name for name, *_ in db.run().failed]
        return [
            None if query.name in failed else sorted(query.history().to_pylist(), key=repr)
            for query in queries
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of more rows than are put together with those of others, and fewer instants than rows."""
    for number in range(3):
        places = np.arange(number * 70_000, (number + 1) * 70_000)
        pq.write_table(pa.table({"v": places % 3, "ts": places // 15_000}), tmp_path / f"{number}.parquet")
    return tmp_path


def _fail_once(monkeypatch: pytest.MonkeyPatch, step: str) -> list[str]:
    """Let a step for all windows fail the first time; where it did."""
    failed: list[str] = []
    real = getattr(InPanes, step)

    def failing(self: InPanes, *arguments: object) -> object:
        if len(self.windows) > 1 and not failed:
            failed.append(step)
            raise MemoryError
        return real(self, *arguments)

    monkeypatch.setattr(InPanes, step, failing)
    return failed


@pytest.mark.parametrize("step", ["add_up", "joined"])
def test_where_the_sums_of_all_windows_fail_each_is_added_up_alone(
    step: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _answers(folder)
    failed = _fail_once(monkeypatch, step)
    assert _answers(folder) == expected
    assert failed == [step]


def test_a_window_into_which_sums_cannot_be_put_fails_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _answers(folder)
    _fail_once(monkeypatch, "in_window")
    assert _answers(folder) == [None, *expected[1:]]
