import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.expressions.evaluation.parsing import parse_timestamp
from headrace.runtime.sources.rows.values import infer_type, parse_texts
from headrace.runtime.sources.rows.written_times import WrittenTimes
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, decimal
from how_many import examples

ODD = [
    *("1", "-1", "+1", "007", "0x1F", "-0x1F", "1e2", "1.5", ".5", "5.", "1_0", "nan", "NaN", "inf"),
    *("-Infinity", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e400", "", "x"),
    *("true", "TRUE", "False", "t", "yes", "1 2", "2024-01-01", "2024-02-30", "2024-1-1", "20240101"),
    *("2024-01-01T10:20:30Z", "2024-01-01 10:20:30", "2024-01-01T10:20", "2024-01-01T10:20:30.123456789Z"),
    *("2024-01-01T10:20:30.5+02:00", "2024-01-01T10:20:30-0130", "2024-01-01T25:00:00", "2024-13-01"),
    *("2024-01-01T10:20:30.123456789", "10000-01-01", "1.234", "123456789.01", "1.230", "-.5", "é"),
]

BAD = "bad"


def values(texts: list[str | None], dtype: pa.DataType, **options: Any) -> list[object]:
    parsed, bad = parse_texts(pa.array(texts, STRING), dtype, **options)
    assert parsed.type == dtype
    listed = zip(parsed.to_pylist(), bad, strict=True)
    return [BAD if wrong else value for value, wrong in listed]


def utc(
    year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0
) -> dt.datetime:
    return dt.datetime(year, month, day, hour, minute, second, micros, dt.UTC)


@pytest.mark.parametrize(
    ("dtype", "texts", "expected"),
    [
        (BIGINT, ["1", "x", None, "9223372036854775808", "1.0"], [1, BAD, None, BAD, BAD]),
        (DOUBLE, ["1", "1e2", "x", "-.5", ""], [1.0, 100.0, BAD, -0.5, BAD]),
        (BOOLEAN, ["true", "FALSE", "maybe"], [True, False, BAD]),
        (DATE, ["2024-02-29", "2023-02-29", "x"], [dt.date(2024, 2, 29), BAD, BAD]),
        (
            pa.decimal128(6, 2),
            ["1.5", "1.230", "1.234", "12345.00", "x", "-1e3"],
            [Decimal("1.50"), Decimal("1.23"), BAD, BAD, BAD, Decimal("-1000.00")],
        ),
        (
            BINARY,
            ["YQ==", "YQ", "", None, "é", "a b=", "/+8=", "_-8="],
            [b"a", BAD, b"", None, BAD, BAD, b"\xff\xef", BAD],
        ),
    ],
)
def test_texts_are_parsed_one_by_one(
    dtype: pa.DataType, texts: list[str | None], expected: list[object]
) -> None:
    assert values(texts, dtype) == expected


def test_timestamps_with_and_without_zones() -> None:
    texts = [
        "2024-01-01T10:20:30Z",
        "2024-01-01T10:20:30",
        "2024-01-01 10:20:30.5",
        "2024-01-01",
        "2024-01-01T10:20:30+02:00",
        "2024-01-01T10:20:30-0130",
        "2024-01-01T10:20:30.123456789Z",
        "2024-01-01T10:20:30.123456789",
        "2024-02-30T00:00:00",
        "2024-01-01T24:00:00Z",
        "yesterday",
        None,
    ]
    assert values(texts, TIMESTAMP) == [
        utc(2024, 1, 1, 10, 20, 30),
        utc(2024, 1, 1, 10, 20, 30),
        utc(2024, 1, 1, 10, 20, 30, 500_000),
        utc(2024, 1, 1),
        utc(2024, 1, 1, 8, 20, 30),
        utc(2024, 1, 1, 11, 50, 30),
        utc(2024, 1, 1, 10, 20, 30, 123_456),
        utc(2024, 1, 1, 10, 20, 30, 123_456),
        BAD,
        BAD,
        BAD,
        None,
    ]


def test_blanks_and_the_null_text() -> None:
    assert values([" 1\t", "NA", "2"], BIGINT, trim=True, null="NA") == [1, None, 2]
    assert values([" 1"], BIGINT) == [BAD]
    assert values(["NA", ""], STRING, null="NA") == ["NA", ""]


@pytest.mark.parametrize("dtype", [BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, pa.decimal128(10, 2)], ids=str)
@examples(17)
@given(texts=st.lists(st.one_of(st.none(), st.sampled_from(ODD), st.text(max_size=6)), max_size=8))
def test_a_text_is_judged_for_itself(dtype: pa.DataType, texts: list[str | None]) -> None:
    alone = [value for text in texts for value in values([text], dtype, trim=True)]
    assert repr(values(texts, dtype, trim=True)) == repr(alone)


@pytest.mark.parametrize("dtype", [BIGINT, DOUBLE], ids=str)
@pytest.mark.parametrize("text", [*(odd for odd in ODD if odd), " 1", "1 ", "\t1.5 ", "1  2"])
def test_arrows_csv_reader_judges_numbers_alike(dtype: pa.DataType, text: str) -> None:
    """The fast path of CSV leaves these types to Arrow, which must read them as `parse_texts` does.

    Where it refuses a text it is asked for texts, as for a block that may have hexadecimal numbers.
    """
    if "x" in text.lower() and dtype == BIGINT:
        assert values([text], dtype, trim=True) == [BAD]
        return
    options = pyarrow.csv.ConvertOptions(column_types={"x": dtype}, null_values=["-"])
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text.encode()),
            pyarrow.csv.ReadOptions(column_names=["x"]),
            convert_options=options,
        )
        found = table["x"].to_pylist()
    except pa.ArrowInvalid:
        return
    assert repr(found) == repr(values([text], dtype, trim=True))


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["1", None, "-2"], BIGINT),
        (["1", "2.5"], DOUBLE),
        (["1", "1e3"], DOUBLE),
        (["true", "False"], BOOLEAN),
        (["0", "1"], BIGINT),
        (["2024-01-01"], DATE),
        (["2024-01-01", "2024-01-01T00:00:00Z"], TIMESTAMP),
        (["0x1F"], STRING),
        (["nan"], STRING),
        (["1", "x"], STRING),
        ([None, None], STRING),
        ([], STRING),
    ],
)
def test_types_are_inferred_from_all_texts(texts: list[str | None], dtype: pa.DataType) -> None:
    assert infer_type(pa.array(texts, STRING)) == dtype


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["18446744073709551615", "1"], decimal(20, 0)),
        (["-9223372036854775809"], decimal(20, 0)),
        (["9" * 38, "0"], decimal(38, 0)),
        (["9" * 39], STRING),
        (["9" * 400], STRING),
        # Of these a DOUBLE would make 9007199254740992.
        (["9007199254740993", "0.5"], decimal(38, 18)),
        (["9007199254740992", "0.5"], DOUBLE),
        (["123456789012345680000", "0.5"], DOUBLE),
        (["9007199254740993", "1e3"], STRING),
        # A hash, which is infinite as a number.
        (["12e456", "1e3"], STRING),
    ],
)
def test_a_type_is_inferred_that_has_whole_numbers_as_they_are(texts: list[str], dtype: pa.DataType) -> None:
    assert infer_type(pa.array(texts, STRING)) == dtype


@pytest.mark.parametrize("dtype", [decimal(5, 2), decimal(38, 0), decimal(60, 0)], ids=str)
def test_no_decimal_is_made_of_too_many_digits(dtype: pa.DataType) -> None:
    """Arrow makes other numbers of them."""
    texts = ["9" * count for count in range(1, 200)] + ["-" + "7" * 77, "0" * 90 + "1", "0" * 200 + "9" * 100]
    found, bad = parse_texts(pa.array(texts), dtype)
    whole = dtype.precision - dtype.scale
    assert [None if wrong else int(value) for value, wrong in zip(found.to_pylist(), bad, strict=True)] == [
        int(text) if len(text.lstrip("-0")) <= whole else None for text in texts
    ]


CASTS = [
    *("2024-01-01 10:00:00 UTC", "2024-01-01 10:00:00 +0000", "2024-1-1 9:05:00", "2024-01-01 10:00:00 +2"),
    *("2024", "2024-2", "2024-01-01 10", " 2024-01-01 ", "2024-01-01 24:00:00", "2024-02-30 UTC", "20240101"),
    *("2024-01-01T10:00:00.5 -01:30", "1234-5x", "12:30", "soon", ""),
]


@pytest.mark.parametrize("text", CASTS)
def test_what_is_a_timestamp_in_a_query_is_one_in_a_file(text: str) -> None:
    right, lost = parse_timestamp(pa.array([text]), TIMESTAMP)
    for texts in ([text], ["2024-01-01T00:00:00Z", text, "soon"]):
        found, bad = parse_texts(pa.array(texts), TIMESTAMP)
        place = texts.index(text)
        assert (found[place].as_py(), bool(bad[place])) == (right[0].as_py(), np.asarray(lost)[0])


def test_other_ways_of_writing_times_are_local_where_they_have_no_offset() -> None:
    texts = pa.array(["2024-1-1 9:05:00", "2024-01-01 10:00:00 UTC", "2024-01-01 10:00:00 +2"])
    found, bad = WrittenTimes(zone="Europe/Berlin").parse(texts, TIMESTAMP)
    assert not bad.any()
    assert [value.hour for value in found.to_pylist()] == [8, 10, 8]
