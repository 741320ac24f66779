from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import PlanError
from headrace.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Field,
    Schema,
    sql_type,
    unique_names,
    widen,
)


@pytest.mark.parametrize(
    ("found", "held"),
    [
        (pa.int8(), BIGINT),
        (pa.uint32(), BIGINT),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), DOUBLE),
        (pa.large_string(), STRING),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.timestamp("ns"), TIMESTAMP),
        (pa.timestamp("s", tz="Europe/Berlin"), TIMESTAMP),
        (pa.date64(), DATE),
        (pa.decimal256(20, 2), pa.decimal128(20, 2)),
        (pa.decimal256(50, 2), pa.decimal256(50, 2)),
        (pa.bool_(), BOOLEAN),
        (pa.null(), UNKNOWN),
        (pa.large_binary(), pa.binary()),
        (pa.large_list(pa.int32()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int64())])),
        (pa.struct([("a", pa.int8()), ("A", pa.int8())]), None),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64())),
        (pa.list_(pa.duration("us")), None),
    ],
)
def test_inputs_are_widened(found: pa.DataType, held: pa.DataType | None) -> None:
    assert widen(found) == held


def test_types_have_sql_names() -> None:
    types = (BOOLEAN, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP, UNKNOWN, pa.decimal128(10, 2))
    assert [sql_type(dtype) for dtype in types] == [
        "BOOLEAN",
        "BIGINT",
        "DOUBLE",
        "STRING",
        "DATE",
        "TIMESTAMP",
        "VOID",
        "DECIMAL(10, 2)",
    ]


def test_a_schema_is_a_sequence_of_fields() -> None:
    schema = Schema((Field("Item", BIGINT), Field("price", DOUBLE)))
    assert len(schema) == 2
    assert schema[1] == Field("price", DOUBLE)
    assert schema.names == ("Item", "price")
    assert str(schema) == "(Item BIGINT, price DOUBLE)"
    assert schema.find("ITEM") == 0
    assert schema.find("bidder") is None
    assert schema.select((1,)).names == ("price",)
    assert schema.arrow() == pa.schema([("Item", pa.int64()), ("price", pa.float64())])


def test_names_are_unique_whatever_their_case() -> None:
    with pytest.raises(PlanError, match="defined twice"):
        Schema((Field("a", BIGINT), Field("A", BIGINT)))
    assert unique_names(["a", "A", "b", "a", "a_2"]) == ["a", "A_2", "b", "a_3", "a_2_2"]
