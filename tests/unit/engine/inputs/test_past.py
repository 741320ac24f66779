"""Answers as of an epoch that has passed: how it is named, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import headrace as hr
from headrace.cli.app import app
from headrace.time import ManualClock

NINE = 32_400_000_000
"""1970-01-01 09:00 UTC (microseconds)."""


def three_epochs(folder: Path | None = None, retain: int | None = None) -> hr.Database:
    """Rows of 09:00, 09:01 and 09:02 by the clock; the last one closes the interval of the first."""
    clock = ManualClock(NINE)
    db = hr.connect(runner="inline", clock=clock, storage=folder, retain_epochs=retain)
    db.execute("CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts")
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]", name="counted")
    db.start()
    for k, ts in (("a", 1), ("b", 3), ("c", 9)):
        db.push("s", {"k": k, "ts": ts})
        clock.advance(60_000_000)
    return db


def test_an_epoch_is_named_by_its_number_or_by_the_clock() -> None:
    with three_epochs() as db:
        query = db["counted"]
        assert query.epochs().to_pylist() == [
            {
                "epoch": number,
                "taken_at": datetime(1970, 1, 1, 9, minute, tzinfo=UTC),
                "heartbeat": heartbeat,
                "horizon": heartbeat,
            }
            for number, minute, heartbeat in ((1, 0, 1), (2, 1, 3), (3, 2, 9))
        ]
        second = query.history(as_of=2)
        assert second.to_pylist() == [{"n": 1, "valid_from": 1, "valid_to": 3}]
        noon = datetime(1970, 1, 1, 9, 1)
        for moment in (noon, noon.replace(tzinfo=UTC), noon + timedelta(seconds=59), "1970-01-01T09:01:30Z"):
            assert query.history(as_of=moment) == second
        assert query.snapshot(2, as_of=2).to_pylist() == [{"n": 1}]
        assert query.changes(as_of=2).column("epoch").to_pylist() == [2]
        with pytest.raises(hr.UserError, match="the answer at 4 is not final yet, only below 3"):
            query.snapshot(4, as_of=2)


def test_what_is_not_said_yet_is_said_so_by_its_horizon() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3")
        db.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s [RANGE 5]")
        query = db["q"]
        db.start()
        for ts in range(3, 11):
            db.push("s", {"v": ts, "ts": ts})
        epoch = query.epochs().to_pylist()[-1]["epoch"]
        assert (query.epochs().to_pylist()[-1]["heartbeat"], query.epochs().to_pylist()[-1]["horizon"]) == (
            7,
            11,
        )
        assert query.snapshot(10, as_of=epoch).num_rows == 5
        said = "nothing is said of the answer at 11 yet, only below 11, final below 7"
        with pytest.raises(hr.UserError, match=said):
            query.snapshot(11, as_of=epoch)


def test_what_became_known_between_two_epochs() -> None:
    with three_epochs() as db:
        query = db["counted"]
        assert (
            query.difference(2).to_pylist()
            == [
                {"n": 1, "valid_from": 6, "valid_to": 8, "change": 1},
                {"n": 2, "valid_from": 3, "valid_to": 6, "change": 1},
            ][::-1]
        )
        assert query.difference(before=3, after=2) == query.difference(2).set_column(
            3, "change", pa.array([-1, -1])
        )
        same = query.difference(2, at=2)
        assert (same.schema.names, same.num_rows) == (["n", "change"], 0)


def test_what_was_believed_and_has_been_corrected() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10")
        db.execute("CREATE QUERY early CONSISTENCY MIDDLE AS SELECT COUNT(*) AS n FROM s [RANGE 4]")
        db.start()
        for ts in (20, 18, 40):
            db.push("s", {"ts": ts})
        early = db["early"]
        assert early.epochs().drop_columns("taken_at").to_pylist() == [
            {"epoch": 1, "heartbeat": 10, "horizon": 21},
            {"epoch": 2, "heartbeat": 10, "horizon": 21},
            {"epoch": 3, "heartbeat": 30, "horizon": 41},
        ]
        believed = [early.snapshot(20, as_of=epoch) for epoch in (1, 2, 3)]
        assert [table.to_pydict()["n"] for table in believed] == [[1], [2], [2]]
        assert [table.schema.metadata[b"final"] for table in believed] == [b"false", b"false", b"true"]
        assert early.history(as_of=2).num_rows == 0
        assert early.difference(1, 2).to_pylist() == [
            {"n": 1, "valid_from": 18, "valid_to": 20, "change": 1},
            {"n": 2, "valid_from": 20, "valid_to": 21, "change": 1},
            {"n": 1, "valid_from": 20, "valid_to": 21, "change": -1},
        ]
        assert early.difference(2, 3, at=20).num_rows == 0


def test_epochs_without_an_answer_are_refused() -> None:
    with three_epochs() as db:
        query = db["counted"]
        with pytest.raises(hr.UserError, match="epoch 9 of counted has not been committed") as refused:
            query.history(as_of=9)
        assert refused.value.hint == "the last one is 3"
        with pytest.raises(hr.UserError, match="counted was not answered yet at 1970-01-01T08:59:59"):
            query.history(as_of="1970-01-01T08:59:59Z")
        with pytest.raises(hr.UserError, match="'yesterday' is not a valid timestamp"):
            query.history(as_of="yesterday")
        added = db.query("SELECT k FROM s", name="added")
        with pytest.raises(hr.UserError, match="added was not answered yet in epoch 3") as refused:
            added.snapshot(1, as_of=3)
        assert refused.value.hint == "it began with epoch 4"


def test_epochs_that_are_no_longer_kept_are_refused() -> None:
    with three_epochs(retain=1) as db:
        query = db["counted"]
        assert query.epochs().column("epoch").to_pylist() == [3]
        with pytest.raises(hr.UserError, match="said in epoch 2 is no longer kept, only from epoch 3 on"):
            query.history(as_of=2)
        with pytest.raises(hr.UserError, match=r"said at 1970-01-01T09:01:00Z is no longer kept, only from"):
            query.snapshot(1, as_of="1970-01-01T09:01:00Z")


def test_the_command_line_shows_past_answers(tmp_path: Path) -> None:
    with three_epochs(tmp_path / "store"):
        pass

    def printed(*options: str) -> str:
        arguments = ["store", str(tmp_path / "store"), "--query", "counted", "--format", "csv", *options]
        return CliRunner().invoke(app, arguments).output

    assert printed("--as-of", "2") == "n,valid_from,valid_to\n1,1,3\n"
    assert printed("--as-of", "1970-01-01T09:01:10Z") == "n,valid_from,valid_to\n1,1,3\n"
    assert printed("--as-of", "2", "--at", "2") == "n\n1\n"
    assert printed("--since", "2", "--as-of", "3").splitlines() == [
        "n,valid_from,valid_to,change",
        "2,3,6,1",
        "1,6,8,1",
    ]
    assert printed("--since", "2", "--as-of", "3", "--at", "7").startswith(
        "headrace: the answer at 7 is not final"
    )
    assert printed("--epochs").splitlines()[:2] == [
        "epoch,taken_at,heartbeat,horizon",
        "1,1970-01-01T09:00:00Z,1,1",
    ]
    assert "--at latest is the answer now" in printed("--as-of", "2", "--at", "latest")
    assert "--since compares histories or snapshots" in printed("--since", "2", "--as", "changes")
    assert "--epochs goes with no view" in printed("--epochs", "--at", "2")
    refused = CliRunner().invoke(app, ["store", str(tmp_path / "store"), "--as-of", "2"])
    assert refused.exit_code == 2
    assert "are for --query" in refused.output
