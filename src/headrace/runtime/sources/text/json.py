"""JSON lines as a source; positions are bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.json

from headrace.elements import BoolArray, Int64Array
from headrace.errors import PlanError, SourceError
from headrace.nested import is_nested
from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.files.files import list_files
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS, Place, account_of
from headrace.runtime.sources.rows import written_times
from headrace.runtime.sources.rows.contract import Places, Read
from headrace.runtime.sources.rows.options import check_known, missing_of, renamed, required
from headrace.runtime.sources.rows.widening import warn_left_out
from headrace.runtime.sources.rows.written_times import ISO, SYNONYMS, WrittenTimes, times_of
from headrace.runtime.sources.text import coding
from headrace.runtime.sources.text.blocks import (
    Block,
    TextPart,
    is_utf8,
    line_blocks,
)
from headrace.runtime.sources.text.coding import Coding, codings_of
from headrace.runtime.sources.text.json_keys import judge_keys
from headrace.runtime.sources.text.json_types import infer_json_type
from headrace.runtime.sources.text.json_values import Object, decode, pick, spans_lines, texts_of
from headrace.runtime.sources.text.layout import ARRAY, SPREAD
from headrace.runtime.sources.text.line_source import LineSource
from headrace.runtime.sources.text.lines import BlockRecords, parse_columns, read_without
from headrace.runtime.sources.text.nested_json import arrow_type, column_of_json, finished
from headrace.runtime.sources.text.records import GOOD, MAX_DEPTH, TOO_DEEP, UNCLOSED, UNUSUAL, json_records
from headrace.runtime.sources.text.samples import (
    MOST_LOOKED_AT,
    FileSample,
    estimate_rows,
    take_sample,
)
from headrace.schema import Field, Schema, places_named
from headrace.suggestions import did_you_mean

_KIND: Final = "file of JSON lines"
_OF_FILES: Final = ("path", "missing", *coding.OPTIONS, *ACCOUNT_OPTIONS)
OPTIONS: Final = (*_OF_FILES, *written_times.OPTIONS)
"""All options of the format."""
_SHOWN_KEYS: Final = 10
"""So many keys of an object are shown that has no column."""
_FEW_LINES: Final = 256
"""So many lines are read one by one where Arrow cannot read them all at once."""


@dataclass(frozen=True)
class JsonSource(LineSource):
    """Files of JSON lines laid end to end.

    Attributes:
        times: how times are written.
        may_lack_all: whether an object without any of the columns is a row.
        keys: those of the objects at the beginnings.
    """

    kind = _KIND
    _: KW_ONLY
    times: WrittenTimes = ISO
    may_lack_all: bool = False
    keys: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[str, ...]:
        """The keys of the objects at the beginnings."""
        return self.keys

    def parse(self, block: Block, wanted: Schema) -> Read:
        """The rows of a block; see `parse_block`."""
        needed = () if self.may_lack_all else self.schema.names
        return parse_placed(block, wanted, self.times, needed)[0]


def open_json(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> JsonSource:
    """Open the files of JSON lines of the option `path`.

    Columns that are not declared are those at the beginnings of all files, with the types of their first
    values there, which are widened to hold the others. A declared column must occur in the first file, unless
    the option `missing` is 'some' or 'null'; with 'null' an object may lack all of them.

    Raises:
        SourceError: a file is missing or no text, or a declared column does not occur.
    """
    options = renamed(options, SYNONYMS)
    plain = {name: value for name, value in options.items() if name not in written_times.OPTIONS}
    files = JsonFiles.of(plain, base, allowed, all_files=declared is None)
    schema = files.columns([*files.objects, *files.more], declared)
    times, may_lack_all = times_of(options, declared), files.missing == "null"
    keys = tuple(dict.fromkeys(key for one in (*files.objects, *files.more) for key in one))
    return JsonSource(schema, files.parts, files.rows, times=times, may_lack_all=may_lack_all, keys=keys)


@dataclass(frozen=True)
class JsonFiles:
    """Files of JSON lines, and what is at their beginning.

    Attributes:
        path: the option that names them.
        parts: the files in order.
        first: the beginning of the first one that is not empty; None where all are.
        objects: the objects there.
        more: those at the beginnings of the other files, as far as they were looked at.
        missing: one of `MISSING`.
    """

    path: str
    parts: tuple[TextPart, ...]
    first: FileSample | None
    objects: list[dict[str, object]]
    more: list[dict[str, object]]
    missing: str

    @classmethod
    def of(
        cls,
        options: Mapping[str, str],
        base: Path,
        allowed: tuple[Path, ...] | None,
        *,
        all_files: bool = False,
    ) -> JsonFiles:
        """The files of the options `path` and `missing`.

        Args:
            options: of the source.
            base, allowed: as for `list_files`.
            all_files: whether the beginnings of all files are looked at.

        Raises:
            SourceError: a file is missing or no text, or an option is wrong.
        """
        check_known("json", options, _OF_FILES)
        codings = codings_of(options)
        missing = missing_of(options)
        first: FileSample | None = None
        objects: list[dict[str, object]] = []
        more: list[dict[str, object]] = []
        looked_at, parts = 0, []
        for path, label in list_files(required(options, "path"), base, allowed, account_of(options)):
            with reading(label, _KIND):
                sample = _sample(path, label, codings.of(path))
                if objects and all_files and looked_at < MOST_LOOKED_AT:
                    more += _objects(Block(sample.part(sample.body), sample.body, sample.lines(sample.body)))
                    looked_at += len(sample.data)
                objects = objects or _first_objects(sample)
            parts.append(sample.part(sample.body))
            if first is None and sample.data[sample.body :].strip():
                first = sample
        return cls(required(options, "path"), tuple(parts), first, objects, more, missing)

    @property
    def rows(self) -> int:
        """About how many lines there are."""
        return estimate_rows(self.first, sum(part.size for part in self.parts))

    def columns(self, objects: list[dict[str, object]], declared: Schema | None) -> Schema:
        """The columns.

        Args:
            objects: those at the beginning that have them.
            declared: the declared columns, or None to take those of the objects.

        Raises:
            SourceError: a declared column does not occur, or no line holds an object.
        """
        if declared is None:
            return _infer_schema(objects, self.path)
        if self.missing == "error" and objects and self.first is not None:
            for field in declared:
                _check_occurs(objects, field.name, self.first)
        return declared


def parse_block(block: Block, wanted: Schema) -> Read:
    """The rows of a block.

    Args:
        block: whole lines.
        wanted: the columns to read.
    """
    return parse_placed(block, wanted)[0]


def parse_placed(
    block: Block, wanted: Schema, times: WrittenTimes = ISO, needed: tuple[str, ...] = ()
) -> tuple[Read, Int64Array]:
    """The same, and at which byte of the block the line of each row begins; int64[rows].

    Args:
        block: whole lines.
        wanted: the columns to read.
        times: how times are written.
        needed: columns of which an object has one at least, or is rejected; none if it may lack all.
    """
    records, unusual = scan(block)
    if not is_utf8(block.data):
        records.refuse_non_text()
    kept = records.kept()
    spelled = _spelled(records, kept, dict.fromkeys((*needed, *wanted.names)))
    found, unsure = judge_keys(block.data, records.starts, records.ends, [*spelled.values()], wanted)
    careful = (unusual | unsure | ~found)[kept] if needed else (unusual | unsure)[kept]
    keys = [spelled[name] for name in wanted.names]
    values, reasons = _parse(records, kept, careful, keys, _Wish(wanted, times, needed))
    records.reasons.update({int(kept[row]): reason for row, reason in reasons.items()})
    good = np.delete(kept, list(reasons)) if reasons else kept
    where = Places(lambda rows: records.places(kept[rows]))
    return read_without(values, wanted, len(kept), reasons, records, where), records.starts[good]


@dataclass(frozen=True)
class _Wish:
    """Columns, how their times are written, and the columns of which one has to be there."""

    wanted: Schema
    times: WrittenTimes
    needed: tuple[str, ...]


def _spelled(records: BlockRecords, kept: Int64Array, names: Iterable[str]) -> dict[str, str]:
    """Names as the first line spells them, so that a text in another case is read as fast as any."""
    keys: list[str] = []
    if len(kept):
        with suppress(ValueError):
            keys = [key for key, _ in decode(records.data(int(kept[0])).decode())]
    places = {name: places_named(name, keys) for name in names}
    return {name: keys[found[0]] if len(found) == 1 else name for name, found in places.items()}


def scan(block: Block) -> tuple[BlockRecords, BoolArray]:
    """The lines of a block, and which of them only Python may judge."""
    starts, ends, states = json_records(np.frombuffer(block.data, np.uint8))
    records = BlockRecords(block, starts, ends)
    for row in np.flatnonzero((states != GOOD) & (states != UNUSUAL)).tolist():
        if states[row] == UNCLOSED:
            records.reasons[row] = "the JSON object is not closed"
        elif states[row] == TOO_DEEP:
            records.reasons[row] = f"the JSON object is nested more than {MAX_DEPTH} levels deep"
        else:
            records.reasons[row] = "the line is not one JSON object"
    return records, states == UNUSUAL


def _parse(
    records: BlockRecords,
    kept: Int64Array,
    careful: BoolArray,
    keys: list[str],
    wish: _Wish,
) -> tuple[list[pa.Array], dict[int, str]]:
    """The values of the kept lines, and what is wrong with a line, by its place among them.

    Arrow reads many lines at once, and fails as a whole; Python reads line by line, ten times slower. So the
    lines are halved until few are left that Arrow cannot read, or should not, as `careful` says. Both judge
    every line alike.
    """
    types = [arrow_type(field.type) for field in wish.wanted]
    if keys and not careful.any() and None not in types:
        data = records.block.data if len(kept) == len(records) else records.join(kept)
        try:
            columns = _arrow_columns(data, keys, types, len(kept))
            return _finished(columns, wish.wanted, wish.times)
        except pa.ArrowInvalid:
            pass
    if len(kept) <= _FEW_LINES or None in types:
        return _parse_each(records, kept, wish)
    middle = len(kept) // 2
    first, first_reasons = _parse(records, kept[:middle], careful[:middle], keys, wish)
    second, second_reasons = _parse(records, kept[middle:], careful[middle:], keys, wish)
    values = [pa.concat_arrays(pair) for pair in zip(first, second, strict=True)]
    return values, first_reasons | {row + middle: reason for row, reason in second_reasons.items()}


def _finished(
    columns: list[pa.Array], wanted: Schema, times: WrittenTimes
) -> tuple[list[pa.Array], dict[int, str]]:
    """What Arrow has read as values, and what is wrong with a line, by its place.

    Raises:
        pa.ArrowInvalid: a part of a nested value is wrong.
    """
    values, reasons = [], dict[int, str]()
    for column, field in zip(columns, wanted, strict=True):
        if is_nested(field.type):
            values.append(finished(column, field.type))
        else:
            (found,), wrong = parse_columns([column], Schema((field,)), trim=False, null=None, times=times)
            values.append(found)
            reasons = wrong | reasons
    return values, reasons


def _arrow_columns(data: bytes, keys: list[str], types: list[pa.DataType], count: int) -> list[pa.Array]:
    if count == 0:
        return [pa.array([], dtype) for dtype in types]
    fields = [pa.field(key, dtype) for key, dtype in zip(keys, types, strict=True)]
    table = pyarrow.json.read_json(
        pa.BufferReader(data),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pyarrow.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
    ).combine_chunks()
    assert table.num_rows == count, f"Arrow found {table.num_rows} rows where there are {count}"
    return [table[key].chunk(0) for key in keys]


# --- line by line ----------------------------------------------------------------------------------------


def _parse_each(
    records: BlockRecords, kept: Int64Array, wish: _Wish
) -> tuple[list[pa.Array], dict[int, str]]:
    """As `_parse`, line by line."""
    names = wish.wanted.names
    nothing: list[object] = [None] * len(names)
    reasons: dict[int, str] = {}
    rows = []
    for place, row in enumerate(kept.tolist()):
        rows.append(nothing)
        try:
            line = decode(records.data(row).decode())
            rows[place] = pick(line, names)
        except ValueError as error:
            reasons[place] = f"the line is not one JSON object: {error}"
            continue
        if wish.needed and not any(places_named(key, wish.needed) for key, _ in line):
            reasons[place] = _without_columns(line)
    values = []
    for index, field in enumerate(wish.wanted):
        found, wrong = _column([row[index] for row in rows], field, wish.times)
        values.append(found)
        reasons = wrong | reasons
    return values, reasons


def _without_columns(line: Object) -> str:
    """The reason why an object is no row."""
    keys = ", ".join(key for key, _ in line[:_SHOWN_KEYS])
    more = ", ..." if len(line) > _SHOWN_KEYS else ""
    return f"the object has none of the columns; its keys are {keys}{more}" if line else "the object is empty"


def _column(values: list[object], field: Field, times: WrittenTimes) -> tuple[pa.Array, dict[int, str]]:
    """The decoded values of a column, and what is wrong with some."""
    if is_nested(field.type):
        return column_of_json(values, field)
    texts, wrong = texts_of(values, field)
    (parsed,), unparsed = parse_columns([texts], Schema((field,)), trim=False, null=None, times=times)
    return parsed, unparsed | wrong


# --- opening ---------------------------------------------------------------------------------------------


def _first_objects(sample: FileSample) -> list[dict[str, object]]:
    """The objects at the beginning of a file, or the first ones after it; other lines are skipped."""
    part = sample.part(sample.body)
    lines = sample.lines(sample.body)
    found = _objects(Block(part, sample.body, lines))
    after = 0 if not part.coding.is_plain else sample.body + len(lines)
    rest = line_blocks(part, after, sample.size)
    return found or next(filter(None, map(_objects, rest)), [])


def _sample(path: Place, label: str, coding: Coding) -> FileSample:
    """The beginning of a file, as one object per line."""
    sample = take_sample(path, label, coding)
    begin = sample.data[sample.body :].strip()
    inner = begin[1:].lstrip()
    if begin[:1] == b"[" and (inner[:1] == b"{" or (sample.is_all and inner == b"]")):
        return take_sample(path, label, replace(coding, layout=ARRAY))
    if begin[:1] == b"{" and spans_lines(begin.decode(errors="replace")):
        return take_sample(path, label, replace(coding, layout=SPREAD))
    return sample


def _objects(block: Block) -> list[dict[str, object]]:
    """The objects of a block; other lines are skipped."""
    records, _ = scan(block)
    objects = []
    for row in records.kept().tolist():
        try:
            objects.append(dict(decode(records.data(row).decode())))
        except ValueError:
            continue
    return objects


def _infer_schema(objects: list[dict[str, object]], path: str) -> Schema:
    keys = dict.fromkeys(key for row in objects for key in row)
    if not keys:
        raise SourceError(
            f"{path}: there is no JSON object in it", hint="write one object per line, or declare the columns"
        )
    typed = [
        (key, infer_json_type([row[key] for row in objects if row.get(key) is not None])) for key in keys
    ]
    try:
        schema = Schema(tuple(Field(key, dtype) for key, dtype in typed if dtype is not None))
    except PlanError as error:
        raise SourceError(
            f"{path}: {error.message}", hint="declare the columns that are to be read"
        ) from None
    warn_left_out(path, {key: "empty lists or objects" for key, dtype in typed if dtype is None})
    return schema


def _check_occurs(objects: list[dict[str, object]], name: str, sample: FileSample) -> None:
    """Check that a declared column is among the keys of some objects.

    Raises:
        SourceError: it is not.
    """
    keys = [*dict.fromkeys(key for row in objects for key in row)]
    if not places_named(name, keys):
        hint = did_you_mean(name, keys) or "if it is rare, add the option missing 'some'"
        raise SourceError(f"{sample.label}: there is no column {name} at the beginning", hint=hint)
