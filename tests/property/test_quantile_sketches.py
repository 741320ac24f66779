"""Sketches of quantiles: the functions are their definitions, and ranks are as near as they say."""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column
from headrace.reference.casts import RowError
from headrace.reference.quantile_sketches import sketch_of, unpacked
from headrace.schema import BIGINT, BINARY, DOUBLE
from how_many import examples
from property.test_sketches import PLACES, agree, see_joined

KINDS = {"BIGINT": (BIGINT, "q"), "DOUBLE": (DOUBLE, "d")}
FROM_SPARK = {
    # What Spark 4 gives by KLL_SKETCH_AGG_BIGINT(id) over none, over 7, over 7 and 8,
    # and by KLL_SKETCH_AGG_BIGINT(id, 8) over 0 to 59.
    "none": "02010f01c8000800",
    "one": "02020f04c80008000700000000000000",
    "two": "05010f00c80008000200000000000000c8000100c60000000700000000000000080000000000000008000000"
    "000000000700000000000000",
    "many": "05010f00080008003c0000000000000008000300000000000c0000000c00000000000000000000003b00000000000000"
    "3b000000000000003a000000000000003900000000000000380000000000000037000000000000003600000000000000"
    "350000000000000034000000000000003300000000000000320000000000000031000000000000003000000000000000"
    "030000000000000007000000000000000b000000000000000f0000000000000013000000000000001600000000000000"
    "1a000000000000001e00000000000000220000000000000027000000000000002b000000000000002f00000000000000",
}
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": WHOLE,
    "DOUBLE": st.floats() | st.sampled_from([0.0, -0.0, 1.5, math.inf, math.nan]),
}
SIZES = st.sampled_from([8, 9, 20, 200])


@st.composite
def sketches(draw: st.DrawFn, kind: str) -> bytes | None:
    """A sketch, maybe of others, maybe with another byte or length; or NULL."""
    if draw(st.integers(0, 9)) == 0:
        return None
    letter, numbers = KINDS[kind][1], st.lists(VALUES[kind], max_size=60)
    parts = [sketch_of(draw(numbers), letter, draw(SIZES)) for _ in range(draw(st.integers(1, 3)))]
    data = bytearray(parts[0] if len(parts) == 1 else sketch_of(parts, letter, draw(SIZES | st.none())))
    if draw(st.integers(0, 5)) == 0:
        data = bytearray.fromhex(draw(st.sampled_from(list(FROM_SPARK.values()))))
    match draw(st.sampled_from(["whole"] * 5 + ["byte", "head", "cut", "longer", "heavy", "end"])):
        case "byte":
            data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
        case "head":
            data[draw(st.integers(0, min(len(data), 24) - 1))] = draw(st.integers(0, 255))
        case "cut":
            del data[draw(st.integers(0, len(data) - 1)) :]
        case "longer":
            data += draw(st.binary(min_size=1, max_size=9))
        case "end" if data[0] == 5:
            # One of the values takes the place of the smallest or of the largest of all.
            begin = 20 + 4 * data[18]
            value, place = data[-8:] if draw(st.booleans()) else data[-16:-8], draw(st.sampled_from([0, 8]))
            data[begin + place : begin + place + 8] = value
        case "heavy":
            data = bytearray(
                heavy(draw(st.integers(55, 63)), draw(st.integers(1, 9)), draw(st.integers(0, 3)))
            )
    return bytes(data)


def heavy(levels: int, count: int, more: int) -> bytes:
    """A sketch whose highest level has some values, 0, 1 and so on, and whose lowest has more of them."""
    begins = [40, *[40 + more] * (levels - 1)]
    total = (count << levels - 1) + more
    head = struct.pack("<BBBBHBBQHBB", 5, 1, 15, 2, 20, 8, 0, total & 2**64 - 1, 20, levels, 0)
    values = [0, 9, *range(more), *range(count)]
    return head + struct.pack(f"<{levels}i{len(values)}q", *begins, *values)


def parts_of(data: bytes | None, kind: str) -> list[Any]:
    """The values in a sketch, rising; none where it is not one."""
    try:
        return [value for value, _ in unpacked(data or b"", kind).pairs]
    except RowError:
        return []


@pytest.mark.parametrize("name", FROM_SPARK)
def test_the_values_in_those_of_spark_are_read(name: str) -> None:
    sketch = unpacked(bytes.fromhex(FROM_SPARK[name]), "q")
    assert sketch.count == {"none": 0, "one": 1, "two": 2, "many": 60}[name]
    if name == "many":
        column = pa.RecordBatch.from_pydict(
            {"c0": [bytes.fromhex(FROM_SPARK[name])] * 3, "c1": [0, 0.3, 1.0]}
        )
        call = resolve("KLL_SKETCH_GET_QUANTILE_BIGINT", (Column(0, "c0", BINARY), Column(1, "c1", DOUBLE)))
        # What KLL_SKETCH_GET_QUANTILE_BIGINT gives of it in Spark.
        assert evaluate(call, column).values.to_pylist() == [0, 19, 59]
    else:
        # Few values are in one level, in which their order does not matter; ours are in order, and say so.
        own = sketch_of([value for value, _ in sketch.pairs], "q")
        assert unpacked(own, "q") == sketch
        assert len(own) == len(bytes.fromhex(FROM_SPARK[name]))


@pytest.mark.parametrize(("place", "value"), [(24, 2), (32, 2), (24, 9), (32, 0)])
def test_no_value_is_beyond_the_ends(place: int, value: int) -> None:
    data = bytearray(sketch_of([1, 2, 3], "q"))
    data[place : place + 8] = struct.pack("<q", value)
    call = resolve("KLL_SKETCH_GET_N_BIGINT", (Column(0, "c0", BINARY),))
    found = evaluate(call, pa.RecordBatch.from_pydict({"c0": [bytes(data)]}))
    assert found.reasons().to_pylist() == ["bytes that are no KLL sketch"]
    agree(call, [(bytes(data),)])


@examples(20, 200)
@given(kind=st.sampled_from(list(KINDS)), data=st.data())
def test_sketches_of_values(kind: str, data: st.DataObject) -> None:
    arrays = data.draw(st.lists(st.none() | st.lists(VALUES[kind] | st.none(), max_size=70), max_size=5))
    column = Column(0, "c0", pa.list_(KINDS[kind][0]))
    size = data.draw(st.none() | SIZES)
    more = () if size is None else (literal(size),)
    agree(resolve(f"KLL_SKETCH_{kind}", (column, *more)), [(one,) for one in arrays])


@examples(20, 200)
@given(kind=st.sampled_from(list(KINDS)), data=st.data())
def test_sketches_of_sketches(kind: str, data: st.DataObject) -> None:
    arrays = data.draw(st.lists(st.none() | st.lists(sketches(kind), max_size=4), max_size=5))
    size = data.draw(st.none() | SIZES)
    more = () if size is None else (literal(size),)
    agree(
        resolve(f"KLL_SKETCH_{kind}", (Column(0, "c0", pa.list_(BINARY)), *more)), [(one,) for one in arrays]
    )
    pairs = data.draw(st.lists(st.tuples(sketches(kind), sketches(kind)), max_size=5))
    both = (Column(0, "c0", BINARY), Column(1, "c1", BINARY))
    agree(resolve(f"KLL_SKETCH_MERGE_{kind}", both), pairs)


@examples(30, 300)
@given(kind=st.sampled_from(list(KINDS)), data=st.data())
def test_what_they_tell(kind: str, data: st.DataObject) -> None:
    dtype = KINDS[kind][0]
    ranks = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 0.7, 1.0, -0.5, 1.5, math.nan]) | st.none()
    rows = data.draw(st.lists(st.tuples(sketches(kind), ranks, VALUES[kind] | st.none()), max_size=6))
    own = Column(0, "c0", BINARY)
    agree(resolve(f"KLL_SKETCH_GET_N_{kind}", (own,)), [(one,) for one, _, _ in rows])
    agree(
        resolve(f"KLL_SKETCH_GET_QUANTILE_{kind}", (own, Column(1, "c1", DOUBLE))),
        [(one, place) for one, place, _ in rows],
    )
    places: list[tuple[Any, Any]] = [(one, value) for one, _, value in rows]
    for one, _, _ in rows:
        known = parts_of(one, KINDS[kind][1])
        places += [(one, value) for value in known[-2:]]
    agree(resolve(f"KLL_SKETCH_GET_RANK_{kind}", (own, Column(1, "c1", dtype))), places)


@examples(30, 300)
@given(
    st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=300), min_size=1, max_size=6),
    st.sampled_from([8, 20, 50]),
)
def test_ranks_are_as_near_as_they_say(parts: list[list[int]], k: int) -> None:
    whole = sorted(value for part in parts for value in part)
    # Off by less than 1 / k of what it was made of, and a joined one by as much again.
    for data, bound in (
        (sketch_of(whole, "q", k), len(whole) / k),
        (sketch_of([sketch_of(part, "q", k) for part in parts], "q", k), 2 * len(whole) / k),
    ):
        sketch = unpacked(data, "q")
        assert sketch.count == len(whole)
        assert [*sketch.ends] == [whole[0], whole[-1]]
        for value in {*whole, 0, 399}:
            assert (
                bisect_left(whole, value) - bound <= sketch.rank(value) <= bisect_right(whole, value) + bound
            )
            if len(whole) <= k:
                assert sketch.rank(value) == bisect_right(whole, value)


@examples(5, 30)
@given(PLACES, st.integers(1, 9))
def test_sketches_of_windows_are_stored_and_joined(
    places: list[tuple[str, int | None, int]], every: int
) -> None:
    def whole(windows: list[list[int | None]]) -> bytes:
        return sketch_of([sketch_of(values, "d", 8) for values in windows], "d")

    see_joined(("KLL_SKETCH_AGG_DOUBLE(x, 8)", "KLL_MERGE_AGG_DOUBLE(part)"), places, every, whole)
