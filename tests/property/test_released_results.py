"""Views of a result: what is told epoch by epoch adds up to what is told at the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import concat, from_rows, to_rows
from headrace.reference.contents import Element, History
from headrace.runtime.results.release import Finals
from headrace.schema import STRING, Field, Schema
from headrace.time import INFINITY
from histories import history_of_elements

SCHEMA = Schema((Field("x", STRING),))

rows = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 15), st.one_of(st.integers(1, 9), st.just(INFINITY))),
    max_size=10,
)


@given(rows, st.lists(st.integers(0, 20), max_size=4))
def test_every_row_is_told_once_when_it_has_ended(parts: list[tuple[str, int, int]], cuts: list[int]) -> None:
    whole: list[Element] = [((x,), ts, INFINITY if te == INFINITY else ts + te, 1) for x, ts, te in parts]
    finals, told, last = Finals(SCHEMA), [], -1
    for heartbeat in sorted(set(cuts)):
        released = [row for row in whole if last <= row[1] < heartbeat]
        told.append(finals.next(from_rows(SCHEMA, released), heartbeat))
        last = heartbeat
        so_far = told_once(history_of_elements(whole, heartbeat))
        assert sorted(to_rows(concat(SCHEMA, told))) == [row for row in so_far if row[2] < heartbeat]
        assert sorted(to_rows(concat(SCHEMA, [*told, finals.rest()]))) == so_far
    told.append(finals.next(from_rows(SCHEMA, [row for row in whole if row[1] >= last]), INFINITY))
    assert sorted(to_rows(concat(SCHEMA, told))) == told_once(history_of_elements(whole))
    assert not len(finals.rest())


def told_once(history: History) -> list[Element]:
    return sorted((row, ts, te, 1) for row, ts, te in history)
