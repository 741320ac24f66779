"""A store whose state another version has written: what is lacking is filled from kept rows, or said."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.lowering import identity, lower
from headrace.lowering.identity import STATE_FORMAT
from headrace.runtime.driver.beside import joining
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.journal.record_files import load_commits
from headrace.runtime.journal.records import segments_of, state_after
from headrace.runtime.store.sealed import seal, unseal
from headrace.runtime.store.segments import FolderStore

QUERIES = {
    "windows": "SELECT x % 3 AS k, COUNT(*) AS n, MAX(x) AS most FROM s [RANGE 7] GROUP BY x % 3",
    "pairs": "SELECT a.x, b.x AS y FROM s [RANGE 3] a JOIN s [RANGE 4] b ON a.x % 5 = b.x % 5",
    "early": "SELECT COUNT(*) AS n FROM s [RANGE 5]",
    "plain": "SELECT x FROM s WHERE x % 2 = 0",
}
CHANGED, LAST = 16, 30


def opened(storage: Path | None, retain: str) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, buckets=2)
    if storage is None or not (storage / "store.json").exists():
        db.execute(f"CREATE STREAM s (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2 {retain}")
        for name, text in QUERIES.items():
            level = "CONSISTENCY MIDDLE " if name == "early" else ""
            db.execute(f"CREATE QUERY {name} {level}AS {text}")
    return db


def push(db: hr.Database, numbers: range) -> None:
    for number in numbers:
        # Each second row is older than the one before it.
        x = number - 2 if number % 2 else number
        db.push("s", {"x": x, "ts": x})


def histories(db: hr.Database) -> dict[str, list[dict[str, Any]]]:
    return {name: db[name].history().to_pylist() for name in QUERIES}


@pytest.fixture(scope="module")
def whole() -> dict[str, list[dict[str, Any]]]:
    """The answers of a run that was never interrupted."""
    with opened(None, "") as db:
        db.start()
        push(db, range(LAST))
        db.stop()
        return histories(db)


@contextmanager
def another_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Operators have other identities meanwhile, as those of another state format have."""
    with monkeypatch.context() as patch:
        for module in (identity, lower):
            patch.setattr(module, "STATE_FORMAT", STATE_FORMAT - 1)
        yield


def written(storage: Path, retain: str, monkeypatch: pytest.MonkeyPatch, kind: str) -> dict[str, int]:
    """Make a store of another state format, or of other operators; up to where its answers are final."""
    with another_version(monkeypatch), opened(storage, retain) as db:
        db.start()
        push(db, range(CHANGED))
        db.stop()
        heartbeats = {query.name: query.heartbeat for query in db.status.queries}
    store = FolderStore(str(storage), durable=True)
    if kind == "format":
        for path in (storage / "store.json", *(storage / "commits").iterdir()):
            body = unseal(path.read_bytes())
            for part in (body, body.get("plan")):
                if part is not None and "state_format" in part:
                    part["state_format"] = STATE_FORMAT - 1
            path.write_bytes(seal(body))
    # Whoever read the state would notice.
    for name in segments_of(state_after(load_commits(store)), {}):
        path = storage / name
        path.write_bytes(bytes(byte ^ 0x55 for byte in path.read_bytes()))
    return heartbeats


@pytest.mark.parametrize("kind", ["format", "operators"])
def test_what_is_kept_fills_the_queries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, list[dict[str, Any]]], kind: str
) -> None:
    written(tmp_path / "store", "RETAIN ALL", monkeypatch, kind)
    assert contents(tmp_path / "store").epochs == CHANGED
    with opened(tmp_path / "store", "") as db:
        with pytest.warns(hr.HeadraceWarning) as said:
            db.start()
        assert db.differences.anew == tuple(sorted(QUERIES))
        push(db, range(CHANGED, LAST))
        db.stop()
        found = histories(db)
        gaps = {name: db[name].gaps().num_rows for name in QUERIES}
    assert not any(gaps.values())
    assert found == whole
    assert all("it lacks nothing" in str(one.message) for one in said)
    assert len(said) == len(QUERIES)
    check_reopens(tmp_path / "store", whole)


@pytest.mark.parametrize("kind", ["format", "operators"])
def test_what_is_lacking_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, list[dict[str, Any]]], kind: str
) -> None:
    final = written(tmp_path / "store", "", monkeypatch, kind)
    with opened(tmp_path / "store", "") as db:
        with pytest.warns(hr.HeadraceWarning, match="it says not") as said:
            db.start()
        assert len(said) == len(QUERIES)
        push(db, range(CHANGED, LAST))
        db.stop()
        found = histories(db)
        for name in QUERIES:
            (gap,) = db[name].gaps().to_pylist()
            assert gap["lacks_from"] == final[name]
            exact = gap["exact_from"] if gap["exact_from"] is not None else gap["lacks_to"]
            for begin, end in ((0, gap["lacks_from"]), (exact, LAST - 5)):
                for instant in range(begin, end):
                    assert at(found[name], instant) == at(whole[name], instant), (name, instant)
            assert all(not at(found[name], instant) for instant in range(gap["lacks_from"], gap["lacks_to"]))
    check_reopens(tmp_path / "store", whole)


def test_a_kill_between_the_two_changes_lacks_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, list[dict[str, Any]]]
) -> None:
    written(tmp_path / "store", "RETAIN ALL", monkeypatch, "format")
    with monkeypatch.context() as patch:

        def die(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(joining, "catching_up", die)
        with opened(tmp_path / "store", "") as db, pytest.raises(KeyboardInterrupt):
            db.start()
    with opened(tmp_path / "store", "") as db:
        with pytest.warns(hr.HeadraceWarning):
            db.start()
        push(db, range(CHANGED, LAST))
        db.stop()
        found = histories(db)
    assert found == whole


def at(history: list[dict[str, Any]], instant: int) -> list[str]:
    """The rows that hold at an instant."""
    rows = (row for row in history if row["valid_from"] <= instant < (row["valid_to"] or LAST * 9))
    return sorted(str({name: value for name, value in row.items() if "valid" not in name}) for row in rows)


def check_reopens(storage: Path, whole: dict[str, list[dict[str, Any]]]) -> None:
    """See that it is a store as any other by now."""
    assert verify(storage).problems == ()
    with warnings.catch_warnings(), opened(storage, "") as db:
        warnings.simplefilter("error")
        db.start()
        assert not db.differences.anew
        push(db, range(LAST, LAST + 4))
        db.stop()
