import math

import numpy as np
import pyarrow as pa
import pytest

from headrace.elements import Batch, from_rows, to_rows
from headrace.errors import HistoryError
from headrace.history import canonical, clip, equivalent, payload_codes, snapshot
from headrace.schema import BIGINT, DOUBLE, STRING, Field, Schema
from headrace.time import INFINITY

TEXT = Schema((Field("e", STRING),))
FLOAT = Schema((Field("x", DOUBLE),))
NOTHING = Schema(())


def text(*rows: tuple[str | None, int, int, int]) -> Batch:
    return from_rows(TEXT, [((value,), ts, te, w) for value, ts, te, w in rows])


def numbers(*rows: tuple[float | None, int, int, int]) -> Batch:
    return from_rows(FLOAT, [((value,), ts, te, w) for value, ts, te, w in rows])


def test_adjacent_intervals_coalesce() -> None:
    # Thesis, table 11.15: Coalesce of S2.
    batch = text(("b", 1, 7, 1), ("d", 3, 9, 1), ("a", 4, 5, 1), ("b", 7, 15, 1), ("e", 10, 18, 1))
    assert to_rows(canonical(batch)) == [
        (("b",), 1, 15, 1),
        (("d",), 3, 9, 1),
        (("a",), 4, 5, 1),
        (("e",), 10, 18, 1),
    ]


def test_layers_are_maximal() -> None:
    batch = text(("a", 1, 5, 2), ("a", 3, 9, 1), ("a", 5, 7, 1))
    assert to_rows(canonical(batch)) == [
        (("a",), 1, 7, 1),
        (("a",), 1, 9, 1),
        (("a",), 3, 5, 1),
    ]


def test_retractions_close_open_ends() -> None:
    batch = text(("a", 1, INFINITY, 1), ("b", 2, INFINITY, 1), ("a", 4, INFINITY, -1))
    assert to_rows(canonical(batch)) == [(("a",), 1, 4, 1), (("b",), 2, INFINITY, 1)]


def test_elements_that_cancel_leave_nothing() -> None:
    assert len(canonical(text(("a", 1, 5, 1), ("a", 1, 5, -1)))) == 0
    assert len(canonical(text())) == 0


def test_a_count_below_zero_is_refused() -> None:
    batch = text(("a", 1, 5, 1), ("a", 3, 7, -1))
    with pytest.raises(HistoryError, match="below zero at 5"):
        canonical(batch)
    with pytest.raises(HistoryError, match="below zero at 6"):
        snapshot(batch, 6)
    assert len(canonical(clip(batch, 5))) == 1


def test_payloads_compare_as_in_grouping() -> None:
    batch = numbers(
        (0.0, 1, 2, 1), (-0.0, 2, 3, 1), (math.nan, 1, 2, 1), (-math.nan, 2, 3, 1), (None, 1, 2, 1)
    )
    rows = to_rows(canonical(batch))
    assert rows[0] == ((None,), 1, 2, 1)
    assert rows[1] == ((0.0,), 1, 3, 1)
    assert math.copysign(1.0, rows[1][0][0]) == 1.0
    assert math.isnan(rows[2][0][0])  # type: ignore[arg-type]
    assert [row[1:] for row in rows[2:]] == [(1, 3, 1)]


def test_order_is_by_start_then_payload_then_end() -> None:
    schema = Schema((Field("k", STRING), Field("n", BIGINT)))
    rows: list[tuple[tuple[object, ...], int, int, int]] = [
        (("b", 1), 1, 9, 1),
        (("b", None), 1, 9, 1),
        ((None, 2), 1, 9, 1),
        (("é", 0), 0, 2, 1),
        (("b", 1), 1, 5, 1),
        (("a", 10), 1, 9, 1),
        (("a", 9), 1, 9, 1),
    ]
    assert to_rows(canonical(from_rows(schema, rows))) == [rows[index] for index in (3, 2, 6, 5, 1, 4, 0)]


def test_large_spans_are_sorted_too() -> None:
    far = 2**62
    batch = text(("a", -far, INFINITY, 1), ("a", -far, far, 1), ("b", -far, 0, 1), ("a", 5, 6, 1))
    assert to_rows(canonical(batch)) == [
        (("a",), -far, far, 1),
        (("a",), -far, INFINITY, 1),
        (("b",), -far, 0, 1),
        (("a",), 5, 6, 1),
    ]


def test_payloads_without_columns_count() -> None:
    batch = from_rows(NOTHING, [((), 1, 5, 1), ((), 2, 3, 1)])
    assert to_rows(canonical(batch)) == [((), 1, 5, 1), ((), 2, 3, 1)]
    assert snapshot(batch, 2).num_rows == 2


def test_snapshot_has_multiplicities() -> None:
    batch = text(("b", 1, 5, 1), ("a", 1, 5, 3), ("a", 2, 5, -1), ("c", 2, 3, 1))
    assert snapshot(batch, 1).column(0).to_pylist() == ["a", "a", "a", "b"]
    assert snapshot(batch, 4).column(0).to_pylist() == ["a", "a", "b"]
    assert snapshot(batch, 5).num_rows == 0


def test_equivalence_looks_only_before_the_end() -> None:
    left = text(("a", 1, INFINITY, 1))
    right = text(("a", 1, 4, 1), ("a", 4, 8, 1))
    assert equivalent(left, right, until=8)
    assert not equivalent(left, right, until=9)
    assert not equivalent(left, right)


def test_equivalence_needs_equal_types_and_payloads() -> None:
    assert not equivalent(text(), numbers())
    assert not equivalent(text(("a", 1, 2, 1)), text(("b", 1, 2, 1)))
    assert not equivalent(text((None, 1, 2, 1)), text(("", 1, 2, 1)))
    assert not equivalent(numbers((None, 1, 2, 1)), numbers((0.0, 1, 2, 1)))
    assert equivalent(
        numbers((math.nan, 1, 2, 1), (-0.0, 1, 2, 1)), numbers((0.0, 1, 2, 1), (math.nan, 1, 2, 1))
    )


def test_equivalence_tolerates_rounding() -> None:
    left = numbers((0.1 + 0.2, 1, 2, 1), (0.3, 2, 3, 1), (math.inf, 1, 2, 1), (None, 1, 2, 1))
    right = numbers((0.3, 1, 3, 1), (math.inf, 1, 2, 1), (None, 1, 2, 1))
    assert not equivalent(left, right)
    assert equivalent(left, right, float_tolerance=1e-9)
    assert not equivalent(numbers((1.0, 1, 2, 1)), numbers((1.1, 1, 2, 1)), float_tolerance=1e-9)
    assert not equivalent(numbers((math.inf, 1, 2, 1)), numbers((1e300, 1, 2, 1)), float_tolerance=1e-9)
    assert not equivalent(numbers((math.nan, 1, 2, 1)), numbers((None, 1, 2, 1)), float_tolerance=1e-9)
    assert equivalent(numbers(), numbers(), float_tolerance=1e-9)


def test_codes_are_dense_and_ordered() -> None:
    rows = pa.record_batch({"a": pa.array([2, None, 1, 2]), "b": pa.array(["x", "x", None, "w"])})
    assert payload_codes(rows).tolist() == [3, 0, 1, 2]


def test_codes_of_many_columns_do_not_overflow() -> None:
    count = 3000
    values = np.arange(count)
    columns = {f"c{index}": pa.array(np.roll(values, index)) for index in range(8)}
    assert sorted(payload_codes(pa.record_batch(columns)).tolist()) == list(range(count))
