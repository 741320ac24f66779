"""The operator law: below the heartbeat, an operator's content is its definition's, whatever the arrival.

Input is any signed history (ties, disorder, retractions, open ends, NULLs), cut into epochs at random; after
every epoch the operator is made anew from its stored runs, as on another worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import Arriving, State, drive, over, standing_for
from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import Filling, Ranking, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    BoundedRowWindow,
    Coalesce,
    Distinct,
    Dstream,
    GapFill,
    Granularity,
    Istream,
    Join,
    LargestWeight,
    Lifetime,
    LiveRow,
    NestedAggregate,
    Over,
    Plan,
    Project,
    RowWindow,
    Sample,
    SessionAggregate,
    SessionWindow,
    SetOperation,
    Shed,
    Source,
    TimeWindow,
    TopK,
    Union,
    column,
)
from headrace.algebra.properties import is_append_only, is_insert_only
from headrace.elements import Batch, concat, from_rows, to_rows
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate, resolve_user_aggregate
from headrace.expressions.aggregates.functions import REGRESSIONS
from headrace.expressions.coercion import make_cast
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import AggregateCall, Call, Column, Expression, SortKey
from headrace.expressions.user import UserAggregate
from headrace.history import canonical, clip, equivalent
from headrace.operators.contract import Holder, OperatorProgress
from headrace.operators.create import create_operator
from headrace.operators.early import unreported
from headrace.operators.state.runs import SortedRun
from headrace.operators.top_k import standings, top_k
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.runtime.results.carried import held_from
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, Field, Schema
from headrace.steps import WHOLE, Scale, Step
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain
from how_many import examples

DECIMAL = pa.decimal128(38, 2)
SCHEMA = Schema((Field("k", STRING), Field("v", BIGINT), Field("x", DOUBLE)))
K, V, X = (Column(place, field.name, field.type) for place, field in enumerate(SCHEMA))
LEFT = Source("left", SCHEMA, "t", TimeDomain.INTEGER)
RIGHT = Source("right", SCHEMA, "t", TimeDomain.INTEGER)

payloads = st.tuples(
    st.sampled_from(["a", "b", None, ""]),
    st.sampled_from([None, 0, 1, 7, -3]),
    st.sampled_from([None, 0.0, -0.0, 1.5, -2.25, float("nan"), float("inf")]),
)

hostile_payloads = st.tuples(
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, 2**63 - 1, -(2**63), 10**17, 10**17 + 1, 1, -3]),
    st.one_of(
        st.sampled_from([None, float("nan"), float("inf"), float("-inf"), 0.1, -0.3, 1e30, 1e60, -1e60]),
        st.sampled_from([1e308, 1.7976931348623157e308, -1.7e308, 1e15, 1e15 + 0.125]),
        st.sampled_from([5e-324, -5e-324, 2.2250738585072014e-308, 1e-200]),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
)
"""Values whose sums of doubles depend on the order, overflow or cancel."""


@dataclass(frozen=True)
class Arrival:
    """An element and the epoch in which it arrives."""

    element: Element
    epoch: int


EPOCHS = 4


@st.composite
def histories(
    draw: st.DrawFn,
    epochs: int,
    retractions: bool = True,
    most: int = 8,
    rows: st.SearchStrategy[tuple[object, ...]] = payloads,
) -> list[Arrival]:
    """Signed elements whose content is never negative, each with an epoch."""
    arrivals = []
    for _ in range(draw(st.integers(0, most))):
        payload = draw(rows)
        ts = draw(st.integers(-3, 12))
        te = draw(st.integers(ts + 1, ts + 8) | st.just(INFINITY))
        w = draw(st.sampled_from([1, 1, 1, 2]))
        arrivals.append(Arrival((payload, ts, te, w), draw(st.integers(0, epochs - 1))))
        if retractions and draw(st.booleans()):
            # CEDR's Retract: the end of the interval moves back to `cut`.
            cut = draw(st.integers(ts, min(te - 1, ts + 9)))
            arrivals.append(Arrival((payload, cut, te, -w), draw(st.integers(0, epochs - 1))))
    return arrivals


@st.composite
def chronon_histories(draw: st.DrawFn, epochs: int, retractions: bool = True) -> list[Arrival]:
    """Signed chronons whose content is never negative, each with an epoch; many tie."""
    arrivals = []
    for _ in range(draw(st.integers(0, 12))):
        payload, ts, w = draw(payloads), draw(st.integers(-3, 8)), draw(st.sampled_from([1, 1, 1, 2, 3]))
        arrivals.append(Arrival((payload, ts, ts + 1, w), draw(st.integers(0, epochs - 1))))
        if retractions and draw(st.integers(0, 3)) == 0:
            taken = draw(st.integers(1, w))
            arrivals.append(Arrival((payload, ts, ts + 1, -taken), draw(st.integers(0, epochs - 1))))
    return arrivals


@st.composite
def window_histories(draw: st.DrawFn, epochs: int) -> list[Arrival]:
    """What a window makes of many chronons, none retracted: intervals of one length, or that tumble."""
    size, tumble = draw(st.integers(1, 9)), draw(st.booleans())
    arrivals = []
    for _ in range(draw(st.integers(0, 30))):
        instant = draw(st.integers(-3, 15))
        ts = instant // size * size if tumble else instant
        element = (draw(payloads), ts, ts + size, draw(st.sampled_from([1, 1, 2])))
        arrivals.append(Arrival(element, draw(st.integers(0, epochs - 1))))
    return arrivals


@st.composite
def rows_that_go_on(draw: st.DrawFn, epochs: int) -> list[Arrival]:
    """Signed chronons that come about in order, in each epoch some, so that heartbeats pass a few of them."""
    arrivals = []
    for epoch in range(epochs):
        for _ in range(draw(st.integers(0, 4))):
            payload, ts = draw(payloads), 2 * epoch + draw(st.integers(0, 3))
            arrivals.append(Arrival((payload, ts, ts + 1, draw(st.sampled_from([1, 1, 2]))), epoch))
            if ts > 2 * epoch + 1 and draw(st.integers(0, 3)) == 0:
                arrivals.append(
                    Arrival((payload, ts, ts + 1, -1), draw(st.integers(epoch, min(epoch + 1, epochs - 1))))
                )
    return arrivals


def heartbeats(arrivals: list[Arrival], epochs: int, slack: int) -> list[int]:
    """The best promise after each epoch, less some slack: no later element starts before it."""
    result = []
    for epoch in range(epochs):
        later = [arrival.element[1] for arrival in arrivals if arrival.epoch > epoch]
        result.append(INFINITY if epoch == epochs - 1 else max(min(later, default=20) - slack, BEGINNING))
    return [min(result[place:]) for place in range(epochs)]


def check(
    plan: Plan,
    inputs: list[list[Arrival]],
    slack: int,
    *,
    chronons: bool = False,
    insert_only: bool = False,
    count: int = EPOCHS,
) -> list[tuple[Batch, int]]:
    """The operator law for a plan over LEFT and RIGHT; what it emitted by what heartbeat.

    Args:
        plan: an operator over sources.
        inputs: what arrives, by port.
        slack: how far the heartbeats stay behind what they could be.
        chronons: whether the operator knows that its input holds for one instant.
        insert_only: whether it knows that its input is never retracted.
        count: how many epochs there are.
    """
    arriving = dict(zip((LEFT, RIGHT), inputs, strict=False))
    streams = {
        source.name: Stream(SCHEMA.names, [arrival.element for arrival in arrivals])
        for source, arrivals in arriving.items()
    }
    hearts = {source.name: heartbeats(arrivals, count, slack) for source, arrivals in arriving.items()}
    epochs = [
        Arriving(
            {source.name: _of_epoch(arrivals, epoch) for source, arrivals in arriving.items()},
            {name: heart[epoch] for name, heart in hearts.items()},
        )
        for epoch in range(count)
    ]
    known = {
        source.name: standing_for(source, chronons=chronons, insert_only=insert_only) for source in arriving
    }
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)])
    found: list[Batch] = []
    whole = over(plan, known)
    steps = []
    state: State = {}
    for emitted, heartbeat in drive(plan, known, epochs, state):
        assert not is_insert_only(whole) or (emitted.w > 0).all()
        assert not is_append_only(whole) or (emitted.te == INFINITY).all()
        found.append(emitted)
        steps.append((emitted, heartbeat))
        assert_equal(concat(plan.schema, found), expected, heartbeat, f"after {len(found)} epochs")
        if isinstance(whole, Aggregate | Distinct) and len(found) == count - 1:
            said = held_from(concat(plan.schema, found), heartbeat)
            assert_equal(_held_by(whole, state[max(state)], heartbeat), said, INFINITY, "of what is to come")
    return steps


def _held_by(plan: Aggregate | Distinct, state: Mapping[str, list[SortedRun]], heartbeat: int) -> Batch:
    """What an operator says that it has said of the instants from its heartbeat on, made from its state."""
    operator = create_operator(plan, reduced=False, report=unreported)
    assert isinstance(operator, Holder)
    for name, runs in state.items():
        operator.areas[name].runs = list(runs)
    held = operator.held_from(heartbeat)
    assert (held.ts < held.te).all()
    return held


def _of_epoch(arrivals: list[Arrival], epoch: int) -> list[Element]:
    return [arrival.element for arrival in arrivals if arrival.epoch == epoch]


def assert_equal(found: Batch, expected: Batch, heartbeat: int, when: str) -> None:
    """Equal below the heartbeat, floating sums to the last bit."""
    if equivalent(found, expected, heartbeat):
        return
    ours, theirs = (to_rows(canonical(clip(batch, heartbeat))) for batch in (found, expected))
    assert ours == theirs, when
    raise AssertionError(f"{when}: different contents with equal texts")


def call(function: str, argument: Column | None, dtype: pa.DataType) -> tuple[str, AggregateCall]:
    name = function if argument is None else f"{function}_{argument.name}"
    return name, AggregateCall(function, argument, dtype)


EXACT = (call("COUNT", None, BIGINT), call("COUNT", V, BIGINT), call("SUM", V, BIGINT))
EXTREMES = (call("MIN", V, BIGINT), call("MAX", V, BIGINT), call("MAX", X, DOUBLE), call("MIN", K, STRING))
FLOATS = (call("SUM", X, DOUBLE), call("AVG", V, DOUBLE), call("STDDEV", V, DOUBLE))
POSITIVE = Call(">", (V, literal(0)), BOOLEAN)


def aggregates(*calls: AggregateCall) -> tuple[tuple[str, AggregateCall], ...]:
    return tuple((f"a{place}", call) for place, call in enumerate(calls))


def filtered(name: str, *arguments: Expression | None, **modifiers: Any) -> AggregateCall:
    return resolve_aggregate(name, *arguments, modifiers=Modifiers(condition=POSITIVE, **modifiers))


ONCE = Modifiers(distinct=True)
DISTINCTS = aggregates(
    resolve_aggregate("COUNT", V, modifiers=ONCE),
    resolve_aggregate("SUM", V, modifiers=ONCE),
    resolve_aggregate("AVG", X, modifiers=ONCE),
    resolve_aggregate("COUNT", X, modifiers=ONCE),
    resolve_aggregate("SUM", V),
    filtered("COUNT", K, distinct=True),
    resolve_aggregate("COUNT", K, X, modifiers=ONCE),
    resolve_aggregate("COUNT", X, K, V, modifiers=Modifiers(distinct=True, condition=POSITIVE)),
)
POPULATIONS = aggregates(
    resolve_aggregate("STDDEV_POP", V),
    resolve_aggregate("VAR_POP", X),
    resolve_aggregate("BOOL_AND", POSITIVE),
    resolve_aggregate("BOOL_OR", POSITIVE),
    resolve_aggregate("COUNT_IF", POSITIVE),
    filtered("SUM", V),
)
PAIRS = aggregates(
    resolve_aggregate("CORR", V, X),
    resolve_aggregate("COVAR_POP", V, X),
    resolve_aggregate("COVAR_SAMP", V, V),
    resolve_aggregate("COVAR_SAMP", V, X, modifiers=Modifiers(condition=POSITIVE)),
)
LINES = aggregates(*(resolve_aggregate(name, X, V) for name in REGRESSIONS))
SEQUENCES = aggregates(
    resolve_aggregate("AUTOCORR", X, literal(1), modifiers=Modifiers(order=(SortKey(V),))),
    resolve_aggregate("AUTOCORR", V, literal(2), modifiers=Modifiers(order=(SortKey(K), SortKey(X)))),
    resolve_aggregate("EWMA", X, literal(0.25), modifiers=Modifiers(order=(SortKey(V, descending=True),))),
    filtered("EWM_STDDEV", X, literal(0.5), order=(SortKey(K),)),
    resolve_aggregate("EWM_STDDEV", V, literal(1), modifiers=Modifiers(order=(SortKey(X),))),
)
PLACES = aggregates(
    resolve_aggregate("MEDIAN", V),
    resolve_aggregate("PERCENTILE", X, literal(Decimal("0.9"))),
    resolve_aggregate("PERCENTILE", V, literal(0.25)),
    resolve_aggregate("MIN", V),
    filtered("MEDIAN", V),
)
BY_V = (SortKey(V, descending=True, nulls_first=False), SortKey(X))
ENDS = aggregates(
    resolve_aggregate("FIRST", K, modifiers=Modifiers(order=(SortKey(V),))),
    resolve_aggregate("LAST", K, modifiers=Modifiers(order=(SortKey(V),))),
    resolve_aggregate("FIRST", X, modifiers=Modifiers(order=BY_V)),
    filtered("LAST", X, order=(SortKey(K, nulls_first=False),)),
    filtered("MAX", V),
)
ARRAYS = aggregates(
    resolve_aggregate("ARRAY_AGG", V),
    resolve_aggregate("ARRAY_AGG", X, modifiers=Modifiers(order=BY_V)),
    filtered("ARRAY_AGG", K, order=(SortKey(X, nulls_first=False),)),
    resolve_aggregate("ARRAY_AGG", X, modifiers=ONCE),
    resolve_aggregate("MIN", V),
)
ONE_ORDER = aggregates(ENDS[1][1], resolve_aggregate("SUM", V), resolve_aggregate("COUNT", None))
ONE_VALUE = aggregates(
    filtered("MIN", V), filtered("MAX", V), resolve_aggregate("SUM", X), resolve_aggregate("COUNT", None)
)


class Range:
    """The distance of the largest value from the smallest, as a user would write it."""

    def initialize(self) -> list[int]:
        return []

    def accumulate(self, state: list[int], value: int) -> list[int]:
        state.append(value)
        return state

    def evaluate(self, state: list[int]) -> int | None:
        return max(state) - min(state) if state else None


class MergedRange(Range):
    """One that spoils what it is given, as a user's may."""

    def merge(self, state: list[int], other: list[int]) -> list[int]:
        state += other
        other.clear()
        return state


class RetractedRange(Range):
    def retract(self, state: list[int], value: int) -> list[int]:
        state.remove(value)
        return state


class Products:
    def initialize(self) -> tuple[int, int]:
        return 0, 0

    def accumulate(self, state: tuple[int, int], v: int, k: str) -> tuple[int, int]:
        return state[0] + v * len(k), state[1] + 1

    def retract(self, state: tuple[int, int], v: int, k: str) -> tuple[int, int]:
        return state[0] - v * len(k), state[1] - 1

    def evaluate(self, state: tuple[int, int]) -> str:
        return f"{state[0]} of {state[1]}"


def of_user(body: Any, *arguments: Expression, condition: Expression | None = None) -> AggregateCall:
    types = tuple(argument.type for argument in arguments)
    returns = STRING if body is Products else BIGINT
    user = UserAggregate(body.__name__, types, returns, "1", body())
    return resolve_user_aggregate(user, arguments, Modifiers(condition=condition))


USERS = aggregates(
    of_user(Range, V),
    of_user(MergedRange, V),
    of_user(RetractedRange, V),
    of_user(MergedRange, V, condition=Call("IS NOT NULL", (X,), BOOLEAN)),
    of_user(Products, V, K),
    resolve_aggregate("MAX", V),
)
NUMBERS = aggregates(
    resolve_aggregate("SUM", X),
    resolve_aggregate("AVG", X),
    resolve_aggregate("AVG", V),
    resolve_aggregate("SUM", X, modifiers=ONCE),
    *(resolve_aggregate(name, X) for name in ("VARIANCE", "VAR_POP", "STDDEV", "STDDEV_POP")),
    *(resolve_aggregate(name, V) for name in ("VARIANCE", "STDDEV_POP")),
    resolve_aggregate("VAR_POP", make_cast(V, DECIMAL)),
    resolve_aggregate("AVG", make_cast(V, DECIMAL)),
    *(resolve_aggregate(name, X, V) for name in ("CORR", "COVAR_POP", "COVAR_SAMP")),
    resolve_aggregate("CORR", X, X),
)
HOSTILE = {
    "grouped": Aggregate(LEFT, (("k", K),), NUMBERS),
    "sums alone": Aggregate(LEFT, (("k", K),), NUMBERS[:1]),
    "lines": Aggregate(LEFT, (("k", K),), LINES),
    "sequences": Aggregate(LEFT, (), SEQUENCES),
}
UNARY: dict[str, Plan] = {
    "users' aggregates": Aggregate(LEFT, (("k", K),), USERS),
    "users' scalar aggregates": Aggregate(LEFT, (), USERS),
    "grouped distinct values": Aggregate(LEFT, (("k", K),), DISTINCTS),
    "scalar distinct values": Aggregate(LEFT, (), DISTINCTS),
    "populations and conditions": Aggregate(LEFT, (("k", K),), POPULATIONS),
    "pairs": Aggregate(LEFT, (), PAIRS),
    "lines": Aggregate(LEFT, (("k", K),), LINES),
    "sequences": Aggregate(LEFT, (), SEQUENCES),
    "grouped places": Aggregate(LEFT, (("k", K),), PLACES),
    "scalar places": Aggregate(LEFT, (), PLACES),
    "grouped ends": Aggregate(LEFT, (("k", K),), ENDS),
    "scalar ends": Aggregate(LEFT, (), ENDS),
    "scalar ends of one order": Aggregate(LEFT, (), ONE_ORDER),
    "scalar extremes of one value": Aggregate(LEFT, (), ONE_VALUE),
    "grouped arrays": Aggregate(LEFT, (("k", K),), ARRAYS),
    "scalar arrays": Aggregate(LEFT, (), ARRAYS),
    "grouped sums": Aggregate(LEFT, (("k", K),), EXACT),
    "scalar sums": Aggregate(LEFT, (), EXACT),
    "grouped extremes": Aggregate(LEFT, (("k", K),), EXTREMES),
    "grouped by a float": Aggregate(LEFT, (("x", X), ("k", K)), (*EXACT, *EXTREMES)),
    "scalar floats": Aggregate(LEFT, (), FLOATS),
    "distinct": Distinct(LEFT),
    "sample": Sample(LEFT, Decimal(60)),
    "coalesce": Coalesce(LEFT),
    "the first rows": TopK(LEFT, (), BY_V, 2),
    "the first row of each group": TopK(LEFT, (K,), (SortKey(X, descending=True),), 1),
    "later rows": TopK(LEFT, (), (), 3, 1),
    "places": TopK(LEFT, (K,), BY_V, number="place"),
    "the first places": TopK(LEFT, (X,), (SortKey(K, nulls_first=False),), 2, 1, "place"),
    "ranks": TopK(LEFT, (K,), BY_V, number="place", ranking=Ranking.RANK),
    "dense ranks": TopK(LEFT, (), (SortKey(V),), number="place", ranking=Ranking.DENSE_RANK),
    "the first ranks": TopK(LEFT, (), (SortKey(K),), 2, 0, "place", Ranking.RANK),
    "later ranks": TopK(LEFT, (), (SortKey(K, descending=True),), 2, 1, None, Ranking.RANK),
    "the first dense ranks": TopK(LEFT, (K,), (SortKey(V),), 2, 0, None, Ranking.DENSE_RANK),
    "later dense ranks": TopK(LEFT, (), BY_V, 2, 1, "place", Ranking.DENSE_RANK),
    "istream": Istream(LEFT),
    "dstream": Dstream(LEFT),
}
NAMES = tuple(f"{side}_{name}" for side in "lr" for name in SCHEMA.names)
LESS = Call("<", (V, Column(4, "r_v", BIGINT)), BOOLEAN)
JOINS = {
    "equality": Join(LEFT, RIGHT, ((K, K),), None, NAMES),
    "floats and a residual": Join(LEFT, RIGHT, ((X, X),), LESS, NAMES),
    "two keys": Join(LEFT, RIGHT, ((K, K), (V, V)), None, NAMES),
    "no equality": Join(LEFT, RIGHT, (), LESS, NAMES),
}


def framed(keys: tuple[Column, ...], frames: dict[Frame, tuple[tuple[str, AggregateCall], ...]]) -> Over:
    """Aggregates over frames of one partition."""
    pairs = ((call, frame) for frame, calls in frames.items() for _, call in calls)
    return Over(LEFT, keys, tuple((f"a{place}", *pair) for place, pair in enumerate(pairs)))


FLAGGED = Project(LEFT, (("k", K), ("x", X), ("live", resolve(">", (V, literal(0)))), ("v", V)))
FLOAT = column(FLAGGED, 1)
SESSIONS = SessionWindow(LEFT, Duration(3), (K,))
BOUNDS = tuple(column(SESSIONS, len(LEFT.schema) + place) for place in range(2))


def sessions(
    keys: tuple[Column, ...],
    calls: tuple[tuple[str, AggregateCall], ...],
    condition: Expression | None = None,
    by: tuple[Column, ...] = (K,),
    longest: Duration | None = None,
) -> SessionAggregate:
    """Groups of sessions."""
    named = tuple((f"k{place}", key) for place, key in enumerate(keys))
    calls = tuple((f"a{place}", call) for place, (_, call) in enumerate(calls))
    return SessionAggregate(LEFT, Duration(3), by, longest, condition, named, calls)


EVER, LAST = RangeFrame(Duration(INFINITY)), RangeFrame(Duration(3))
WINDOWS: dict[str, Plan] = {
    "last row": RowWindow(LEFT, 1),
    "rows": RowWindow(LEFT, 3),
    "rows that slide": RowWindow(LEFT, 2, 3),
    "rows that tumble by partition": RowWindow(LEFT, 2, 2, (K,)),
    "rows by partition": RowWindow(LEFT, 2, 1, (K,)),
    "last row if it is live": LiveRow(FLAGGED, 1, keys=(K,), live=column(FLAGGED, 2)),
    "last row by a float if it is live": LiveRow(FLAGGED, 1, keys=(FLOAT,), live=column(FLAGGED, 2)),
    "rows by a float": RowWindow(LEFT, 3, 2, (X, K)),
    "rows within bounds": BoundedRowWindow(
        LEFT, 4, smallest=1, steps=(Step(3, 1), Step(6, 3), Step(8, 2), Step(10, 4))
    ),
    "rows within bounds by partition": BoundedRowWindow(
        LEFT, 3, 1, (K,), smallest=1, steps=(Step(2, 1), Step(5, 3), Step(9, 1))
    ),
    "over the last rows": framed((K,), {RowsFrame(2, 0): (*EXACT, *EXTREMES)}),
    "over a row before": framed((), {RowsFrame(3, 1): (*EXACT, *EXTREMES)}),
    "arrays of the rows before": framed((K,), {RowsFrame(2, 1): ARRAYS}),
    "over all rows so far": framed((K,), {RowsFrame(None, 0): (*EXACT, *EXTREMES, *FLOATS)}),
    "over all rows but the last": framed((), {RowsFrame(None, 2): (*EXACT, *EXTREMES)}),
    "ends of all rows so far": framed((X,), {RowsFrame(None, 0): ENDS}),
    "arrays of all rows before": framed((K,), {RowsFrame(None, 1): ARRAYS}),
    "distinct values so far": framed((K,), {RowsFrame(None, 0): DISTINCTS}),
    "numbers of the row before": framed((K,), {RowsFrame(None, 1): EXACT[:1]}),
    "over all rows up to the instant": framed((K,), {EVER: (*EXACT, *EXTREMES)}),
    "ends up to the instant": framed((), {EVER: ENDS}),
    "numbers of the last peers": framed((X,), {EVER: EXACT[:1]}),
    "over the last instants": framed((K,), {LAST: (*EXACT, *EXTREMES, *FLOATS)}),
    "over the last instants of all": framed((), {LAST: (*POPULATIONS, *PAIRS)}),
    "numbers of the last instants": framed(
        (X,), {RangeFrame(Duration(1)): EXACT, RangeFrame(Duration(6)): EXACT}
    ),
    "ends of the last instants": framed((K,), {LAST: (*ENDS, *PLACES)}),
    "arrays of the last instants": framed((), {LAST: ARRAYS}),
    "distinct values of the last instants": framed((K,), {LAST: DISTINCTS}),
    "users' aggregates of the last instants": framed((K,), {LAST: USERS, EVER: USERS[:1]}),
    "frames of every kind": framed(
        (K,), {LAST: EXACT, RowsFrame(1, 0): EXTREMES, EVER: FLOATS, RowsFrame(None, 1): EXACT[:2]}
    ),
    "row numbers": framed((X,), {RowsFrame(None, 0): EXACT[:1]}),
    "sessions": SessionWindow(LEFT, Duration(3), (K,)),
    "sessions by a float": SessionWindow(LEFT, Duration(2), (X, V)),
    "sessions of all": SessionWindow(LEFT, Duration(4)),
    "sessions of an instant": SessionWindow(LEFT, Duration(1), (K,)),
    "counts of sessions": sessions((K, *BOUNDS), EXACT),
    "ends of sessions": sessions((K, BOUNDS[1]), (*ENDS, *EXTREMES, *EXACT)),
    "sums of sessions by more columns": sessions((X, K, BOUNDS[0], V), FLOATS, longest=Duration(6)),
    "counts of sessions of a longest length": sessions((K, *BOUNDS), (*EXACT, *ENDS), longest=Duration(4)),
    "pairs of sessions": sessions((K,), (*PAIRS, *POPULATIONS)),
    "some rows of sessions": sessions((K, *BOUNDS), (*EXACT, *EXTREMES), POSITIVE),
    "all rows of sessions of all": sessions((), (*EXACT, *ONE_VALUE), by=()),
    "sessions of a longest length": SessionWindow(LEFT, Duration(3), (K,), Duration(5)),
    "sessions as long as their gap": SessionWindow(LEFT, Duration(2), (), Duration(2)),
    "series that keep their last row": GapFill(LEFT, Duration(2), Duration(6), Filling.LAST, (K,), 1),
    "series by a float": GapFill(LEFT, Duration(1), Duration(3), Filling.LAST, (X, K), 1),
    "series without rows": GapFill(LEFT, Duration(3), Duration(6), Filling.NULL, (K,), 1),
    "one series": GapFill(LEFT, Duration(2), Duration(2), Filling.NULL, (), 1),
    "series on lines": GapFill(LEFT, Duration(2), Duration(8), Filling.LINEAR, (K,), 1),
    "series on lines of each instant": GapFill(LEFT, Duration(1), Duration(5), Filling.LINEAR, (K,), 1),
    "series on no lines": GapFill(LEFT, Duration(3), Duration(3), Filling.LINEAR, (K,), 1),
}
ALL_TIME = TimeWindow(LEFT, Duration(INFINITY))
BEGUN = Project(ALL_TIME, (("begun", literal(True)),))
OF_ALL_TIME: dict[str, Plan] = {
    "rows": ALL_TIME,
    "a column": Project(ALL_TIME, (("k", K),)),
    "a column and a constant": Project(ALL_TIME, (("k", K), ("all", literal(7)))),
    "a constant": BEGUN,
    "distinct rows": Distinct(ALL_TIME),
    "two inputs": Union((BEGUN, Project(TimeWindow(LEFT, Duration(INFINITY), Duration(3)), BEGUN.items))),
}
SUMS = aggregates(
    resolve_aggregate("COUNT", None),
    resolve_aggregate("AVG", V),
    resolve_aggregate("SUM", X),
    filtered("COUNT", V),
)


def nested(sizes: list[int], slide: int, keys: tuple[Column, ...], offset: int = 0) -> NestedAggregate:
    """Sums of several windows of one slide, the longest first."""
    longest, *others = map(Duration, sizes)
    window = TimeWindow(LEFT, longest, Duration(slide), Duration(offset))
    named = tuple((f"k{place}", key) for place, key in enumerate(keys))
    return NestedAggregate(window, tuple(others), named, SUMS, "window")


NESTED = {
    "every instant": nested([7, 5, 2], 1, (K,)),
    "one group": nested([5, 4], 1, ()),
    "by a float": nested([9, 3], 1, (X, K)),
    "slides": nested([9, 6, 3], 3, (K,), 1),
    "not whole slides": nested([7, 4], 3, (K,)),
}


@pytest.mark.parametrize("name", UNARY)
@examples(10)
@given(arrivals=histories(EPOCHS), slack=st.integers(0, 3))
def test_unary_operators(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(UNARY[name], [arrivals], slack)


@pytest.mark.parametrize("name", HOSTILE)
@examples(10, 30)
@given(arrivals=histories(EPOCHS, rows=hostile_payloads), slack=st.integers(0, 3))
def test_aggregates_of_numbers_are_rounded_once(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(HOSTILE[name], [arrivals], slack)


@pytest.mark.parametrize("kind", SetKind, ids=lambda kind: kind.value)
@examples(17)
@given(left=histories(EPOCHS), right=histories(EPOCHS), slack=st.integers(0, 3))
def test_set_operations(kind: SetKind, left: list[Arrival], right: list[Arrival], slack: int) -> None:
    check(SetOperation(LEFT, RIGHT, kind), [left, right], slack)


@pytest.mark.parametrize(
    "name", ["grouped sums", "grouped distinct values", "grouped ends", "grouped arrays", "scalar floats"]
)
@examples(17)
@given(arrivals=histories(EPOCHS), slack=st.integers(0, 3))
def test_settled_aggregates(name: str, arrivals: list[Arrival], slack: int) -> None:
    check_settled(name, arrivals, slack, insert_only=False)


@pytest.mark.parametrize("name", ["grouped extremes", "scalar ends of one order"])
@examples(17)
@given(arrivals=histories(EPOCHS, retractions=False), slack=st.integers(0, 3))
def test_settled_aggregates_of_what_is_never_retracted(
    name: str, arrivals: list[Arrival], slack: int
) -> None:
    check_settled(name, arrivals, slack, insert_only=True)


def check_settled(name: str, arrivals: list[Arrival], slack: int, *, insert_only: bool) -> None:
    plan = UNARY[name]
    assert isinstance(plan, Aggregate)
    emitted = check(replace(plan, settled=True), [arrivals], slack, insert_only=insert_only)
    for found, heartbeat in emitted:
        assert (found.w == 1).all(), "nothing is taken back"
        assert (found.te <= heartbeat).all(), "nothing is said about what is not settled"


FIRST_ROWS = [name for name, plan in UNARY.items() if isinstance(plan, TopK) and plan.limit is not None]
STEPS = (Step(2, WHOLE // 2), Step(5, WHOLE // 5), Step(6, WHOLE), Step(11, 3 * WHOLE // 4))
SHED = Shed(LEFT, ("l",), "LOSS TOLERANT", STEPS)
ALL_KEPT = Shed(LEFT, ("l",), "LOSS TOLERANT")
SIZED = Project(LEFT, (("k", K), ("v", V), ("x", X), ("a", make_cast(V, DOUBLE)), ("b", X)))
SCALES = (Scale(3, (("a", 2.0),)), Scale(7, (("a", 1.0), ("b", 0.5))))
SHED_BY_SIZE = Shed(SIZED, ("l",), "LOSS TOLERANT", STEPS, sizes=("a", "b"), scales=SCALES)
SHED_BY_KEY = Shed(
    Project(LEFT, (("v", V), ("x", X), ("k", K), ("more", V))),
    ("l",),
    "LOSS TOLERANT",
    STEPS,
    number=1,
    keys=2,
)


def weighed(
    size: int, slide: int = 1, offset: int = 0, since: int = 2, sizes: tuple[str, ...] = ()
) -> LargestWeight:
    """Groups of a window over some rows, with the largest weight of it."""
    lengths, steps = (
        (Duration(size), Duration(slide), Duration(offset)),
        (Step(since, WHOLE // 2), *STEPS[1:]),
    )
    groups = Aggregate(TimeWindow(replace(SHED, steps=steps), *lengths), (("k", K),), EXACT, settled=True)
    return LargestWeight(groups, SHED.streams, SHED.loss, steps, *lengths, sizes=sizes, scales=SCALES)


def granules(plan: Plan, *steps: tuple[int, int]) -> Granularity:
    """Granules from 1 to 12 instants, 1 before the first of some steps."""
    return Granularity(plan, Duration(1), Duration(12), tuple(Step(*step) for step in steps))


COARSER_AND_FINER = ((1, 2), (4, 6), (6, 3), (9, 1), (11, 4))
BY_INSTANT: dict[str, Plan] = {
    "granules within bounds": granules(LEFT, *COARSER_AND_FINER),
    "granules within bounds of a window": granules(TimeWindow(LEFT, Duration(4)), *COARSER_AND_FINER),
    "granules within bounds of a window within bounds": granules(
        TimeWindow(LEFT, Duration(7), smallest=Duration(2), steps=(Step(3, 2), Step(8, 5))), (2, 4), (8, 1)
    ),
    "granules within bounds of all rows so far": granules(ALL_TIME, (3, 3), (6, 2)),
    "sample by instant": Sample(LEFT, Decimal(60), timed=True),
    "some shed": SHED,
    "none shed": ALL_KEPT,
    "some shed by size": SHED_BY_SIZE,
    "some shed by a size that is not known": replace(SHED_BY_SIZE, scales=SCALES[:1], sizes=("b", "a")),
    "some shed by key": SHED_BY_KEY,
    "the largest weight of rows that have sizes": weighed(4, sizes=("b",)),
    "the largest weight of a window": weighed(4),
    "the largest weight of an instant": weighed(1),
    "the largest weight of a window that slides": weighed(7, 3, 1),
    "the largest weight of all": weighed(INFINITY),
    "the largest weight since ever": weighed(4, 2, 1, BEGINNING),
}

OVER_CHRONONS = [
    *(name for name, plan in UNARY.items() if isinstance(plan, TopK)),
    "distinct",
    "sample",
    *BY_INSTANT,
    "grouped sums",
    "grouped extremes",
    "grouped distinct values",
    "scalar ends",
    "scalar floats",
]


@pytest.mark.parametrize("name", OVER_CHRONONS)
@examples(10)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3))
def test_unary_operators_over_chronons(name: str, arrivals: list[Arrival], slack: int) -> None:
    check((UNARY | BY_INSTANT)[name], [arrivals], slack, chronons=True)


@pytest.mark.parametrize("name", WINDOWS)
@examples(10)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3))
def test_windows_over_chronons(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(WINDOWS[name], [arrivals], slack, chronons=True)


@pytest.mark.parametrize("name", [name for name in WINDOWS if "sessions" in name])
@examples(20, 60)
@given(arrivals=rows_that_go_on(2 * EPOCHS), slack=st.integers(0, 1))
def test_sessions_that_go_on_for_epochs(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(WINDOWS[name], [arrivals], slack, chronons=True, count=2 * EPOCHS)


LIFETIMES = {
    "of the row": Lifetime(LEFT, V),
    "unbounded, from the hop": Lifetime(LEFT, literal(INFINITY), Duration(3)),
    "of one length, earlier": Lifetime(LEFT, literal(4), Duration(2), -3),
    "of the row, later": Lifetime(LEFT, V, shift=2),
}


@pytest.mark.parametrize("name", LIFETIMES)
@settings(max_examples=20)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3))
def test_lifetimes_of_chronons(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(LIFETIMES[name], [arrivals], slack, chronons=True)


@pytest.mark.parametrize("name", NESTED)
@examples(14, 40)
@given(arrivals=chronon_histories(EPOCHS), slack=st.integers(0, 3))
def test_aggregates_of_nested_windows(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(NESTED[name], [arrivals], slack, chronons=True)


@pytest.mark.parametrize("name", ["grouped extremes", "grouped ends", "scalar ends", "scalar places"])
@examples(17)
@given(arrivals=histories(EPOCHS, retractions=False), slack=st.integers(0, 3))
def test_aggregates_of_what_is_never_retracted(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(UNARY[name], [arrivals], slack, insert_only=True)


@pytest.mark.parametrize("name", ["scalar ends of one order", "scalar extremes of one value"])
@examples(17)
@given(arrivals=chronon_histories(EPOCHS, retractions=False), slack=st.integers(0, 3))
def test_extremes_of_rows_that_share_an_instant(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(UNARY[name], [arrivals], slack, chronons=True, insert_only=True)


@pytest.mark.parametrize("name", OF_ALL_TIME)
@examples(17)
@given(arrivals=chronon_histories(EPOCHS, retractions=False), slack=st.integers(0, 3))
def test_distinct_rows_of_all_time(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(Distinct(OF_ALL_TIME[name]), [arrivals], slack, chronons=True, insert_only=True)


@pytest.mark.parametrize("name", FIRST_ROWS)
@examples(17)
@given(arrivals=histories(EPOCHS, retractions=False), slack=st.integers(0, 3))
def test_first_rows_of_what_is_never_retracted(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(UNARY[name], [arrivals], slack, insert_only=True)


@pytest.mark.parametrize("name", FIRST_ROWS)
@examples(17)
@given(arrivals=histories(EPOCHS, most=16), slack=st.integers(0, 3))
def test_rows_behind_a_bound_are_not_shown(name: str, arrivals: list[Arrival], slack: int) -> None:
    with patch.object(standings, "_MARGIN", 1):
        check(UNARY[name], [arrivals], slack)


@pytest.mark.parametrize("name", FIRST_ROWS)
@examples(17)
@given(arrivals=window_histories(EPOCHS), slack=st.integers(0, 3))
def test_first_rows_of_windows(name: str, arrivals: list[Arrival], slack: int) -> None:
    check(UNARY[name], [arrivals], slack, insert_only=True)


@pytest.mark.parametrize("reduced", [False, True])
def test_first_rows_that_stay_are_one_element(reduced: bool) -> None:
    plan = TopK(TimeWindow(LEFT, Duration(9)), (), (SortKey(V),), 1)
    operator = top_k.TopKOperator(plan, reduced)
    rows = [(("a", 1, None), 0, 20, 1), (("b", 2, None), 3, 9, 1), (("a", 0, None), 5, 7, 1)]
    operator.process(0, from_rows(SCHEMA, rows))
    found = operator.advance(OperatorProgress((BEGINNING,), (INFINITY,)))
    spans = [(row[1], ts, te, w) for row, ts, te, w in to_rows(found)]
    assert spans == [(1, 0, 5, 1), (0, 5, 7, 1), (1, 7, 20, 1)]


@pytest.mark.parametrize("name", JOINS)
@examples(17)
@given(left=histories(EPOCHS), right=histories(EPOCHS), slack=st.integers(0, 3))
def test_joins(name: str, left: list[Arrival], right: list[Arrival], slack: int) -> None:
    check(JOINS[name], [left, right], slack)
