"""QoS graphs: utilities on and between points, slopes, and what is no graph."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.qos_graph import QosGraph, QosKind

NUMBERS = st.floats(0, 1000, allow_subnormal=False)


@st.composite
def graphs(draw: st.DrawFn) -> QosGraph:
    delays = sorted(draw(st.lists(st.integers(0, 1000), min_size=1, max_size=6, unique=True)))
    some = st.lists(st.floats(0, 1), min_size=len(delays), max_size=len(delays))
    return QosGraph(tuple(zip(map(float, delays), sorted(draw(some), reverse=True), strict=True)))


@given(graph=graphs(), x=NUMBERS)
def test_utilities_are_those_of_linear_interpolation(graph: QosGraph, x: float) -> None:
    delays, utilities = zip(*graph.points, strict=True)
    assert graph.at(x) == pytest.approx(float(np.interp(x, delays, utilities)), abs=1e-9)


@given(graph=graphs(), x=NUMBERS, over=st.floats(0.001, 100))
def test_slopes_are_those_of_the_utility(graph: QosGraph, x: float, over: float) -> None:
    assert graph.at(x) + over * graph.slope(x, over) == pytest.approx(graph.at(x + over), abs=1e-9)
    following = next((delay for delay, _ in graph.points if delay > x), x + 1)
    assert graph.at(x) + (following - x) * graph.slope(x) == pytest.approx(graph.at(following), abs=1e-9)


@given(graph=graphs(), x=NUMBERS)
def test_a_graph_is_level_up_to_where_it_falls(graph: QosGraph, x: float) -> None:
    begin = graph.falls_from(x)
    if begin == math.inf:
        assert graph.at(x) == graph.points[-1][1]
    else:
        assert graph.at(x) == pytest.approx(graph.at(begin), abs=1e-12)
        assert begin >= x
        assert graph.slope(begin) < 0


@pytest.mark.parametrize(
    ("kind", "points", "message"),
    [
        ("delay", (), "a delay graph has at least one point"),
        ("delay", ((0, 1), (5, 0.2), (5, 0.1)), "the delays of a delay graph rise"),
        ("delay", ((2, 1), (1, 0.5)), "the delays of a delay graph rise"),
        ("delay", ((0, 0.5), (1, 0.6)), "a later answer cannot be worth more: 0.6 comes after 0.5"),
        ("delay", ((0, 1.5),), "a utility is from 0 to 1, not 1.5"),
        ("delay", ((0, 1), (1, -0.1)), "a utility is from 0 to 1, not -0.1"),
        ("delay", ((0, math.nan),), "a utility is from 0 to 1, not nan"),
        ("delay", ((-1, 1),), "the delays of a delay graph are from 0 on, not -1"),
        ("delay", ((math.inf, 1),), "the delays of a delay graph are from 0 on, not inf"),
        ("loss", ((0.5, 1), (0.6, 0.5)), "an answer of more rows cannot be worth less: 0.5 comes after 1"),
        ("loss", ((0.5, 1), (1.5, 1)), "the shares of a loss graph are from 0 to 1, not 1.5"),
    ],
)
def test_what_is_no_graph_is_refused(
    kind: QosKind, points: tuple[tuple[float, float], ...], message: str
) -> None:
    with pytest.raises(UserError) as error:
        QosGraph(points, kind)
    assert error.value.message == message
    assert error.value.hint is not None
