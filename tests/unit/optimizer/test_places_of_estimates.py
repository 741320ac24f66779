"""Which columns of an answer are estimates with bounds behind them: whatever they are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.optimizer.estimates.places import estimates_in
from how_many import examples
from inside import core_of

STREAM = (
    "CREATE STREAM s (k STRING, d DOUBLE, v BIGINT, m DECIMAL(10, 2), ts BIGINT) FROM push TIMESTAMP BY ts;"
)
KEYS = ("k", "UPPER(k)", "d", "CASE WHEN d = 0.0 THEN d ELSE 1.0 END")
CALLS = (
    "COUNT(*)",
    "SUM(v)",
    "SUM(m)",
    "AVG(v)",
    "-COUNT(*)",
    "2 * SUM(v) / COUNT(*)",
    "CAST(COUNT(*) AS DOUBLE)",
    "COUNT(*) FILTER (WHERE v > 3)",
)
NAMES = ("a", "a_low", "a_high", "b", "b_low", "b_high")
"""Names that look as if they were bounds."""


@examples(25, 200)
@given(
    st.lists(st.tuples(st.sampled_from(KEYS + CALLS), st.sampled_from(NAMES)), min_size=1, max_size=5),
    st.sampled_from(("{}", "RSTREAM({})")),
)
def test_estimates_are_those_of_aggregates(items: list[tuple[str, str]], form: str) -> None:
    items = [*{name: (text, name) for text, name in items}.values(), ("COUNT(*)", "n")]
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        listed = form.format(", ".join(f"{text} AS {name}" for text, name in items))
        db.execute(f"CREATE QUERY q WITHIN 5 PERCENT AS SELECT {listed} FROM s [RANGE 9] GROUP BY k, d")
        (defined,) = core_of(db).definitions.queries.values()
        expected, place = [], 0
        for text, _ in items:
            if text in CALLS:
                expected.append(place)
            place += 3 if text in CALLS else 1
        for plan in (defined.query.plan, defined.plan):
            assert list(estimates_in(plan)) == expected


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("n, n_low, n_high", (0,)),
        ("n_high, n_low, n", ()),
        ("n AS x, k AS x_low, k AS x_high", ()),
        ("k, n, n_low, n_high", (1,)),
    ],
)
def test_a_query_over_estimates_has_those_that_it_shows_with_their_bounds(
    items: str, expected: tuple[int, ...]
) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            f"{STREAM} CREATE QUERY q WITHIN 5 PERCENT AS SELECT k, COUNT(*) AS n FROM s [RANGE 9] GROUP BY k"
        )
        db.execute(f"CREATE QUERY d AS SELECT {items} FROM q WHERE n > 3")
        found = [one for one in core_of(db).definitions.queries.values() if one.query.name == "d"]
        assert estimates_in(found[0].plan) == expected
