"""Up to where heartbeats must go for the last answers about rows, against windows that are written out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from headrace.algebra.endings import Endings
from headrace.algebra.kinds import Filling
from headrace.algebra.nodes import (
    GapFill,
    Granularity,
    Istream,
    Lifetime,
    Plan,
    Project,
    SessionWindow,
    Source,
    TimeWindow,
    Union,
    inputs_of,
)
from headrace.algebra.properties import output_heartbeat
from headrace.expressions.tree import Literal
from headrace.schema import BIGINT, Field, Schema
from headrace.steps import Step
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain


def source(name: str) -> Source:
    return Source(name, Schema((Field("ts", BIGINT),)), "ts", TimeDomain.INTEGER)


WINDOWS = st.tuples(
    st.sampled_from(["window", "granule", "session", "lifetime", "series"]),
    st.integers(1, 9),
    st.integers(1, 7),
    st.integers(0, 6),
)


def over(plan: Plan, kind: str, length: int, step: int, offset: int) -> Plan:
    """One node more."""
    if kind == "granule":
        return Granularity(plan, Duration(step))
    below = plan if plan.is_chronon else Istream(plan)
    match kind:
        case "window":
            return TimeWindow(below, Duration(length), Duration(step), Duration(offset % step))
        case "session":
            return SessionWindow(below, Duration(length))
        case "series":
            timed = Project(below, (("at", Literal(0, BIGINT)),))
            filling = Filling.LINEAR if offset % 2 else Filling.LAST
            return GapFill(timed, Duration(step), Duration(step * (1 + length // 3)), filling, (), 0)
        case _:
            return Lifetime(below, Literal(1, BIGINT), Duration(step), length - 4)


def answers(plan: Plan, instants: set[int]) -> set[int]:
    """When rows of some instants are new in an answer: in each window that holds one at its last instant."""
    match plan:
        case TimeWindow(size=size, slide=slide, offset=offset) if slide.length > 1:
            ends = range(min(instants) - 20, max(instants) + 20)
            last = {t for t in ends if (t + 1 - offset.length) % slide.length == 0}
            return instants | {t for t in last if any(t - size.length < u <= t for u in instants)}
        case SessionWindow(gap=gap):
            return {u + gap.length - 1 for u in instants}
        case Granularity(granule=granule):
            return {next(t for t in range(u, u + 20) if t % granule.length == 0) for u in instants}
        case GapFill(step=step):
            return {next(t for t in range(u, u + 20) if t % step.length == 0) for u in instants}
        case Lifetime(granule=granule, shift=shift):
            return {max(t for t in range(u - 20, u + 1) if t % granule.length == 0) + shift for u in instants}
        case _:
            return instants


def nodes(plan: Plan) -> list[Plan]:
    """From the source up."""
    below = inputs_of(plan)
    return [*nodes(below[0]), plan] if below else []


@given(st.lists(WINDOWS, max_size=3), st.integers(-30, 30))
def test_the_heartbeat_is_the_smallest_that_ends_all_windows_with_a_row(
    kinds: list[tuple[str, int, int, int]], instant: int
) -> None:
    plan: Plan = source("s")
    for kind in kinds:
        plan = over(plan, *kind)
    instants = {instant}
    for node in nodes(plan):
        instants = answers(node, instants)

    def final(heartbeat: int) -> int:
        for node in nodes(plan):
            heartbeat = output_heartbeat(node, (heartbeat,))
        return heartbeat

    smallest = next(h for h in range(instant - 100, instant + 100) if final(h) > max(instants))
    event(f"further than the row: {smallest > instant + 1}")
    assert Endings.of(plan).heartbeats({"s": instant}) == {"s": smallest}


def test_streams_of_one_answer_wait_for_each_other() -> None:
    """The answer about the first is at 29, and final once the second has passed that as well."""
    tumbled = TimeWindow(source("a"), Duration(10), Duration(10))
    endings = Endings.of(Union((tumbled, TimeWindow(source("b"), Duration(4)))))
    assert endings.heartbeats({"a": 22, "b": 3}) == {"a": 30, "b": 30}
    assert endings.heartbeats({"a": 22, "b": 34, "c": 0}) == {"a": 30, "b": 35, "c": 35}
    assert endings.heartbeats({"a": BEGINNING, "b": 3}) == {"a": 0, "b": 4}
    assert endings.heartbeats({"a": BEGINNING, "b": BEGINNING}) == {}


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([2, 4, 6, 12]))
def test_granules_within_bounds_are_waited_for_whatever_they_are(
    first: int, second: int, granule: int
) -> None:
    tumbled = TimeWindow(source("a"), Duration(10), Duration(10))
    bounded = Granularity(source("b"), Duration(2), Duration(12))
    found = Endings.of(Union((tumbled, bounded))).heartbeats({"a": first, "b": second})
    present = replace(bounded, steps=(Step(BEGINNING, granule),))
    passed = max(first // 10 * 10 + 9, -(-second // granule) * granule)
    assert output_heartbeat(tumbled, (found["a"],)) > passed
    assert output_heartbeat(present, (found["b"],)) > passed


def test_what_never_ends_is_not_waited_for() -> None:
    unbounded = Endings.of(TimeWindow(source("a"), Duration(INFINITY)))
    assert not unbounded.wait
    slides = Endings.of(TimeWindow(source("a"), Duration(INFINITY), Duration(10)))
    assert slides.heartbeats({"a": 22}) == {"a": 30}
