"""The instants of a pause, which look empty, are named wherever an answer is read."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import headrace as hr
from headrace.cli.app import app
from headrace.runtime.journal.gap import Gap, with_gap

TEXT = """
    CREATE STREAM tick (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
    CREATE QUERY top AS SELECT MAX(v) AS v FROM tick [RANGE 5];
    CREATE QUERY other AS SELECT v FROM tick;
"""


def push(db: hr.Database, *instants: int) -> None:
    for ts in instants:
        db.push("tick", {"v": ts, "ts": ts})


def test_gaps_are_named_by_readers_status_and_store(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(TEXT)
        db.start()
        push(db, 1, 10)
        assert db["top"].gaps().num_rows == 0
        db.execute("ALTER QUERY top PAUSE")
        push(db, 20, 30)
        assert db["top"].gaps().to_pylist() == [{"lacks_from": 10, "lacks_to": None, "exact_from": None}]
        db.stop()
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.start()
        assert db["top"].gaps().to_pylist() == [{"lacks_from": 10, "lacks_to": None, "exact_from": None}]
        db.execute("ALTER QUERY top RESUME")
        push(db, 40)
        expected = [{"lacks_from": 10, "lacks_to": 30, "exact_from": 35}]
        assert db["top"].gaps().to_pylist() == expected
        assert hr.open(tmp_path / "store")["top"].gaps().to_pylist() == expected
        metadata = db["top"].history().schema.metadata
        assert json.loads(metadata[b"headrace.gaps"]) == [[10, 30, 35]]
        part = db["top"].between(12, 20)
        assert part.num_rows == 0
        assert json.loads(part.schema.metadata[b"headrace.gaps"]) == [[10, 30, 35]]
        for asked in (db["top"].latest(last=2), db["top"].latest(since=20), db["top"].snapshot(39, last=20)):
            assert json.loads(asked.schema.metadata[b"headrace.gaps"]) == [[10, 30, 35]]
        assert b"headrace.gaps" not in (db["other"].history().schema.metadata or {})
        assert {query.name: query.gaps for query in db.status.queries} == {
            "top": (Gap(10, 30, 35),),
            "other": (),
        }
        assert "it says nothing from 10 to before 30, and not all from there to before 35" in str(
            db.execute("DESCRIBE top")[0]
        )
        printed = CliRunner().invoke(app, ["store", str(tmp_path / "store")]).output
        assert [line for line in printed.splitlines() if "nothing from 10 to before 30" in line]
        db.stop()


def test_a_query_that_is_resumed_at_once_lacks_the_rows_of_its_windows(tmp_path: Path) -> None:
    """No heartbeat has moved meanwhile, so that nothing is unsaid; but rows that had come are missing."""
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(TEXT)
        db.execute("CREATE QUERY every AS SELECT MAX(v) AS v FROM tick [RANGE UNBOUNDED]")
        db.start()
        push(db, 1, 10)
        said = db.execute("ALTER QUERY top PAUSE; ALTER QUERY top RESUME")
        assert "it is exact from 15 on" in str(said[1])
        expected = [{"lacks_from": 10, "lacks_to": 10, "exact_from": 15}]
        assert db["top"].gaps().to_pylist() == expected
        assert "it says not all from 10 to before 15" in str(db.execute("DESCRIBE top")[0])
        db.execute("ALTER QUERY every PAUSE; ALTER QUERY every RESUME")
        assert db["every"].gaps().to_pylist() == [{"lacks_from": 10, "lacks_to": 10, "exact_from": None}]
        assert "it says not all from 10 on" in str(db.execute("DESCRIBE every")[0])
        db.stop()
    assert hr.open(tmp_path / "store")["top"].gaps().to_pylist() == expected


def test_gaps_that_touch_are_one() -> None:
    assert with_gap((Gap(1, 5, 8),), Gap(5, 9, 12)) == (Gap(1, 9, 12),)
    assert with_gap((Gap(1, 5, 20),), Gap(5, 9)) == (Gap(1, 9, 20),)
    assert with_gap((Gap(1, 5, 8),), Gap(5, 9)) == (Gap(1, 9),)
    assert with_gap((Gap(1, 5, 8),), Gap(6, 6, 9)) == (Gap(1, 5, 8), Gap(6, 6, 9))
    assert with_gap((), Gap(7, 7, 7)) == ()
    assert with_gap((Gap(1, 5),), Gap(5, 9)) == (Gap(1, 9),)
    assert with_gap((Gap(1, 5),), Gap(3, 4)) == (Gap(1, 5),)
    assert with_gap((Gap(1, 5),), Gap(7, 9)) == (Gap(1, 5), Gap(7, 9))
    assert with_gap((Gap(1, 5),), Gap(7, 7)) == (Gap(1, 5),)
