"""SET processing_limit: windows that become shorter where processor time does not do.

What operators take is not measured here but told: so much for each row in and out. So nothing depends on the
machine, and clocks are set by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.cli.seen import seen_in_status
from headrace.core_counts import format_cores
from headrace.errors import UserError
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.manager import processing
from headrace.runtime.driver.manager.managed import Managed, ManagedTime
from headrace.runtime.driver.manager.policy import TOO_MUCH, USED
from headrace.runtime.driver.manager.processing import TimeTaken
from headrace.time import MICROSECONDS, ManualClock

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
JOINED = (
    "SELECT a.v AS a, b.v AS b FROM s WINDOW(RANGE MIN 10, MAX 100) AS a "
    "JOIN s WINDOW(RANGE MIN 10, MAX 100) AS b ON a.k = b.k"
)
ROW_IN, ROW_OUT = 1e-4, 1e-3
"""The seconds that a row takes by what is told."""
MANY = "SET processing_limit = 2"
"""More than is ever needed here."""


def told_times(run: PublishedRun) -> TimeTaken:
    total = run.statistics.operators.total
    seconds = ROW_IN * total[:, 1] + ROW_OUT * total[:, 2]
    return TimeTaken(seconds, float(seconds.sum()))


@pytest.fixture(autouse=True)
def told_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing, "time_taken", told_times)
    # The model knows what depends on what, and that this machine takes twice as long is measured.
    monkeypatch.setattr(processing, "unit_seconds", lambda graph, node: (ROW_IN / 2, ROW_OUT / 2, 0.0, 0.0))
    monkeypatch.setattr("headrace.engine.connection.machine_cores", lambda: 4)


class Life:
    """A database on a clock of its own, where an instant is a second."""

    def __init__(self, storage: Path | None = None, **options: Any) -> None:
        self.clock = ManualClock()
        self.db = hr.connect(
            runner="inline", buckets=2, storage=storage, threads=4, clock=self.clock, **options
        )
        self.now = 0

    def live(self, seconds: int, rate: int = 1, step: int = 20) -> None:
        """Let so many rows come a second."""
        for first in range(self.now, self.now + seconds, step):
            self.clock.advance(step * MICROSECONDS["SECOND"])
            rows = [{"k": n % 7, "v": n, "ts": n // rate} for n in range(first * rate, (first + step) * rate)]
            assert self.db.push("s", rows)
        self.now += seconds

    @property
    def managed(self) -> Managed:
        found = self.db.status.managed
        assert found is not None
        return found

    @property
    def time(self) -> ManagedTime:
        found = self.managed.time
        assert found is not None
        return found

    def sizes(self, query: str = "q") -> list[int]:
        return [window.size for window in self.db.status.query(query).windows]

    def told(self, text: str) -> str:
        return str(self.db.execute(text)[0])

    def refused(self, text: str) -> tuple[str, str | None]:
        with pytest.raises(UserError) as found:
            self.db.execute(text)
        return found.value.message, found.value.hint


@pytest.fixture
def life() -> Iterator[Life]:
    made = Life()
    with made.db as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {JOINED}")
        db.start()
        yield made


@pytest.mark.slow("a whole run of some hundred epochs")
def test_what_is_needed_is_what_was_taken_with_these_sizes(life: Life) -> None:
    life.db.execute(MANY)
    life.live(600)
    full = life.time
    assert life.sizes() == [100]
    assert full.used == pytest.approx(full.expected, rel=0.1)
    # What is expected with other sizes is what it comes to with these.
    life.db.execute("SET manager = 'advise'; ALTER QUERY q SET (WINDOW 10)")
    life.live(600)
    assert life.time.used == pytest.approx(full.least, rel=0.2)
    assert life.time.most == pytest.approx(full.expected, rel=0.2)


@pytest.mark.slow("a whole run of some hundred epochs")
def test_windows_are_shorter_while_more_rows_come_and_long_again(life: Life) -> None:
    life.db.execute(MANY)
    life.live(600)
    limit = round(1.6 * life.time.expected, 3)
    life.db.execute(f"SET processing_limit = {limit}")
    life.live(300)
    assert life.sizes() == [100]
    life.live(600, rate=2)
    assert life.sizes()[0] < 60
    assert life.time.used < limit
    (one,) = life.managed.windows
    assert f"were expected to be needed, and processing_limit is {format_cores(limit)}" in one.window.why
    assert one.window.why in life.told("DESCRIBE QUERY q")
    assert one.window.why in life.told("SHOW MANAGER")
    why = life.told("WHY q")
    assert one.window.why in why
    assert "hint: with more processing_limit, or fewer queries or rows" in why
    life.live(800)
    assert life.sizes() == [100]


@pytest.mark.slow("a whole run of some hundred epochs")
def test_on_a_constant_load_sizes_settle(life: Life) -> None:
    life.db.execute(MANY)
    life.live(600)
    life.db.execute(f"SET processing_limit = {0.7 * life.time.expected}")
    life.live(600)
    settled = {tuning: known.steps for tuning, known in life.db.status.tunings.items()}
    assert life.sizes()[0] < 100
    life.live(800)
    assert {tuning: known.steps for tuning, known in life.db.status.tunings.items()} == settled
    assert life.time.used < TOO_MUCH * life.time.limit


@pytest.mark.slow("a whole run of some hundred epochs")
def test_the_tighter_limit_decides(life: Life) -> None:
    life.db.execute(f"{MANY}; SET memory_limit = '1 GB'")
    life.live(600)
    needed = life.time.expected
    life.db.execute(f"SET processing_limit = {0.6 * needed}")
    by_time = life.sizes()
    assert by_time[0] < 100
    assert life.managed.tightest.value == "processing_limit"
    # Memory takes more than time did.
    life.db.execute(f"SET memory_limit = {round(life.managed.working + life.managed.expected)}")
    both = life.sizes()
    assert both[0] < by_time[0]
    assert life.managed.tightest.value == "memory_limit"
    assert "memory_limit is" in life.managed.windows[0].window.why
    # With more memory, time alone counts again.
    life.live(600)
    life.db.execute("SET memory_limit = DEFAULT")
    life.live(600)
    assert both[0] < life.sizes()[0] < 100
    assert "there is no memory_limit" in life.managed.text


def test_what_would_not_fit_is_refused_with_what_is_missing(life: Life) -> None:
    life.db.execute(MANY)
    life.live(600)
    least = life.time.least
    limit = round(1.5 * least, 4)
    message, hint = life.refused(f"SET processing_limit = {0.5 * least}")
    assert message.startswith(f"the queries that run need about {format_cores(least)} with their smallest ")
    assert message.endswith(f" only {format_cores(USED * 0.5 * least)} are given out")
    assert hint is not None
    (enough,) = re.findall(r"write SET processing_limit = ([\d.]+), or more", hint)
    life.db.execute(f"SET processing_limit = {enough}")
    life.db.execute(f"SET processing_limit = {limit}")
    other = "SELECT a.v AS a, b.v AS b FROM s [RANGE 900] AS a JOIN s [RANGE 900] AS b ON a.k = b.k"
    explained = life.told(f"EXPLAIN CREATE QUERY big AS {other}")
    assert re.search(r"of processor time are expected; .* are given out: it would be refused", explained)
    message, hint = life.refused(f"CREATE QUERY big AS {other}")
    assert re.match(r"big would need about [\d.]+ cores with the smallest windows, and [\d.]+ core", message)
    assert message.endswith(f"only {format_cores(USED * limit)} are given out")
    assert hint is not None
    life.db.execute("CREATE QUERY small AS SELECT k FROM s WHERE v < 0")
    # What is only advised refuses nothing.
    life.db.execute("SET manager = 'advise'")
    life.db.execute(f"CREATE QUERY big AS {other}")
    message, _ = life.refused("SET manager = 'act'; SET processing_limit = 0.0001")
    assert "the queries that run need about" in message


def test_a_limit_that_runs_outgrow_is_said(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    life.db.execute(MANY)
    life.live(600)
    life.db.execute(f"SET processing_limit = {2 * life.time.least}")
    life.live(600, rate=6)
    assert life.sizes() == [10]
    assert life.time.missing > 0
    assert f"{format_cores(life.time.missing)} too few for the smallest windows" in life.told("SHOW MANAGER")
    assert sum("too few" in record.message for record in caplog.records) == 1


def test_what_would_be_done_is_said_where_it_is_only_advised(life: Life) -> None:
    life.db.execute(f"SET manager = 'advise'; {MANY}")
    life.live(600)
    life.db.execute(f"SET processing_limit = {0.6 * life.time.expected}")
    assert life.sizes() == [100]
    assert all(one.wanted < one.window.size for one in life.managed.windows)
    life.db.execute("SET manager = 'off'")
    assert life.db.status.managed is None
    assert "the manager is off" in life.told("SHOW MANAGER")


def test_it_is_in_the_status_and_its_json(life: Life) -> None:
    life.db.execute("SET processing_limit = 1.5")
    assert "processing_limit is 1.5 cores, and nothing has been measured yet" in life.told("SHOW MANAGER")
    life.live(600)
    status = {**life.db.status.to_dict(), "problems": {}}
    plain = json.loads(json.dumps(status))["managed"]
    time = life.time
    seen = seen_in_status("here", status).memory
    assert seen is not None
    assert time.text in seen.title
    assert plain["limit"] is None
    assert plain["tightest"] == "processing_limit"
    assert (plain["time"]["limit"], plain["time"]["text"]) == (1.5, time.text)
    assert plain["time"]["expected"] == time.expected
    row = next(line for line in life.told("SHOW MANAGER").splitlines() if line.startswith("processor time"))
    assert format_cores(time.least) in row
    assert format_cores(time.expected) in row


@pytest.mark.slow("a whole run of some hundred epochs")
def test_a_restart_goes_on_with_the_limit_and_the_sizes(tmp_path: Path) -> None:
    first = Life(tmp_path / "store")
    with first.db as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {JOINED}; {MANY}")
        db.start()
        first.live(600)
        limit = 0.6 * first.time.expected
        db.execute(f"SET processing_limit = {limit}")
        first.live(300)
        before = first.sizes()
        assert before[0] < 100
        db.stop()
    again = Life(tmp_path / "store")
    again.now, again.clock.instant = first.now, first.clock.instant
    with again.db as db:
        db.start()
        again.live(40)
        # Nobody knows yet what is needed.
        assert db.status.managed is None
        again.live(400)
        assert again.time.limit == pytest.approx(limit)
        assert again.sizes() == pytest.approx(before, abs=15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET processing_limit = 0", "is a number of cores above 0, not '0'"),
        ("SET processing_limit = -1", "is a number of cores above 0, not '-'"),
        ("SET processing_limit = 'much'", "is a number of cores above 0, not 'much'"),
        ("SET processing_limit =", "is a number of cores above 0, not the end"),
        ("SET processing_limit = 4.5", "processing_limit is 4.5 cores, and runs work on 4 cores"),
    ],
)
def test_what_is_no_limit_is_refused(life: Life, text: str, message: str) -> None:
    found, hint = life.refused(text)
    assert message in found
    assert hint


@pytest.mark.parametrize("given", [0, -1.0, "1.5", True, float("nan"), float("inf"), 4.5])
def test_connect_refuses_the_same(given: Any) -> None:
    with pytest.raises(UserError, match="processing_limit is"):
        hr.connect(runner="inline", processing_limit=given)


def test_threads_are_the_cores_that_there_are() -> None:
    with pytest.raises(UserError, match=r"processing_limit is 1\.5 cores, and runs work on 1 core") as found:
        hr.connect(runner="inline", threads=1, processing_limit=1.5)
    assert found.value.hint is not None
    with hr.connect(runner="inline", threads=2, processing_limit=1.5) as db:
        shown = str(db.execute("SHOW SETTINGS")[0])
        assert re.search(r"processing_limit +1\.5 cores +connect", shown)
        db.execute("SET processing_limit = DEFAULT")
        assert re.search(r"processing_limit +none +default", str(db.execute("SHOW SETTINGS")[0]))
