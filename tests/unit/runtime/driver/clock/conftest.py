"""Databases whose clock a test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.runtime.driver.endless import live
from watched_clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(live, "_LOOK", 0.005)
    return Clock()


@pytest.fixture
def connect(clock: Clock, tmp_path: Path) -> Iterator[Callable[..., hr.Database]]:
    """Databases with the streams `a`, `b`, `c`, each declared with the clauses that are given."""
    made: list[hr.Database] = []

    def new(query: str, *, durable: bool = False, before: str = "", **clauses: str) -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store" if durable else None, clock=clock)
        made.append(db)
        for name in "abc":
            said = clauses.get(name, "")
            db.execute(f"CREATE STREAM {name} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {said}")
        if before:
            db.execute(before)
        db.query(query, name="q")
        db.start()
        return db

    yield new
    for db in made:
        db.close()
