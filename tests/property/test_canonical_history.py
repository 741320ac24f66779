"""Canonical histories, snapshots and equivalence against their definitions on contents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import from_rows, to_rows
from headrace.errors import HistoryError
from headrace.history import canonical, clip, content_within, difference, equivalent, snapshot
from headrace.reference import contents
from headrace.reference.contents import Element, content_at, equal_form, history_of, order, payload
from headrace.schema import DOUBLE, STRING, Field, Schema
from headrace.time import INFINITY
from how_many import examples
from property.strategies import schemas, signed_histories

TIED = Schema((Field("k", STRING), Field("x", DOUBLE)))

schema_and_history = schemas().flatmap(
    lambda schema: st.tuples(st.just(schema), signed_histories(schema, disorder=2))
)


@st.composite
def two_histories(draw: st.DrawFn) -> tuple[list[Element], list[Element]]:
    """A history, and the same one cut into other intervals, perhaps with something more."""
    left = draw(signed_histories(TIED, max_size=4))
    right: list[Element] = []
    for row, ts, te, w in left:
        cut = draw(st.integers(ts + 1, min(te - 1, ts + 6))) if te > ts + 1 else te
        right += [(row, ts, cut, w), *([(row, cut, te, w)] if cut < te else [])]
    return left, right + draw(signed_histories(TIED, max_size=1))


def ends(elements: list[Element]) -> list[int]:
    return sorted({end for _, ts, te, _ in elements for end in (ts, te)} - {INFINITY})


def plain(rows: object) -> str:
    """A text that is equal for rows that are equal in grouping."""
    return repr(rows).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


@examples(17)
@given(schema_and_history)
def test_canonical_is_the_content_coalesced(case: tuple[Schema, list[Element]]) -> None:
    schema, elements = case
    history = history_of({instant: content_at(elements, instant) for instant in ends(elements)})
    found = to_rows(canonical(from_rows(schema, elements)))
    assert plain([(payload(row), ts, te, w) for row, ts, te, w in found]) == plain(
        [(row, ts, te, 1) for row, ts, te in history]
    )


@examples(17)
@given(schema_and_history)
def test_canonical_changes_no_snapshot_and_is_idempotent(case: tuple[Schema, list[Element]]) -> None:
    schema, elements = case
    batch = from_rows(schema, elements)
    once = canonical(batch)
    assert equivalent(batch, once)
    assert plain(to_rows(canonical(once))) == plain(to_rows(once))
    for instant in ends(elements):
        rows = [tuple(map(equal_form, row.values())) for row in snapshot(batch, instant).to_pylist()]
        content = content_at(elements, instant)
        assert plain(rows) == plain(sorted(content.elements(), key=lambda row: [*map(order, row)]))
        assert snapshot(once, instant).num_rows == len(rows)


@examples(17)
@given(two_histories(), st.integers(0, 14) | st.just(INFINITY))
def test_equivalence_is_equality_of_contents_before_an_instant(
    pair: tuple[list[Element], list[Element]], until: int
) -> None:
    left, right = pair
    same = all(
        content_at(left, instant) == content_at(right, instant)
        for instant in ends([*left, *right])
        if instant < until
    )
    one, other = (from_rows(TIED, elements) for elements in pair)
    assert equivalent(one, other, until=until) == same
    assert equivalent(clip(one, until), clip(other, until)) == same
    assert not same or equivalent(one, other, until=until, float_tolerance=1e-9)


@given(signed_histories(TIED, max_size=4))
def test_what_is_below_zero_is_refused(elements: list[Element]) -> None:
    below = [(row, ts, te, -w) for row, ts, te, w in elements if w > 0]
    if below:
        with pytest.raises(HistoryError):
            canonical(from_rows(TIED, below))


@examples(17)
@given(two_histories())
def test_the_difference_is_the_least_that_leads_from_one_content_to_the_other(
    pair: tuple[list[Element], list[Element]],
) -> None:
    before, after = (to_rows(canonical(from_rows(TIED, part))) for part in pair)
    found = to_rows(difference(from_rows(TIED, pair[0]), from_rows(TIED, pair[1])))
    for at in ends([*before, *after]):
        earlier, later = content_at(before, at), content_at(after, at)
        reached = content_at([*before, *found], at)
        assert plain(sorted(reached.items(), key=repr)) == plain(sorted(later.items(), key=repr))
        added, taken = ([(*row[:3], 1) for row in found if row[3] == sign] for sign in (1, -1))
        assert not content_at(added, at).keys() & content_at(taken, at).keys(), (earlier, later)
    parts = [[row for row in found if row[3] == sign] for sign in (1, -1)]
    for part in parts:
        rows = [(row, ts, te, 1) for row, ts, te, _ in part]
        assert plain(sorted(rows, key=repr)) == plain(
            sorted(to_rows(canonical(from_rows(TIED, rows))), key=repr)
        )


@examples(17)
@given(schema_and_history, st.integers(-3, 30), st.integers(1, 12))
def test_the_content_of_a_span_is_the_rows_that_are_there_at_some_instant(
    case: tuple[Schema, list[Element]], begin: int, length: int
) -> None:
    schema, elements = case
    found = content_within(from_rows(schema, elements), begin, begin + length)
    expected = contents.content_within(elements, begin, begin + length, events=False)
    rows = [payload(row.values()) for row in found.to_pylist()]
    assert plain(rows) == plain(sorted(expected.elements(), key=lambda row: tuple(map(order, row))))
