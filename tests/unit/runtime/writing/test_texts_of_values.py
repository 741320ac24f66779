import csv
import datetime as dt
import io
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.writing.texts import csv_texts, pad, shown_texts, width_of
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, UNKNOWN
from headrace.time import TimeDomain, format_instant
from headrace.value_texts import json_texts, value_texts

TEXT = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.sampled_from(["", '"', "\\", "\n", "a,b", " x ", "\x7f", "\x9b", "日本", "a\u0301"]),
)


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=6))
def test_doubles_are_read_back_the_same(values: list[float | None]) -> None:
    texts = value_texts(pa.array(values, DOUBLE)).to_pylist()
    for value, text in zip(values, texts, strict=True):
        if value is None or text is None:
            assert value is text
        elif math.isnan(value):
            assert text == "NaN"
        else:
            assert float(text) == value
            assert math.copysign(1, float(text)) == math.copysign(1, value)
            assert "." in text or "e" in text or text in ("Infinity", "-Infinity")


@given(st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), max_size=6))
def test_timestamps_are_written_as_everywhere(instants: list[int | None]) -> None:
    texts = value_texts(pa.array(instants, BIGINT).view(TIMESTAMP)).to_pylist()
    assert texts == [
        None if instant is None else format_instant(instant, TimeDomain.TIMESTAMP) for instant in instants
    ]


@given(st.lists(st.datetimes(), max_size=6), st.booleans())
def test_timestamps_of_four_digit_years(moments: list[dt.datetime], whole: bool) -> None:
    stamps = [moment.replace(microsecond=0, tzinfo=dt.UTC) if whole else moment for moment in moments]
    column = pa.array(stamps, TIMESTAMP)
    expected = [format_instant(instant, TimeDomain.TIMESTAMP) for instant in column.view(BIGINT).to_pylist()]
    assert value_texts(column).to_pylist() == expected
    assert expected == [stamp.isoformat().removesuffix("+00:00") + "Z" for stamp in stamps]


@given(st.lists(st.one_of(st.none(), st.integers(-(10**20), 10**20)), max_size=6), st.integers(0, 12))
def test_decimals_have_all_digits_and_no_exponent(values: list[int | None], scale: int) -> None:
    decimals = [None if value is None else Decimal(value).scaleb(-scale) for value in values]
    texts = value_texts(pa.array(decimals, pa.decimal128(38, scale))).to_pylist()
    assert texts == [None if value is None else format(value, "f") for value in decimals]


@pytest.mark.parametrize(
    ("values", "dtype", "texts"),
    [
        ([True, None, False], BOOLEAN, ["true", None, "false"]),
        ([1, None, -(2**63)], BIGINT, ["1", None, "-9223372036854775808"]),
        ([dt.date(2024, 1, 2), None], DATE, ["2024-01-02", None]),
        ([None, None], UNKNOWN, [None, None]),
        (["a\nb", None], STRING, ["a\nb", None]),
    ],
)
def test_other_values(values: list[object], dtype: pa.DataType, texts: list[str | None]) -> None:
    assert value_texts(pa.array(values, dtype)).to_pylist() == texts
    assert value_texts(pa.array([*values, None], dtype).slice(1)).to_pylist() == [*texts[1:], None]


@given(st.lists(TEXT, max_size=6))
def test_json_strings_are_read_back_the_same(values: list[str | None]) -> None:
    assert [json.loads(text) for text in json_texts(pa.array(values, STRING)).to_pylist()] == values


def test_json_values() -> None:
    doubles = pa.array([1.0, math.nan, -math.inf, None], DOUBLE)
    assert json_texts(doubles).to_pylist() == ["1.0", '"NaN"', '"-Infinity"', "null"]
    assert json_texts(pa.array([dt.date(2024, 1, 2), None])).to_pylist() == ['"2024-01-02"', "null"]
    assert json_texts(pa.array([0], BIGINT).view(TIMESTAMP)).to_pylist() == ['"1970-01-01T00:00:00Z"']
    assert json_texts(pa.array([True, None])).to_pylist() == ["true", "null"]
    assert json_texts(pa.nulls(1)).to_pylist() == ["null"]


@given(st.lists(TEXT, max_size=6))
def test_csv_strings_are_read_back_the_same(values: list[str | None]) -> None:
    texts = csv_texts(pa.array(values, STRING)).to_pylist()
    rows = csv.reader(io.StringIO("".join(f"x,{text}\n" for text in texts), newline=""), strict=True)
    assert [row[1] for row in rows] == [value or "" for value in values]
    assert [text == "" for text in texts] == [value is None for value in values]


@given(st.lists(TEXT, max_size=6), st.booleans())
def test_shown_texts_stay_on_their_line_and_fill_their_width(values: list[str | None], left: bool) -> None:
    texts = shown_texts(pa.array(values, STRING))
    assert not any(set(text) & set("\n\r\t\x00\x7f\x9b\u2028") for text in texts.to_pylist())
    padded = pad(texts, width_of(texts), left=left)
    assert {width_of(padded.slice(place, 1)) for place in range(len(padded))} <= {width_of(texts)}
    stripped = [text.strip() for text in padded.to_pylist()]
    assert stripped == [text.strip() for text in texts.to_pylist()]


def test_shown_values() -> None:
    assert shown_texts(pa.array(["a\nb\\", None, "\x1b[0m"])).to_pylist() == ["a\\nb\\", "NULL", "\\x1b[0m"]
    assert width_of(pa.array(["日本", "abc"])) == 4
    assert pad(pa.array(["日本", "abc"]), 5, left=True).to_pylist() == [" 日本", "  abc"]


ARRAYS = pa.array([["a", None, 'say "x"'], None, []], pa.list_(STRING))


def test_arrays_are_written_as_json() -> None:
    times = pa.array([[0], [None, 1]], pa.list_(TIMESTAMP))
    assert json_texts(ARRAYS).to_pylist() == ['["a",null,"say \\"x\\""]', "null", "[]"]
    assert shown_texts(ARRAYS.slice(1)).to_pylist() == ["NULL", "[]"]
    assert csv_texts(ARRAYS).to_pylist()[1:] == ["", "[]"]
    assert next(csv.reader(csv_texts(ARRAYS).to_pylist()[:1])) == [json_texts(ARRAYS)[0].as_py()]
    assert value_texts(times.slice(1)).to_pylist() == ['[null,"1970-01-01T00:00:00.000001Z"]']
