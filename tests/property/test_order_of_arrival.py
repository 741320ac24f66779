"""Changes of a key at one instant, wherever they come from: the one that came last counts."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import Phase, given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.database import Database
from headrace.reference.changes import RowChange, content_after
from how_many import examples
from waiting import wait_for

Log = list[tuple[str, int, int]]
"""The operation, the key and a value of changes that all have one instant."""

AT: Final = 5
LOGS = st.lists(
    st.tuples(st.sampled_from("iud"), st.integers(1, 2), st.integers(0, 3)), min_size=1, max_size=12
)
COLUMNS: Final = "op STRING, id BIGINT, v BIGINT, ts BIGINT"


def defined(log: Log) -> list[dict[str, int]]:
    """The rows that there are after the log, by key."""
    changes = [
        RowChange(AT, (key,), None, operation == "d", (key, value), arrived=place)
        for place, (operation, key, value) in enumerate(log)
    ]
    return [{"id": int(str(key)), "v": int(str(value))} for key, value in sorted(content_after(changes, AT))]


def rows_of(log: Log) -> list[dict[str, Any]]:
    return [{"op": operation, "id": key, "v": value, "ts": AT} for operation, key, value in log]


def found(db: Database, name: str = "q") -> list[dict[str, int]]:
    rows = db[name].snapshot(AT).select(["id", "v"]).to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))


PUSHED: Final = f"""
CREATE STREAM r ({COLUMNS}) KEY (id) FROM push CHANGES BY op TIMESTAMP BY ts RETAIN ALL;
CREATE QUERY q AS SELECT id, v FROM r;
"""


@examples(8, 40, phases=[Phase.explicit, Phase.generate])
@given(LOGS, st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
def test_pushed_changes(log: Log, rows: int, added: int, restart: int) -> None:
    """In hand-overs, before and after a restart; a query that is added looks back at what is kept."""
    with tempfile.TemporaryDirectory() as store:
        db = started(store)
        for number, place in enumerate(range(0, len(log), rows)):
            if number == restart:
                db.close()
                db = started(store)
            if number == added:
                db.execute("CREATE QUERY later AS SELECT id, v, id AS other FROM r")
            db.push("r", rows_of(log[place : place + rows]))
        db.push("r", {"op": "i", "id": 9, "v": 9, "ts": AT + 1})
        for query in db.queries:
            assert found(db, query.name) == defined(log)
        db.close()


def started(store: str) -> Database:
    db = hr.connect(runner="inline", storage=store)
    if not db.queries:
        db.execute(PUSHED)
    db.start()
    return db


@examples(8, 40, phases=[Phase.explicit, Phase.generate])
@given(LOGS, st.integers(1, 12), st.sampled_from(("csv", "json", "parquet")), st.integers(1, 4))
def test_changes_in_files(log: Log, rows: int, form: str, files: int) -> None:
    """By the names of files and the lines in them, whole before all streams or as a stream, however cut."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files):
            part = rows_of(log[number * len(log) // files : (number + 1) * len(log) // files])
            if part:
                write(Path(folder, f"{number}.{form}"), part)
        for clause in ("", "DISORDER 3"):
            with hr.connect(runner="inline", epoch_rows=rows) as db:
                db.execute(
                    f"CREATE RELATION r ({COLUMNS}) KEY (id) FROM {form} OPTIONS (path '{folder}') "
                    f"CHANGES BY op TIMESTAMP BY ts {clause}; CREATE QUERY q AS SELECT id, v FROM r"
                )
                db.run()
                assert found(db) == defined(log)


def test_changes_in_a_folder_that_is_followed(tmp_path: Path) -> None:
    """A later file counts after an earlier one, even if that is larger."""
    (tmp_path / "in").mkdir()
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE RELATION r ({COLUMNS}) KEY (id) FROM json "
            f"OPTIONS (path '{tmp_path}/in', follow true, ready 'renamed', poll '5 ms') CHANGES BY op "
            "TIMESTAMP BY ts DISORDER 0; CREATE QUERY q AS SELECT id, v FROM r"
        )
        db.start()
        for number, log in enumerate(([("i", 1, 1)] * 9, [("i", 1, 3)], [("d", 1, 0), ("i", 1, 2)])):
            write(tmp_path / "part", rows_of(list(log)))
            os.rename(tmp_path / "part", tmp_path / f"in/{9 - number}.json")
            wait_for(lambda many=(9, 10, 12)[number]: db.status.streams[0].rows == many)  # type: ignore[misc]
        db.heartbeat("r", AT + 1)
        assert found(db) == [{"id": 1, "v": 2}]
        db.stop()


def test_a_log_of_debezium(tmp_path: Path) -> None:
    """All changes of a transaction have one instant."""
    images = [("c", 1, None, 1), ("d", 1, 1, None), ("c", 2, None, 1), ("u", 2, 1, 9), ("u", 2, 9, 3)]
    rows = [
        {
            "before": None if before is None else {"id": key, "v": before},
            "after": None if after is None else {"id": key, "v": after},
            "source": {"ts_ms": 2000},
            "op": operation,
        }
        for operation, key, before, after in images
    ]
    write(tmp_path / "log.jsonl", rows)
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM r KEY (id) FROM json OPTIONS (path '{tmp_path}/log.jsonl') FORMAT DEBEZIUM;"
            "CREATE QUERY q AS SELECT id, v FROM r"
        )
        db.run()
        assert db["q"].snapshot(2_000_000).select(["id", "v"]).to_pylist() == [{"id": 2, "v": 3}]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("".join(f"{line}\n" for line in lines))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
