"""A process that is killed at any step of a turn, or of a change of place, goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
from answers_at import content_at
from headrace.runtime.store import segments
from inside import execution_of
from waiting import wait_for

TEXTS = {
    "sums": "SELECT k, SUM(v) AS x FROM s [RANGE 7] GROUP BY k",
    "counts": "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k",
}
END = 12


class Killed(BaseException):
    """The end of a process in the middle of a step."""


@contextmanager
def dying(step: int) -> Iterator[list[str]]:
    """Let a process die with its n-th step; the steps that it has come to."""
    reached: list[str] = []

    def reach(point: str) -> None:
        reached.append(point)
        if len(reached) == step:
            raise Killed

    with patch.object(segments, "reach", reach), patch.object(driver, "reach", reach):
        yield reached


def drain(db: hr.Database) -> None:
    live = execution_of(db)._live
    assert live is not None
    wait_for(lambda: not live.running or not live.lanes.waits)


def contents(
    store: Path, *changes: str, step: int
) -> tuple[list[dict[tuple[Any, ...], int]], list[str], list[str]]:
    """The answers in the end if a process dies at a step of some changes; its steps, and the files."""
    with hr.connect(runner="inline", threads=1, storage=store) as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        for name, text in TEXTS.items():
            db.execute(f"CREATE QUERY {name} WEIGHT 0 AS {text}")
        db.start()
        for at in range(END):
            db.push("s", {"k": at % 3, "v": at, "ts": at})
        with dying(step) as steps, suppress(Killed, hr.UserError):
            for change in changes:
                db.execute(change)
                drain(db)
            drain(db)
    with hr.connect(runner="inline", threads=1, storage=store) as db:
        db.start()
        for name in TEXTS:
            db.execute(f"ALTER QUERY {name} SET (WEIGHT 1)")
        drain(db)
        db.heartbeat("s", END)
        wait_for(lambda: all(db[name].heartbeat == END for name in TEXTS))
        said = {name: db[name].changes().to_pylist() for name in TEXTS}
        found = [content_at(rows, ("k", "x"), at) for rows in said.values() for at in range(END)]
        for name in TEXTS:
            db.execute(f"DROP QUERY {name}")
    kept = [path.name for path in store.rglob("*retained*")]
    return found, steps, kept


@pytest.mark.slow("it opens a store for each step of a turn")
@pytest.mark.parametrize(
    "changes",
    [
        ("ALTER QUERY sums SET (WEIGHT 1)",),
        ("ALTER QUERY counts SET (WEIGHT 1)", "ALTER QUERY counts SET CONSISTENCY MIDDLE"),
    ],
)
def test_a_killed_turn_is_taken_once(tmp_path: Path, changes: tuple[str, ...]) -> None:
    expected, _, left = contents(tmp_path / "whole", *changes, step=0)
    assert any(expected)
    assert left == []
    for step in count(1):
        found, steps, left = contents(tmp_path / f"{step}", *changes, step=step)
        assert found == expected, (step, steps)
        assert left == [], (step, steps)
        if len(steps) < step:
            break
    assert step > 4, "there were steps to die at"
