"""What was deleted from a relation that is given by changes leaves no row of state behind."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from driving import Arriving, State, drive
from headrace.algebra.changes import HOW_LATE, Changes, content_of
from headrace.algebra.nodes import Source
from headrace.elements import concat, from_rows
from headrace.history import equivalent
from headrace.optimizer import optimize
from headrace.reference.changes import RowChange, content_after, history_after
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import TimeDomain

SCHEMA = Schema((Field("op", STRING), Field("k", BIGINT), Field("v", BIGINT), Field("ts", BIGINT)))
LEAF = Source("r", SCHEMA, "ts", TimeDomain.INTEGER)

CHANGES = st.lists(
    st.lists(st.tuples(st.sampled_from("IUDD"), st.integers(0, 12), st.integers(0, 9)), max_size=4),
    min_size=1,
    max_size=30,
)
"""The changes of each instant; about as many keys go as come."""


@settings(max_examples=20)
@given(CHANGES, st.booleans())
def test_state_follows_the_keys_that_are_there(changes: list[list[tuple[str, int, int]]], full: bool) -> None:
    if full:  # a large run, which others are merged above
        changes = [[("I", key, 0) for key in range(13)], *changes]
    rows = [[(op, key, value, at) for op, key, value in some] for at, some in enumerate(changes)]
    epochs = [
        Arriving({"r": [(row, at, at + 1, 1) for row in some]}, {"r": at + 1}) for at, some in enumerate(rows)
    ]
    known = [
        RowChange(at, (key,), None, op == "D", (key, value, at))
        for some in rows
        for op, key, value, at in some
    ]
    plan = optimize(content_of(LEAF, Changes("op", ("k",)), how_late=0))
    state: State = {}
    found, most = [], 0
    for at, (batch, _) in enumerate(drive(plan, {"r": LEAF}, epochs, state)):
        found.append(batch)
        there = content_after(known, at).total()
        most = max(most, there)
        kept = sum(run.rows for areas in state.values() for runs in areas.values() for run in runs)
        # Runs are merged when what was added is as much as what was there.
        assert kept <= 2 * most
        assert there or not kept, "all keys are gone"
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history_after(known)])
    assert equivalent(concat(plan.schema, found), expected)


RELATION = """
CREATE RELATION r (op STRING, k BIGINT, ts BIGINT) KEY (k) FROM push CHANGES BY op TIMESTAMP BY ts
"""


def test_a_thousand_keys_that_come_and_go() -> None:
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute(RELATION)
        query = db.query("SELECT k FROM r")
        db.start()
        most = 0
        for at in range(0, 1000, 20):
            then = at * HOW_LATE[TimeDomain.INTEGER] // 10
            db.push("r", [{"op": "I", "k": key, "ts": then} for key in range(at, at + 20)])
            db.push("r", [{"op": "D", "k": key, "ts": then + 10} for key in range(at, at + 20)])
            most = max(most, sum(part.state_rows for part in db.status.operators))
        db.push("r", [{"op": "D", "k": 0, "ts": then + 1000}])
        assert query.latest().num_rows == 0
        # Keys that are there, whose changes wait for the heartbeat, or that were deleted lately.
        assert most <= 80, most
