"""The streams of printed tables, and what the reference and the operators make of them.

Logical streams are written as the content per instant, physical ones as elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driving import drive, in_epochs, standing_for
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import relations_of, sources_of
from headrace.elements import to_rows
from headrace.reference.contents import Element, Stream, content_at
from headrace.reference.operators import evaluate
from headrace.time import INFINITY

CUTS = (1, 2, 3)
"""Into how many epochs the input of the operators is cut."""


def logical(**contents: str) -> Stream:
    """A stream of chronons: `t3="aab"` is the content at instant 3."""
    return Stream(
        ("e",),
        [((e,), int(at[1:]), int(at[1:]) + 1, 1) for at, content in contents.items() for e in content],
    )


def physical(text: str) -> Stream:
    """A stream of elements, written as `a[5,11) b[12,oo)`."""
    elements: list[Element] = []
    for element in text.split():
        e, interval = element.rstrip(")").split("[")
        start, end = interval.split(",")
        elements.append(((e,), int(start), INFINITY if end == "oo" else int(end), 1))
    return Stream(("e",), elements)


# Table 8.1; table 11.1, and the input of table 11.11.
LOGICAL = {
    "S1": logical(t1="c", t2="aaa", t3="aaab", t4="aaabc", t5="bb", t6="bb"),
    "S2": logical(t2="bb", t3="bb", t4="abc", t5="aab", t6="acc"),
}
PHYSICAL = {
    "S1": physical("c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)"),
    "S2": physical("b[1,7) d[3,9) a[4,5) b[7,15) e[10,18)"),
    "S3": physical("b[1,2) a[3,4) c[4,5) a[7,8) b[10,11)"),
}


def contents(
    plan: Plan, first: int = 1, last: int = 7, streams: Mapping[str, Stream] = LOGICAL
) -> dict[int, str]:
    """The content at each instant, on which the reference and the operators must agree.

    It is the values of each payload joined, the payloads sorted.
    """
    instants = range(first - 3, last + 3)
    answer = {at: _text(_reference(plan, streams), at) for at in instants}
    for cuts in CUTS:
        found = emitted(plan, streams, cuts)
        assert {at: _text(found, at) for at in instants} == answer, f"the operators in {cuts} epochs"
    return {at: content for at, content in answer.items() if content}


def same(plan: Plan, elements: str, streams: Mapping[str, Stream] = PHYSICAL) -> None:
    """The plan's stream has the content of the printed elements at every instant."""
    want = physical(elements).elements
    answers = {"the reference": _reference(plan, streams)}
    answers |= {f"the operators in {cuts} epochs": emitted(plan, streams, cuts) for cuts in CUTS}
    for whose, have in answers.items():
        joined: list[Element] = [(("".join(map(str, row)),), ts, te, w) for row, ts, te, w in have]
        assert_equal_contents(joined, want, whose)


def equivalent(left: Plan, right: Plan, streams: Mapping[str, Stream], cuts: int = 1) -> None:
    """Two plans have the same content at every instant, by the reference and by their operators."""
    answer = _reference(left, streams)
    assert_equal_contents(_reference(right, streams), answer, "the reference of the right side")
    assert_equal_contents(emitted(left, streams, cuts), answer, "the operators of the left side")
    assert_equal_contents(emitted(right, streams, cuts), answer, "the operators of the right side")


def assert_equal_contents(have: Sequence[Element], want: Sequence[Element], whose: str) -> None:
    """The elements have the same content at every instant."""
    for at in {end for _, ts, te, _ in (*want, *have) for end in (ts, te)}:
        assert content_at(have, at) == content_at(want, at), f"{whose} at {at}"


def emitted(plan: Plan, streams: Mapping[str, Stream], cuts: int = 1) -> list[Element]:
    """The elements that the operators emit, the input cut into so many epochs."""
    sources = {source.name: source for source in sources_of(plan)}
    inputs: dict[str, Plan] = {
        name: standing_for(
            source, chronons=all(te == ts + 1 for _, ts, te, _ in streams[name].elements), insert_only=True
        )
        for name, source in sources.items()
    }
    inputs |= {relation.name: relation for relation in relations_of(plan)}
    epochs = in_epochs({name: streams[name].elements for name in inputs}, cuts)
    return [element for batch, _ in drive(plan, inputs, epochs) for element in to_rows(batch)]


def _reference(plan: Plan, streams: Mapping[str, Stream]) -> list[Element]:
    return [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)]


def _text(elements: list[Element], at: int) -> str:
    rows = content_at(elements, at).elements()
    return " ".join(sorted("".join(map(str, row)) for row in rows))
