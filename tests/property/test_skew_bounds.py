"""What follows from bounds between streams, against the definitions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from headrace.heartbeats.skew import Bound, Rate, SkewMatrix, without_redundant
from headrace.reference.skew import Matrix, irredundant, power, product, with_rates
from how_many import examples

NUMBERS = st.integers(0, 4)
BOUND = st.builds(Bound, NUMBERS, NUMBERS) | st.builds(Bound, NUMBERS, st.just(0), NUMBERS)
PAIRS = st.tuples(st.integers(0, 3), st.integers(0, 3))
MATRICES = st.dictionaries(PAIRS, st.lists(BOUND, min_size=1, max_size=3).map(tuple), max_size=10).map(
    lambda bounds: SkewMatrix((0, 0, 0, 0), bounds)
)


def triples(matrix: SkewMatrix) -> Matrix:
    return {
        pair: {(one.delta, one.wait, one.rows) for one in bounds} for pair, bounds in matrix.bounds.items()
    }


@given(st.lists(BOUND))
def test_what_is_redundant(bounds: list[Bound]) -> None:
    kept = without_redundant(bounds)
    assert {(one.delta, one.wait, one.rows) for one in kept} == irredundant(
        {(one.delta, one.wait, one.rows) for one in bounds}
    )
    assert all(any(one.implies(bound) for one in kept) for bound in bounds)


@given(MATRICES)
def test_the_closure_is_the_power_of_the_number_of_streams(matrix: SkewMatrix) -> None:
    assert triples(matrix.closure()) == power(triples(matrix), matrix.size)


@examples(17)
@given(MATRICES)
def test_the_closure_is_the_least_that_holds_the_bounds_and_their_products(matrix: SkewMatrix) -> None:
    closed = matrix.closure()
    assert closed.closure() == closed
    assert product(triples(closed), triples(closed)) == triples(closed)
    for pair, bounds in matrix.bounds.items():
        assert all(any(one.implies(bound) for one in closed.between(*pair)) for bound in bounds)
    # The powers rise to it, so that any closed matrix with these bounds has at least what it has.
    assert triples(closed) == power(triples(matrix), matrix.size + 2)


RATES = st.dictionaries(st.integers(0, 3), st.builds(Rate, st.integers(1, 3), st.integers(1, 3)))


@examples(17, 60)
@given(MATRICES, RATES)
def test_what_follows_from_rates(matrix: SkewMatrix, rates: dict[int, Rate]) -> None:
    """The closure with rates is all that follows from bounds and rates, applied to each other for ever."""
    closed = replace(matrix, rates=rates).closure()
    by_time = {stream: Fraction(rate.gain, rate.time) for stream, rate in rates.items()}
    assert triples(closed) == with_rates(triples(matrix), by_time)
    assert closed.closure() == closed
