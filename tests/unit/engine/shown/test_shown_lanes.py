"""Lanes as SHOW LANES, the status, WHY and `headrace top` show them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

import headrace as hr
from headrace.cli.glances import OperatorOrder, StatusGlance, picture
from headrace.cli.progress import show_summary
from headrace.cli.seen import seen_in_status, seen_in_store
from headrace.runtime.driver.lanes import lanes as lanes_module
from headrace.runtime.driver.lanes.lanes import Lanes
from headrace.runtime.driver.lanes.status import AnswerWorth, LaneStatus
from headrace.runtime.journal.inspect import glance
from headrace.server.access import Caller
from headrace.server.keys import Role
from headrace.server.visible import shown_status
from inside import execution_of
from waiting import wait_for

DEFINED = """CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY alarm QOS (DELAY (1 HOUR, 1), (2 HOURS, 0)) AS SELECT k, COUNT(*) AS n
  FROM s [RANGE 9] GROUP BY k;
CREATE QUERY report {} AS SELECT k, MAX(ts) AS n FROM s [RANGE UNBOUNDED] GROUP BY k"""


class Clock:
    """Seconds that go on when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> int:
        """The same as wall-clock time."""
        return 10**15 + round(self.seconds * 1e6)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(clock: Clock) -> Iterator[hr.Database]:
    with hr.connect(runner="inline", threads=1, clock=clock) as made:
        yield made


def lanes_of(db: hr.Database) -> Lanes:
    live = execution_of(db)._live
    assert live is not None
    return live.lanes


def begin(db: hr.Database, clause: str, clock: Clock) -> None:
    db.execute(DEFINED.format(clause))
    db.start()
    lanes_of(db).now = clock


def push(db: hr.Database, *instants: int) -> None:
    """Push rows, and wait until those in front have taken them."""
    for ts in instants:
        db.push("s", {"k": 1, "ts": ts})
    wait_for(lambda: db["alarm"].heartbeat == instants[-1])


def lane_with(db: hr.Database, query: str) -> LaneStatus:
    return next(one for one in db.status.lanes if query in one.queries)


def findings(db: hr.Database, query: str) -> list[tuple[str, str | None]]:
    return [(one.message, one.hint) for one in db.why(query).findings if "is behind" in one.message]


def test_what_waits_and_what_it_is_worth_when_it_is_taken(db: hr.Database, clock: Clock) -> None:
    begin(db, "WEIGHT 0 QOS (DELAY (0, 0.5), (6 SECONDS, 0))", clock)
    push(db, 1, 2, 3)
    clock.seconds = 3.0
    front, lane = db.status.lanes
    assert (front.queries, front.weight, front.due, front.rows) == (("alarm",), 1.0, 1.0, 0)
    assert front.worth[0].utility == 1.0
    assert (lane.queries, lane.weight, lane.due, lane.rows, lane.turns) == (("report",), 0.0, 0.0, 3, 0)
    assert (lane.behind, lane.had, lane.worth, lane.by_itself) == (3.0, 0.0, (), False)
    shown = str(db.execute("SHOW LANES")[0]).splitlines()
    assert shown[0].split() == [
        *("lane", "queries", "weight", "due", "had", "latency", "waiting", "behind", "turns"),
        *("seconds_per_row", "utility"),
    ]
    assert re.match(r"front +alarm +1 +100 % +100 % .* alarm 1.00$", shown[2])
    assert re.match(r"\d+ +report +0 +0 % +0 % +3 rows +3.0 s +0 *$", shown[3])
    db.execute("ALTER QUERY report SET (WEIGHT 3)")
    wait_for(lambda: not lane_with(db, "report").rows)
    lane = lane_with(db, "report")
    assert (lane.due, lane.behind) == (0.75, None)
    # 0.25 of what an answer at once is worth, which is 0.5.
    assert lane.worth == (AnswerWorth("report", 0.5, 3.0),)
    assert not findings(db, "report")


def test_a_query_that_is_behind_is_marked_in_all_lists(db: hr.Database, clock: Clock) -> None:
    begin(db, "WEIGHT 0", clock)
    push(db, 1, 2)
    clock.seconds = 11.0
    status = db.status
    marked = "its lane: 2 rows, 11.0 s"
    assert status.held_by(status.query("report")) == marked
    assert status.held_by(status.query("alarm")) == "s"
    assert status.query("report").held_by == "s"
    assert status.query("report").reads == ("s",)
    for text in (str(status), status._repr_html_(), str(db.execute("SHOW QUERIES")[0])):
        assert text.count(marked) == 1
    assert "held back by its lane: 2 rows" in str(db.execute("EXPLAIN ANALYZE report")[0])
    told = json.loads(json.dumps({**status.to_dict(), "problems": {}}))
    console = Console(file=io.StringIO(), width=200)
    seen = seen_in_status("here", told)
    console.print(picture(None, StatusGlance(seen, 0.0), 12, OperatorOrder.SECONDS))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "behind by 2 rows, 11.0 s" in text
    assert re.search(r"\n *queries together +lane +weight +due", text)
    assert re.search(r"\n *report +\d+ +0 +0 %", text)
    # An earlier Headrace tells less of its lanes.
    assert not seen_in_status("here", {**told, "lanes": [{"lane": 0}]}).lanes
    del told["lanes"]
    assert not seen_in_status("here", told).lanes


@pytest.mark.parametrize("clause", ["WEIGHT 0", "WEIGHT 0.25"])
def test_why_names_the_weight_and_what_helps(
    db: hr.Database, clock: Clock, clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as held:
        held.setattr(Lanes, "_active", lambda _: [])
        begin(db, clause, clock)
        push(db, 1, 2, 3)
        clock.seconds = 11.0
        ((message, hint),) = findings(db, "report")
        since = "its weight is 0" if clause == "WEIGHT 0" else "its weight is 0.25, and that of all others 1"
        assert message == f"report is behind: 3 rows wait for it, the oldest for 11.0 s, since {since}"
        assert not [one for one in db.why("report").findings if "waits for s" in one.message]
    assert hint is not None
    found = re.search(r"write (ALTER QUERY report SET \(WEIGHT [\d.]+\))", hint)
    assert found is not None
    db.execute(found[1])
    wait_for(lambda: not lane_with(db, "report").rows)
    assert lane_with(db, "report").weight == (1.0 if clause == "WEIGHT 0" else 0.5)
    assert not findings(db, "report")
    assert [one for one in db.why("report").findings if "waits for s" in one.message]


def test_why_names_the_query_whose_latency_it_would_break(
    db: hr.Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(db, "", clock)
    db.execute("ALTER QUERY alarm SET (LATENCY 200 MILLISECONDS)")
    assert not [one for one in db.status.lanes if one.lane]
    with monkeypatch.context() as held:
        held.setattr(Lanes, "_active", lambda _: [])
        held.setattr(lanes_module, "seconds_of", lambda run: dict.fromkeys(run.queries.live, 1.0))
        lanes_of(db)._front_took = 100.0
        # It is placed before the next epoch takes rows.
        wait_for(lambda: lane_with(db, "report").lane)
        push(db, 1)
        clock.seconds = 2.0
        ((message, hint),) = findings(db, "report")
    late = "since it would make alarm late, whose LATENCY is 200 MILLISECONDS"
    assert message == f"report is behind: 1 row waits for it, for 2.0 s, {late}"
    lane = lane_with(db, "report")
    assert (lane.by_itself, lane_with(db, "alarm").urgent) == (True, "alarm")
    assert hint is not None
    first, second = re.findall(r"ALTER QUERY \w+ SET \(.*?\)", hint)
    assert first == "ALTER QUERY report SET (WEIGHT 2)"
    db.execute(second)
    wait_for(lambda: not lane_with(db, "report").rows)
    wait_for(lambda: db["report"].heartbeat == 1)


def test_rows_that_a_lane_takes_again_are_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hr.connect(runner="inline", threads=1, storage=tmp_path) as db:
        begin(db, "WEIGHT 2", Clock())
        db.execute("CREATE QUERY late WEIGHT 0 AS SELECT k FROM s [RANGE 5]")
        push(db, 1, 2, 3)
        wait_for(lambda: not lane_with(db, "report").rows)
        summary = db.stop()
    assert summary is not None
    assert (summary.rows, [part.name for part in summary.streams]) == (3, ["s"])
    assert [(one.queries, one.rows) for one in summary.lanes] == [(("report",), 0), (("late",), 3)]
    assert str(summary).endswith("late: behind, 3 rows wait")
    show_summary(summary, None)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("3 rows in ")
    assert {"report: behind, no row waits", "late: behind, 3 rows wait"} <= {*shown}
    seen = seen_in_store(tmp_path, glance(tmp_path))
    assert [(one.name, one.rows) for one in seen.streams] == [("s", 3)]


def test_a_key_for_some_names_sees_their_lanes_alone(db: hr.Database, clock: Clock) -> None:
    begin(db, "WEIGHT 0 LATENCY 1 MINUTE", clock)
    db.execute("CREATE QUERY near LATENCY 1 SECOND AS SELECT k FROM s [NOW]")
    push(db, 1)
    whole = {**db.status.to_dict(), "problems": {}}
    only = Caller("only", Role.READ, frozenset(["s", "alarm"]))
    (front,) = shown_status(whole, only)["lanes"]
    assert (front["queries"], front["urgent"], front["latency"]) == (["alarm"], None, None)
    assert [one["query"] for one in front["worth"]] == ["alarm"]
    near = Caller("near", Role.READ, frozenset(["s", "near", "report"]))
    front, lane = shown_status(whole, near)["lanes"]
    assert (front["queries"], front["urgent"], front["latency"]) == (["near"], "near", 1_000_000)
    assert front["worth"] == []
    assert (lane["queries"], lane["rows"]) == (["report"], 1)
    every = Caller("all", Role.READ, None)
    assert shown_status(whole, every)["lanes"] == whole["lanes"]
