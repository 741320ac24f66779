"""What each family of operators claims of the properties that Goldstein and Hong define (section 2.3).

All are progressive, hence consistent (definitions 7 and 8): that is the operator law, which `check` asserts.
All are strongly consistent as readers see them (definition 9): what a strong query releases is in order,
whatever the order of its input. The table says who keeps perfect input perfect (definition 6), and whose
retractions shorten a tuple that is there, so that the output is a valid stream event by event (section 2.2)
and not by its contents alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.kinds import Filling, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Dstream,
    Filter,
    GapFill,
    Istream,
    Join,
    Lifetime,
    Plan,
    Project,
    RowWindow,
    SessionWindow,
    SetOperation,
    TimeWindow,
    TopK,
    Union,
)
from headrace.elements import Batch, to_rows
from headrace.expressions.tree import SortKey
from headrace.reference.contents import payload
from headrace.reference.events import (
    Cti,
    Event,
    Insert,
    Retraction,
    is_ordered,
    is_perfect,
    is_valid,
)
from headrace.runtime.results.release import Release
from headrace.time import INFINITY, Duration
from how_many import examples
from property.test_operators import (
    EPOCHS,
    EXACT,
    LEFT,
    NAMES,
    POSITIVE,
    RIGHT,
    Arrival,
    K,
    V,
    check,
    chronon_histories,
    histories,
)


@dataclass(frozen=True)
class Claim:
    """What an operator claims.

    Attributes:
        plan: the operator over LEFT, or LEFT and RIGHT.
        perfect: whether its output is perfect where its input is.
        chains: whether each of its retractions shortens a tuple that is there, where the input is ordered.
        chronons: whether it is over rows of one instant.
    """

    plan: Plan
    perfect: bool
    chains: bool = True
    chronons: bool = False


CLAIMS = {
    "filter": Claim(Filter(LEFT, POSITIVE), perfect=True),
    "project": Claim(Project(LEFT, (("k", K),)), perfect=True),
    "union": Claim(Union((LEFT, RIGHT)), perfect=True),
    "join": Claim(Join(LEFT, RIGHT, ((K, K),), None, NAMES), perfect=True),
    "time window": Claim(TimeWindow(LEFT, Duration(3)), perfect=True, chronons=True),
    "sliding window": Claim(TimeWindow(LEFT, Duration(4), Duration(2)), perfect=True, chronons=True),
    "lifetime": Claim(Lifetime(LEFT, V, Duration(2), 1), perfect=True, chronons=True),
    "sessions": Claim(SessionWindow(LEFT, Duration(2), (K,)), perfect=True, chronons=True),
    "series": Claim(
        GapFill(LEFT, Duration(2), Duration(4), Filling.LINEAR, (K,), 1), perfect=True, chronons=True
    ),
    "istream": Claim(Istream(LEFT), perfect=True),
    "dstream": Claim(Dstream(LEFT), perfect=True),
    "settled aggregation": Claim(Aggregate(LEFT, (("k", K),), EXACT, settled=True), perfect=True),
    "aggregation": Claim(Aggregate(LEFT, (("k", K),), EXACT), perfect=False),
    "distinct": Claim(Distinct(LEFT), perfect=False),
    "difference": Claim(SetOperation(LEFT, RIGHT, SetKind.EXCEPT_ALL), perfect=False),
    "first rows": Claim(TopK(LEFT, (), (SortKey(V),), 2), perfect=False, chains=False),
    "coalesce": Claim(Coalesce(LEFT), perfect=False),
    "row window": Claim(RowWindow(LEFT, 2), perfect=False, chronons=True),
}


def released(plan: Plan, steps: list[tuple[Batch, int]]) -> Iterator[Event]:
    """What a strong query releases, epoch by epoch, as events; a CTI after each epoch that has one."""
    release = Release(plan.schema)
    there: dict[tuple[object, ...], list[int]] = {}
    for epoch, (emitted, heartbeat) in enumerate(steps):
        for values, ts, te, w in to_rows(release.next(epoch, heartbeat, [emitted])):
            row = payload(values)
            starts = there.setdefault((row, te), [])
            for _ in range(abs(w)):
                if w > 0:
                    starts.append(ts)
                    yield Insert(ts, te, row)
                    continue
                start = max((start for start in starts if start <= ts), default=ts)
                if start in starts:
                    starts.remove(start)
                    there.setdefault((row, ts), []).append(start)
                yield Retraction(start, te, ts, row)
        yield Cti(heartbeat)


def in_order(arrivals: list[Arrival]) -> list[Arrival]:
    """The same elements, arriving in the order of their starts."""
    starts = sorted({arrival.element[1] for arrival in arrivals})
    return [
        Arrival(arrival.element, starts.index(arrival.element[1]) * EPOCHS // len(starts))
        for arrival in sorted(arrivals, key=lambda arrival: arrival.element[1])
    ]


@st.composite
def inputs(draw: st.DrawFn, claim: Claim, *, ordered: bool, retractions: bool) -> list[list[Arrival]]:
    kind = chronon_histories if claim.chronons else histories
    found = [draw(kind(EPOCHS, retractions=retractions)) for _ in range(2)]
    return [in_order(arrivals) for arrivals in found] if ordered else found


@pytest.mark.parametrize("name", CLAIMS)
@examples(4, 12)
@given(data=st.data())
def test_all_are_progressive_and_strongly_consistent(name: str, data: st.DataObject) -> None:
    claim = CLAIMS[name]
    given_input = data.draw(inputs(claim, ordered=False, retractions=True))
    steps = check(claim.plan, given_input, slack=1, chronons=claim.chronons)
    events = list(released(claim.plan, steps))
    assert is_ordered(events)


@pytest.mark.parametrize("name", [name for name, claim in CLAIMS.items() if claim.perfect])
@examples(4, 12)
@given(data=st.data())
def test_perfect_input_stays_perfect(name: str, data: st.DataObject) -> None:
    claim = CLAIMS[name]
    perfect = data.draw(inputs(claim, ordered=True, retractions=False))
    steps = check(claim.plan, perfect, slack=0, chronons=claim.chronons, insert_only=True)
    events = list(released(claim.plan, steps))
    assert is_perfect(events)
    assert is_valid(events)
    assert events[-1] == Cti(INFINITY)


@pytest.mark.parametrize("name", [name for name, claim in CLAIMS.items() if claim.chains])
@examples(4, 12)
@given(data=st.data())
def test_ordered_input_makes_valid_output_with_one_retraction_per_tuple(
    name: str, data: st.DataObject
) -> None:
    claim = CLAIMS[name]
    ordered = data.draw(inputs(claim, ordered=True, retractions=False))
    steps = check(claim.plan, ordered, slack=0, chronons=claim.chronons, insert_only=True)
    events = list(released(claim.plan, steps))
    assert is_valid(events)
    # Lemma 1: an ordered stream retracts a tuple once at most; what is left of one is not shortened again.
    shortened = [(one.start, one.new_end, one.payload) for one in events if isinstance(one, Retraction)]
    again = {(one.start, one.end, one.payload) for one in events if isinstance(one, Retraction)}
    assert not again & {row for row in shortened if row[0] < row[1]}


WITNESS = [
    Arrival((("b", 7, 0.0), 0, 6, 1), 0),
    Arrival((("b", 7, 0.0), 2, 5, 1), 1),
    Arrival((("b", 7, 0.0), 2, 7, 1), 1),
    Arrival((("a", 1, 0.0), 4, 6, 1), 2),
    Arrival((("a", 1, 0.0), 6, 7, 1), 2),
]


@pytest.mark.parametrize("name", [name for name, claim in CLAIMS.items() if not claim.perfect])
def test_who_does_not_claim_to_keep_input_perfect_does_not(name: str) -> None:
    claim = CLAIMS[name]
    rows = [Arrival((one.element[0], one.element[1], one.element[1] + 1, 1), one.epoch) for one in WITNESS]
    given_input = [rows, rows[:0]] if claim.chronons else [WITNESS, WITNESS[1:2]]
    steps = check(claim.plan, given_input, slack=0, chronons=claim.chronons, insert_only=True)
    events = list(released(claim.plan, steps))
    assert is_ordered(events)
    assert not is_perfect(events)


def test_first_rows_are_a_valid_stream_by_their_contents_alone() -> None:
    # Two rows that are alike follow one: what is taken back of both is none of the tuples that were said.
    rows: list[tuple[str, int, int]] = [("a", 0, INFINITY), ("b", 1, 5), ("a", 4, INFINITY)]
    arrivals = [Arrival(((k, None, None), ts, te, 1), epoch) for epoch, (k, ts, te) in enumerate(rows)]
    plan = CLAIMS["first rows"].plan
    events = list(released(plan, check(plan, [arrivals, []], slack=0, insert_only=True)))
    assert is_ordered(events)
    assert not is_valid(events)
