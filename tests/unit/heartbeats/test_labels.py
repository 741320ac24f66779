"""Labels of operators, for the plans of the paper and for some that it does not draw."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.heartbeats.labels import (
    Label,
    LabelledOperator,
    LabelledPlan,
    common_waits,
    labels,
    memory_aware_waits,
)

ALL = frozenset({"s1", "s2", "s3"})
LOWER = frozenset({"s1", "s2"})


def figure_5(selectivity: float) -> dict[str, LabelledOperator[str]]:
    """O1 reads S1 and S2, and O2, the output, reads O1 and S3."""
    return {
        "o1": LabelledOperator((), LOWER, selectivity),
        "o2": LabelledOperator(("o1",), frozenset({"s3"}), 0.0),
    }


def with_leaves(plan: LabelledPlan[str]) -> dict[str, LabelledOperator[str]]:
    """The plan with a source for every stream that an operator reads."""
    read = frozenset[str]().union(*(one.streams for one in plan.values()))
    return {f"read {name}": LabelledOperator[str]((), frozenset({name})) for name in read} | {
        name: LabelledOperator(
            (*one.inputs, *(f"read {stream}" for stream in sorted(one.streams))),
            selectivity=one.selectivity,
        )
        for name, one in plan.items()
    }


def memory_aware_labels(plan: LabelledPlan[str]) -> dict[str, Label]:
    """The labels of figure 6."""
    whole = with_leaves(plan)
    found = labels(whole, memory_aware_waits(whole))
    return {name: found[name] for name in plan}


def test_figure_5() -> None:
    """7.2: O1 need not wait for S3. 7.4: it does if it multiplies rows, as with a query-level heartbeat."""
    assert memory_aware_labels(figure_5(0.5)) == {"o1": LOWER, "o2": ALL}
    assert memory_aware_labels(figure_5(3)) == {"o1": ALL, "o2": ALL}
    whole = with_leaves(figure_5(3))
    assert set(labels(whole, common_waits(whole)).values()) == {ALL}


def chain(*selectivities: float) -> list[int]:
    """How many streams each operator of a chain waits for, bottom up; each reads one stream besides."""
    plan = {
        f"o{place}": LabelledOperator(
            (f"o{place - 1}",) if place else (), frozenset({f"s{place}"}), selectivity
        )
        for place, selectivity in enumerate(selectivities)
    }
    return [len(label) for _, label in sorted(memory_aware_labels(plan).items())]


def test_a_link_ends_where_the_chain_is_selective() -> None:
    assert chain(1, 1, 1, 0) == [1, 2, 3, 4]
    assert chain(4, 0.5, 0.5, 0) == [3, 3, 3, 4]
    assert chain(4, 0.5, 0.4, 0) == [3, 3, 3, 4]
    assert chain(4, 0.2, 9, 0) == [2, 2, 4, 4]
    assert chain(4, 1, 1, 0) == [4, 4, 4, 4]
    assert chain(0.1, 4, 1, 0) == [1, 4, 4, 4]


def test_an_operator_between_the_ends_of_a_link_waits_too() -> None:
    """Figure 6: a link from within its subtree leads above it, though it is selective itself."""
    plan = {
        "low": LabelledOperator[str]((), frozenset({"a"}), 8),
        "beside": LabelledOperator[str]((), frozenset({"b"}), 0.1),
        "middle": LabelledOperator(("low", "beside"), frozenset(), 0.5),
        "top": LabelledOperator(("middle",), frozenset({"c"}), 0),
    }
    everything = frozenset({"a", "b", "c"})
    expected = {"low": everything, "beside": frozenset({"b"}), "middle": everything, "top": everything}
    assert memory_aware_labels(plan) == expected


def test_what_is_read_beside_an_operator_is_waited_for_up_to_the_end_of_its_link() -> None:
    plan = {
        "low": LabelledOperator[str]((), frozenset({"a"}), 4),
        "b": LabelledOperator[str]((), frozenset({"b"})),
        "middle": LabelledOperator(("low", "b"), frozenset(), 0.5),
        "c": LabelledOperator[str]((), frozenset({"c"})),
        "end": LabelledOperator(("middle", "c"), frozenset(), 0.4),
        "d": LabelledOperator[str]((), frozenset({"d"})),
        "top": LabelledOperator(("end", "d"), frozenset(), 0),
    }
    waits = memory_aware_waits(plan)
    assert waits["low"] == {"b", "c"}
    assert waits["middle"] == {"c"}
    assert waits["b"] == waits["c"] == waits["end"] == waits["top"] == frozenset()


def test_an_operator_that_several_read_does_not_wait() -> None:
    """Nor does what is below it wait for what is above."""
    plan = {
        "low": LabelledOperator[str]((), frozenset({"d"}), 2),
        "shared": LabelledOperator(("low",), frozenset({"a"}), 2),
        "one": LabelledOperator(("shared",), frozenset({"b"}), 0),
        "other": LabelledOperator(("shared",), frozenset({"c"}), 0),
    }
    for waits in (memory_aware_waits(plan), common_waits(plan)):
        assert waits["low"] == waits["shared"] == frozenset()


TREES = st.lists(
    st.tuples(st.integers(0, 100), st.sampled_from((0.0, 0.3, 0.5, 1.0, 2.0, 3.0))), min_size=1, max_size=8
)


@given(TREES)
def test_figure_6_as_printed(nodes: list[tuple[int, float]]) -> None:
    """Top down over a tree: the parent's label if a link leads from within the subtree above it."""
    parent = {place: above % place for place, (above, _) in enumerate(nodes) if place}
    selectivity = {place: 0.0 if not place else one for place, (_, one) in enumerate(nodes)}
    children = {place: [child for child in parent if parent[child] == place] for place in range(len(nodes))}
    links = {}
    for place in range(len(nodes)):
        end, rows = place, selectivity[place]
        while rows > 1:
            end = parent[end]
            rows *= selectivity[end]
        links[place] = end

    def within(place: int) -> list[int]:
        return [place, *(one for child in children[place] for one in within(child))]

    def ancestors(place: int) -> list[int]:
        return [parent[place], *ancestors(parent[place])] if place else []

    expected: dict[str, frozenset[str]] = {}

    def assign(place: int) -> None:
        if any(links[one] in ancestors(place) for one in within(place)):
            expected[f"o{place}"] = expected[f"o{parent[place]}"]
        else:
            expected[f"o{place}"] = frozenset(f"s{one}" for one in within(place))
        for child in children[place]:
            assign(child)

    assign(0)
    plan = {
        f"o{place}": LabelledOperator(
            tuple(f"o{child}" for child in children[place]), frozenset({f"s{place}"}), selectivity[place]
        )
        for place in range(len(nodes))
    }
    assert memory_aware_labels(plan) == expected
