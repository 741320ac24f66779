"""Keys of JSON objects match columns whatever their case, the very name first; one without any is no row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.runtime.sources import open_source
from headrace.runtime.sources.rows.contract import Read
from headrace.runtime.sources.text.blocks import COUNTED_BYTES, Block, TextPart
from headrace.runtime.sources.text.json import parse_block, parse_placed
from headrace.schema import BIGINT, Field, Schema, sql_type
from how_many import examples

IN = pa.struct([("someId", BIGINT)])
WANTED = Schema((Field("userId", BIGINT), Field("in", IN), Field("Ä", BIGINT)))
BAD_SYNTAX = '{"i" 1}'
"""What stands beside it is decoded by Python."""
NOT_ONE = "the line is not one JSON object: several keys are called userId except for case"
CASES = [
    ('{"userId": 1}', (1, None, None)),
    ('{"USERID": 1}', (1, None, None)),
    ('{"x": 3, "userid" : 1}', (1, None, None)),
    ('{"userid": 2, "userId": 1}', (1, None, None)),
    ('{"userId": null, "userid": 2}', (None, None, None)),
    ('{"userid": 2, "USERID": 1}', NOT_ONE),
    ('{"user\\u0049D": 1}', (1, None, None)),
    ('{"ä": 1}', (None, None, 1)),
    ('{"In": {"someid": 1}}', (None, {"someId": 1}, None)),
    ('{"in": {"someId": 1, "SOMEID": 2}}', (None, {"someId": 1}, None)),
    ('{"in": {"userid": 1}}', (None, {"someId": None}, None)),
    ('{"x": "\\"userid\\":", "y": "userid"}', (None, None, None)),
]


def outcome(read: Read) -> list[object]:
    return [
        *(tuple(row.values()) for row in read.rows.to_pylist()),
        *(one.reason for one in read.rejected),
    ]


def parse(text: str, wanted: Schema) -> Read:
    return parse_block(Block(TextPart(Path("f"), "f", 0, 0), COUNTED_BYTES, text.encode()), wanted)


@pytest.mark.parametrize(("line", "right"), CASES)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_an_object(line: str, right: tuple[object, ...] | str, ascii_only: bool) -> None:
    """Names that are not ASCII are judged by Python alone, so the others are tried without them, too."""
    wanted = WANTED.select((0, 1)) if ascii_only else WANTED
    expected = right[: len(wanted)] if isinstance(right, tuple) else right
    assert outcome(parse(line, wanted)) == [expected]
    # Behind a line in another spelling, and beside one that makes Python read all.
    for first in ('{"userId": 7}', '{"USERID": 7}', BAD_SYNTAX):
        assert expected in outcome(parse(f"{first}\n{line}\n", wanted))


def test_a_column_that_is_spelled_as_a_part_of_another_one() -> None:
    wanted = Schema((Field("id", BIGINT), Field("o", pa.struct([("ID", BIGINT)]))))
    assert outcome(parse('{"id": 1, "o": {"id": 2}}', wanted)) == [(1, {"ID": 2})]


KEY = st.sampled_from(["k", "K", "v", "V", "x"])
LINES = st.lists(st.dictionaries(KEY, st.integers(0, 9), max_size=3), max_size=6)


@examples(50)
@given(LINES)
def test_any_objects(rows: list[dict[str, int]]) -> None:
    """The same as looking each name up."""
    text = "".join("{" + ", ".join(f'"{key}": {value}' for key, value in row.items()) + "}\n" for row in rows)
    wanted = Schema((Field("k", BIGINT), Field("V", BIGINT)))
    block = Block(TextPart(Path("f"), "f", 0, 0), COUNTED_BYTES, text.encode())
    read, _ = parse_placed(block, wanted, needed=wanted.names)
    there = [row for row in rows if row.keys() - {"x"}]
    assert read.rows.to_pylist() == [
        {"k": row.get("k", row.get("K")), "V": row.get("V", row.get("v"))} for row in there
    ]
    reasons = {one.reason for one in read.rejected}
    assert reasons <= {"the object is empty", "the object has none of the columns; its keys are x"}
    assert len(read.rejected) == len(rows) - len(there)


def test_files_in_which_objects_lack_columns(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"a": 1, "b": 2}\n{"x": 1}\n{"B": 3}\n')
    declared = Schema((Field("a", BIGINT), Field("b", BIGINT), Field("c", BIGINT)))

    def rows(missing: str, *columns: str) -> tuple[list[object], list[str]]:
        options = {"path": "f.json", "missing": missing}
        (read,) = open_source("json", options, declared, "a", "s", tmp_path).read(0, 99, columns)
        return [tuple(row.values()) for row in read.rows.to_pylist()], [one.place for one in read.rejected]

    with pytest.raises(SourceError, match=r"no column c at the beginning .hint: .*missing 'some'"):
        rows("error", "a")
    assert rows("some", "a", "c") == ([(1, None), (None, None)], ["f.json:2"])
    assert rows("some", "b") == ([(2,), (3,)], ["f.json:2"])
    assert rows("null", "b") == ([(2,), (None,), (3,)], [])


def test_a_type_is_not_needed_to_be_spelled_alike(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"o": {"aB": 1}}\n{"O": {"Ab": 2}}\n')
    declared = Schema((Field("o", pa.struct([("ab", BIGINT)])),))
    assert sql_type(declared.fields[0].type) == "STRUCT<ab: BIGINT>"
    (read,) = open_source("json", {"path": "f.json"}, declared, "o", "s", tmp_path).read(0, 99, ("o",))
    assert read.rows["o"].to_pylist() == [{"ab": 1}, {"ab": 2}]
