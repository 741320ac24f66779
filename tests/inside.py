"""The inside of a database, for tests: the one place that knows where things are."""

from __future__ import annotations

import threading

import pytest

import headrace as hr
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.run.execution import Execution
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.results.reader import ResultReader


def core_of(db: hr.Database) -> Core:
    """The definitions of a database and what answers them."""
    return db._core


def execution_of(db: hr.Database) -> Execution:
    """The execution of a database that has been started."""
    assert db._core.execution is not None, "it was never started"
    return db._core.execution


def run_of(db: hr.Database) -> Run:
    """The run of a database that has been started."""
    return execution_of(db).run


def epochs_of(db: hr.Database) -> threading.Thread:
    """The thread of a running database's epochs. Tests before it may have left threads of the same name."""
    live = execution_of(db)._live
    assert live is not None, "it is not running"
    return live._thread


def reader_of(db: hr.Database, query: Query) -> ResultReader:
    """What reads the committed answer of a query."""
    return db._core.reader(query)


def leave_undivided(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let epochs on Spark with so much work be one task, in jobs and in the task that stays."""
    monkeypatch.setattr("headrace.runtime.spark.runner._UNDIVIDED", seconds)
    monkeypatch.setattr("headrace.runtime.spark.runner.UNDIVIDED", seconds)
