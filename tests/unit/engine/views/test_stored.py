"""A store that is read without running it, while a run is at work on it too."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import headrace as hr
from headrace.cli.app import app
from headrace.errors import StoreError, UserError

QUERIES = {
    "counts": "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k",
    "top": "SELECT k, v FROM s [RANGE 20] ORDER BY v DESC LIMIT 2",
    "news": "SELECT ISTREAM(k) FROM s [RANGE 5]",
    "steps": "SELECT RSTREAM(k) FROM s [RANGE 10 SLIDE 5]",
    "lists": "SELECT ARRAY_AGG(v) AS vs, CAST(1.5 AS DECIMAL(10, 2)) AS d FROM s [RANGE 5]",
    "none": "SELECT k FROM s WHERE v > 100",
}
ROWS = [{"k": "a", "v": 1, "ts": 1}, {"k": "b", "v": 5, "ts": 3}, {"k": "a", "v": 3, "ts": 12}]


def live(folder: Path, retain: int | None = None) -> hr.Database:
    db = hr.connect(runner="inline", storage=folder, retain_epochs=retain)
    db.execute("CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    db.execute("CREATE STREAM unread (ts BIGINT) FROM push TIMESTAMP BY ts")
    for name, text in QUERIES.items():
        db.query(text, name=name)
    return db


def test_a_store_is_read_while_a_run_is_at_work_on_it(tmp_path: Path) -> None:
    with live(tmp_path) as db:
        db.start()
        store = hr.open(tmp_path)
        assert store["counts"].latest().num_rows == 0
        for row in ROWS:
            db.push("s", row)
            for query in db.queries:
                read = store[query.name]
                assert read.heartbeat == query.heartbeat
                assert (read.schema, read.domain) == (query.plan.schema, query.domain)
                for view in (
                    "history",
                    "changes",
                    "latest",
                    *(["stream"] if query.name in ("news", "steps") else []),
                ):
                    found, expected = getattr(read, view)(), getattr(query, view)()
                    assert found.schema == expected.schema
                    assert found.to_pylist() == expected.to_pylist(), (query.name, view)
        assert store["TOP"].snapshot(11).to_pydict() == {"k": ["b", "a"], "v": [5, 1]}
        assert store["counts"].to_pandas().equals(db["counts"].to_pandas())
        with pytest.raises(UserError, match="counts is not a stream"):
            store["counts"].stream()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert repr(store["counts"]) == "<StoredQuery counts (k STRING, n BIGINT), final below 12>"
    assert repr(store).endswith("queries: counts, lists, news, none, steps, top>")
    assert store["counts"]._repr_html_().startswith("<table>")
    assert "final below 12" in store._repr_html_()
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_queries_that_there_are_not_or_that_failed_are_refused(tmp_path: Path) -> None:
    with live(tmp_path) as db:
        db.query("SELECT SUM(v) AS total FROM s [RANGE 100]", name="bad")
        db.start()
        db.push("s", [{"k": "a", "v": 2**63 - 1, "ts": time} for time in (1, 2, 3)])
        store = hr.open(tmp_path)
        with pytest.raises(UserError, match="bad failed: "):
            store["bad"].history()
        assert "failed" in repr(store["bad"])
        assert store["bad"]._repr_html_().startswith("<table>")
        kept = store["counts"]
        db.drop("counts")
        with pytest.raises(UserError, match="there is no query counts"):
            store["counts"]
        with pytest.raises(StoreError, match="does not say what the answer of counts looks like"):
            kept.history()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a Headrace store"):
        hr.open(tmp_path)


def test_a_store_of_an_earlier_headrace_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("headrace.engine.run.execution.form_of", lambda plan: None)
        with live(tmp_path) as db:
            db.start()
            db.push("s", ROWS[0])
    with pytest.raises(StoreError, match="does not say what the answer of"):
        hr.open(tmp_path)["counts"]


def test_results_that_go_while_they_are_read_are_read_again(tmp_path: Path) -> None:
    with live(tmp_path, retain=1) as db:
        db.start()
        db.push("s", ROWS[0])
        db.push("s", ROWS[1])
        query = hr.open(tmp_path)["counts"]
        reader = query._reader
        asked: list[object] = []

        def overtaken() -> object:
            found = reader()
            if not asked:
                asked.append(found)
                for time in (20, 30, 40):
                    db.push("s", {"k": "c", "v": 1, "ts": time})
            return found

        query._reader = overtaken  # type: ignore[method-assign, assignment]
        found = query.changes()
        assert found.to_pylist() == db["counts"].changes().to_pylist() != []


def test_the_command_prints_an_answer(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with live(folder) as db:
        db.start()
        for row in ROWS:
            db.push("s", row)

        def printed(*options: str) -> list[str]:
            done = CliRunner().invoke(app, ["store", str(folder), *options])
            assert done.exit_code == 0, done.output
            return done.stdout.splitlines()

        rows = [json.loads(line) for line in printed("--query", "counts", "--format", "jsonl")]
        assert rows == db["counts"].history().to_pylist()
        assert printed("--query", "news", "--as", "stream", "--format", "csv") == ["k,ts", "a,1", "b,3"]
        assert printed("--query", "counts", "--at", "3", "--format", "csv") == ["k,n", "a,1", "b,1"]
        assert printed("--query", "top", "--at", "latest", "--format", "csv") == ["k,v", "b,5", "a,1"]
        assert printed("--query", "counts")[0].split() == ["k", "n", "valid_from", "valid_to"]
        assert printed("--query", "counts", "--output", str(tmp_path / "o.parquet")) == []
        assert pa.parquet.read_table(tmp_path / "o.parquet").num_rows == 2
        done = CliRunner().invoke(app, ["store", str(folder), "--query", "count"])
        assert done.exit_code == 2
        assert "did you mean counts?" in done.stderr
