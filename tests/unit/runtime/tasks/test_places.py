"""Where rows are that are late, ahead of the clock or of no use: as of those that do not parse."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import headrace as hr
from headrace.reference.lateness import late_rows
from how_many import examples
from waiting import wait_until

Times = list[int | None]


def _csv(times: Times, path: Path) -> None:
    path.write_text("ts,k\n" + "".join(f"{'' if at is None else at},{row}\n" for row, at in enumerate(times)))


def _quoted_csv(times: Times, path: Path) -> None:
    path.write_text(
        "ts,k\n" + "".join(f'"{"" if at is None else at}",{row}\n' for row, at in enumerate(times))
    )


def _json(times: Times, path: Path) -> None:
    path.write_text("".join(json.dumps({"ts": at, "k": row}) + "\n" for row, at in enumerate(times)))


def _columnar(times: Times, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"ts": pa.array(times, pa.int64()), "k": pa.array(range(len(times)), pa.int64())})
    pq.write_table(table, path, row_group_size=3)


def _avro(times: Times, path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    fields = [{"name": "ts", "type": ["null", "long"]}, {"name": "k", "type": "long"}]
    out = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(out, schema, [{"ts": at, "k": row} for row, at in enumerate(times)], sync_interval=20)
    path.write_bytes(out.getvalue())


WRITERS: dict[str, tuple[Callable[[Times, Path], None], str, int]] = {
    "csv": (_csv, "csv", 2),
    "quoted csv": (_quoted_csv, "csv", 2),
    "json": (_json, "json", 1),
    "parquet": (_columnar, "parquet", 1),
    "avro": (_avro, "avro", 1),
}
"""What writes rows, the format that reads them, and the number of the first row."""


def letters_of(db: hr.Database) -> list[tuple[str, str]]:
    """The dead letters' places and what kind each is."""
    return [(one["place"], one["reason"][:4]) for one in db.dead_letters().to_pylist()]


def expected(times: Times, label: str, first: int, disorder: int) -> list[tuple[str, str]]:
    """By the definition of late rows the place of each row that is set apart."""
    late = set(late_rows(times, disorder))
    wrong = {row: "the " for row, at in enumerate(times) if at is None} | dict.fromkeys(late, "late")
    return sorted((f"{label}:{row + first}", why) for row, why in wrong.items())


@pytest.mark.parametrize("name", WRITERS)
@given(
    times=st.lists(st.none() | st.integers(0, 30), min_size=2, max_size=30).filter(any),
    epoch_rows=st.integers(1, 12),
    disorder=st.integers(0, 5),
)
@examples(3, 10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_that_are_set_apart_say_where_they_are(
    name: str, times: Times, epoch_rows: int, disorder: int, tmp_path: Path
) -> None:
    write, form, first = WRITERS[name]
    write(times, tmp_path / f"s.{form}")
    with chdir(tmp_path), hr.connect(runner="inline", epoch_rows=epoch_rows) as db:
        db.execute(
            f"CREATE STREAM s (ts BIGINT, k BIGINT) FROM {form} OPTIONS (path 's.{form}') "
            f"TIMESTAMP BY ts DISORDER {disorder}"
        )
        db.query("SELECT k FROM s", "q")
        db.run()
        assert sorted(letters_of(db)) == expected(times, f"s.{form}", first, disorder)


COLUMNS = "ts BIGINT, k BIGINT, twice AS ts * 2"


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("DISORDER 0", "late"),
        ("DISORDER 0 PER k OF (0)", "late"),
        ("DISORDER 0 DEAD LETTERS KEEP ALL", "late"),
    ],
)
def test_every_way_of_judging_rows_knows_their_places(tmp_path: Path, clauses: str, reason: str) -> None:
    (tmp_path / "s.csv").write_text("ts,k\n5,0\nx,0\n9,0\n4,0\n10,0\n")
    with chdir(tmp_path), hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s ({COLUMNS}) FROM csv OPTIONS (path 's.csv') TIMESTAMP BY ts {clauses}")
        db.query("SELECT k FROM s", "q")
        db.run()
        found = dict(letters_of(db))
        assert found["s.csv:5"] == reason
        assert set(found) == {"s.csv:3", "s.csv:5"}
        if "KEEP" in clauses:
            kept: Any = db.dead_letters("s")
            assert sorted(kept.column("place").to_pylist()) == ["s.csv:3", "s.csv:5"]


def test_files_in_folders_and_computed_columns(tmp_path: Path) -> None:
    for day, rows in (("1", "1,1\n2,0\n"), ("2", "3,1\n1,1\n4,1\n")):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "part.csv").write_text(f"ts,k\n{rows}")
    with chdir(tmp_path), hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (ts BIGINT, k BIGINT, day BIGINT, part AS ts DIV k) "
            "FROM csv OPTIONS (path 'day=*/*.csv') TIMESTAMP BY ts"
        )
        db.query("SELECT part FROM s", "q")
        db.run()
        assert sorted(letters_of(db)) == [("day=1/part.csv:3", "part"), ("day=2/part.csv:3", "late")]


def test_rows_of_a_relation_that_are_not_valid_at_any_time(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a,b,k\n1,5,1\n7,3,2\n")
    (tmp_path / "s.csv").write_text("ts\n1\n2\n")
    with chdir(tmp_path), hr.connect(runner="inline") as db:
        db.execute(
            "CREATE RELATION r FROM csv OPTIONS (path 'r.csv') VALID FROM a TO b;"
            "CREATE STREAM s FROM csv OPTIONS (path 's.csv') TIMESTAMP BY ts"
        )
        db.query("SELECT k FROM s [NOW], r", "q")
        db.run()
        assert letters_of(db) == [("r.csv:3", "the ")]


def test_records_of_changes(tmp_path: Path) -> None:
    records = ({"op": "c", "before": None, "after": {"k": at}, "ts_ms": at} for at in (5, 9, 4, 11))
    (tmp_path / "s.json").write_text("".join(json.dumps(one) + "\n" for one in records))
    with chdir(tmp_path), hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (k BIGINT) FROM json OPTIONS (path 's.json') FORMAT DEBEZIUM "
            "TIMESTAMP BY __ts_ms"
        )
        db.query("SELECT k FROM s", "q")
        db.run()
        assert letters_of(db) == [("s.json:3", "late")]


def test_a_followed_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ts,k\n5,0\n9,0\n4,0\n")
    with chdir(tmp_path), hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (ts BIGINT, k BIGINT) FROM csv OPTIONS (path 'in', follow 'true') "
            "TIMESTAMP BY ts"
        )
        db.query("SELECT k FROM s", "q")
        db.start()
        wait_until(lambda: letters_of(db), [(f"{tmp_path}/in/a.csv:4", "late")])
