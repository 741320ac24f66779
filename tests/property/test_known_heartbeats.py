"""The heartbeats of a graph that are computed from those known before are those computed anew."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from headrace.lowering.lower import lower
from headrace.time import BEGINNING
from how_many import examples
from property.plan_strategies import Case, cases


@examples(20, 100)
@given(cases(max_relations=1), cases(max_relations=1), st.data())
def test_known_heartbeats_are_those_computed_anew(case: Case, other: Case, data: st.DataObject) -> None:
    graph = lower({"one": case.plan, "two": other.plan})
    names = sorted({name for name in graph.reading if name is not None})
    instants = st.just(BEGINNING) | st.integers(-3, 40)
    inputs, newest = dict.fromkeys(names, BEGINNING), dict.fromkeys(names, BEGINNING)
    for _ in range(data.draw(st.integers(1, 6))):
        moved = data.draw(st.sets(st.sampled_from(names))) if names else set()
        inputs = {**inputs, **{name: data.draw(instants) for name in moved}}
        newest = {**newest, **{name: data.draw(instants) for name in moved}}
        anew = lower({"one": case.plan, "two": other.plan})
        assert graph.heartbeats(inputs, newest) == anew.heartbeats(inputs, newest)
        graph = pickle.loads(pickle.dumps(graph)) if data.draw(st.integers(0, 5)) == 0 else graph
