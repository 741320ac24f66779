"""SET memory_limit, SET manager and SHOW MANAGER: windows that become shorter where memory does not do."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.byte_sizes import format_bytes
from headrace.errors import LanguageError, UserError
from headrace.runtime.driver.beside.starting_at import CatchUp
from headrace.runtime.driver.facts.working_set import fitting_rows
from headrace.runtime.driver.manager.managed import Managed
from headrace.runtime.driver.manager.policy import TOO_MUCH, USED
from headrace.runtime.driver.settings import RunSettings
from inside import run_of

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2"
KINDS = "SELECT DISTINCT v FROM s WINDOW(RANGE MIN 100, MAX 1000)"
COUNTED = "SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE MIN 200, MAX 2000) GROUP BY k"


def database(storage: Path | None = None, **options: Any) -> hr.Database:
    return hr.connect(runner="inline", buckets=2, storage=storage, **options)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        made.execute(f"{STREAM}; CREATE QUERY q AS {KINDS}")
        made.start()
        yield made


def push(db: hr.Database, begin: int, end: int, rate: int = 1, step: int = 100) -> None:
    for first in range(begin, end, step):
        times = range(first * rate, (first + step) * rate)
        assert db.push("s", [{"k": at % 5, "v": at, "ts": at // rate} for at in times])


def managed(db: hr.Database) -> Managed:
    found = db.status.managed
    assert found is not None
    return found


def size(db: hr.Database, query: str = "q") -> int:
    (window,) = db.status.query(query).windows
    return window.size


def told(db: hr.Database, text: str) -> str:
    return str(db.execute(text)[0])


def explained_free(db: hr.Database) -> str:
    """The part of 60 kB that there is for state, as it is told."""
    return f"only {format_bytes(USED * (60_000 - managed(db).working))} are for state"


def refused(db: hr.Database, text: str) -> tuple[str, str | None]:
    with pytest.raises(UserError) as found:
        db.execute(text)
    return found.value.message, found.value.hint


def test_windows_are_shorter_while_more_rows_come_and_long_again(db: hr.Database) -> None:
    push(db, 0, 2000)
    found = managed_after(db, "SET memory_limit = '100 MB'")
    # Epochs of the burst have five times the rows.
    limit = round(found.expected * 1.6 + 5 * found.working)
    db.execute(f"SET memory_limit = {limit}")
    push(db, 2000, 3000)
    assert size(db) == 1000
    push(db, 3000, 5500, rate=5)
    shorter = size(db)
    assert 100 < shorter < 400
    assert managed(db).used <= limit
    (window,) = managed(db).windows
    assert "by the manager" in window.window.why
    assert window.window.why in told(db, "DESCRIBE QUERY q")
    push(db, 5500, 7000)
    assert size(db) == 1000
    assert managed(db).windows[0].window.why.startswith("enlarged from ")


def test_why_says_since_when_a_window_is_shorter_and_for_what_reason(db: hr.Database) -> None:
    push(db, 0, 3000)
    assert "the window of" not in told(db, "WHY q")
    db.execute("ALTER QUERY q SET (WINDOW 500)")
    by_hand = (
        "the window of s is 500 for rows from 3000 on, where 100 to 1000 are allowed: somebody has asked"
    )
    text = told(db, "WHY q")
    assert by_hand in text
    # What the hint says does.
    (order,) = re.findall(r"write (ALTER QUERY q SET \(WINDOW OF s 1000\))", text)
    push(db, 3000, 4500)
    db.execute(order)
    assert "the window of" not in told(db, "WHY q")
    push(db, 4500, 6000)
    db.execute(f"SET memory_limit = {round(managed_after(db, 'SET memory_limit = 100000000').expected)}")
    (window,) = managed(db).windows
    assert window.window.size < 1000
    text = told(db, "WHY q")
    assert f"the window of s is {window.window.size} for rows from {window.window.since} on" in text
    assert f"100 to 1000 are allowed: {window.window.why}" in text


def managed_after(db: hr.Database, text: str) -> Managed:
    db.execute(text)
    return managed(db)


def test_on_a_constant_load_sizes_settle(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY c AS {COUNTED}")
    push(db, 0, 3000)
    db.execute(f"SET memory_limit = {round(managed_after(db, 'SET memory_limit = 100000000').expected / 2)}")
    push(db, 3000, 6000)
    settled = {tuning: known.steps for tuning, known in db.status.tunings.items()}
    push(db, 6000, 12_000)
    assert {tuning: known.steps for tuning, known in db.status.tunings.items()} == settled
    found = managed(db)
    assert found.limit is not None
    assert found.used <= found.limit
    assert found.expected <= TOO_MUCH * found.limit


def test_windows_are_longer_when_queries_go(db: hr.Database) -> None:
    db.execute("CREATE QUERY fixed AS SELECT v, COUNT(*) AS n FROM s [RANGE 1000] GROUP BY v")
    push(db, 0, 3000)
    found = managed_after(db, "SET memory_limit = 100000000")
    db.execute(f"SET memory_limit = {round(found.expected)}")
    push(db, 3000, 6000)
    assert size(db) < 1000
    db.execute("DROP QUERY fixed")
    assert size(db) == 1000


def test_who_only_wants_advice_gets_it(db: hr.Database) -> None:
    push(db, 0, 3000)
    db.execute("SET manager = 'advise'")
    found = managed_after(db, "SET memory_limit = 100000000")
    found = managed_after(db, f"SET memory_limit = {round(found.expected / 2)}")
    (window,) = found.windows
    assert window.wanted < window.window.size == size(db) == 1000
    push(db, 3000, 3500)
    assert size(db) == 1000
    assert f"{managed(db).windows[0].wanted}" in told(db, "SHOW MANAGER")
    db.execute("SET manager = 'off'")
    assert db.status.managed is None
    db.execute("SET manager = DEFAULT")
    assert size(db) < 1000


def test_a_query_for_which_there_is_no_room_is_refused_with_the_numbers(db: hr.Database) -> None:
    push(db, 0, 3000)
    db.execute("SET memory_limit = '60 kB'")
    text = "CREATE QUERY more AS SELECT DISTINCT v FROM s [RANGE 5000]"
    message, hint = refused(db, text)
    expected = re.match(
        r"more would need about ([\d.]+) kB of memory with the smallest windows, and ", message
    )
    assert expected is not None, message
    # Its window is five times that of the query that is there, and keeps the same.
    assert float(expected[1]) * 1000 == pytest.approx(5 * managed(db).used, rel=0.3)
    assert message.endswith(f" are needed already: of memory_limit, 60 kB, {explained_free(db)}")
    assert hint is not None
    assert [query.name for query in db.status.queries] == ["q"]
    # What the hint says does.
    db.execute(hint.partition("write ")[2].partition(", or")[0])
    db.execute(text)
    # One that is there is no reason to refuse what needs nothing.
    db.execute("CREATE QUERY no_state AS SELECT v FROM s [NOW]")


PAIRS = "SELECT a.k, COUNT(*) AS n FROM s [RANGE {0}] a JOIN s [RANGE {0}] b ON a.v = b.v GROUP BY a.k"


@pytest.mark.parametrize("replacing", ["CREATE OR REPLACE QUERY", "REPLACE"])
def test_explain_says_of_a_replacement_whether_it_would_be_refused(db: hr.Database, replacing: str) -> None:
    push(db, 0, 3000)
    db.execute("SET memory_limit = '60 kB'")
    texts = {
        (length, columns): f"q AS SELECT DISTINCT {columns} FROM s [RANGE {length}]"
        for length in (30, 1000, 2000, 5000)
        for columns in ("v", "k, v")
    }
    verdicts = set()
    for (length, _), text in texts.items():
        explained = told(db, f"EXPLAIN {replacing} {text}")
        try:
            db.execute(f"CREATE OR REPLACE QUERY {text}")
            verdicts.add((length, "taken"))
            assert "it would be refused" not in explained
            assert "less state is expected" in explained or length > 30
        except UserError as error:
            verdicts.add((length, "refused"))
            (expected,) = re.findall(r"would need about ([\d.]+ kB)", error.message)
            assert re.search(f"about {expected} of state are expected(; | with the smallest)", explained)
            assert explained_free(db) + ": it would be refused" in explained
        db.execute(f"CREATE OR REPLACE QUERY q AS {KINDS}")
    assert {(30, "taken"), (5000, "refused")} <= verdicts


def test_explain_says_of_a_paused_query_whether_it_would_be_refused(db: hr.Database) -> None:
    db.execute("CREATE QUERY more AS SELECT DISTINCT k, v FROM s [RANGE 5000]")
    push(db, 0, 3000)
    db.execute("ALTER QUERY more PAUSE; SET memory_limit = '60 kB'")
    explained = told(db, "EXPLAIN ALTER QUERY more RESUME")
    message, hint = refused(db, "ALTER QUERY more RESUME")
    (expected,) = re.findall(r"would need about ([\d.]+ kB)", message)
    assert f"about {expected} of state are expected; " in explained
    assert "it would be refused" in explained
    assert "more would be resumed" in explained
    assert hint is not None
    db.execute(hint.partition("write ")[2].partition(", or")[0])
    assert "refused" not in told(db, "EXPLAIN ALTER QUERY more RESUME")
    db.execute("ALTER QUERY more RESUME")


def test_what_is_above_a_join_counts_with_the_rows_that_are_expected_of_it(db: hr.Database) -> None:
    push(db, 0, 3000)
    db.execute("SET memory_limit = '600 kB'")
    before = managed(db).expected
    db.execute(f"CREATE QUERY pairs AS {PAIRS.format(1000)}")
    expected = managed(db).expected - before
    assert size(db) == 1000
    push(db, 3000, 6000)
    found = managed(db).used - before
    assert found / 2 < expected < found * 2


def test_a_query_without_room_is_refused_before_it_is_brought_to_the_present(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with database(memory_limit="60 kB") as db:
        db.execute(f"{STREAM} RETAIN ALL; CREATE QUERY q AS {KINDS}")
        db.start()
        push(db, 0, 3000)
        begun: list[str] = []
        monkeypatch.setattr(CatchUp, "step", lambda self: begun.append("an epoch"))
        text = "CREATE QUERY more FROM BEGINNING AS SELECT DISTINCT v FROM s [RANGE 5000]"
        assert "more would need about " in refused(db, text)[0]
        assert "it would be refused" in told(db, f"EXPLAIN {text}")
        assert not begun
        assert db.status.catching_up is None


def test_what_a_query_would_add_is_told_before(db: hr.Database) -> None:
    text = "CREATE QUERY more AS SELECT DISTINCT k, v FROM s [RANGE MIN 200, MAX 4000]"
    push(db, 0, 3000)
    size_text = r"([\d.]+) kB"
    least = f"about {size_text} of state are expected with the smallest windows"
    sizes = f"{least}, {size_text} now, {size_text} at most"
    found = re.search(f"{sizes}$", told(db, f"EXPLAIN COST {text}"))
    assert found is not None
    assert "of state are expected" not in told(db, f"EXPLAIN {text}")
    db.execute("SET memory_limit = '60 kB'")
    for explained in ("EXPLAIN", "EXPLAIN COST"):
        assert re.search(f"{sizes}; .* {explained_free(db)}$", told(db, f"{explained} {text}"), re.MULTILINE)
    more = f"CREATE QUERY fixed AS {PAIRS.format(5000)}"
    assert told(db, f"EXPLAIN COST {more}").endswith(" are for state: it would be refused")
    message, _ = refused(db, more)
    (expected,) = re.findall(r"need about ([\d.]+ kB)", message)
    assert f"about {expected} of state are expected;" in told(db, f"EXPLAIN COST {more}")
    db.execute("SET manager = 'advise'")
    assert told(db, f"EXPLAIN COST {more}").endswith(f"about {expected} of state are expected")
    db.execute("SET memory_limit = DEFAULT")
    db.execute(text)
    before = sum(part.state_bytes for part in db.status.operators)
    push(db, 3000, 12_000)
    added = sum(part.state_bytes for part in db.status.operators) - before
    assert added / 2 < float(found[3]) * 1000 < added * 2


@pytest.mark.parametrize("new", ["SELECT DISTINCT k FROM s WINDOW(RANGE MIN 30, MAX 100000)", KINDS])
def test_who_asks_what_a_query_would_add_changes_nothing(new: str) -> None:
    """Its operators may be those of a query that runs, of which nothing has been measured yet."""

    def life(ask: bool) -> tuple[list[tuple[float, int]], set[str]]:
        with database(memory_limit="1 MB") as db:
            db.execute(f"{STREAM}; CREATE QUERY q AS {new}")
            db.start()
            found, said = [], set()
            for begin in range(0, 160, 10):
                push(db, begin, begin + 10, step=10)
                if ask and begin == 60:
                    for way in ("EXPLAIN", "EXPLAIN COST", "EXPLAIN"):
                        text = told(db, f"{way} CREATE QUERY more AS {new}")
                        said |= set(re.findall(r"[^\n]* of state [^\n]*", text))
                found.append((managed(db).expected, size(db)))
            return found, said

    (asked, said), (silent, _) = life(True), life(False)
    assert asked == silent
    assert len(said) == 1, "the same is said of the same"


def test_windows_within_bounds_count_with_their_smallest_size(db: hr.Database) -> None:
    push(db, 0, 3000)
    db.execute("SET memory_limit = '60 kB'")
    db.execute("CREATE QUERY more AS SELECT DISTINCT k, v FROM s [RANGE MIN 200, MAX 5000]")
    push(db, 3000, 12_000)
    assert size(db, "more") < 5000
    assert managed(db).used <= 60_000


def test_a_limit_below_what_the_smallest_windows_need_is_refused(db: hr.Database) -> None:
    push(db, 0, 3000)
    message, hint = refused(db, "SET memory_limit = '2 kB'")
    assert message.startswith("the queries that run need about ")
    # What an epoch works with is more than that alone.
    assert message.endswith(" with their smallest windows, and of 2 kB only 0 B are for state")
    assert hint is not None
    db.execute(hint.partition("write ")[2].partition(", or")[0])


def test_too_little_memory_is_said_once_and_windows_have_their_smallest_sizes(
    db: hr.Database, caplog: pytest.LogCaptureFixture
) -> None:
    db.execute("SET memory_limit = '10 kB'")
    with caplog.at_level(logging.WARNING, logger="headrace"):
        push(db, 0, 1000, rate=50, step=50)
    assert size(db) == 100
    assert managed(db).missing > 0
    assert re.search(r"[\d.]+ kB too few for the largest epoch alone", told(db, "SHOW MANAGER"))
    assert sum("too few" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET memory_limit = 'much'", "is not a size of memory"),
        ("SET memory_limit = 0", "is not a size of memory"),
        ("SET memory_limit = '2 G'", "is not a size of memory"),
        ("SET memory_limit = '9000 TB'", "memory_limit is 9000 TB, and the machine has "),
        ("SET manager = 'on'", "the manager cannot be "),
        ("SET manager = 5", "the manager cannot be "),
    ],
)
def test_what_is_no_limit_is_refused(db: hr.Database, text: str, message: str) -> None:
    found, hint = refused(db, text)
    assert message in found
    assert hint
    assert "''" not in found


@pytest.mark.parametrize(
    "options",
    [
        {"memory_limit": "x"},
        {"memory_limit": 0},
        {"memory_limit": True},
        {"memory_limit": "9000 TB"},
        {"manager": "on"},
    ],
)
def test_connect_refuses_the_same(options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        hr.connect(runner="inline", **options)


def test_a_restart_goes_on_with_the_limit_and_the_sizes(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {KINDS}")
        db.start()
        push(db, 0, 3000)
        expected = managed_after(db, "SET memory_limit = 100000000").expected
        db.execute(f"SET memory_limit = {round(expected)}; SET manager = 'act'")
        push(db, 3000, 6000)
        before = size(db)
        assert before < 1000
        why = managed(db).windows[0].window.why
        db.stop()
    with database(tmp_path / "store") as db:
        assert "act" in told(db, "SHOW SETTINGS")
        db.start()
        push(db, 6000, 9000)
        assert size(db) == before
        assert managed(db).windows[0].window.why == why
        assert json.loads(json.dumps(db.status.to_dict()))["managed"]["windows"][0]["size"] == before
        db.execute("SET memory_limit = DEFAULT")
        # Nobody changes it then.
        push(db, 9000, 9500)
        assert size(db) == before
        assert "no memory_limit" in told(db, "SHOW MANAGER")
    with database(tmp_path / "store", memory_limit="100 MB") as db:
        db.start()
        push(db, 9500, 10_100)
        assert size(db) == 1000


def test_a_paused_query_keeps_the_size_that_the_manager_gave_its_windows(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY other AS {KINDS}")
    push(db, 0, 3000)
    db.execute("ALTER QUERY other PAUSE")
    db.execute(f"SET memory_limit = {round(managed_after(db, 'SET memory_limit = 100000000').expected)}")
    push(db, 3000, 4000)
    before = size(db)
    assert before < 1000
    db.execute("SET manager = 'off'; DROP QUERY q; ALTER QUERY other RESUME")
    assert size(db, "other") == before


def test_before_a_run_there_is_nothing_to_show() -> None:
    with database() as db:
        assert told(db, "SHOW MANAGER").endswith("(0 rows)")
        with pytest.raises(LanguageError):
            db.execute("SHOW MANAGERS")


def test_a_restart_after_a_quiet_time_changes_no_window_that_fits(tmp_path: Path) -> None:
    with database(tmp_path / "store", memory_limit="1 MB") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {KINDS}")
        db.start()
        # An even spread from the first row on would have next to none in the window.
        push(db, -400_000, -399_900)
        push(db, 0, 2000, rate=5)
        limit = 2 * managed(db).used
    with database(tmp_path / "store", memory_limit=limit) as db:
        db.start()
        assert "nothing has been measured yet" in told(db, "SHOW MANAGER")
        for begin in range(2000, 2100, 10):
            push(db, begin, begin + 10, rate=5, step=10)
            db.execute(f"SET memory_limit = {limit + begin}")
            db.execute("CREATE QUERY more AS SELECT DISTINCT k FROM s [RANGE 10]; DROP QUERY more")
            assert size(db) == 1000
        assert managed(db).missing == 0


def test_a_check_changes_nothing_of_what_is_measured(db: hr.Database) -> None:
    push(db, 0, 3000, step=70)
    db.execute("SET memory_limit = '100 MB'; SET memory_limit = '60 kB'")
    # Rows that have left are still kept, so that each look would say more or less than the last one.
    push(db, 3000, 3070, rate=3, step=70)
    found = [refused(db, "CREATE QUERY more AS SELECT DISTINCT v FROM s [RANGE 5000]") for _ in range(5)]
    assert len(set(found)) == 1


def test_a_replacement_by_a_smaller_window_is_not_refused(db: hr.Database) -> None:
    push(db, 0, 3000)
    used = managed_after(db, "SET memory_limit = '100 MB'").used
    db.execute(f"SET memory_limit = {round(used * 1.1)}")
    db.execute("CREATE OR REPLACE QUERY q AS SELECT DISTINCT v FROM s [RANGE 30]")


def test_a_limit_counts_only_where_it_is_kept(db: hr.Database) -> None:
    push(db, 0, 3000)
    for way, text in (
        ("advise", "too few for the largest epoch alone"),
        ("off", "2 kB, and the manager is off"),
    ):
        db.execute(f"SET memory_limit = DEFAULT; SET manager = '{way}'; SET memory_limit = '2 kB'")
        assert text in told(db, "SHOW MANAGER")
        db.execute("CREATE QUERY more AS SELECT DISTINCT k FROM s [RANGE 500]; DROP QUERY more")
        for act in ("'act'", "DEFAULT"):
            assert "need about" in refused(db, f"SET manager = {act}")[0]
    assert "off" in told(db, "SHOW SETTINGS")


def test_before_the_first_commit_nothing_has_been_measured() -> None:
    with database(memory_limit="1 MB") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {KINDS}")
        db.start()
        assert "memory_limit is 1 MB, and nothing has been measured yet" in told(db, "SHOW MANAGER")
        push(db, 0, 100)
        assert "windows can be 100 %" in told(db, "SHOW MANAGER")


def test_an_epoch_takes_as_many_rows_as_fit_in_what_it_works_with(tmp_path: Path) -> None:
    with database(tmp_path, memory_limit="100 kB") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {KINDS}")
        db.start()
        push(db, 0, 400)
        found = managed(db)
        assert found.epoch_rows is not None
        assert found.working > 0
        before = db.status.epoch
        done = [db.push("s", [{"k": 0, "v": ts, "ts": ts}] * 50, wait=False) for ts in range(400, 460)]
        for one in done:
            one.result()
        # 3,000 rows would be one epoch or two, if each took as many as are there.
        assert db.status.epoch - before >= 3_000 // (found.epoch_rows + 50)
        assert managed(db).working < 0.5 * 100_000
        assert f"an epoch takes {managed(db).epoch_rows:,} rows at most" in told(db, "SHOW MANAGER")
        db.execute("SET memory_limit = DEFAULT")
        rows = managed_rows(db)
    # It is part of what is committed.
    with database(tmp_path, memory_limit="100 kB") as db:
        db.start()
        assert managed_rows(db) == rows


def managed_rows(db: hr.Database) -> int | None:
    """The rows that the next epoch may take under a limit, by the last commit."""
    return fitting_rows(run_of(db).totals, RunSettings(memory_limit=100_000))


def test_a_query_that_only_counts_has_room_beside_a_join(db: hr.Database) -> None:
    db.execute("CREATE QUERY pairs AS SELECT a.v FROM s [RANGE 500] a JOIN s [RANGE 500] b ON a.v = b.v")
    push(db, 0, 3000)
    db.execute("SET memory_limit = '10 MB'")
    # The join holds rows of the stream, of which the count reads no column.
    db.execute("CREATE QUERY counted AS SELECT COUNT(*) AS n FROM s [RANGE 100]")
    push(db, 3000, 3200)
    assert db["counted"].snapshot(3100).to_pylist() == [{"n": 100}]
