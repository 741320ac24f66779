"""CSV files as a source; positions are bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from headrace.elements import Int64Array
from headrace.errors import PlanError, SourceError
from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.files.files import list_files, overlaps
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS, Place, account_of
from headrace.runtime.sources.rows import written_times
from headrace.runtime.sources.rows.contract import Places, Read
from headrace.runtime.sources.rows.options import check_known, flag, missing_of, renamed, required, whole
from headrace.runtime.sources.rows.rows import gather, with_nulls
from headrace.runtime.sources.rows.values import infer_type
from headrace.runtime.sources.rows.widening import Lacking, find_column
from headrace.runtime.sources.rows.written_times import ISO, WrittenTimes, times_of
from headrace.runtime.sources.text import coding
from headrace.runtime.sources.text.blocks import (
    BLOCK_BYTES,
    Block,
    TextPart,
    decoded_bytes,
    is_utf8,
    line_blocks,
    mark_parts,
    weigh_parts,
)
from headrace.runtime.sources.text.lines import BlockRecords, parse_columns, read_without
from headrace.runtime.sources.text.records import (
    AFTER_QUOTE,
    ESCAPED_END,
    STRAY_RETURN,
    UNCLOSED,
    csv_records,
)
from headrace.runtime.sources.text.samples import (
    MOST_LOOKED_AT,
    FileSample,
    estimate_rows,
    other_delimiter,
    take_sample,
)
from headrace.schema import BIGINT, DOUBLE, STRING, Field, Schema, places_named

_KIND: Final = "CSV file"
FORM_OPTIONS: Final = ("delimiter", "quote", "escape", "comment", "null")
"""How rows are written."""
_OWN: Final = ("path", "header", "skip", "multiline", "missing", *FORM_OPTIONS)
OPTIONS: Final = (*_OWN, *written_times.OPTIONS, *coding.OPTIONS, *ACCOUNT_OPTIONS)
"""All options of the format."""
SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {"sep": "delimiter", "nullvalue": "null", **written_times.SYNONYMS}
)
"""What Spark calls some of the options."""
_PARSED_BY_ARROW: Final = (BIGINT, DOUBLE, STRING)
"""Arrow's CSV reader parses these as `parse_texts` does; the other types are read as text first."""


@dataclass(frozen=True)
class CsvFormat:
    """How the rows are written.

    Attributes:
        delimiter: the character between fields.
        null: what stands for NULL where it is not quoted, and, but for STRING columns, where it is.
        multiline: whether a quoted field may hold line ends; then a file is read as a whole.
        times: how times are written.
        quote: the character around a field that may hold others; empty for none.
        escape: the character after which any other one stands for itself; empty for none.
        comment: the character that a line begins with that is no row; empty for none.
    """

    delimiter: str
    null: str
    multiline: bool
    times: WrittenTimes = ISO
    quote: str = '"'
    escape: str = ""
    comment: str = ""

    @property
    def marks(self) -> Int64Array:
        """The characters as `csv_records` takes them."""
        characters = (self.delimiter, self.quote, self.escape, self.comment)
        return np.array([ord(one) if one else -1 for one in characters], dtype=np.int64)

    def stands_for_itself(self, data: bytes) -> bool:
        """Whether each line is one row, whatever the others hold."""
        if any(one and one.encode() in data for one in (self.quote, self.escape, self.comment)):
            return False
        return data.count(b"\r") == data.count(b"\r\n") and is_utf8(data)


@dataclass(frozen=True)
class CsvPart:
    """One file of the source: its text, and the names of its fields."""

    text: TextPart
    names: tuple[str, ...]


@dataclass(frozen=True)
class CsvSource:
    """CSV files laid end to end.

    Attributes:
        schema: the columns that can be read.
        parts: the files in order.
        form: how their rows are written.
        rows: about how many rows there are.
    """

    schema: Schema
    parts: tuple[CsvPart, ...]
    form: CsvFormat
    rows: int

    @property
    def size(self) -> int:
        """Bytes in total."""
        return sum(self.sizes)

    @property
    def found(self) -> tuple[str, ...]:
        """The names in the headers, or the declared ones where there are none."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each file."""
        return tuple(part.text.size for part in self.parts)

    @property
    def borders(self) -> tuple[int, ...]:
        """None: rows are read singly."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the files; those of a file that is read as a whole belong to its first byte."""
        return weigh_parts([part.text for part in self.parts], start, end, whole=self.form.multiline)

    @property
    def paths(self) -> tuple[Place, ...]:
        """The files."""
        return tuple(part.text.path for part in self.parts)

    def mark(self, position: int) -> str:
        """Identifies the files up to a byte; all of the last one if it is read as a whole."""
        return mark_parts([part.text for part in self.parts], position, whole=self.form.multiline)

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows whose line starts in the bytes `[start, end)`.

        With `multiline`, the rows of a file belong to its first byte.

        Raises:
            SourceError: a file is missing or has become shorter.
        """
        return gather(self._pieces(start, end, columns))

    def _pieces(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        for index, first, last in overlaps(self.sizes, start, end):
            part = self.parts[index]
            with reading(part.text.label, _KIND):
                for block in _blocks(part.text, self.form, first, last):
                    yield parse_block(block, part.names, wanted, self.form)


def open_csv(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> CsvSource:
    """Open the CSV files of the option `path`.

    Other options: `header` ('true'), `skip` ('0'), `delimiter` (','), `quote` ('"'), `escape`, `comment`,
    `null` (''), `multiline` ('false'). `SYNONYMS` are what Spark calls some of them. Columns that are not
    declared get the narrowest type that fits the beginnings of all files.

    Raises:
        SourceError: a file is missing or no text, or lacks a declared column.
    """
    options = renamed(options, SYNONYMS)
    check_known("csv", options, OPTIONS)
    codings = coding.codings_of(options)
    times = times_of(options, declared)
    form = csv_format(options, times, multiline=flag(options, "multiline", False))
    skipped = whole(options, "skip", 0)
    if skipped < 0:
        raise SourceError(f"the option skip is '{skipped}'", hint="it is a number of lines")
    header = flag(options, "header", True)
    if not header and declared is None:
        raise SourceError(
            "the CSV files have no header", hint="declare the columns: CREATE STREAM s (a INT, ...)"
        )
    first: FileSample | None = None
    seen, parts = _SeenColumns(), []
    for path, label in list_files(required(options, "path"), base, allowed, account_of(options)):
        with reading(label, _KIND):
            sample = take_sample(path, label, codings.of(path))
        part = _open_part(sample, form, None if header else declared, skipped)
        parts.append(part)
        if part.names:
            first = first or sample
            if declared is None:
                seen.look_at(part, sample, form)
    schema = declared or seen.schema()
    if schema is None:
        what = "there is nothing in it" if first is None else "no row can be read that shows the types"
        hint = "declare the columns: CREATE STREAM name (ts TIMESTAMP, ...) FROM csv"
        raise SourceError(f"{required(options, 'path')}: {what}", hint=hint)
    lacking = Lacking(schema, missing_of(options), declared is not None)
    for part in parts:
        if part.names:
            _check_names(part, lacking, schema)
    lacking.tell()
    size = sum(part.text.size for part in parts)
    return CsvSource(schema, tuple(parts), form, estimate_rows(first, size))


def parse_block(block: Block, names: tuple[str, ...], wanted: Schema, form: CsvFormat) -> Read:
    """The rows of a block.

    Args:
        block: whole rows.
        names: of the fields of a row.
        wanted: the columns to read.
        form: how the rows are written.
    """
    there = tuple(place for place, field in enumerate(wanted) if places_named(field.name, names))
    if len(there) < len(wanted):
        return with_nulls(parse_block(block, names, wanted.select(there), form), wanted)
    places = [find_column(list(names), field.name, block.part.label) for field in wanted]
    types = _types(wanted, block.data)
    if form.stands_for_itself(block.data):
        try:
            columns, count = _arrow_columns(block.data, len(names), places, types, form)
        except pa.ArrowInvalid:
            return _parse_carefully(block, len(names), places, wanted, form)
        values, reasons = parse_columns(columns, wanted, trim=True, null=form.null, times=form.times)
        records = _records(block, len(names), form) if reasons else None
        if records is not None:
            records.reasons.update(reasons)
        where = Places(lambda rows: (records or _records(block, len(names), form)).places(rows))
        return read_without(values, wanted, count, reasons, records, where)
    return _parse_carefully(block, len(names), places, wanted, form)


def _parse_carefully(block: Block, width: int, places: list[int], wanted: Schema, form: CsvFormat) -> Read:
    """The rows of a block that holds bad ones, or such as might make the reader take several as one."""
    records = _records(block, width, form)
    kept = records.kept()
    data = records.join(kept) if records.reasons or form.comment else block.data
    types = _types(wanted, data)
    try:
        columns, count = _arrow_columns(data, width, places, types, form)
    except pa.ArrowInvalid:
        columns, count = _arrow_columns(data, width, places, [STRING] * len(places), form)
    assert count == len(kept), f"Arrow found {count} rows where there are {len(kept)}"
    values, reasons = parse_columns(columns, wanted, trim=True, null=form.null, times=form.times)
    records.reasons.update({int(kept[row]): reason for row, reason in reasons.items()})
    where = Places(lambda rows: records.places(kept[rows]))
    return read_without(values, wanted, count, reasons, records, where)


def _records(block: Block, width: int, form: CsvFormat) -> BlockRecords:
    data = np.frombuffer(block.data, np.uint8)
    starts, ends, fields, states = csv_records(data, form.marks, form.multiline)
    records = BlockRecords(block, starts, ends)
    for row in np.flatnonzero((states != 0) | (fields != width)).tolist():
        if states[row] == UNCLOSED:
            more = "" if form.multiline else " on its line; the option multiline 'true' lets it hold more"
            records.reasons[row] = f"a quoted field is not closed{more}"
        elif states[row] == STRAY_RETURN:
            records.reasons[row] = "a carriage return is inside the row"
        elif states[row] == ESCAPED_END:
            records.reasons[row] = f"the row ends with {form.escape}, which is before another character"
        elif states[row] == AFTER_QUOTE:
            taken = "the option quote '' takes quotes as they are"
            records.reasons[row] = f"text follows the closing quote of a field; {taken}"
        else:
            records.reasons[row] = f"the row has {fields[row]} fields, not {width}"
    records.refuse_non_text()
    return records


def _types(wanted: Schema, data: bytes) -> list[pa.DataType]:
    """The types that Arrow is to read the columns as; a BIGINT alone where none may be hexadecimal."""
    direct = [one for one in _PARSED_BY_ARROW if one != BIGINT or not (b"0x" in data or b"0X" in data)]
    return [field.type if field.type in direct else STRING for field in wanted]


def _arrow_columns(
    data: bytes, width: int, places: list[int], types: list[pa.DataType], form: CsvFormat
) -> tuple[list[pa.Array], int]:
    """The fields at those places, read by Arrow as those types, and the number of rows."""
    if not data.strip(b"\r\n"):
        return [pa.array([], dtype) for dtype in types], 0
    names = [str(place) for place in range(width)]
    chosen = dict(zip((names[place] for place in places), types, strict=True)) or {names[0]: STRING}
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pyarrow.csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=form.quote or False,
            escape_char=form.escape or False,
            newlines_in_values=form.multiline,
        ),
        pyarrow.csv.ConvertOptions(
            column_types=chosen,
            include_columns=list(chosen),
            null_values=[form.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    columns = [table[names[place]].chunk(0) for place in places]
    return columns, table.num_rows


# --- opening ---------------------------------------------------------------------------------------------


def csv_format(options: Mapping[str, str], times: WrittenTimes, *, multiline: bool) -> CsvFormat:
    """How rows are written, of the options in `FORM_OPTIONS`.

    Raises:
        SourceError: one is not a character, or cannot be that, or two are the same.
    """
    delimiter = _character(options, "delimiter", ",")
    if not delimiter or delimiter == '"':
        raise SourceError(
            f"the option delimiter is '{delimiter}'", hint="it must be one ASCII character other than a quote"
        )
    quote = _character(options, "quote", '"')
    escape, comment = (_character(options, name, "") for name in ("escape", "comment"))
    if escape == quote:
        # Spark says so of texts in which a doubled quote stands for one, which it does here anyway.
        escape = ""
    used = [one for one in (delimiter, quote, escape, comment) if one]
    if len(set(used)) < len(used):
        raise SourceError(
            "two of the options delimiter, quote, escape and comment are the same character",
            hint="each needs one of its own; '' is for none",
        )
    return CsvFormat(delimiter, options.get("null", ""), multiline, times, quote, escape, comment)


def _character(options: Mapping[str, str], name: str, default: str) -> str:
    """An option that is one ASCII character; '' for none.

    Raises:
        SourceError: it is not.
    """
    text = options.get(name, default).replace("\\t", "\t")
    if len(text) > 1 or not text.isascii() or (text and text in "\r\n\0"):
        raise SourceError(f"the option {name} is '{text}'", hint="it must be one ASCII character")
    return text


def _open_part(sample: FileSample, form: CsvFormat, declared: Schema | None, skipped: int) -> CsvPart:
    """A file with its names: the declared ones, or those of its header; none where there is no row."""
    body = _after_lines(sample, skipped)
    text = np.frombuffer(sample.data, np.uint8, offset=body)
    starts, ends, fields, states = csv_records(text, form.marks, form.multiline)
    if not len(ends):
        return CsvPart(sample.part(len(sample.data)), ())
    if declared is not None:
        return CsvPart(sample.part(body), declared.names)
    end = body + int(ends[0])
    names = _header(sample.label, text[starts[0] : ends[0]].tobytes(), int(fields[0]), int(states[0]), form)
    after = sample.data.find(b"\n", end)
    return CsvPart(sample.part(after + 1 if after >= 0 else len(sample.data)), names)


def _after_lines(sample: FileSample, skipped: int) -> int:
    """The first byte after so many lines of a file, of which the sample has the beginning."""
    at = sample.body
    for _ in range(skipped):
        after = sample.data.find(b"\n", at)
        if after < 0:
            return len(sample.data)
        at = after + 1
    return at


def _header(label: str, row: bytes, width: int, state: int, form: CsvFormat) -> tuple[str, ...]:
    """The names in a header, read as the fields of a row are.

    Raises:
        SourceError: it is not a row of names.
    """
    if state == STRAY_RETURN:
        raise SourceError(
            f"{label}: a carriage return is inside the header",
            hint="end the lines with a line feed, or with a carriage return and a line feed",
        )
    if state == UNCLOSED:
        raise SourceError(f"{label}: a quoted name in the header is not closed")
    if state == AFTER_QUOTE:
        raise SourceError(
            f"{label}: text follows the closing quote of a name in the header",
            hint="double the quotes within a name, or add the option quote '' if they are names' own",
        )
    if not is_utf8(row):
        raise SourceError(f"{label}: the header is not UTF-8 text")
    columns, _ = _arrow_columns(row, width, list(range(width)), [STRING] * width, form)
    return tuple((column[0].as_py() or "").strip() for column in columns)


def _check_names(part: CsvPart, lacking: Lacking, schema: Schema) -> None:
    """Check that a header has the columns once each, or may lack some.

    Raises:
        SourceError: it may not; with the delimiter, if that seems to be another one.
    """
    try:
        lacks = lacking.of(part.names, part.text.label)
        for name in schema.names:
            if name not in lacks:
                find_column(list(part.names), name, part.text.label)
    except SourceError as error:
        if (hint := other_delimiter(part.names)) is not None:
            raise SourceError(error.message, hint=hint) from None
        raise


def _blocks(part: TextPart, form: CsvFormat, first: int, last: int) -> Iterator[Block]:
    if not form.multiline:
        yield from line_blocks(part, first, last)
    elif first == 0:
        data = decoded_bytes(part)
        text = np.frombuffer(data, np.uint8)
        starts, _, _, _ = csv_records(text, form.marks, True)
        for start, end in pairwise([0, *_cuts(starts.tolist()), len(data)]):
            if start < end:
                yield Block(part, part.body + start, data[start:end])


def _cuts(starts: list[int]) -> Iterator[int]:
    """The rows at which to cut a file into blocks."""
    last = 0
    for start in starts:
        if start - last >= BLOCK_BYTES:
            yield start
            last = start


class _SeenColumns:
    """The columns of all files, and the texts at their beginnings, which show the types."""

    def __init__(self) -> None:
        self._texts: dict[str, list[pa.StringArray]] = {}
        self._size = 0

    def look_at(self, part: CsvPart, sample: FileSample, form: CsvFormat) -> None:
        """Look at one more file; after many large ones, only for further columns."""
        known = all(self._spelled(name) in self._texts for name in part.names)
        if known and self._size > MOST_LOOKED_AT:
            return
        rows = _beginning(part, sample, form)
        if rows is None:
            return
        self._size += rows.nbytes
        for name, column in zip(part.names, rows.columns, strict=True):
            self._texts.setdefault(self._spelled(name), []).append(pc.unique(column))

    def schema(self) -> Schema | None:
        """The columns with the narrowest types that fit all that was seen; None where no row can be read."""
        found = ((name, infer_type(pa.concat_arrays(texts))) for name, texts in self._texts.items())
        return Schema(tuple(Field(name, dtype) for name, dtype in found)) if self._texts else None

    def _spelled(self, name: str) -> str:
        """The name as the first file with the column writes it."""
        return next((known for known in self._texts if known.lower() == name.lower()), name)


def _beginning(part: CsvPart, sample: FileSample, form: CsvFormat) -> pa.RecordBatch | None:
    """The rows of a sample as texts; None where no row of it can be read."""
    try:
        texts = Schema(tuple(Field(name, STRING) for name in part.names))
    except PlanError as error:
        raise SourceError(
            f"{part.text.label}: {error.message}", hint="declare the columns that are to be read"
        ) from None
    block = Block(part.text, part.text.body, sample.lines(part.text.body))
    rows = parse_block(block, part.names, texts, form).rows
    return rows if rows.num_rows else None
