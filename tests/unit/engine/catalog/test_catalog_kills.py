"""A process that is killed while definitions change leaves those before the change, or those after it."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path

import pytest

import headrace as hr
import warm_processes
from headrace.runtime.journal.inspect import contents, verify

pytestmark = pytest.mark.kills

BEGIN = """
CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY first AS SELECT MAX(v) AS top FROM s [RANGE 10];
"""
STEPS = (
    "CREATE QUERY second AS SELECT COUNT(*) AS n FROM s [RANGE 10]",
    "CREATE STREAM other AS SELECT v FROM s WHERE v > 1",
    "COMMENT ON QUERY first IS 'the largest'",
    "ALTER QUERY first PAUSE",
    "ALTER STREAM s DISORDER 3",
    "ALTER QUERY first RESUME",
    "DROP STREAM other",
    "CREATE OR REPLACE QUERY second AS SELECT COUNT(*) + 1 AS n FROM s [RANGE 10]",
    "CREATE OR REPLACE QUERY first AS SELECT MIN(v) AS least FROM s [RANGE 10]",
    "CREATE SINK files FOR second TO json OPTIONS (path 'files')",
    "ALTER QUERY second RENAME TO last",
    "DROP SINK files",
)


def work(storage: Path, acknowledged: Path) -> None:
    """Take all steps, and note each that is done."""
    with hr.connect(runner="inline", storage=storage, buckets=1) as db:
        db.execute(BEGIN)
        db.start()
        db.push("s", [{"v": 1, "ts": 1}, {"v": 2, "ts": 5}])
        for place, text in enumerate(STEPS):
            db.execute(text, base=storage.parent)
            acknowledged.write_text(str(place + 1))
        db.stop()


def defined(storage: Path) -> list[object]:
    """What a store has: its definitions, and what becomes of its queries."""
    found = contents(storage).description
    assert found.catalog is not None
    here = str(storage.parent)
    records = [
        (one.kind, one.name, (one.text or "").replace(here, ""), one.comment, one.paused)
        for one in found.catalog
    ]
    exchanges = sorted(found.exchanges.get("another", ()))
    return [*records, *sorted(found.queries.items()), *sorted(found.paused), *exchanges]


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    """What a store has after each number of steps."""
    found = []
    folder = tmp_path_factory.mktemp("undisturbed")
    with hr.connect(runner="inline", storage=folder / "store", buckets=1) as db:
        db.execute(BEGIN)
        db.start()
        db.push("s", [{"v": 1, "ts": 1}, {"v": 2, "ts": 5}])
        found.append(defined(folder / "store"))
        for text in STEPS:
            db.execute(text, base=folder)
            found.append(defined(folder / "store"))
    return found


@pytest.mark.parametrize("count", range(1, len(STEPS) + 1))
@pytest.mark.parametrize("point", ["change.begun", "change.done"])
def test_a_change_of_the_catalog_is_made_or_not(
    tmp_path: Path, states: list[list[object]], point: str, count: int
) -> None:
    storage, acknowledged = tmp_path / "store", tmp_path / "acknowledged"
    acknowledged.write_text("0")
    killed = warm_processes.run(
        [sys.executable, __file__, str(storage), str(acknowledged)],
        env=os.environ | {"HEADRACE_FAULT": f"{point}:{count}"},
        timeout=60,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    done = int(acknowledged.read_text())
    expected = states[done + (point == "change.done")]
    assert defined(storage) == expected
    with hr.connect(runner="inline", storage=storage) as db, warnings.catch_warnings():
        warnings.simplefilter("error")
        db.start()
        assert not db.differences
        # What is pushed may end an exchange.
        assert defined(storage) == expected
        db.push("s", [{"v": 1, "ts": 20}, {"v": 2, "ts": 40}])
        assert all(query.history().num_rows for query in db.queries)
    assert verify(storage).problems == ()


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
