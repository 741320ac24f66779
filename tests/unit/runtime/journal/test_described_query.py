"""The records of queries in a store, and those in the layout of before."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from headrace.algebra.arrival import Unit
from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import Memory
from headrace.runtime.journal.described_query import DescribedQuery, Paused, PausedQuery, WarmStart
from headrace.runtime.journal.description import Description, packed, unpacked
from headrace.runtime.journal.forms import Form, packed_form
from headrace.runtime.journal.gap import Gap
from headrace.schema import BIGINT, Field, Schema
from headrace.time import TimeDomain

FORM: Final = Form(Schema((Field("x", BIGINT),)), TimeDomain.TIMESTAMP, None, (), ("s",))
GAP: Final = Gap(3, 9, 12)
PAUSED: Final = Paused("of c", 2, 7, 11, FORM, ("s",))
RECORDS: Final[dict[str, DescribedQuery | PausedQuery]] = {
    "a": DescribedQuery("of a", TimeDomain.TIMESTAMP, FORM),
    "b": DescribedQuery(
        "of b",
        choices={"order": [1, 0]},
        start=4,
        warm=WarmStart(3, 17),
        horizon=Horizon(("s",), 2, ("r",), Unit.TIME),
        memories=(Memory("s", 5, Unit.TIME),),
        level=6,
        gaps=(GAP,),
    ),
    "c": PausedQuery(PAUSED, (GAP,)),
    "d": PausedQuery(PAUSED),
}
MAPS: Final[dict[str, Any]] = {
    "queries": {"a": "of a", "b": "of b"},
    "query_domains": {"a": TimeDomain.TIMESTAMP.value},
    "starts": {"a": 1, "b": 4, "c": 2, "d": 2},
    "forms": {"a": packed_form(FORM)},
    "choices": {"b": {"order": [1, 0]}},
    "warm": {"b": {"since": 3, "answers_from": 17}},
    "paused": {name: {**vars(PAUSED), "form": packed_form(FORM)} for name in "cd"},
    "horizons": {"b": {"streams": ["s"], "block": 2, "relations": ["r"], "unit": Unit.TIME.value}},
    "levels": {"b": 6},
    "gaps": {name: [vars(GAP)] for name in "bc"},
    "memories": {"b": [["s", 5, Unit.TIME.value]]},
    "streams": {"s": "a table"},
    "buckets": 3,
    "stream_domains": {},
    "keeps_results": True,
}


def test_what_is_written_is_read() -> None:
    description = Description(RECORDS, {"s": "a table"}, 3)
    assert unpacked(json.loads(json.dumps(packed(description)))) == description


def test_maps_of_each_part_are_read_as_records() -> None:
    found = unpacked(json.loads(json.dumps(MAPS, default=list)))
    assert found.queries == RECORDS


@pytest.mark.parametrize("left_out", ["memories", "forms", "choices", "warm", "horizons", "levels", "gaps"])
def test_parts_that_earlier_versions_did_not_write_are_unknown(left_out: str) -> None:
    content = {name: part for name, part in MAPS.items() if name != left_out}
    b, a = (unpacked(json.loads(json.dumps(content, default=list))).queries[name] for name in "ba")
    assert isinstance(b, DescribedQuery)
    assert isinstance(a, DescribedQuery)
    unknown = DescribedQuery("of b", memories=None)
    if left_out == "forms":
        assert a.form is None
    else:
        field = {"horizons": "horizon", "levels": "level"}.get(left_out, left_out)
        assert getattr(b, field) == getattr(unknown, field)


def test_gaps_of_a_paused_query_are_those_of_before_and_of_now() -> None:
    description = Description(RECORDS, {}, 1)
    assert description.gaps_of("b") == (GAP,)
    # Its rows are kept meanwhile.
    assert description.gaps_of("c") == (GAP,)
    without = Description({"c": PausedQuery(Paused("of c", 2, 7, 11, FORM), (GAP,))}, {}, 1)
    assert without.gaps_of("c")[-1].end is None
    assert description.gaps_of("of another") == ()
