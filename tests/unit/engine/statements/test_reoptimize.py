"""ALTER QUERY ... REOPTIMIZE over pushed streams whose rows change their ways."""

from __future__ import annotations

import math
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
import warm_processes
from headrace.errors import LanguageError, PlanError, UserError
from headrace.time import MICROSECONDS, ManualClock

STREAMS = "; ".join(
    f"CREATE STREAM {name} (k BIGINT, m BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts" for name in "abc"
)
QUERY = """CREATE QUERY q AS SELECT a.ts AS a, b.ts AS b, c.ts AS c
FROM a [RANGE 100], b [RANGE 100], c [RANGE 100] WHERE a.k = b.k AND b.m = c.m"""

Row = tuple[int, int, int]
NAMES = ("k", "m", "ts")


def rows(begin: int, end: int) -> dict[str, list[Row]]:
    """Many rows of a meet each of b, and few of these one of c."""
    instants = range(begin, end)
    return {
        "a": [(at % 3, 0, at) for at in instants],
        "b": [(at % 3, at % 50, at) for at in instants],
        "c": [(0, 1_000 + at if at % 7 else at % 50, at) for at in instants if at % 5 == 0],
    }


def push(db: hr.Database, part: dict[str, list[Row]]) -> None:
    for name, found in part.items():
        assert db.push(name, [dict(zip(("k", "m", "ts"), row, strict=True)) for row in found])


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hr.Database]:
    with hr.connect(runner="inline", storage=tmp_path) as made:
        made.execute(STREAMS)
        yield made


REOPTIMIZE = "ALTER QUERY q REOPTIMIZE"
PARTS = tuple(rows(begin, begin + 80) for begin in range(0, 400, 80))


def test_a_query_joins_in_another_order_and_answers_the_same(db: hr.Database) -> None:
    for name in ("q", "other"):
        db.execute(QUERY.replace("QUERY q", f"QUERY {name}"))
    db.start()
    push(db, PARTS[0])
    assert str(db.execute(REOPTIMIZE)[0]).splitlines() == [
        "q joins in another order:",
        "  ((a JOIN b) JOIN c) -> (a JOIN (b JOIN c))",
        # The newest row is of 79, and is in its window for 100 instants.
        "the new plan answers from 179 on; until the heartbeat is there both run",
    ]
    push(db, PARTS[1])
    with pytest.raises(PlanError, match="being exchanged already") as error:
        db.execute(REOPTIMIZE)
    assert error.value.hint == "wait until the heartbeat of q has passed 179, where the new one takes over"
    for part in PARTS[2:]:
        push(db, part)
    assert str(db.execute(REOPTIMIZE)[0]).startswith("q goes on unchanged")
    for name in "abc":
        db.heartbeat(name, 10_000)
    found = db["q"].history().to_pylist()
    assert found
    assert sorted(map(str, found)) == sorted(map(str, db["other"].history().to_pylist()))


def test_a_store_goes_on_with_the_plan_that_was_exchanged(db: hr.Database, tmp_path: Path) -> None:
    """Nothing else in the store has the state of the plan with which the query began."""
    with hr.connect(runner="inline") as undisturbed:
        undisturbed.execute(f"{STREAMS}; {QUERY}")
        undisturbed.start()
        for part in PARTS:
            push(undisturbed, part)
        expected = answer(undisturbed)
    db.execute(QUERY)
    db.start()
    push(db, PARTS[0])
    assert "joins in another order" in str(db.execute(REOPTIMIZE)[0])
    db.close()
    for part in PARTS[1:]:
        with hr.connect(runner="inline", storage=tmp_path) as again:
            again.execute(f"{STREAMS}; {QUERY}")
            again.start()
            push(again, part)
            found = answer(again) if part is PARTS[-1] else []
    assert found == expected
    assert found


def answer(db: hr.Database) -> list[str]:
    """The whole history of q, once no more rows come."""
    for name in "abc":
        db.heartbeat(name, 10_000)
    return sorted(map(str, db["q"].history().to_pylist()))


SIGNS = (("a", 1), ("b", 1), ("c", -1))
"""Of what differs from everything in another stream."""


def run_to_end(storage: Path | None, every: float | None) -> tuple[str | None, list[str]]:
    """The order that a run over bounded streams has come to join in, and its answer."""
    with (
        hr.connect(runner="inline", storage=storage, buckets=2, epoch_rows=60, reoptimize_every=every) as db,
        pytest.MonkeyPatch.context() as patch,
    ):
        # The order in FROM, not the one that the rows suggest beforehand.
        patch.setattr("headrace.engine.run.core.decided", lambda *_: None)
        for name, sign in SIGNS:
            rows = [(at % 4, at % 15 and sign * at, at) for at in range(240)]
            columns = dict(zip(("k", "m", "ts"), map(list, zip(*rows, strict=True)), strict=True))
            db.stream(name, pa.table(columns), timestamp="ts")
        query = db.query(QUERY.replace("100", "40"))
        db.run()
        exchange = db.status.query("q").exchanged
        order = None if exchange is None else exchange.after[0]
        return order, sorted(map(str, query.history().to_pylist()))


def test_a_process_that_is_killed_between_the_two_plans(tmp_path: Path) -> None:
    # The first change of the plan begins the exchange, the second one would end it.
    environment = os.environ | {"HEADRACE_FAULT": "change.done:1"}
    killed = warm_processes.run(
        [sys.executable, __file__, tmp_path], env=environment, timeout=60, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    order, found = run_to_end(tmp_path, 1e-9)
    assert order == "(a JOIN (b JOIN c))"
    assert (None, found) == run_to_end(None, None)
    assert len(found) > 100


def explained(db: hr.Database) -> str:
    """What EXPLAIN ANALYZE says of the last exchange."""
    return str(db.execute("EXPLAIN ANALYZE q")[0]).splitlines()[-1]


def test_it_is_seen_what_was_exchanged_and_why(db: hr.Database) -> None:
    db.execute(QUERY)
    db.start()
    push(db, PARTS[0])
    assert db.status.query("q").exchanged is None
    db.execute(REOPTIMIZE)
    assert re.fullmatch(
        r"joins in another order since epoch 4, as ALTER QUERY asked: \(\(a JOIN b\) JOIN c\) -> "
        r"\(a JOIN \(b JOIN c\)\); [\d.]+ times fewer rows were expected, and the new plan answers from 179"
        " on",
        explained(db),
    )
    shown = db.status.to_dict()["queries"][0]["exchanged"]
    assert (shown["epoch"], shown["at"], shown["asked"]) == (4, 179, True)


def test_plans_are_exchanged_by_themselves_where_that_is_asked_for(tmp_path: Path) -> None:
    clock = ManualClock()

    def connected() -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path, clock=clock, reoptimize_every=60)
        db.execute(f"{STREAMS}; {QUERY}")
        db.start()
        return db

    with connected() as db:
        for begin in range(0, 400, 80):
            instants = range(begin, begin + 80)
            few = {name: [(0, at % 25 and sign * at, at) for at in instants] for name, sign in SIGNS}
            push(db, few)
            clock.advance(60 * MICROSECONDS["SECOND"])
        told = explained(db)
        assert ", by itself: ((a JOIN b) JOIN c) -> (a JOIN (b JOIN c))" in told
    with connected() as db:
        assert explained(db) == told


@pytest.mark.parametrize("every", [0, -1, math.nan, "often"])
def test_an_interval_that_makes_no_sense(every: float) -> None:
    with pytest.raises(UserError, match="reoptimize_every must be more than 0"):
        hr.connect(runner="inline", reoptimize_every=every)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "ALTER QUERY q",
            "SET CONSISTENCY, SET WINDOW, SET GRANULARITY or REOPTIMIZE is missing, before the end",
            "write ALTER QUERY q {PAUSE",
        ),
        ("ALTER QUERY r REOPTIMIZE", "there is no query r", ""),
        (REOPTIMIZE, "q is not running", "call start"),
        ("ALTER TABLE q", "STREAM or QUERY is missing after ALTER", "ALTER QUERY name PAUSE"),
    ],
)
def test_mistakes(db: hr.Database, text: str, message: str, hint: str) -> None:
    db.execute(QUERY)
    with pytest.raises(LanguageError) as error:
        db.execute(text)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


CONSTANT = pa.table({name: [row[place] for row in PARTS[0]["c"]] for place, name in enumerate("kmt")})
CHANGING = """CREATE RELATION c (k BIGINT, m BIGINT, ts BIGINT, op STRING) KEY (m)
FROM push CHANGES BY op TIMESTAMP BY ts"""
ENDLESS = ("[UNBOUNDED] c", "[ROWS 7] c", "[PARTITION BY m ROWS 2] c", "changing", "constant", "refreshed")


@pytest.mark.parametrize(("kind", "buckets"), [*((kind, 1) for kind in ENDLESS), (ENDLESS[2], 3)])
def test_a_side_whose_rows_never_leave(kind: str, buckets: int) -> None:
    with hr.connect(runner="inline", buckets=buckets) as db:
        db.execute(STREAMS)
        if kind in ("constant", "refreshed"):
            db.execute("DROP STREAM c")
            db.relation("c", CONSTANT, refresh="on demand" if kind == "refreshed" else None)
        elif kind == "changing":
            db.execute("DROP STREAM c")
            db.execute(CHANGING)
        window = kind if kind.startswith("[") else ""
        for name in ("q", "other"):
            text = QUERY.replace("QUERY q", f"QUERY {name}").replace("[RANGE 100] WHERE", f"{window} WHERE")
            db.execute(text.replace("c.ts AS c", "c.k AS c"))
        db.start()
        for place, part in enumerate(PARTS):
            if kind == "refreshed":
                assert db.refresh("c", CONSTANT.slice(place)).deleted == (place > 0)
            elif kind != "constant":
                assert db.push("c", [{"k": k, "m": m, "ts": ts, "op": "insert"} for k, m, ts in part["c"]])
            push(db, {"a": part["a"], "b": part["b"]})
            if part is PARTS[1]:
                assert "(a JOIN (b JOIN c))" in str(db.execute(REOPTIMIZE)[0])
        for name in db.streams:
            db.heartbeat(name, 10_000)
        found, other = (sorted(map(str, db[name].history().to_pylist())) for name in ("q", "other"))
        assert found == other
        assert found


def test_rows_that_are_kept_by_other_keys(db: hr.Database) -> None:
    """The new plan would join all pairs of b and c first, and no join keeps those."""
    db.execute(QUERY.replace("b [RANGE 100], c [RANGE 100]", "b [UNBOUNDED], c [UNBOUNDED]"))
    db.start()
    push(db, PARTS[0])
    with pytest.raises(PlanError, match="rows of b and c may have no end, and no join that runs"):
        db.execute(REOPTIMIZE)


def test_who_may_change_nothing_may_not_ask(db: hr.Database) -> None:
    db.execute(QUERY)
    with pytest.raises(hr.PolicyError, match="ALTER QUERY is not allowed"):
        db.execute(REOPTIMIZE, policy=hr.Policy.closed())


def test_operators_that_wait_for_others(db: hr.Database) -> None:
    db.execute(QUERY.replace("QUERY q", "QUERY q HEARTBEATS COMMON"))
    db.start()
    push(db, PARTS[0])
    with pytest.raises(PlanError, match="operators of q wait for others"):
        db.execute(REOPTIMIZE)


if __name__ == "__main__":
    run_to_end(Path(sys.argv[1]), 1e-9)
