"""Theta sketches: the functions are their definitions, and a union is the sketch of all."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column, Expression
from headrace.reference.hashes import theta_hash, theta_sketch
from headrace.schema import BIGINT, BINARY, DOUBLE, STRING
from how_many import examples
from property.expression_strategies import expected

FROM_DATASKETCHES: list[tuple[list[Any], str]] = [
    # update_theta_sketch(...).compact().serialize() of datasketches 5.2.0, as hexadecimal digits.
    ([], "01030300001ecc93"),
    ([1], "01030300001acc9315f97dcbbd86a105"),
    ([1, 2], "02030300001acc93020000000000000015f97dcbbd86a105c397fc1281709d1e"),
    (["a"], "01030300001acc9317c11d528507017b"),
    ([1.5, 0.0, -0.0], "02030300001acc930200000000000000114115368e63790fe56b61eec8804420"),
    (
        ["é€", "abcdefgh", "abcdefghijklmnop", "abcdefghijklmnopq"],
        "02030300001acc9304000000000000002ced50e22239c4064f34e965c7b8155b06e6c3b4f7eefa687531ba2c61423a6f",
    ),
    ([-1, 4611686018427387904], "02030300001acc9302000000000000006cb2f30dc6cf7b0e47caefce32a5291d"),
]
FROM_SPARK = {
    # THETA_SKETCH_AGG(id) over five ids, and THETA_SKETCH_AGG(id, 4) over a hundred, in Spark 4.
    "exact": "0104033E011ACC930516861AF72DF7E45429C550C15B0E52B597E52DCC736E60"
    "C1A71047DB64D422F49218474D475354",
    "a part": "0204033A011ACC936A918B0B0BE72C0F1057E1C72DF6C88282F9CF6D19E16F188993241A609050D48321D8AC4AD9"
    "0E37B3CDC48CBE847CF84CD7D310B26B31AD78C3B4A027F8C606FBD5E208E2A84314369CDF9230678CF87F915EBA7A26"
    "52B374198CEEB08AAD29BC2F2322B464D242759FD19422FAF31A4354A9E08545494BE26BED49D1",
}
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(),
    STRING: st.text(max_size=40),
    BINARY: st.binary(max_size=40),
}
HASHES = st.lists(st.integers(0, 2**63 - 1) | st.integers(1, 9) | st.none(), max_size=40)


@st.composite
def damaged(draw: st.DrawFn) -> bytes | None:
    """A sketch, perhaps of a part of the hashes or of none, perhaps with another byte or length; or NULL."""
    if draw(st.integers(0, 9)) == 0:
        return None
    known = [theta_hash(one) for one in draw(st.lists(st.integers(0, 60), max_size=40))]
    data = bytearray(theta_sketch(known, draw(st.sampled_from([4, 12]))))
    if draw(st.integers(0, 3)) == 0:
        data = bytearray.fromhex(draw(st.sampled_from(list(FROM_SPARK.values()))))
    match draw(st.sampled_from(["whole"] * 6 + ["byte", "cut", "longer", "theta"])):
        case "byte":
            data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
        case "cut":
            del data[draw(st.integers(0, len(data) - 1)) :]
        case "longer":
            data += draw(st.binary(min_size=1, max_size=9))
        case "theta" if data[0] == 3:
            data[16:24] = struct.pack("<q", draw(st.sampled_from([0, 1, -5, 2**60, 2**63 - 1])))
    return bytes(data)


@st.composite
def any_bytes(draw: st.DrawFn) -> bytes:
    """Bytes behind a head that a sketch may have, in words of 8 bytes or not; or any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=40))
    words, version = draw(st.sampled_from([(1, 3), (2, 3), (3, 3), (3, 3), (1, 4), (2, 4)]))
    sizes = [draw(st.sampled_from([0, 1, 2, 8, 63, 64])), draw(st.integers(0, 2))]
    head = bytes([words, version, 3, *sizes, draw(st.sampled_from([0x1A, 0x1E]))]) + b"\xcc\x93"
    numbers = st.sampled_from([0, 1, 2, 3, 9, 2**62, 2**63 - 1, -1, -5, -(2**63)])
    rest = draw(st.lists(numbers, max_size=3))
    if version == 3 and words > 1:
        rest.insert(0, max(0, len(rest) - words + 2))
    return (
        head + struct.pack(f"<{len(rest)}q", *rest) + draw(st.sampled_from([b""] * 5) | st.binary(max_size=9))
    )


def agree(call: Expression, rows: list[tuple[Any, ...]]) -> None:
    """See that a call over columns gives what the reference gives of each row."""
    kinds = {part.index: part.type for part in getattr(call, "arguments", ()) if isinstance(part, Column)}
    columns = {f"c{place}": pa.array([row[place] for row in rows], kind) for place, kind in kinds.items()}
    found = evaluate(call, pa.RecordBatch.from_pydict(columns))
    assert (found.values.to_pylist(), found.reasons().to_pylist()) == expected(call, rows)


@pytest.mark.parametrize(("values", "written"), FROM_DATASKETCHES)
def test_they_are_the_bytes_of_datasketches(values: list[Any], written: str) -> None:
    assert theta_sketch([theta_hash(one) for one in values], 12).hex() == written


def test_those_of_spark_are_read() -> None:
    column = Column(0, "c0", BINARY)
    rows = pa.RecordBatch.from_pydict({"c0": [bytes.fromhex(text) for text in FROM_SPARK.values()]})
    # What THETA_SKETCH_ESTIMATE gives of them in Spark.
    assert evaluate(resolve("THETA_SKETCH_ESTIMATE", (column,)), rows).values.to_pylist() == [5, 135]
    own = theta_sketch([theta_hash(one) for one in range(5)], 12)
    assert theta_sketch([bytes.fromhex(FROM_SPARK["exact"])], 12) == own


@examples(10, 100)
@given(kind=st.sampled_from(list(VALUES)), data=st.data())
def test_hashes_are_murmurs(kind: pa.DataType, data: st.DataObject) -> None:
    column = data.draw(st.lists(VALUES[kind] | st.none(), max_size=20))
    agree(resolve("THETA_HASH", (Column(0, "c0", kind),)), [(one,) for one in column])


@examples(10, 100)
@given(st.lists(HASHES | st.none(), max_size=6), st.sampled_from([4, 5, 12]))
def test_sketches_of_hashes(arrays: list[list[int | None] | None], bits: int) -> None:
    column = Column(0, "c0", pa.list_(BIGINT))
    agree(resolve("THETA_SKETCH", (column, literal(bits))), [(one,) for one in arrays])


@examples(10, 100)
@given(st.lists(st.lists(damaged(), max_size=4) | st.none(), max_size=6), st.sampled_from([4, 12]))
def test_sketches_of_sketches(arrays: list[list[bytes | None] | None], bits: int) -> None:
    column = Column(0, "c0", pa.list_(BINARY))
    agree(resolve("THETA_SKETCH", (column, literal(bits))), [(one,) for one in arrays])


@examples(15, 150)
@given(
    st.sampled_from(["THETA_UNION", "THETA_INTERSECTION", "THETA_DIFFERENCE"]),
    st.lists(st.tuples(damaged(), damaged()), max_size=6),
)
def test_sets_of_two(function: str, pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    left, right = (Column(place, f"c{place}", BINARY) for place in range(2))
    agree(resolve(function, (left, right)), pairs)
    agree(resolve("THETA_SKETCH_ESTIMATE", (left,)), [(one,) for one, _ in pairs])


@examples(40, 400)
@given(st.lists(any_bytes(), min_size=1, max_size=6))
def test_any_bytes_are_a_sketch_or_a_failure(column: list[bytes]) -> None:
    own = Column(0, "c0", BINARY)
    estimate = resolve("THETA_SKETCH_ESTIMATE", (own,))
    agree(estimate, [(one,) for one in column])
    agree(resolve("THETA_UNION", (own, own)), [(one,) for one in column])
    rows = pa.RecordBatch.from_pydict({"c0": pa.array(column, BINARY)})
    both = [evaluate(call, rows) for call in (estimate, resolve("THETA_UNION", (own, own, literal(26))))]
    # What is a sketch has an estimate, which the union with itself has as well.
    again = evaluate(estimate, pa.RecordBatch.from_pydict({"c0": both[1].values}))
    assert again.values == both[0].values
    assert both[0].reasons() == both[1].reasons()
    assert all(one is None or one >= 0 for one in both[0].values.to_pylist())
    written = [one for one in both[1].values.to_pylist() if one is not None and one[0] == 3]
    assert all(struct.unpack_from("<q", one, 16)[0] > 0 for one in written)


@pytest.mark.parametrize("theta", [0, -5, -(2**63)])
@pytest.mark.parametrize("head", ["03030300001acc930000000000000000", "02040301001acc93"])
def test_a_theta_is_above_0(head: str, theta: int) -> None:
    bad = bytes.fromhex(head) + struct.pack("<q", theta)
    whole = theta_sketch([theta_hash(one) for one in range(5)], 12)
    column = Column(0, "c0", pa.list_(BINARY))
    rows = pa.RecordBatch.from_pydict({"c0": pa.array([[whole, bad], [whole]], pa.list_(BINARY))})
    estimate = resolve("THETA_SKETCH_ESTIMATE", (resolve("THETA_SKETCH", (column, literal(12))),))
    found = evaluate(estimate, rows)
    assert found.values.to_pylist() == [None, 5]
    assert found.reasons().to_pylist() == ["bytes that are no theta sketch", None]


@examples(15, 150)
@given(st.lists(st.lists(st.integers(0, 200)), max_size=5))
def test_the_union_of_sketches_is_the_sketch_of_all(parts: list[list[int]]) -> None:
    hashes = [[theta_hash(one) for one in part] for part in parts]
    whole = theta_sketch([one for part in hashes for one in part], 4)
    merged = resolve("THETA_SKETCH", (Column(0, "c0", pa.list_(BINARY)), literal(4)))
    sketches = [[theta_sketch(part, 4) for part in hashes]]
    found = evaluate(merged, pa.RecordBatch.from_pydict({"c0": pa.array(sketches, pa.list_(BINARY))}))
    assert found.values.to_pylist() == [whole]


def test_estimates_are_near() -> None:
    draws = evaluate(
        resolve("THETA_HASH", (Column(0, "c0", BIGINT),)), pa.RecordBatch.from_pydict({"c0": range(50_000)})
    )
    column = pa.array([draws.values.to_pylist()], pa.list_(BIGINT))
    sketch = resolve("THETA_SKETCH", (Column(0, "c0", pa.list_(BIGINT)), literal(10)))
    estimate = evaluate(
        resolve("THETA_SKETCH_ESTIMATE", (sketch,)), pa.RecordBatch.from_pydict({"c0": column})
    )
    # Three standard errors, each 1 / sqrt(1024) of it.
    assert abs(estimate.values[0].as_py() - 50_000) < 3 * 50_000 / 32


PLACES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 40) | st.none(), st.integers(0, 2)), max_size=60
)
"""Rows in the order in which they are pushed: key, value, and by how much they are out of order."""


def see_joined(
    calls: tuple[str, str],
    places: list[tuple[str, int | None, int]],
    every: int,
    whole: Callable[[list[list[int | None]]], bytes],
) -> None:
    """See that sketches of windows, stored and joined over three of them, are what they are to be.

    Args:
        calls: the aggregate of x, and the one of `part`, that of a window.
        places: the rows.
        every: so many are pushed at a time.
        whole: the joined sketch of a key, by its values in each window in which it has rows.
    """
    rows: list[dict[str, Any]] = [
        {"k": k, "x": x, "ts": 2 * at + back} for at, (k, x, back) in enumerate(places)
    ]
    with hr.connect(runner="inline") as db:
        db.execute(f"""CREATE STREAM s (k STRING, x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
            CREATE STREAM parts AS SELECT window_end, k, {calls[0]} AS part
            FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY window_end, k""")
        joined = db.query(f"SELECT k, {calls[1]} AS whole FROM parts [RANGE 30] GROUP BY k")
        db.start()
        for at in range(0, len(rows), every):
            db.push("s", rows[at : at + every])
        db.stop()
        for end in range(9, max((row["ts"] for row in rows), default=0) - 12, 10):
            windows: dict[str, dict[int, list[int | None]]] = {}
            for row in rows:
                if end - 30 < row["ts"] <= end:
                    windows.setdefault(row["k"], {}).setdefault(row["ts"] // 10, []).append(row["x"])
            wanted = {key: whole(list(values.values())) for key, values in windows.items()}
            assert {row["k"]: row["whole"] for row in joined.snapshot(end).to_pylist()} == wanted, end


@examples(5, 30)
@given(PLACES, st.integers(1, 9))
def test_sketches_of_windows_are_stored_and_joined(
    places: list[tuple[str, int | None, int]], every: int
) -> None:
    def whole(windows: list[list[int | None]]) -> bytes:
        return theta_sketch([theta_hash(one) for values in windows for one in values if one is not None], 4)

    see_joined(("THETA_SKETCH_AGG(x, 4)", "THETA_UNION_AGG(part, 4)"), places, every, whole)
