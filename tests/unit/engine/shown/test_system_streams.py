"""The streams in which a run describes itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.algebra.system_streams import SystemStream
from headrace.errors import LanguageError, Position
from headrace.runtime.driver.endless import live
from headrace.runtime.intake import system_feed
from headrace.runtime.intake.system_feed import Pace
from inside import run_of
from waiting import wait_for
from watched_clock import Clock

READINGS = "CREATE STREAM reading (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;"
TOTAL = "CREATE QUERY total AS SELECT SUM(v) AS total FROM reading [RANGE 10];"


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        db.execute(READINGS + TOTAL)
        yield db


def rows_of(query: hr.Query, wanted: int) -> list[dict[str, Any]]:
    """What has been said once there are so many rows."""
    for _ in query.subscribe(from_epoch=1):
        found: list[dict[str, Any]] = query.changes().to_pylist()
        if len(found) >= wanted:
            return found
    raise AssertionError("the run has ended")


def push_two(db: hr.Database) -> None:
    """Two epochs, of two rows and of one; a row of the second is late."""
    db.push("reading", [{"ts": 1, "v": 10}, {"ts": 5, "v": 20}])
    db.push("reading", [{"ts": 3, "v": 99}, {"ts": 7, "v": 1}])


def test_what_epochs_did(db: hr.Database) -> None:
    asked = db.query("SELECT * FROM headrace.epochs", "e")
    db.start()
    push_two(db)
    first, second = rows_of(asked, 2)
    assert (first["epoch"], first["rows_in"], first["late"], first["dead_letters"]) == (1, 2, 0, 0)
    assert (second["epoch"], second["rows_in"], second["late"], second["dead_letters"]) == (2, 1, 1, 1)
    assert first["changes"] == db["total"].changes(as_of=1).num_rows
    # The second epoch also brought the row about the first one.
    assert second["changes"] == db["total"].changes(as_of=2).num_rows - first["changes"] + 1
    assert first["state_rows"] > 0


def test_streams_and_queries(db: hr.Database) -> None:
    streams = db.query("SELECT * FROM headrace.streams", "s")
    queries = db.query("SELECT * FROM headrace.queries WHERE query = 'total'", "q")
    db.start()
    push_two(db)
    first, second = rows_of(streams, 2)
    assert (first["stream"], first["rows_in"], first["heartbeat"], first["lag"]) == ("reading", 2, 5, 0)
    assert (second["rows_in"], second["late"], second["latest"], second["ended"]) == (1, 1, 7, False)
    first, second = rows_of(queries, 2)
    assert (first["heartbeat"], second["heartbeat"], second["held_by"]) == (5, 7, "reading")
    assert second["failed"] is None


def test_operators(db: hr.Database) -> None:
    operators = db.query("SELECT * FROM headrace.operators", "o")
    db.start()
    push_two(db)
    found = rows_of(operators, 1)
    aggregates = [row for row in found if "SUM" in row["what"] and row["epoch"] == 1]
    (aggregate,) = aggregates
    status = next(part for part in db.status.operators if part.identity == aggregate["identity"])
    assert (aggregate["rows_in"], aggregate["operator"]) == (2, status.number)
    assert aggregate["seconds"] >= 0


def test_tunings(db: hr.Database) -> None:
    """Each number that may change is told with every epoch, as it is for rows that come now."""
    db.execute("CREATE QUERY sized AS SELECT COUNT(*) AS n FROM reading [RANGE MIN 2, MAX 9]")
    db.execute("CREATE QUERY also AS SELECT SUM(v) AS n FROM reading [RANGE MIN 2, MAX 9]")
    db.execute(
        "CREATE QUERY coarse AS SELECT COUNT(*) AS n FROM reading [ROWS MIN 2, MAX 5];"
        "CREATE QUERY fine AS SELECT COUNT(*) AS n FROM reading [RANGE 4] GRANULARITY(COARSEST 6, FINEST 2)"
    )
    tunings = db.query("SELECT * FROM headrace.tunings", "t")
    db.start()
    push_two(db)
    db.execute("ALTER QUERY also SET (WINDOW 4); ALTER QUERY coarse SET (WINDOW 3 ROWS)")
    db.execute("ALTER QUERY fine SET (GRANULARITY 6)")
    db.push("reading", [{"ts": 9, "v": 1}])
    first, *_ = rows_of(tunings, 1)
    last = sorted(rows_of(tunings, 9), key=lambda row: (row["epoch"], row["kind"]))[-3:]
    assert first["since"] is None
    assert [
        tuple(row[name] for name in ("streams", "kind", "smallest", "largest", "size", "since"))
        for row in last
    ] == [
        ("reading", "granule", 2, 6, 6, 9),
        ("reading", "rows", 2, 5, 3, 8),
        ("reading", "window", 2, 9, 4, 8),
    ]


def test_lanes(db: hr.Database) -> None:
    graph = "(DELAY (1 HOUR, 1), (2 HOURS, 0))"
    db.execute(f"CREATE QUERY behind WEIGHT 0 QOS {graph} AS SELECT v FROM reading [RANGE 3]")
    lanes = db.query("SELECT * FROM headrace.lanes", "l")
    db.start()
    push_two(db)

    def of_lane(wanted: int) -> list[dict[str, Any]]:
        rows = sorted(rows_of(lanes, wanted), key=lambda row: row["epoch"])
        return [row for row in rows if row["lane"]]

    wait_for(lambda: len(of_lane(4)) >= 2)
    front = next(row for row in rows_of(lanes, 4) if not row["lane"])
    assert (front["queries"], front["weight"], front["waiting"]) == ("total, l", 2.0, None)
    first, second = of_lane(4)[:2]
    names = ("queries", "weight", "due", "had", "waiting", "rows_in", "seconds", "utility")
    assert [tuple(row[name] for name in names) for row in (first, second)] == [
        ("behind", 0.0, 0.0, 0.0, waiting, 0, 0.0, None) for waiting in (2, 3)
    ]
    assert second["behind"] > 0
    db.execute("ALTER QUERY behind SET (WEIGHT 2)")
    wait_for(lambda: sum(row["rows_in"] for row in of_lane(5)) == 3)
    last = next(row for row in of_lane(5) if row["rows_in"])
    assert (last["weight"], last["due"], last["waiting"], last["behind"]) == (2.0, 0.5, 0, None)
    assert last["seconds"] > 0
    assert last["utility"] == 1.0


def test_epochs_in_which_a_lane_reads_of_epochs_are_not_told(db: hr.Database) -> None:
    asked = db.query("SELECT * FROM headrace.epochs", "front")
    db.execute("CREATE QUERY e WEIGHT 1 AS SELECT * FROM headrace.epochs")
    db.start()
    for ts in range(1, 5):
        db.push("reading", {"ts": ts, "v": 1})
        wait_for(lambda ts=ts: db["e"].changes().num_rows >= ts)  # type: ignore[misc]
    assert {row["rows_in"] for row in rows_of(asked, 4)} == {1}


def test_dead_letters_of_all_streams(db: hr.Database) -> None:
    db.execute(READINGS.replace("reading", "other") + "CREATE QUERY o AS SELECT 1 / v AS x FROM other")
    letters = db.query("SELECT stream, query, row_text FROM headrace.dead_letters", "l")
    db.start()
    push_two(db)
    db.push("other", [{"ts": 1, "v": 0}])
    found = rows_of(letters, 2)
    assert [(row["stream"], row["query"]) for row in found] == [("reading", None), (None, "o")]
    assert '"v": 99' in found[0]["row_text"]


def test_an_idle_system_makes_finitely_many_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_feed, "INTERVAL", 0.0)
    monkeypatch.setattr(live, "_LOOK", 0.005)
    clock = Clock()
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(READINGS + TOTAL)
        asked = db.query("SELECT COUNT(*) AS n FROM headrace.epochs [RANGE 1 MILLISECOND]", "e")
        db.start()
        push_two(db)
        clock.let_pass(3)
        assert asked.changes().num_rows
        seen = db.status.epoch
        clock.let_pass(3)
        assert db.status.epoch == seen
        push_two(db)
        clock.let_pass(3)
        after = db.status.epoch
        clock.let_pass(3)
        assert after == db.status.epoch > seen + 2


def test_rows_ride_on_the_next_epoch(db: hr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_feed, "INTERVAL", 1e9)
    asked = db.query("SELECT epoch AS n FROM headrace.epochs", "e")
    db.start()
    for ts in range(1, 6):
        db.push("reading", [{"ts": ts, "v": ts}])
    # The first of them may have caused an epoch; none after it has.
    assert db.status.epoch in (5, 6)
    assert {row["epoch"] for row in asked.changes().to_pylist()} <= {2, 3, 4, 5, 6}


def test_all_of_them_together_cause_one_epoch_a_second(
    db: hr.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead letters come while rows about epochs have just been taken."""
    seconds, asked = [0.0], [0]

    def is_due(pace: Pace) -> bool:
        asked[0] += 1
        return seconds[0] >= pace._due

    monkeypatch.setattr(Pace, "is_due", is_due)
    monkeypatch.setattr(Pace, "taken", lambda pace: setattr(pace, "_due", seconds[0] + 1))
    monkeypatch.setattr(live, "_LOOK", 0.005)
    db.query("SELECT epoch FROM headrace.epochs", "e")
    letters = db.query("SELECT epoch FROM headrace.dead_letters", "l")
    db.start()

    db.push("reading", [{"ts": 5, "v": 1}])
    # That epoch is described by one of its own.
    wait_for(lambda: db.status.epoch == 2)
    db.push("reading", [{"ts": 3, "v": 99}])
    before = asked[0]
    wait_for(lambda: asked[0] > before + 5)
    # The letter of the third epoch waits, since one of its own would come within the second, and rides.
    assert db.status.epoch == 3
    db.push("reading", [{"ts": 6, "v": 99}])
    assert db.status.epoch == 4
    assert letters.changes()["epoch"].to_pylist() == [3]
    seconds[0] = 1.0
    wait_for(lambda: db.status.epoch == 5)


def test_waiting_rows_state_heartbeats_and_rates(db: hr.Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(value: int) -> int:
        begun.set()
        assert go_on.wait(60)
        return value

    db.function("slow", slow, arguments=["BIGINT"], returns="BIGINT")
    db.execute("CREATE QUERY slowly AS SELECT slow(v) AS v FROM reading")
    streams = db.query("SELECT * FROM headrace.streams", "s")
    queries = db.query("SELECT * FROM headrace.queries WHERE query = 'total'", "q")
    operators = db.query("SELECT * FROM headrace.operators", "o")
    db.execute("SET epoch_rows = 2")
    db.start()
    first = db.push("reading", [{"ts": 1, "v": 1}, {"ts": 5, "v": 2}], wait=False)
    assert begun.wait(60)
    others = [db.push("reading", [{"ts": ts, "v": ts}], wait=False) for ts in (7, 8, 9)]
    go_on.set()
    assert first.result(60)
    assert all(other.result(60) for other in others)
    said = rows_of(streams, 3)
    assert [(row["rows_in"], row["waiting"]) for row in said] == [(2, 3), (2, 1), (1, 0)]
    assert [row["heartbeat"] for row in said] == [5, 8, 9]
    assert all(row["rate"] is None or row["rate"] > 0 for row in said)
    assert said[-1]["rate"] is not None
    last = rows_of(queries, 3)[-1]
    assert (last["heartbeat"], last["horizon"], last["lag"]) == (9, 9, 0)
    status = {part.identity: part for part in db.status.operators}
    rows = [row for row in rows_of(operators, 1) if row["epoch"] == said[-1]["epoch"]]
    (aggregate,) = [row for row in rows if "SUM" in row["what"]]
    known = status[aggregate["identity"]]
    # Epochs of the run's own rows change nothing of it.
    assert (aggregate["state_rows"], aggregate["state_bytes"]) == (known.state_rows, known.state_bytes)
    assert (aggregate["heartbeat"], aggregate["waiting"]) == (known.heartbeat, 0)
    assert aggregate["rows_out"] <= known.rows_out


def test_they_are_timed_by_the_committed_clock(db: hr.Database) -> None:
    """The instant of a row is the reading of the clock with which the epoch that took it was committed."""
    asked = db.query("SELECT epoch, noted_at, taken_at FROM headrace.epochs", "e")
    db.query("SELECT epoch FROM headrace.streams", "s")
    db.start()
    push_two(db)
    rows = rows_of(asked, 2)
    clocks = {part.epoch: part.clock for part in run_of(db).results}
    for row in rows:
        noted, taken = (int(row[name].timestamp() * 1e6) for name in ("noted_at", "taken_at"))
        assert taken == clocks[row["epoch"]]
        assert noted in [clock for epoch, clock in clocks.items() if epoch > row["epoch"]]


def test_what_was_said_survives_in_a_store(tmp_path: Path) -> None:
    text = READINGS + TOTAL + "CREATE QUERY e AS SELECT epoch AS n FROM headrace.epochs"
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(text)
        db.start()
        db.push("reading", [{"ts": 1, "v": 10}])
        before = rows_of(db["e"], 1)
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(text)
        db.start()
        db.push("reading", [{"ts": 2, "v": 10}])
        assert rows_of(db["e"], 2)[0] == before[0]


def test_nobody_else_brings_their_rows(db: hr.Database) -> None:
    db.query("SELECT * FROM headrace.epochs")
    db.start()
    with pytest.raises(hr.UserError):
        db.push("headrace.epochs", [{"epoch": 1}])
    with pytest.raises(hr.UserError):
        db.heartbeat("headrace.epochs", 1)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("SELECT * FROM headrace.epoch", (1, 24), "no stream headrace.epoch", "headrace.epochs"),
        ("SELECT * FROM other.epochs", (1, 20), "one part", "headrace.epochs"),
        (
            "CREATE STREAM `headrace.epochs` (ts BIGINT) FROM push TIMESTAMP BY ts",
            (1, 1),
            "a run says",
            "another name",
        ),
        ("SELECT nothing FROM headrace.epochs", (1, 8), "nothing", None),
    ],
)
def test_mistakes(db: hr.Database, text: str, place: tuple[int, int], message: str, hint: str | None) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        db.execute(text)
    assert caught.value.position == Position(*place)
    assert hint is None or hint in (caught.value.hint or "")


def test_closed_sql_does_not_see_them(db: hr.Database) -> None:
    for stream in SystemStream:
        with pytest.raises(LanguageError):
            db.query(f"SELECT * FROM {stream.full_name}", policy=hr.Policy.closed())


def test_bounded_runs_refuse_them(db: hr.Database) -> None:
    db.execute("DROP QUERY total")
    db.query("SELECT * FROM headrace.epochs")
    with pytest.raises(hr.UserError, match=r"headrace.epochs never ends"):
        db.run()
