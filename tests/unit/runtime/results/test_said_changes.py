"""Changes as they leave the system: none that cancel, and at one instant what is taken back comes first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import from_rows
from headrace.operators.state.netting import without_pairs
from headrace.runtime.results.release import Release
from headrace.schema import BIGINT, Field, Schema
from headrace.time import INFINITY

SCHEMA = Schema((Field("x", BIGINT),))
Element = tuple[int, int, int, int]
ELEMENTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(4, 5), st.sampled_from((-2, -1, 1, 1))),
    max_size=9,
)


@given(ELEMENTS)
def test_nothing_cancels_and_what_is_taken_back_comes_first(elements: list[Element]) -> None:
    batch = from_rows(SCHEMA, [((x,), ts, te, w) for x, ts, te, w in elements])
    said = without_pairs(SCHEMA, batch)
    numbers = (map(int, one) for one in (said.ts, said.te, said.w))
    found = list(zip(said.payload.column(0).to_pylist(), *numbers, strict=True))
    sums, signs = Counter[Any](), Counter[Any]()
    for *element, w in elements:
        sums[tuple(element)] += w
    for *element, w in found:
        sums[tuple(element)] -= w
        signs[tuple(element)] |= 1 if w > 0 else 2
    assert not any(sums.values())
    assert 3 not in signs.values()
    places = [(ts, w > 0) for _, ts, _, w in found]
    assert places == sorted(places)


def test_what_waits_cancels_what_comes_later() -> None:
    release = Release(SCHEMA)
    assert not len(release.next(1, 5, [from_rows(SCHEMA, [((1,), 7, INFINITY, 1)])]))
    back = from_rows(SCHEMA, [((2,), 7, INFINITY, 1), ((1,), 7, INFINITY, -1)])
    assert release.next(2, 9, [back]).payload.column(0).to_pylist() == [2]


RELATION = """
CREATE RELATION r (ts BIGINT, op STRING, id BIGINT, v BIGINT) KEY (id) FROM push
    CHANGES BY op TIMESTAMP BY ts;
CREATE QUERY q AS SELECT id, v FROM r
"""


@pytest.fixture
def db() -> Any:
    with hr.connect(runner="inline", buckets=2) as made:
        made.execute(RELATION)
        yield made


def test_changes_that_cancel_are_said_to_nobody(db: hr.Database) -> None:
    """An update with the same values; and one with others says first what goes."""
    told: list[tuple[int, int, int]] = []
    db.start()

    def take(epoch: int, heartbeat: int, table: pa.Table) -> None:
        told.extend((row["id"], row["v"], row["change"]) for row in table.to_pylist())

    db["q"].deliver(take, "f")
    for at, v in ((1, 5), (2, 5), (3, 6), (4, 6)):
        db.push("r", [{"op": "update", "id": key, "v": v, "ts": at} for key in (1, 2)])
    db.push("r", {"op": "delete", "id": 1, "ts": 9})
    db.push("r", {"op": "update", "id": 3, "v": 0, "ts": 10})
    db.stop()
    said = [(row["id"], row["v"], row["change"]) for row in db["q"].changes().to_pylist()]
    assert said == told
    for key in (1, 2):
        assert [(v, sign) for one, v, sign in said if one == key][:3] == [(5, 1), (5, -1), (6, 1)]
    assert len(said) == 7
