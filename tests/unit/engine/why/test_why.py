"""Why a query has no output."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.nodes import Granularity, Istream, Plan, Source, TimeWindow
from headrace.algebra.properties import output_heartbeat
from headrace.engine.why.finding import Finding
from headrace.engine.why.why import Why, next_heartbeat, why
from headrace.errors import LanguageError, RunnerLostError, WorkerLostError
from headrace.lowering.lower import lower
from headrace.runtime.driver.endless.attempt import Attempt
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.facts.status import QueryStatus, chain_of
from headrace.schema import BIGINT, Field, Schema
from headrace.time import Duration, TimeDomain


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=1) as made:
        for name in ("a", "b"):
            made.execute(f"CREATE STREAM {name} (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 2")
        yield made


def push(db: hr.Database, name: str, *times: int) -> None:
    assert db.push(name, [{"ts": time, "v": time} for time in times])


def started(db: hr.Database, text: str) -> None:
    db.query(text, name="q")
    db.start()


def messages(found: Why) -> list[str]:
    return [finding.message for finding in found.findings]


def hints(found: Why) -> list[str | None]:
    return [finding.hint for finding in found.findings]


def told(found: Why, beginning: str) -> Finding:
    return next(finding for finding in found.findings if finding.message.startswith(beginning))


TUMBLING = (
    "SELECT window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), 10)) GROUP BY window_end"
)
JOIN = "SELECT a.v FROM a [RANGE 10] JOIN b [RANGE 10] ON a.v = b.v"


def test_the_value_that_holds_its_stream_back(db: hr.Database) -> None:
    db.execute("ALTER STREAM a PER v OF (1, 2)")
    started(db, "SELECT v FROM a")
    assert db.status.stream("a").slowest is None
    assert db.push("a", [{"ts": 500, "v": 1}])
    finding = told(db.why("q"), "of all values of v, a waits for ")
    assert finding.message.endswith("for 2, which is listed and has brought no row")
    hint = hints(db.why("q"))[1] or ""
    assert hint.startswith("send a row of a with v 2 or write ALTER STREAM a IDLE AFTER 30 SECONDS")
    assert db.push("a", [{"ts": 100, "v": 2}])
    db.stop()
    finding = told(db.why("q"), "of all values of v, a waits for ")
    assert finding.message.endswith("for 2, whose newest row is of 100, 400 behind the newest row of a")
    found = db.status.to_dict()["streams"][0]["slowest"]
    assert found == {"column": "v", "value": "2", "latest": 100, "reaches": 98}
    assert re.search(r"\bv 2 +ts BIGINT", str(db.execute("SHOW STREAMS")[0]))


def test_a_stream_that_waits_for_values_it_does_not_know(db: hr.Database) -> None:
    """No value holds it back yet, and no row moves it."""
    db.execute("ALTER STREAM a PER v WAIT 1 HOUR IDLE AFTER 1 MINUTE")
    started(db, "SELECT v FROM a")
    assert db.status.stream("a").waits is None
    push(db, "a", 500)
    found = db.status.stream("a")
    assert (found.slowest, found.waits) == (None, 3_600_000_000)
    assert hints(db.why("q"))[1] == "wait: a declares WAIT"
    finding = told(db.why("q"), "a waits for further values, as WAIT says: 3,600.0 s were left at the last")
    assert finding.hint is not None
    assert "WAIT, 3,600.0 s left" in str(db.execute("SHOW STREAMS")[0])
    db.execute("ALTER STREAM a PER v IDLE AFTER 1 MINUTE")
    push(db, "a", 501)
    found = db.status.stream("a")
    assert (found.slowest and found.slowest.latest, found.waits) == (500, None)


def test_streams_that_have_brought_nothing(db: hr.Database) -> None:
    started(db, JOIN)
    push(db, "a", 5)
    found = db["q"].why()
    assert messages(found)[:2] == [
        "q has yielded 0 elements, and nothing is final yet",
        "the stream b has brought no row",
    ]
    waiting = told(found, "q waits for b, which has no heartbeat yet")
    assert waiting.hint == "send a row of b or write ALTER STREAM b IDLE AFTER 30 SECONDS"
    assert found.chain[0].split() == ["nothing", "yet", "q"]
    assert "Source b" in found.chain[-1]


def test_streams_that_are_equally_slow_are_all_named(db: hr.Database) -> None:
    started(db, JOIN)
    push(db, "a", 5)
    push(db, "b", 5)
    assert told(db.why("q"), "q waits for a").hint == (
        "send a row of a at 6 or later (DISORDER 2) or write ALTER STREAM a IDLE AFTER 30 SECONDS "
        "and send a row of b at 6 or later (DISORDER 2) or write ALTER STREAM b IDLE AFTER 30 SECONDS"
    )


def test_the_slower_stream_holds_a_join_back(db: hr.Database) -> None:
    started(db, JOIN)
    push(db, "a", 100)
    push(db, "b", 50)
    found = db.why("q")
    assert (
        messages(found)[0] == "q has yielded 0 elements, and is final below 48, 52 behind the newest row read"
    )
    assert told(found, "q waits for b, whose heartbeat is 48").hint == (
        "send a row of b at 51 or later (DISORDER 2) or write ALTER STREAM b IDLE AFTER 30 SECONDS"
    )
    partners = told(found, "#4 Join ON v = v_2 has found no partners")
    assert partners.message.endswith("1 of #1 TimeWindow RANGE 10 and 1 of #3 TimeWindow RANGE 10")
    assert told(found, "its operators keep 1 row")
    assert [link.split()[0] for link in found.chain] == ["48"] * 5


def test_rows_that_are_filtered_to_nothing(db: hr.Database) -> None:
    started(db, "SELECT COUNT(*) AS n FROM a [RANGE 10] WHERE v > 100")
    push(db, "a", 1, 2, 3)
    assert told(db.why("q"), "none of 3 rows passes #").message.endswith("Filter v > 100")
    assert messages(db["q"].why()) == messages(db.why("q"))
    assert re.search(r"none of 3 rows passes #\d+ Filter v > 100", str(db.execute("WHY q")[0]))


def test_rows_that_a_filter_keeps_back_which_many_queries_share(db: hr.Database) -> None:
    """One operator tests the filters of all of them, and yields rows for some."""
    for least in (*range(20), 50):
        db.query(f"SELECT v FROM a WHERE v > {least}", name=f"plain_{least}")
        db.query(f"SELECT COUNT(*) AS n FROM a [RANGE 5] WHERE v > {least}", name=f"counted_{least}")
    db.start()
    push(db, "a", 1, 2, 3, 9)
    assert any("Match 21 predicates" in link for link in db.why("plain_50").chain)
    assert "no row so far passes Filter v > 50" in messages(db.why("plain_50"))
    assert "no row below 7 passes Filter v > 50" in messages(db.why("counted_50"))
    for name in ("plain_2", "counted_2"):
        assert not [message for message in messages(db.why(name)) if "passes" in message]


def test_rows_that_were_set_apart(db: hr.Database) -> None:
    started(db, "SELECT v FROM a")
    push(db, "a", 100)
    push(db, "a", 1, 2)
    assert "rows of a were set apart: 2 late rows, 0 rejected" in messages(db.why("q"))


def test_rows_that_are_all_rejected() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": pa.array([None, None], pa.int64()), "v": [1, 2]}), timestamp="ts")
        db.query("SELECT v FROM s", name="q")
        db.run()
        found = db.why("q")
    assert messages(found) == [
        "q has yielded 0 elements, and all of it is final",
        "no row of s could be used: 0 late rows, 2 rejected",
        '2 rows of s could not be used, the last in epoch 1: the timestamp ts is NULL: {"ts": null, "v": 2} '
        "(s:2)",
    ]
    assert found.chain == ()


def test_a_line_waits_for_its_end(db: hr.Database) -> None:
    """An answer at an instant is known when a row may come no more that ends the gap there."""
    rows = "(SELECT CAST(v AS DOUBLE) AS v, ts FROM a)"
    started(db, f"SELECT v, ts FROM GAP_FILL(TABLE {rows}, DESCRIPTOR(ts), 5, 20, 'LINEAR')")
    push(db, "a", 0, 13)
    found = messages(db.why("q"))
    assert db["q"].heartbeat == 0
    assert "the answer at 0 is not final: a line waits 15 for its end" in found
    push(db, "a", 30)
    assert [row["ts"] for row in db["q"].history().to_pylist()] == [0, 5, 10]


def test_sessions_that_have_not_closed(db: hr.Database) -> None:
    """A session ends a gap after its last row: below the heartbeat no row can prolong it."""
    started(db, "SELECT COUNT(*) AS n FROM TABLE(SESSION(TABLE a, DESCRIPTOR(ts), 10)) GROUP BY window_end")
    push(db, "a", 3, 8, 17)
    found = messages(db.why("q"))
    assert db["q"].heartbeat == 15
    assert "sessions that end after 15 have not closed: each ends 10 after its last row" in found
    assert db["q"].history().num_rows == 0
    push(db, "a", 30)
    found = messages(db.why("q"))
    assert "sessions that end after 28 have not closed: each ends 10 after its last row" in found
    # That of the first three rows ended at 27.
    assert db["q"].history().column("n").to_pylist() == [3]


def test_a_window_that_has_not_closed(db: hr.Database) -> None:
    started(
        db,
        TUMBLING,
    )
    push(db, "a", 3, 25)
    found = db.why("q")
    assert "the window that ends at 30 has not closed" in messages(found)
    assert (
        "send a row of a at 32 or later (DISORDER 2) or write ALTER STREAM a TIMEOUT 30 SECONDS"
    ) in hints(found)


def test_elements_that_wait(db: hr.Database) -> None:
    started(db, "SELECT v FROM a")
    push(db, "a", 10, 11)
    assert "not final yet: at most 2 elements of the answer" in messages(db.why("q"))


def test_rows_on_which_an_expression_fails(db: hr.Database) -> None:
    started(db, "SELECT 1 / (v - v) AS x FROM a")
    push(db, "a", 1, 2, 3)
    found = told(db.why("q"), "#1 Project 1")
    assert found.message.endswith(" has taken in 3 rows and yielded none")
    assert found.hint == "dead_letters() shows the rows on which an expression failed"


def test_the_dead_letters(db: hr.Database) -> None:
    started(db, "SELECT 10 / (v - 2) AS x FROM a")
    push(db, "a", 1, 2, 9)
    push(db, "a", 2, 12)
    db.push("a", [{"ts": 13, "v": 2}, {"ts": 14, "v": 2}])
    found = db.why("q")
    late, failed = told(found, "1 row of a "), told(found, "3 rows could not")
    assert re.fullmatch(
        r'1 row of a could not be used, the last in epoch 2: .*late.*: .*"ts": 2.*', late.message
    )
    assert late.hint is not None
    assert "dead_letters('a')" in late.hint
    assert re.match("3 rows could not be used, the last in epoch 3: .*zero", failed.message)
    assert "dead_letters()" in (failed.hint or "")
    assert "3 rows could not be used" in str(db.execute("WHY q")[0])
    db.query("SELECT v FROM b", name="other")
    assert not [message for message in messages(db.why("other")) if "could not be used" in message]


def test_many_dead_letters_are_not_all_read(db: hr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.engine.run.core.LOOKED_AT", 3)
    monkeypatch.setattr("headrace.engine.why.unused.LOOKED_AT", 3)
    started(db, "SELECT 10 / (v - 2) AS x FROM a")
    for ts in range(1, 6):
        db.push("a", {"ts": ts, "v": 2})
    assert told(db.why("q"), "at least 3 rows could not be used, the last in epoch 5")


@pytest.mark.parametrize(("clause", "kept"), [("PAUSE", "no rows"), ("PAUSE KEEPING INPUT", "the rows of a")])
def test_a_query_that_is_paused(db: hr.Database, clause: str, kept: str) -> None:
    db.execute("ALTER STREAM a RETAIN ALL")
    started(db, "SELECT v FROM a")
    db.query("SELECT ts FROM a", name="other")
    push(db, "a", 1, 9)
    db.execute(f"ALTER QUERY q {clause}")
    push(db, "a", 20)
    expected = f"q is paused since epoch 3: its answer ends before 7, and {kept} are kept for it"
    assert messages(db.why("q")) == [expected]
    assert str(db.execute("WHY Q")[0]) == f"{expected}\n  hint: write ALTER QUERY q RESUME"
    db.execute("ALTER QUERY q RESUME")
    assert messages(db.why("q"))[0].startswith("q has yielded")


def test_a_query_that_no_run_has_taken_in(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.function("twice", lambda value: 2 * value, arguments=["BIGINT"], returns="BIGINT")
        db.execute("CREATE STREAM a (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY q AS SELECT twice(v) AS v FROM a; CREATE QUERY p AS SELECT v FROM a")
        db.execute("ALTER QUERY p PAUSE")
        assert messages(db.why("p")) == ["p is paused: no run has taken it in yet"]
        db.start()
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        (message,) = messages(db.why("q"))
        assert message.startswith("q is paused: ")
        assert "twice" in message
        assert "twice" in str(db.execute("WHY q")[0])


def test_an_aggregate_that_waits(db: hr.Database) -> None:
    started(db, "SELECT COUNT(*) AS n FROM a [RANGE 10 SLIDE 10]")
    push(db, "a", 1)
    found = told(db.why("q"), "#2 Aggregate: COUNT(*) AS n has taken in 1 row and yielded none")
    assert found.hint == "it may wait for its heartbeat to move"


def test_a_query_that_failed(db: hr.Database) -> None:
    started(db, "SELECT SUM(v + 9223372036854775000) AS s FROM a [RANGE UNBOUNDED]")
    push(db, "a", 1, 2, 3)
    push(db, "a", 10)
    found = db.why("q")
    assert len(found.findings) == 1
    assert messages(found)[0].startswith("q failed: ")


def test_a_stream_that_was_given_up_and_a_run_that_is_over(db: hr.Database) -> None:
    started(db, "SELECT v FROM a")
    push(db, "a", 1)
    db.stop()
    status = db.status
    waiting = told(why(status, "q"), "q waits for a").hint or ""
    assert waiting.startswith("start the run again and send a row of a at 2 or later (DISORDER 2) or write")
    for running in (True, False):
        broken = replace(status.streams[0], problem="it broke", idle_after=1_000_000, timeout=1_000_000)
        found = why(replace(status, running=running, streams=(broken,)), "q")
        assert "never counts as idle" in (told(found, "the stream a was given up: it broke").hint or "")
        # Neither a row nor IDLE AFTER helps.
        assert told(found, "q waits for a").hint == "mend what a was given up for, then start the run again"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM a",
        "SELECT COUNT(*) AS n FROM a [RANGE 10 SLIDE 4]",
        "SELECT COUNT(*) AS n FROM a WINDOW(RANGE 10) GRANULARITY(5)",
        TUMBLING,
    ],
)
def test_what_the_hint_says_is_enough_and_no_more_than_that(db: hr.Database, text: str) -> None:
    started(db, text)
    push(db, "a", 3, 23)
    status = db.status
    before, needed = status.query("q").heartbeat, next_heartbeat(status.graph, status.query("q"))
    push(db, "a", needed + 2 - 1)
    assert db.status.query("q").heartbeat == before
    push(db, "a", needed + 2)
    assert db.status.query("q").heartbeat > before


def test_the_row_that_a_strict_stream_waits_for(db: hr.Database) -> None:
    db.execute("CREATE STREAM c (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts STRICT")
    started(db, "SELECT v FROM c")
    push(db, "c", 7)
    assert (told(db.why("q"), "q waits for c").hint or "").startswith(
        "send a row of c at 8 or later (STRICT)"
    )
    push(db, "c", 8)
    assert db.status.query("q").heartbeat == 9


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 7), st.integers(0, 6)), max_size=3),
    st.integers(-40, 40),
)
def test_the_next_heartbeat_is_the_smallest(steps: list[tuple[bool, int, int]], now: int) -> None:
    plan: Plan = Source("s", Schema((Field("ts", BIGINT),)), "ts", TimeDomain.INTEGER)
    for is_window, length, offset in steps:
        size = Duration(length)
        if is_window:
            over = plan if plan.is_chronon else Istream(plan)
            plan = TimeWindow(over, size, size, Duration(offset % length))
        else:
            plan = Granularity(plan, size)
    graph = lower({"q": plan})

    def answer(instant: int) -> int:
        for node in graph.nodes[1:]:
            instant = output_heartbeat(node.plan, (instant,))
        return instant

    chain = chain_of(graph, graph.nodes[-1].number, graph.heartbeats({"s": now}, {}))
    query = QueryStatus(
        "q", "q", TimeDomain.INTEGER, ("s",), 0, heartbeat=answer(now), chain=chain, held_by="s"
    )
    smallest = next(instant for instant in range(now + 1, now + 1_000) if answer(instant) > answer(now))
    assert next_heartbeat(graph, query) == smallest


def test_why_is_asked_in_sql_as_well(db: hr.Database) -> None:
    with pytest.raises(hr.UserError, match="nothing has been run yet"):
        db.query("SELECT v FROM a", name="first").why()
    started(db, JOIN)
    push(db, "a", 100)
    push(db, "b", 50)
    text = str(db.execute("WHY Q")[0])
    assert "\n  hint: send a row of b at 51 or later (DISORDER 2) or write" in text
    assert "\nit waits for:\n  48  q\n" in text
    assert "<pre>q has yielded" in db.why("q")._repr_html_()
    with pytest.raises(LanguageError, match=r"1:5: there is no query qq \(hint: did you mean q"):
        db.execute("WHY qq")
    db.stop()
    db.query("SELECT v FROM b", name="later")
    with pytest.raises(hr.UserError, match="the query later is not part of the run"):
        db.why("later")


def test_the_epoch_that_is_running(db: hr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.engine.why.why._LONG", 0.0)
    begun, go_on = threading.Event(), threading.Event()

    def slow(value: int) -> int:
        begun.set()
        assert go_on.wait(60)
        return value

    started(db, "SELECT v FROM a [RANGE 10]")
    push(db, "a", 1)
    db.function("slow", slow, arguments=["BIGINT"], returns="BIGINT")
    db.query("SELECT slow(v) AS v FROM a [RANGE 10]", name="slowly")
    waits = db.push("a", {"ts": 2, "v": 2}, wait=False)
    assert begun.wait(60)
    found = told(db.why("q"), "epoch ")
    assert re.fullmatch(r"epoch 3 has been running for [\d.]+ s", found.message)
    assert re.search(r"epoch 3 has been running for [\d.]+ s", str(db.execute("WHY q")[0]))
    go_on.set()
    assert waits.result(60)
    assert not any(message.startswith("epoch ") for message in messages(db.why("q")))


def test_the_worker_that_is_gone(db: hr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch is tried again, and says why while it is."""
    begun, go_on = threading.Event(), threading.Event()
    attempts: list[int] = []
    started(db, "SELECT v FROM a [RANGE 10]")
    push(db, "a", 1)
    step = Run.step

    def dying(run: Run, *arguments: object) -> object:
        attempts.append(1)
        if len(attempts) == 1:
            raise WorkerLostError("a Python worker of Spark's died during epoch 2")
        begun.set()
        assert go_on.wait(60)
        return step(run, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "step", dying)
    waits = db.push("a", {"ts": 2, "v": 2}, wait=False)
    assert begun.wait(60)
    found = told(db.why("q"), "epoch 2, begun ")
    assert "s ago, is tried again: a Python worker of Spark's died during epoch 2" in found.message
    assert "worker" in str(db.execute("WHY q")[0])
    go_on.set()
    assert waits.result(60)
    assert not any("worker" in message for message in messages(db.why("q")))


def test_what_has_ended_the_run(db: hr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    started(db, "SELECT v FROM a [RANGE 10]")
    push(db, "a", 1)

    def gone(*_: object) -> None:
        raise RunnerLostError("Spark's JVM ended")

    monkeypatch.setattr(Run, "step", gone)
    with pytest.raises(hr.UserError):
        push(db, "a", 2)
    with pytest.raises(RunnerLostError):
        db.stop()
    assert "the run has ended with: Spark's JVM ended" in messages(db.why("q"))


def test_an_epoch_that_is_tried_again(db: hr.Database) -> None:
    started(db, "SELECT v FROM a [RANGE 10]")
    push(db, "a", 1)
    attempt = Attempt(2, time.monotonic() - 7, "a worker has died")
    found = told(why(replace(db.status, attempt=attempt), "q"), "epoch ")
    assert found.message == "epoch 2, begun 7.0 s ago, is tried again: a worker has died"
