"""What WHY says of a stream with PER is true: whoever follows it sees the query go on."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.runtime.driver.endless import live
from how_many import examples
from watched_clock import Clock

STREAM = """
CREATE STREAM a (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5 PER v IDLE AFTER 5 SECONDS
"""
PUSHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from((1, 2, 3)), st.integers(0, 60)), min_size=1, max_size=4),
        st.sampled_from((0, 1, 3)),
    ),
    min_size=1,
    max_size=4,
)
"""Rows, a value and an instant each, and how many seconds pass after them."""


def rows(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"v": value, "ts": instant} for value, instant in pairs]


@examples(12, 60)
@given(pushes=PUSHES, of=st.booleans(), way=st.integers(0, 1), value=st.sampled_from((1, 2, 3, 4)))
def test_what_why_says_of_values_is_enough(
    pushes: list[tuple[list[tuple[int, int]], int]], of: bool, way: int, value: int
) -> None:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch, hr.connect(runner="inline", clock=clock) as db:
        patch.setattr(live, "_LOOK", 0.002)
        db.execute(STREAM)
        if of:
            db.execute("ALTER STREAM a PER v OF (1, 2) IDLE AFTER 5 SECONDS")
        db.query("SELECT v FROM a", name="q")
        db.start()
        for pairs, seconds in pushes:
            db.push("a", rows(*pairs))
            clock.let_pass(seconds)
        before = db["q"].heartbeat
        # Of several values that are equally far one is named after the other.
        for _ in range(3):
            said = follow(db, clock, way, value)
            clock.let_pass(1)
            if db["q"].heartbeat > before:
                break
        assert db["q"].heartbeat > before, said


def follow(db: hr.Database, clock: Clock, way: int, value: int) -> str:
    """Do what one of the ways says that the hint of WHY has; with that value where any will do."""
    before = db["q"].heartbeat
    (hint,) = [one.hint for one in db.why("q").findings if one.message.startswith("q waits for a")]
    ways = re.split(r" or (?=wait: |when no |send |write )", hint or "")
    said = ways[way % len(ways)]
    if said.startswith("wait: it declares IDLE AFTER"):
        clock.let_pass(8)
        assert db["q"].heartbeat > before, hint
    elif found := re.match(r"send a row of a with v (\d)(?: at (\d+) or later)?", said):
        db.push("a", rows((int(found[1]), int(found[2] or 0))))
    elif found := re.match(r"when no v .*, send a row of a with any v(?: at (\d+))?", said):
        clock.let_pass(8)
        assert db["q"].heartbeat == before, hint
        db.push("a", rows((value, int(found[1] or 0))))
        clock.let_pass(1)
        assert db["q"].heartbeat > before, hint
    else:
        raise AssertionError(said)
    return said
