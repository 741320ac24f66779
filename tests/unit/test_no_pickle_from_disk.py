"""Nothing that lies in a store is unpickled: what is there cannot run code, whoever has written it."""

from __future__ import annotations

import ast
import contextlib
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headrace as hr
from headrace.cli import app
from headrace.errors import UserError

SOURCE = Path(hr.__file__).parent

UNPICKLING = ("pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib")

WHAT_TRAVELS = {
    "runtime/tasks/messages.py": "writes what travels between the tasks of an epoch",
    "runtime/tasks/level.py": "reads it",
    "runtime/tasks/inline.py": "reads it",
    "runtime/spark/stages.py": "reads and writes it, with the graph and users' functions",
    "runtime/spark/startup/resident.py": "sends the same to a task that stays, by a private socket",
    "expressions/user.py": "writes what a digest of a function's code is made of",
}
"""The modules that may pickle, and what for. None of them opens a file."""


def connect(store: Path) -> hr.Database:
    db = hr.connect(runner="inline", storage=store, buckets=1, epoch_rows=2)
    db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
    db.query("SELECT SUM(v) AS v FROM s [RANGE 10]", name="q")
    return db


def work(store: Path, ts: int) -> list[dict[str, Any]]:
    """Go on with a durable run, push a row, and read all answers."""
    with connect(store) as db:
        db.start()
        db.push("s", {"ts": ts, "v": 1}, producer="p", sequence=ts)
        db.stop()
        db.dead_letters()
        rows: list[dict[str, Any]] = db.queries[0].changes().to_pylist()
        return rows


def test_what_is_unpickled_was_pickled_by_this_very_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    for ts in range(3):
        work(store, ts)
    # Numba loads what it has compiled in its own way, when it is first called.
    work(shutil.copytree(store, tmp_path / "another"), 5)
    ours: set[bytes] = set()
    foreign: list[bytes] = []
    dumps, loads = pickle.dumps, pickle.loads

    def recorded(value: object, *args: Any, **options: Any) -> bytes:
        data = dumps(value, *args, **options)
        ours.add(data)
        return data

    def checked(data: Any, **options: Any) -> object:
        if bytes(data) not in ours:
            foreign.append(bytes(data))
        return loads(data, **options)

    monkeypatch.setattr(pickle, "dumps", recorded)
    monkeypatch.setattr(pickle, "loads", checked)
    monkeypatch.setattr(pickle, "load", None)
    monkeypatch.setattr(pickle, "Unpickler", None)
    assert len(work(store, 5)) > 1
    assert CliRunner().invoke(app, ["store", str(store), "--verify"]).exit_code == 0
    assert ours, "tasks send each other pickles"
    assert foreign == []


class Exploding:
    """A value that leaves a mark when it is unpickled."""

    mark = ""

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.mark),)


def test_a_store_full_of_pickles_runs_none(tmp_path: Path) -> None:
    mark, value = tmp_path / "mark", Exploding()
    value.mark = str(mark)
    bomb = pickle.dumps(value)
    pickle.loads(bomb)
    assert mark.exists(), "it would work"
    mark.unlink()
    whole = tmp_path / "whole"
    for ts in range(3):
        work(whole, ts)
    files = sorted(file.relative_to(whole) for file in whole.rglob("*") if file.is_file())
    assert {file.parts[0] for file in files} >= {"commits", "segments", "results", "store.json"}
    for number, file in enumerate(files):
        store = tmp_path / str(number)
        shutil.copytree(whole, store)
        (store / file).write_bytes(bomb)
        with contextlib.suppress(UserError):
            work(store, 5)
        assert CliRunner().invoke(app, ["store", str(store), "--verify"]).exit_code in (0, 2)
        assert not mark.exists(), file


def test_only_the_modules_that_speak_between_processes_pickle() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if any(
            name.partition(".")[0] in UNPICKLING or name.endswith("cloudpickle") for name in imported(file)
        )
    }
    assert found == set(WHAT_TRAVELS)
    for name in WHAT_TRAVELS:
        calls = {node.attr for node in ast.walk(tree(SOURCE / name)) if isinstance(node, ast.Attribute)}
        assert not calls & {"read_bytes", "load", "Unpickler"}, name
    for file in SOURCE.rglob("*.py"):
        assert "allow_pickle" not in file.read_text(), f"{file}: numpy unpickles only when it is told to"


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imported(file: Path) -> list[str]:
    names = []
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
