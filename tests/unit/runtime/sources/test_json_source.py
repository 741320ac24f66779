import base64
import datetime as dt
import json
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import HeadraceWarning, SourceError
from headrace.reference.contents import equal_form
from headrace.runtime.sources import Rejected, SplitSource, open_source
from headrace.runtime.sources.text.blocks import COUNTED_BYTES, Block, TextPart
from headrace.runtime.sources.text.json import parse_block
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, sql_type
from headrace.value_texts import json_texts
from how_many import examples
from property.strategies import nested_types, values

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]

NAMES = ("i", "x", "b", "d", "t", "m", "s")
TYPES = (BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, pa.decimal128(6, 2), STRING)
SCHEMA = Schema(tuple(Field(name, dtype) for name, dtype in zip(NAMES, TYPES, strict=True)))

VALUES = st.sampled_from(
    [
        *("null", "true", "1", "-1", "-0", "0", "1.5", "1e2", "1e999", "1000e306", "1e-400", "NaN", "-NaN"),
        *("Infinity", "-Infinity", "Inf", "nan", "9223372036854775808", "1" * 301, "1" * 310),
        *("01", "+1", ".5", "5.", "tru", "", '"open', "[1]", "{}", '{"x": 1e999}', "[{}", "{}]", "[1,]"),
        *('"x"', '"1"', '"1.230"', '"1.234"', '"é"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u0000"', '"a\tb"'),
        *('"a\\"b"', '"2024-01-01"', '"2024-02-30"', '"2024-01-01T00:00:00+02:00"'),
    ]
)
KEYS = st.sampled_from([*NAMES, "other", "other", "I"])
GOOD_VALUES = ("1", "1.5", "true", '"2024-01-01"', '"2024-01-01T00:00:00Z"', "1.23", '"x"')


def object_text(pairs: dict[str, str] | list[tuple[str, str]]) -> str:
    listed = pairs.items() if isinstance(pairs, dict) else pairs
    return "{" + ", ".join(f'"{key}": {value}' for key, value in listed) + "}"


@st.composite
def nearly_good_objects(draw: st.DrawFn) -> str:
    """A good object with up to two other values, so that the reader often gets far before it fails."""
    changes = draw(st.dictionaries(KEYS, VALUES, max_size=2))
    return object_text(dict(zip(NAMES, GOOD_VALUES, strict=True)) | changes)


OBJECTS = st.one_of(nearly_good_objects(), st.lists(st.tuples(KEYS, VALUES), max_size=4).map(object_text))
LINES = st.one_of(
    OBJECTS,
    st.sampled_from(
        ["", " ", "null", "1", "[]", '"s"', "{}{}", "{} null {}", "{} x", " {} ", "{", "}", "{a: 1}"]
    ),
)


def open_text(
    tmp_path: Path, text: str | bytes, declared: Schema | None = None, **options: str
) -> SplitSource:
    (tmp_path / "f.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    source = open_source("json", {"path": "f.json", **options}, declared, "t", "s", tmp_path)
    sent: SplitSource = pickle.loads(pickle.dumps(source))
    return sent


def parse(text: str, schema: Schema = SCHEMA) -> tuple[list[object], list[tuple[str, str]]]:
    part = TextPart(Path("f"), "f", 0, 0)
    read = parse_block(Block(part, COUNTED_BYTES, text.encode()), schema)
    return read.rows.to_pylist(), [(row.text, row.reason) for row in read.rejected]


BAD_SYNTAX = '{"i" 1}'
"""The kernel passes this line, Arrow cannot read it: what stands beside it is decoded by Python."""


@given(st.lists(LINES, max_size=5), st.booleans())
def test_every_line_is_read_as_if_it_stood_alone(lines: list[str], with_bad: bool) -> None:
    """Alone, a good line goes to Arrow; beside a bad one, to Python: both must agree."""
    text = "".join(f"{line}\n" for line in lines) + (f"{BAD_SYNTAX}\n" if with_bad else "")
    rows, rejected = parse(text)
    alone = [parse(f"{line}\n") for line in lines]
    assert repr(rows) == repr([row for some, _ in alone for row in some])
    assert rejected[: len(rejected) - with_bad] == [row for _, some in alone for row in some]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@examples(17)
@given(value=VALUES, key=KEYS)
def test_arrow_and_python_agree_on_each_value(dtype: pa.DataType, value: str, key: str) -> None:
    schema = Schema((Field("i", dtype),))
    line = f'{{"{key}": {value}}}'
    alone, beside = parse(line, schema), parse(f"{line}\n{BAD_SYNTAX}", schema)
    assert repr(alone[0]) == repr(beside[0])
    assert alone[1] == beside[1][:-1]


def test_columns_are_inferred(tmp_path: Path, read_all: ReadAll) -> None:
    text = """
        {"i": 1, "x": 1.5, "b": true, "t": "2024-01-01T00:00:00Z", "s": "a", "list": [1], "void": null}
        {"d": "2024-01-01", "i": null, "x": 2, "t": "2024-01-02", "empty": [[]]}

        {"s": "1", "object": {"a": 1, "l": [{"x": null}, {"x": "2024-01-01"}], "none": {}}}
    """
    with pytest.warns(HeadraceWarning, match=r"types: empty \(empty lists or objects\);"):
        source = open_text(tmp_path, text)
    flat = ("i", "x", "b", "t", "s", "void", "d")
    assert {field.name: sql_type(field.type) for field in source.schema} == {
        name: sql_type(TYPES[NAMES.index(name)]) if name in NAMES else "STRING" for name in flat
    } | {"list": "ARRAY<BIGINT>", "object": "STRUCT<a: BIGINT, l: ARRAY<STRUCT<x: DATE>>>"}
    rows, rejected = read_all(source, columns=("i", "x", "b", "t", "s", "d"))
    assert not rejected
    first, second = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (1, 1.5, True, first, "a", None),
        (None, 2.0, None, second, None, dt.date(2024, 1, 1)),
        (None, None, None, None, "1", None),
    ]


def as_json(value: Any) -> Any:
    """A value of a nested column as JSON has it, an odd one now and then among those from outside."""
    match value:
        case dict():
            return {key: as_json(part) for key, part in value.items()}
        case [(_, _), *_] if isinstance(value[0], tuple):
            return {str(key): as_json(part) for key, part in value}
        case list():
            return [as_json(part) for part in value]
        case bytes():
            return base64.b64encode(value).decode()
        case dt.date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case _:
            return value


@examples(17)
@given(st.data())
def test_nested_values_are_read_by_arrow_as_by_python(data: st.DataObject) -> None:
    kind = data.draw(nested_types(is_declared=True))
    odd = st.sampled_from(({"f0": 1}, [1], [[]], {}, "x", 1.5, True))
    good = values(kind).map(as_json)
    rows = data.draw(st.lists(st.one_of(good, good, good, odd), min_size=1, max_size=6))
    schema = Schema((Field("x", kind),))
    for row in rows:
        line = json.dumps({"x": row})
        alone, beside = parse(line, schema), parse(f"{line}\n{BAD_SYNTAX}", schema)
        assert repr(alone[0]) == repr(beside[0])
        assert alone[1] == beside[1][:-1]


@examples(17)
@given(st.data())
def test_nested_values_that_are_written_are_read_back(data: st.DataObject) -> None:
    kind = data.draw(nested_types(is_declared=True))
    column = pa.array(data.draw(st.lists(values(kind), min_size=1, max_size=4)), kind)
    lines = [f'{{"x": {text}}}\n' for text in json_texts(column).to_pylist()]
    rows, rejected = parse("".join(lines), Schema((Field("x", kind),)))
    assert not rejected
    assert repr([equal_form(row) for row in rows]) == repr(
        [(equal_form(value),) for value in column.to_pylist()]
    )


def test_a_nested_value_that_is_none_is_named(tmp_path: Path) -> None:
    schema = Schema((Field("x", pa.struct([("a", pa.list_(DATE))])), Field("m", pa.map_(BIGINT, STRING))))
    lines = (
        '{"x": {"a": ["2024-01-01", "no"]}}',
        '{"x": {"a": 1}}',
        '{"x": [1]}',
        '{"m": {"1": "a"}}',
        '{"m": {"one": "a"}}',
        '{"m": {"1": 2.50}}',
        '{"x": {"a": [], "a": []}}',
    )
    rows, rejected = parse("\n".join(lines) + "\n", schema)
    assert rows == [{"x": None, "m": [(1, "a")]}, {"x": None, "m": [(1, "2.50")]}]
    assert [reason for _, reason in rejected] == [
        "x.a is not a valid DATE: 'no'",
        "x.a is not a valid ARRAY<DATE>: 1",
        "x is not a valid STRUCT<a: ARRAY<DATE>>: a list",
        "m is not a valid MAP<BIGINT, STRING>: 'one'",
        "x: the key a is there twice",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"x"', "x"),
        ("1.230e5", "1.230e5"),
        ("12345678901234567890123.0", "12345678901234567890123.0"),
        ("true", "true"),
        ("null", None),
        ("[ ]", "[]"),
        ('{ "b" : [1.50, null, {"c": "\u00fc\\n\\u0041"}], "a": false, "b": -0}', None),
    ],
)
@pytest.mark.parametrize("before", [0, 600])
def test_a_string_is_the_json_of_what_is_no_text(value: str, expected: str | None, before: int) -> None:
    schema = Schema((Field("x", STRING), Field("l", pa.list_(STRING))))
    if value.startswith("{"):
        expected = '{"b":[1.50,null,{"c":"\u00fc\\nA"}],"a":false,"b":-0}'
    # Many other lines are read by Arrow, which takes a text alone.
    lines = ['{"x": "t", "l": ["t"]}'] * before + [f'{{"x": {value}, "l": [{value}]}}']
    rows, rejected = parse("\n".join(lines) + "\n", schema)
    assert not rejected
    assert len(rows) == before + 1
    assert rows[-1] == {"x": expected, "l": [expected]}


def test_declared_columns_are_found_by_name(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("T", BIGINT), Field("money", pa.decimal128(8, 3)), Field("s", STRING)))
    source = open_text(
        tmp_path, '{"s": "x", "Money": 1.5, "t": 1, "more": {"t": 2}}\n{"Money": "2.25"}', declared
    )
    assert read_all(source)[0].to_pylist() == [
        {"T": 1, "money": Decimal("1.500"), "s": "x"},
        {"T": None, "money": Decimal("2.250"), "s": None},
    ]
    assert read_all(source, columns=())[0]["rows"].to_pylist() == [2]


def test_a_declared_column_must_occur(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("price", BIGINT)))
    with pytest.raises(SourceError, match=r"f.json: there is no column price .*did you mean prize"):
        open_text(tmp_path, '{"t": 1, "prize": 1}', declared)
    source = open_text(tmp_path, '{"t": 1, "prize": 1}', declared, missing="null")
    assert read_all(source)[0].to_pydict() == {"t": [1], "price": [None]}
    with pytest.raises(SourceError, match="the option missing is 'maybe'"):
        open_text(tmp_path, "", declared, missing="maybe")


def test_bad_rows_are_rejected_and_the_others_survive(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", TIMESTAMP), Field("price", BIGINT)))
    lines = [
        '{"t": "2024-01-01", "price": 1}',
        '{"t": "noon", "price": "1"}',
        '{"t": 5}',
        '{"price": 1.0}',
        '{"price": 99999999999999999999}',
        "",
        "null",
        '{"price": 1',
        '{"price": 1} {"price": 2}',
        '{"price": 1, "price": 2}',
        '{"price" 1}',
        '{"price": [' + "[" * 200 + "]" * 200 + "]}",
        '{"t": "2024-01-01", "price": 2}',
    ]
    rows, rejected = read_all(open_text(tmp_path, "\n".join(lines), declared))
    assert rows["price"].to_pylist() == [1, 2]
    assert [(row.place, row.reason) for row in rejected] == [
        ("f.json:2", "t is not a valid TIMESTAMP: 'noon'"),
        ("f.json:3", "t is not a valid TIMESTAMP: 5"),
        ("f.json:4", "price is not a valid BIGINT: '1.0'"),
        ("f.json:5", "price is not a valid BIGINT: '99999999999999999999'"),
        ("f.json:7", "the line is not one JSON object"),
        ("f.json:8", "the JSON object is not closed"),
        ("f.json:9", "the line is not one JSON object"),
        ("f.json:10", "the line is not one JSON object: the key price is there twice"),
        ("f.json:11", "the line is not one JSON object: Expecting ':' delimiter: line 1 column 10 (char 9)"),
        ("f.json:12", "the JSON object is nested more than 100 levels deep"),
    ]
    assert rejected[0].text == lines[1]


def test_a_row_that_is_not_utf8(tmp_path: Path, read_all: ReadAll) -> None:
    text = b'{"t": 1}\n' * 10_000 + b'{"t": 2, "s": "\xff"}\n{"t": 3}\n'
    rows, rejected = read_all(open_text(tmp_path, text))
    assert rows.num_rows == 10_001
    assert [(row.place, row.reason) for row in rejected] == [("f.json:10001", "the row is not UTF-8 text")]


@pytest.mark.parametrize("bad", [b'{"t": "\xff"}', b"\0", b'{"T": ' + b"1" * 2**20, b"[]\n" * 400_000])
@pytest.mark.slow("writes files that are larger than what is looked at")
def test_the_columns_are_those_of_the_first_objects_whatever_lies_before(
    tmp_path: Path, read_all: ReadAll, bad: bytes
) -> None:
    source = open_text(tmp_path, bad + b'\n{"T": 3}\n', Schema((Field("t", BIGINT),)))
    rows, rejected = read_all(source)
    assert rows.to_pylist() == [{"t": 3}]
    assert len(rejected) == bad.count(b"\n") + (not bad.endswith(b"\n"))


def test_a_first_line_of_any_length(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("s", STRING)))
    text = b'{"s": "' + b"x" * 2**21 + b'", "T": 1}\n'
    assert read_all(open_text(tmp_path, text, declared))[0]["t"].to_pylist() == [1]


def test_a_file_of_bad_rows_alone(tmp_path: Path, read_all: ReadAll) -> None:
    rows, rejected = read_all(open_text(tmp_path, "[1]\n", Schema((Field("t", BIGINT),))))
    assert (rows.num_rows, len(rejected)) == (0, 1)


def test_inputs_without_objects(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT),))
    for text in ("", "\n \n"):
        assert read_all(open_text(tmp_path, text, declared))[0].num_rows == 0
        with pytest.raises(SourceError, match=r"f.json: there is no JSON object in it"):
            open_text(tmp_path, text)
    with pytest.raises(SourceError, match="there is no JSON object in it"):
        open_text(tmp_path, "[1]")


def test_keys_that_differ_by_case_alone_must_be_declared(tmp_path: Path, read_all: ReadAll) -> None:
    with pytest.raises(SourceError, match="column T is defined twice"):
        open_text(tmp_path, '{"t": 1, "T": 2}')
    source = open_text(tmp_path, '{"t": 1, "T": 2}', Schema((Field("T", BIGINT),)))
    assert read_all(source)[0].to_pydict() == {"T": [2]}


def test_few_bad_lines_among_many(tmp_path: Path, read_all: ReadAll) -> None:
    """The lines are halved around those that Arrow cannot read; none is lost or moved."""
    bad = {0: '{"t": "x"}', 700: '{"t": 1.5}', 701: "null", 1999: '{"t": 1, "t": 1}'}
    odd = {300: '{"t": 300, "more": NaN}'}
    lines = [bad.get(n) or odd.get(n) or f'{{"t": {n}}}' for n in range(2000)]
    rows, rejected = read_all(open_text(tmp_path, "\n".join(lines), Schema((Field("t", BIGINT),))))
    assert rows["t"].to_pylist() == [n for n in range(2000) if n not in bad]
    assert [(row.text, row.place) for row in rejected] == [
        (text, f"f.json:{n + 1}") for n, text in bad.items()
    ]


def test_what_is_written_for_no_number_is_read_back() -> None:
    """As `json_texts` writes it; other strings are not valid DOUBLEs."""
    column = pa.array([float("nan"), float("inf"), float("-inf"), 1.5])
    written = [*json_texts(column).to_pylist(), '"nan"', '"1.5"']
    rows, rejected = parse("".join(f'{{"x": {text}}}\n' for text in written), Schema((Field("x", DOUBLE),)))
    assert str(rows) == "[{'x': nan}, {'x': inf}, {'x': -inf}, {'x': 1.5}]"
    assert len(rejected) == 2


OBJECTS_OVER_LINES = [
    '{"t": 1,\n"x": 2}\n{"t": 3,\n"x": 4}\n',
    '  {"t": 1, "x": 2, "l": [1,\n 2]}\r\n{"t": 3, "x": 4}',
    '{ "o": {"t":\n5}, "t": 1, "x": 2 }\n{"t": 3, "x": 4}',
    '{\n"t": 1, "x": 2}\n{"t": 3, "x": 4}',
    '{"features": [\n{"t": 7},\n{"t": 8}\n], "t": 1, "x": 2}\n{"x": 4, "t": 3}',
    # Only what comes first in it is in the sample.
    '{"pad": "' + "p" * 2**20 + '",\n"t": 1, "x": 2}\n{"t": 3, "x": 4}',
]


@pytest.mark.parametrize("text", OBJECTS_OVER_LINES, ids=lambda text: text[:10])
def test_objects_over_several_lines(text: str, tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("x", BIGINT)))
    rows, rejected = read_all(open_text(tmp_path, text, declared, missing="some"))
    assert (rows.to_pydict(), rejected) == ({"t": [1, 3], "x": [2, 4]}, [])


@pytest.mark.parametrize("first", ['{"t": 1,', '{"t": 1', '{"t', '{"t": [', '{"t": "a', "{"])
def test_a_first_line_that_is_cut_short_is_one_dead_letter(
    first: str, tmp_path: Path, read_all: ReadAll
) -> None:
    text = f'{first}\n{{"t": 2}}\n{{"t": 3}}\n'
    rows, rejected = read_all(open_text(tmp_path, text, Schema((Field("t", BIGINT),))))
    assert (rows["t"].to_pylist(), [row.place for row in rejected]) == ([2, 3], ["f.json:1"])
