"""The sinks of the crash tests, and whether each holds what its promise says after all kills."""

from __future__ import annotations

import hashlib
import io
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import headrace as hr
from headrace.elements import from_rows, to_rows
from headrace.history import canonical
from headrace.runtime.writing.tables import write_table
from headrace.time import INFINITY

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def attach(db: hr.Database, notes: Path, spark: Any = None) -> None:
    """Files for one query, a function for another one; on Spark a table for a third."""
    queries = {query.name: query for query in db.queries}
    db.execute(f"CREATE SINK files FOR split_sums TO json OPTIONS (path '{notes / 'files'}')")

    def note(epoch: int, heartbeat: int, table: pa.Table) -> None:
        line = json.dumps([epoch, _text(table)]) + "\n"
        handle = os.open(notes / "taken", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        # One call, so that a kill leaves a whole line or none.
        os.write(handle, line.encode())
        os.close(handle)

    queries["pushed_sums"].deliver(note, name="function")
    if spark is not None:
        options = {"path": str(notes / "table")}
        queries["streamed"].deliver(spark.SparkTableSink(format="parquet", options=options))


def check(db: hr.Database, notes: Path, session: Any = None) -> dict[str, str]:
    """See that each sink holds what it has promised; what may be compared with another job."""
    queries = {query.name: query for query in db.queries}
    text = _check_files(queries["split_sums"], notes / "files")
    _check_function(queries["pushed_sums"], notes / "taken")
    if session is not None:
        _check_table(queries["streamed"], session, notes / "table")
    return {"delivered": _digest_of_history(text, queries["split_sums"])}


def _check_files(query: hr.Query, folder: Path) -> str:
    """Exactly once: the files are the changes, row by row."""
    files = sorted(folder.glob("epoch-*.jsonl"))
    text = "".join(path.read_text() for path in files)
    # With retention only the last changes are kept to compare with.
    assert text.endswith(_text(query.changes())), "the files are not the changes"
    if next(query.subscribe()).epoch == 1:
        assert text == _text(query.changes()), "the files are more than the changes"
    label = json.loads((folder / "_headrace.json").read_text())
    assert label["heartbeat"] == "infinity"
    assert {path.name for path in folder.iterdir()} == {"_headrace.json", *(path.name for path in files)}
    return text


def _check_function(query: hr.Query, notes: Path) -> None:
    """At least once, in order: only the last epoch before a kill comes again, with the same rows."""
    calls = [json.loads(line) for line in notes.read_text().splitlines()]
    taken: list[tuple[int, str]] = []
    for epoch, text in calls:
        if taken and epoch == taken[-1][0]:
            assert text == taken[-1][1], f"epoch {epoch} came again with other rows"
        else:
            taken.append((epoch, text))
    epochs = [epoch for epoch, _ in taken]
    assert epochs == list(range(1, len(epochs) + 1)), f"epochs were left out or came late: {epochs}"
    assert "".join(text for _, text in taken).endswith(_text(query.changes()))


def _check_table(query: hr.Query, session: Any, folder: Path) -> None:
    """At least once: with repeats, which are equal in all columns, left out, the rows are the changes."""
    rows = [row.asDict() for row in session.read.parquet(str(folder)).distinct().collect()]
    expected = query.changes().to_pylist()
    assert sorted(map(_key, rows)) == sorted(map(_key, expected))


def _key(row: dict[str, Any]) -> list[str]:
    return [str(row[name]) for name in ("epoch", "k", "n", "total", "change")]


def _text(table: pa.Table) -> str:
    text = io.StringIO()
    write_table(table, "jsonl", text)
    return text.getvalue()


def _digest_of_history(text: str, query: hr.Query) -> str:
    """The history that follows from changes; unlike these, it does not depend on how epochs were cut."""
    names = query.plan.schema.names
    changes = []
    for line in text.splitlines():
        row = json.loads(line)
        until = INFINITY if row["valid_to"] is None else _instant(row["valid_to"])
        payload = tuple(row[name] for name in names)
        changes.append((payload, _instant(row["valid_from"]), until, row["change"]))
    rows = to_rows(canonical(from_rows(query.plan.schema, changes)))
    return f"{len(rows)} rows {hashlib.sha256(repr(rows).encode()).hexdigest()}"


def _instant(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
