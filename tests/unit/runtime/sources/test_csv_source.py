import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.expressions.evaluation.casts import cast
from headrace.runtime.sources import Rejected, SplitSource, open_source
from headrace.runtime.sources.text.blocks import COUNTED_BYTES, Block, TextPart
from headrace.runtime.sources.text.csv import CsvFormat, parse_block
from headrace.runtime.writing.texts import csv_texts
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, decimal
from how_many import examples

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]

NAMES = ("i", "x", "b", "d", "t", "m", "s")
TYPES = (BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, pa.decimal128(6, 2), STRING)
SCHEMA = Schema(tuple(Field(name, dtype) for name, dtype in zip(NAMES, TYPES, strict=True)))
FORM = CsvFormat(",", "", False)
OTHER_FORM = CsvFormat(",", "", False, quote="'", escape="\\", comment="#")

CELLS = st.sampled_from(
    [
        *("", "1", "-1", " 1", "1 ", "+1", "0x1F", "1.5", "1e2", "1e999", "nan", "inf", "true", "TRUE", "x"),
        *("2024-01-01", "2024-02-30", "2024-01-01T00:00:00Z", "2024-01-01 00:00:00.123456789", "1.230"),
        *("1.234", "9223372036854775808", '""', '"1"', '" 1"', '"a,b"', '"a""b"', '"open', 'a"b', '"a"b'),
        *("\t", "\x00", "é"),
    ]
)
GOOD_CELLS = ("1", "1.5", "true", "2024-01-01", "2024-01-01T00:00:00Z", "1.23", "x")


@st.composite
def nearly_good_lines(draw: st.DrawFn) -> str:
    """A good line with up to two other cells, so that the reader often gets far before it fails."""
    cells = list(GOOD_CELLS)
    for place in draw(st.lists(st.integers(0, 6), max_size=2)):
        cells[place] = draw(CELLS)
    return ",".join(cells)


LINES = st.one_of(nearly_good_lines(), st.lists(CELLS, min_size=6, max_size=8).map(",".join))


def open_text(
    tmp_path: Path, text: str | bytes, declared: Schema | None = None, **options: str
) -> SplitSource:
    (tmp_path / "f.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    timestamp = (declared.names[0] if declared else "t") if "time" not in options else options.pop("time")
    source = open_source("csv", {"path": "f.csv", **options}, declared, timestamp, "s", tmp_path)
    sent: SplitSource = pickle.loads(pickle.dumps(source))
    return sent


def parse(text: str, form: CsvFormat = FORM) -> tuple[list[object], list[tuple[str, str]]]:
    part = TextPart(Path("f"), "f", 0, 0)
    read = parse_block(Block(part, COUNTED_BYTES, text.encode()), NAMES, SCHEMA, form)
    return read.rows.to_pylist(), [(row.text, row.reason) for row in read.rejected]


GOOD_LINE = ",".join(GOOD_CELLS)


@example([f'{GOOD_LINE[:-1]}"open', GOOD_LINE, GOOD_LINE])
@example([f'{GOOD_LINE[:-1]}a"b,"open', GOOD_LINE])
@example([GOOD_LINE.replace("true", " true\t"), GOOD_LINE.replace("1.5", "?")])
@example([GOOD_LINE.replace("x", "x\ry"), GOOD_LINE])
@examples(17)
@given(st.lists(st.one_of(LINES, st.sampled_from(["", "a\rb", "1,2,true,2024-01-01,,,"])), max_size=6))
def test_every_line_is_read_as_if_it_stood_alone(lines: list[str]) -> None:
    rows, rejected = parse("".join(f"{line}\n" for line in lines))
    alone = [parse(f"{line}\n") for line in lines]
    assert repr(rows) == repr([row for some, _ in alone for row in some])
    assert rejected == [row for _, some in alone for row in some]


OTHER_LINES = st.text("a,'\\#\"\r ", max_size=6).map(lambda end: f"{GOOD_LINE}{end}") | st.text(
    "#\\',", max_size=9
)


@examples(17)
@given(st.lists(OTHER_LINES, max_size=5))
def test_every_line_is_read_as_if_it_stood_alone_with_other_characters(lines: list[str]) -> None:
    rows, rejected = parse("".join(f"{line}\n" for line in lines), OTHER_FORM)
    alone = [parse(f"{line}\n", OTHER_FORM) for line in lines]
    assert repr(rows) == repr([row for some, _ in alone for row in some])
    assert rejected == [row for _, some in alone for row in some]


@pytest.mark.parametrize(
    ("options", "text", "values"),
    [
        ({"quote": "'"}, "t,s\n1,'a,''b'''\n2,\"c\"\n", ["a,'b'", '"c"']),
        ({"quote": ""}, 't,s\n1,"a"\n2,"b\n', ['"a"', '"b']),
        ({"escape": "\\"}, 't,s\n1,"a\\",b"\n2,c\\,d\n', ['a",b', "c,d"]),
        ({"escape": '"'}, 't,s\n1,"a"",b"\n', ['a",b']),
        ({"comment": "#"}, "# made by hand\nt,s\n#1,x\n2,#y\n", ["#y"]),
        ({"skip": "2"}, "made by\n\nt,s\n1,x\n", ["x"]),
        ({"skip": "1", "header": "false"}, "t,s\n1,x\n", ["x"]),
    ],
)
def test_how_fields_are_written(
    options: dict[str, str], text: str, values: list[str], tmp_path: Path, read_all: ReadAll
) -> None:
    declared = Schema((Field("t", BIGINT), Field("s", STRING)))
    rows, rejected = read_all(open_text(tmp_path, text, declared, **options))
    assert (rows["s"].to_pylist(), list(rejected)) == (values, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"escape": ","}, "the same character"),
        ({"quote": "ab"}, "option quote is 'ab'"),
        ({"comment": "\u00e9"}, "option comment"),
        ({"skip": "-1"}, "option skip is '-1'"),
    ],
)
def test_characters_that_cannot_be(options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=message):
        open_text(tmp_path, "t,s\n", Schema((Field("t", BIGINT),)), **options)


def test_columns_are_inferred(tmp_path: Path, read_all: ReadAll) -> None:
    text = (
        "i,x,b,d,t,s\n"
        "1,1.5,true,2024-01-01,2024-01-01T00:00:00Z,a\n"
        ",,,,,\n"
        "-2,1,FALSE,2024-01-02,2024-01-01,1\n"
    )
    source = open_text(tmp_path, text)
    assert [field.type for field in source.schema] == [BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, STRING]
    rows, rejected = read_all(source)
    assert not rejected
    midnight = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert rows.to_pylist() == [
        {"i": 1, "x": 1.5, "b": True, "d": dt.date(2024, 1, 1), "t": midnight, "s": "a"},
        dict.fromkeys("ixbdts"),
        {"i": -2, "x": 1.0, "b": False, "d": dt.date(2024, 1, 2), "t": midnight, "s": "1"},
    ]


def test_declared_columns_are_found_by_name(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("T", BIGINT), Field("money", pa.decimal128(8, 3)), Field("zip", STRING)))
    source = open_text(tmp_path, "zip,more,Money,t\n007,x,1.5,1\n", declared)
    assert source.schema == declared
    assert read_all(source)[0].to_pylist() == [{"T": 1, "money": Decimal("1.500"), "zip": "007"}]
    assert read_all(source, columns=())[0]["rows"].to_pylist() == [1]


def test_options(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("s", STRING)))
    text = "1\tNA\n2\t\nNA\tx\n"
    source = open_text(tmp_path, text, declared, header="false", delimiter="\\t", null="NA")
    assert read_all(source)[0].to_pydict() == {"t": [1, 2, None], "s": [None, "", "x"]}
    with pytest.raises(SourceError, match="option delimiter"):
        open_text(tmp_path, text, declared, delimiter="ab")
    with pytest.raises(SourceError, match=r"no header .*declare the columns"):
        open_text(tmp_path, text, header="false")


def test_null_and_the_empty_string(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("s", STRING)))
    rows, rejected = read_all(open_text(tmp_path, 't,s\n1,\n2,""\n"",x\n', declared))
    assert not rejected
    assert rows.to_pydict() == {"t": [1, 2, None], "s": [None, "", "x"]}


def test_quoted_fields(tmp_path: Path, read_all: ReadAll) -> None:
    text = '"t","a ""b"""\r\n1,"x,y"\r\n"2","say ""hi"""'
    rows, rejected = read_all(open_text(tmp_path, text))
    assert not rejected
    assert rows.to_pydict() == {"t": [1, 2], 'a "b"': ["x,y", 'say "hi"']}


def test_bad_rows_are_rejected_and_the_others_survive(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", TIMESTAMP), Field("price", BIGINT)))
    lines = [
        "t,price",
        "x" * 70_000,
        "2024-01-01,1",
        "2024-01-01,abc",
        "noon,x",
        "",
        "2024-01-01",
        "2024-01-01,1,2",
        '2024-01-01,"1',
        "2024-01-01,99999999999999999999",
        "2024-01-01,2",
    ]
    source = open_text(tmp_path, "\n".join(lines).encode() + b"\n2024-01-01,\xff\n", declared)
    rows, rejected = read_all(source)
    assert rows["price"].to_pylist() == [1, 2]
    assert [(row.place, row.reason) for row in rejected] == [
        ("f.csv:2", "the row has 1 fields, not 2"),
        ("f.csv:4", "price is not a valid BIGINT: 'abc'"),
        ("f.csv:5", "t is not a valid TIMESTAMP: 'noon'"),
        ("f.csv:7", "the row has 1 fields, not 2"),
        ("f.csv:8", "the row has 3 fields, not 2"),
        ("f.csv:9", f"a quoted field is not closed{ON_ITS_LINE}"),
        ("f.csv:10", "price is not a valid BIGINT: '99999999999999999999'"),
        ("f.csv:12", "the row is not UTF-8 text"),
    ]
    texts = [row.text for row in rejected]
    assert [texts[0], texts[1], texts[-1]] == [
        "x" * 10_000 + "... (70000 bytes in all)",
        "2024-01-01,abc",
        "2024-01-01,\ufffd",
    ]


def test_text_after_a_closing_quote_is_not_glued_to_the_field(tmp_path: Path, read_all: ReadAll) -> None:
    """As DuckDB judges the lines when it is strict; RFC 4180, 2.7."""
    declared = Schema((Field("v", decimal(5, 2)), Field("n", STRING)))
    lines = ["v,n", '"1"2,a', '1,"Pedro "pdet" Holanda"', '1,"say \\"hi\\""', '2,""A""', '"3","b ""c"""']
    rows, rejected = read_all(open_text(tmp_path, "\n".join(lines), declared))
    assert [str(row["v"]) + row["n"] for row in rows.to_pylist()] == ['3.00b "c"']
    told = [(row.place, row.text, row.reason) for row in rejected]
    reason = "text follows the closing quote of a field; the option quote '' takes quotes as they are"
    assert told == [(f"f.csv:{number + 2}", lines[number + 1], reason) for number in range(4)]
    rows, rejected = read_all(open_text(tmp_path, 'v,n\n1,""A""\n', declared, quote=""))
    assert (rows["n"].to_pylist(), rejected) == (['""A""'], [])


def test_only_the_columns_asked_for_are_judged(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("price", BIGINT)))
    source = open_text(tmp_path, "t,price\n1,x\n", declared)
    assert read_all(source, columns=("t",)) == (pa.table({"t": [1]}), [])
    assert len(read_all(source)[1]) == 1


def test_beyond_many_bytes_a_row_is_placed_by_its_byte(tmp_path: Path) -> None:
    part = TextPart(tmp_path / "f", "f", 0, 0)
    wanted = Schema((Field("t", BIGINT),))
    read = parse_block(Block(part, COUNTED_BYTES, b"1\nx\n"), ("t",), wanted, FORM)
    assert [row.place for row in read.rejected] == [f"f:byte {COUNTED_BYTES + 2}"]


def test_files_of_a_folder_may_order_their_columns_differently(tmp_path: Path, read_all: ReadAll) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"")
    (folder / "b.csv").write_text("t,s\n1,x\n")
    (folder / "c.csv").write_text("\n\n")
    (folder / "d.csv").write_text("s,t\ny,2")
    source = open_source("csv", {"path": "in"}, None, "t", "s", tmp_path)
    for multiline in ("false", "true"):
        source = open_source("csv", {"path": "in", "multiline": multiline}, None, "t", "s", tmp_path)
        assert read_all(source)[0].to_pydict() == {"t": [1, 2], "s": ["x", "y"]}
    (folder / "e.csv").write_text("u\n3\n")
    with pytest.raises(SourceError, match=r"in/e.csv: there is no column t"):
        open_source("csv", {"path": "in"}, source.schema, "t", "s", tmp_path)


ON_ITS_LINE = " on its line; the option multiline 'true' lets it hold more"


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT), Field("s", STRING)))
    for header, message in (("t,s,t", "called t "), ("T,s,t", ""), ("T,s,T", "called t except for case ")):
        text = f"{header}\n1,a,2\n"
        if message:
            with pytest.raises(
                SourceError, match=f"f.csv: several columns are {message}.hint: give each its own"
            ):
                open_text(tmp_path, text, declared)
        else:
            assert read_all(open_text(tmp_path, text, declared))[0].to_pylist() == [{"t": 2, "s": "a"}]
    # Nobody asks for the others.
    assert open_text(tmp_path, "t,s,u,u\n", declared).size


def test_whole_numbers_are_what_cast_takes(tmp_path: Path, read_all: ReadAll) -> None:
    texts = ["7", "+5", "-5", "0x10", "0X1f", "-0x1", "+0x1", "++5", "+", "007", "+9223372036854775808"]
    good = {"7": 7, "+5": 5, "-5": -5, "007": 7}
    # A quote elsewhere has the block read row by row.
    for further in ("", '"x"'):
        text = "t,s\n" + "".join(f"{one},{further}\n" for one in texts)
        rows, rejected = read_all(open_text(tmp_path, text, Schema((Field("t", BIGINT), Field("s", STRING)))))
        assert rows["t"].to_pylist() == [good[one] for one in texts if one in good]
        bad = [f"t is not a valid BIGINT: '{one}'" for one in texts if one not in good]
        assert [row.reason for row in rejected] == bad
    # CAST takes the same.
    assert [one for one in texts if not cast(pa.array([one]), BIGINT)[1]] == list(good)


def test_fields_over_several_lines(tmp_path: Path, read_all: ReadAll) -> None:
    text = 't,"s\n2"\n1,"a\nb"\n2,"c"\nx,"d\ne"\n3,"open\n'
    declared = Schema((Field("t", BIGINT), Field("s\n2", STRING)))
    rows, rejected = read_all(open_text(tmp_path, text, declared, multiline="true"))
    assert rows.to_pydict() == {"t": [1, 2], "s\n2": ["a\nb", "c"]}
    assert [(row.place, row.reason) for row in rejected] == [
        ("f.csv:6", "t is not a valid BIGINT: 'x'"),
        ("f.csv:8", "a quoted field is not closed"),
    ]


def test_a_header_alone(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT),))
    for text in ("t,s\n", "t,s", "\ufefft,s\r\n\r\n"):
        assert read_all(open_text(tmp_path, text, declared))[0].num_rows == 0
        assert read_all(open_text(tmp_path, text, declared, multiline="true"))[0].num_rows == 0


def test_an_empty_input_needs_a_declaration(tmp_path: Path, read_all: ReadAll) -> None:
    declared = Schema((Field("t", BIGINT),))
    assert read_all(open_text(tmp_path, "", declared))[0].num_rows == 0
    with pytest.raises(SourceError, match=r"f.csv: there is nothing in it .*declare"):
        open_text(tmp_path, "")


@pytest.mark.parametrize("rows", ["", "1,2,3\n2\n"])
def test_types_that_no_row_shows_need_a_declaration(tmp_path: Path, rows: str) -> None:
    with pytest.raises(SourceError, match=r"f.csv: no row can be read that shows the types .*declare"):
        open_text(tmp_path, "t,s\n" + rows)


def test_the_first_file_with_rows_shows_the_types(tmp_path: Path, read_all: ReadAll) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.csv").write_text("t,s\n")
    (tmp_path / "a" / "2.csv").write_text("t,s\n1,x\n")
    source = open_source("csv", {"path": "a"}, None, "t", "s", tmp_path)
    assert source.schema == Schema((Field("t", BIGINT), Field("s", STRING)))
    assert read_all(source)[0].num_rows == 1


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path, read_all: ReadAll) -> None:
    assert read_all(open_text(tmp_path, "\ufefft\n1\n"))[0].to_pydict() == {"t": [1]}
    declared = Schema((Field("t", BIGINT),))
    assert read_all(open_text(tmp_path, "\ufeff1\n", declared, header="false"))[0].to_pydict() == {"t": [1]}


@pytest.mark.parametrize(
    ("data", "hint"),
    [(b"\x1f\x8b\x08\x00", "or add the option compression 'gzip'"), (b"PAR1\x15\x04", "store it as text")],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, hint: str) -> None:
    with pytest.raises(SourceError, match=rf"f.csv: this is not text: .*{hint}"):
        open_text(tmp_path, data)


@pytest.mark.parametrize("before", [0, 70_000])
def test_bytes_that_are_no_text_reject_their_row_wherever_it_is(
    tmp_path: Path, read_all: ReadAll, before: int
) -> None:
    declared = Schema((Field("t", BIGINT), Field("s", STRING)))
    text = b"t,s\n" + b"1,a\n" * before + b"2,\xff\n3,\0\n4\0,b\n5,c\n"
    rows, rejected = read_all(open_text(tmp_path, text, declared))
    assert rows.slice(before).to_pylist() == [{"t": 3, "s": "\0"}, {"t": 5, "s": "c"}]
    assert [row.reason for row in rejected] == ["the row is not UTF-8 text", "t is not a valid BIGINT: '4\0'"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"t,s\r1,a\r2,b\r", "a carriage return is inside the header .*hint: end the lines with a line"),
        (b'"t,s\n1,a\n', "a quoted name in the header is not closed"),
        (b'"t"s,u\n1,a\n', "text follows the closing quote of a name .*hint: double the quotes within"),
        (b"t,\xff\n1,a\n", "the header is not UTF-8 text"),
    ],
)
def test_headers_that_are_none(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=f"f.csv: {message}"):
        open_text(tmp_path, data, Schema((Field("t", BIGINT),)))


@pytest.mark.parametrize("length", [200_000, 2**20])
def test_a_header_of_any_length(tmp_path: Path, read_all: ReadAll, length: int) -> None:
    text = f'{"x" * length},"a ""b""", t ,\n1,2,3,\n'
    source = open_text(tmp_path, text, Schema((Field("t", BIGINT), Field('a "b"', BIGINT))))
    assert read_all(source)[0].to_pylist() == [{"t": 3, 'a "b"': 2}]


@examples(10)
@given(st.lists(st.tuples(st.binary(max_size=9) | st.none(), st.booleans()), min_size=1, max_size=8))
def test_bytes_that_are_written_are_read_back(rows: list[tuple[bytes | None, bool]]) -> None:
    """Bytes are base64; a text that is not stands in a rejected row, also beside fields that are quoted."""
    texts = csv_texts(pa.array([value for value, _ in rows], BINARY)).to_pylist()
    lines = [
        f"{place},{text if good else 'a-b'}\n"
        for place, (text, (_, good)) in enumerate(zip(texts, rows, strict=True))
    ]
    schema = Schema((Field("t", BIGINT), Field("x", BINARY)))
    block = Block(TextPart(Path("f"), "f", 0, 0), COUNTED_BYTES, "".join(lines).encode())
    read = parse_block(block, schema.names, schema, FORM)
    assert read.rows.to_pylist() == [
        {"t": place, "x": value} for place, (value, good) in enumerate(rows) if good
    ]
    wrong = [place for place, (_, good) in enumerate(rows) if not good]
    assert [(row.text, row.reason) for row in read.rejected] == [
        (f"{place},a-b", "x is not a valid BINARY: 'a-b'") for place in wrong
    ]


def test_missing_columns_and_repeated_names(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"f.csv: there is no column price .*did you mean prize"):
        open_text(tmp_path, "t,prize\n", Schema((Field("t", BIGINT), Field("price", BIGINT))))
    with pytest.raises(SourceError, match=r"f.csv: column T is defined twice"):
        open_text(tmp_path, "t,T\n1,2\n")


def test_a_file_that_becomes_shorter(tmp_path: Path) -> None:
    source = open_text(tmp_path, "t\n" + "1\n" * 100)
    (tmp_path / "f.csv").write_text("t\n1\n")
    with pytest.raises(SourceError, match=r"f.csv: the file has changed"):
        list(source.read(0, source.size, ("t",)))
    (tmp_path / "f.csv").unlink()
    with pytest.raises(SourceError, match=r"f.csv: .*No such file"):
        list(source.read(0, source.size, ("t",)))


def test_the_number_of_rows_is_estimated(tmp_path: Path) -> None:
    assert abs(open_text(tmp_path, "t\n" + "123456\n" * 500_000).rows / 500_000 - 1) < 0.01
