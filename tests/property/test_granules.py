"""GRANULARITY only gets coarser: what is over it is exact at its multiples, or refused with what is right."""

from __future__ import annotations

import re
from itertools import product
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auctions import plan_of
from headrace.algebra.nodes import Plan
from headrace.errors import LanguageError
from headrace.reference.contents import Content, Stream, content_at
from headrace.reference.operators import evaluate
from how_many import examples

LONGEST = 12
UNITED = "(SELECT id FROM tick [RANGE 5] GRANULARITY({}) UNION ALL SELECT id FROM tick GRANULARITY({}))"
FINE = "tick [RANGE 5] GRANULARITY({granule})"
OVER: dict[str, str] = {
    "a window": f"(SELECT id, at FROM {FINE})",
    "groups": f"(SELECT id, COUNT(*) AS n FROM {FINE} GROUP BY id)",
    "a join": f"(SELECT a.id FROM {FINE} a JOIN tick [RANGE 9] b ON a.id = b.id)",
    "a union": f"(SELECT id FROM tick [RANGE 2] UNION ALL SELECT id FROM {FINE})",
    "rows": f"(SELECT DISTINCT id FROM (SELECT id FROM {FINE}) SAMPLE(90))",
}
"""What has a granularity in it; other inputs of it may have none, and are exact at every instant."""


def written(hint: str | None, clause: str) -> str:
    """The length that a hint says to write."""
    found = re.match(rf"write {clause}\(?'?(\d+)", hint or "")
    assert found is not None, hint
    return found[1]


def plan_or_hint(text: str) -> Plan | str:
    """The plan of a query, or the hint with which it is refused."""
    try:
        return plan_of(text)
    except LanguageError as error:
        return error.hint or "without a hint"


@pytest.mark.parametrize("over", OVER)
def test_granules_over_granules(over: str) -> None:
    for inner, outer in product(range(1, LONGEST + 1), repeat=2):
        table = OVER[over].format(granule=inner)
        found = plan_or_hint(f"SELECT * FROM {table} GRANULARITY({outer})")
        assert isinstance(found, str) == (outer % inner != 0), (inner, outer)
        if not isinstance(found, str):
            continue
        if outer > inner:
            assert int(written(found, "GRANULARITY")) % inner == 0
            plan_of(f"SELECT * FROM {table} GRANULARITY({written(found, 'GRANULARITY')})")
        else:
            assert found == "leave the outer one out, or make the inner one as fine"
            plan_of(f"SELECT * FROM {OVER[over].format(granule=outer)} GRANULARITY({outer})")
        plan_of(f"SELECT * FROM {table}")


def test_granules_over_two_granules() -> None:
    for one, other, outer in product(range(1, 7), range(1, 7), range(1, 31)):
        found = plan_or_hint(f"SELECT * FROM {UNITED.format(one, other)} GRANULARITY({outer})")
        assert isinstance(found, str) == (outer % lcm(one, other) != 0), (one, other, outer)


WINDOWS = {
    "RANGE": "{table} [RANGE {length}]",
    "SLIDE": "{table} [RANGE UNBOUNDED SLIDE {length}]",
    "RANGE and SLIDE": "{table} [RANGE {length} SLIDE {length}]",
    "NOW": "{table} BEGIN (NOW - {before}) END (NOW)",
    "TUMBLE": "TUMBLE(TABLE {table}, {length})",
    "HOP": "HOP(TABLE {table}, {length}, 60)",
    "SESSION": "SESSION(TABLE {table}, {length})",
}
"""Windows of a length over a table; NOW counts its own instant."""


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("over", ["a window", "groups", "a union"])
def test_windows_over_granules(over: str, window: str) -> None:
    is_function = WINDOWS[window].endswith(")") and window != "NOW"
    clause = "INTERVAL " if is_function else "SLIDE " if window == "SLIDE" else "RANGE "
    for granule, length in product((1, 2, 3, 4, 5, 6, 10, 12), range(1, LONGEST + 1)):
        table = OVER[over].format(granule=granule)
        text = "SELECT * FROM " + WINDOWS[window]
        found = plan_or_hint(text.format(table=table, length=length, before=length - 1))
        assert isinstance(found, str) == (length % granule != 0), (granule, length)
        if isinstance(found, str):
            right = int(written(found, clause))
            assert right % granule == 0
            plan_of(text.format(table=table, length=right, before=right - 1))


def test_granules_over_windows_over_granules() -> None:
    table = "(SELECT id FROM (SELECT id FROM tick GRANULARITY(4)) [RANGE 8])"
    assert isinstance(plan_or_hint(f"SELECT * FROM {table} GRANULARITY(6)"), str)
    assert not isinstance(plan_or_hint(f"SELECT * FROM {table} GRANULARITY(12)"), str)
    # What ISTREAM makes of granules are events of a stream of its own.
    assert not isinstance(
        plan_or_hint("SELECT * FROM ISTREAM(SELECT id FROM tick GRANULARITY(4)) [RANGE 6]"), str
    )


@pytest.mark.parametrize("clause", ["GRANULARITY(COARSEST {}, FINEST {})", "[RANGE MIN {}, MAX {}]"])
def test_bounds_are_taken_or_refused_with_what_is_right(clause: str) -> None:
    for one, other in product(range(LONGEST + 1), repeat=2):
        found = plan_or_hint(f"SELECT * FROM tick {clause.format(one, other)}")
        if isinstance(found, str) and not found.startswith("leave GRANULARITY out"):
            right = found.removeprefix("write ").removesuffix(" for one instant")
            right = right if right.startswith("GRANULARITY") else f"[{right}]"
            assert isinstance(plan_or_hint(f"SELECT * FROM tick {right}"), Plan), (one, other, found)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=12)


def content_of(text: str, rows: list[tuple[int, int]], instants: range) -> dict[int, Content]:
    """What a query holds at some instants, by the definitions."""
    columns = ("id", "kind", "price", "at")
    stream = Stream(columns, [((number, "k", None, at), at, at + 1, 1) for number, at in rows])
    history = [(row, ts, te, 1) for row, ts, te in evaluate(plan_of(text), {"tick": stream})]
    return {instant: content_at(history, instant) for instant in instants}


@pytest.mark.parametrize("over", ["a window", "groups", "a join", "a union"])
@examples(5, 40)
@given(rows=ROWS, inner=st.integers(1, 6), times=st.integers(1, 4))
def test_a_granule_that_is_accepted_is_exact(
    over: str, rows: list[tuple[int, int]], inner: int, times: int
) -> None:
    """Lemma 20.1 of the thesis: as without any granule, at the multiples of the outer one."""
    outer = inner * times
    table = OVER[over].format(granule=inner)
    plain = re.sub(r" GRANULARITY\(\d+\)", "", table)
    coarse = content_of(f"SELECT * FROM {table} GRANULARITY({outer})", rows, range(0, 40, outer))
    assert coarse == content_of(f"SELECT * FROM {plain}", rows, range(0, 40, outer))


@pytest.mark.parametrize("dialect", ["sql", "cql", "pipes"])
@pytest.mark.parametrize("table", ["tick", "(SELECT id, at FROM tick)"])
@pytest.mark.parametrize("bounds", ["{0}", "COARSEST {1}, FINEST {0}"])
@examples(5, 40)
@given(rows=ROWS, granule=st.integers(1, 6))
def test_granules_of_now_have_the_rows_of_their_first_instant(
    bounds: str, table: str, dialect: str, rows: list[tuple[int, int]], granule: int
) -> None:
    clause = f"GRANULARITY({bounds.format(granule, 2 * granule)})"
    for query in ("SELECT id FROM {} x", "SELECT id, COUNT(*) AS n FROM {} x GROUP BY id"):
        text = f"SET dialect = '{dialect}'; " + query.format(table + " [NOW]{}")
        coarse = content_of(text.format(f" {clause}"), rows, range(40))
        first = content_of(text.format(""), rows, range(40))
        assert coarse == {at: first[at - at % granule] for at in range(40)}
