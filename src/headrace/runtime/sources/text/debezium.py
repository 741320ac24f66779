"""JSON lines that are Debezium's change records: the row before a change and the row after it.

The form is that of *Debezium connector for PostgreSQL*, section *Data change events*; those of other
databases differ in `source` alone. A record is the line, or its `payload` where it has a `schema` beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.debezium import OPERATION, path_in_record, record_columns
from headrace.elements import Int64Array, record_batch
from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.sources.rows.contract import Places, Read
from headrace.runtime.sources.text.blocks import Block, is_utf8
from headrace.runtime.sources.text.connect_types import Kinds, advice_on, kinds_of, sql_value
from headrace.runtime.sources.text.json import JsonFiles, JsonSource, scan
from headrace.runtime.sources.text.json_values import JsonNumber, Object, decode, pick, shown, texts_of
from headrace.runtime.sources.text.lines import parse_columns
from headrace.schema import TIMESTAMP, Field, Schema

_UNCHANGED: Final = "__debezium_unavailable_value"
"""What is in the place of a large value that has not changed (*Toasted values*)."""

_MISSING: Final = object()
"""What stands for a value that a row before a change lacks."""

WITHIN: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""How many microseconds are one of what a column counts that ends so."""

_LOGGED: Final = "let the database log whole rows, as REPLICA IDENTITY FULL does"
_WHOLE: Final = f"declare KEY (column), or {_LOGGED}"


@dataclass(frozen=True)
class RecordSource(JsonSource):
    """Files of change records laid end to end; of one record there may be two rows.

    Attributes:
        records: how they are read.
    """

    records: ChangeRecords

    def parse(self, block: Block, wanted: Schema) -> Read:
        """The rows of a block; a record of which one row is not valid is rejected whole."""
        return self.parse_placed(block, wanted)[0]

    def parse_placed(self, block: Block, wanted: Schema) -> tuple[Read, Int64Array]:
        """The same, and for each row where its record begins (int64[rows], bytes of the block)."""
        lines, _ = scan(block)
        if not is_utf8(block.data):
            lines.refuse_non_text()
        found: list[list[object]] = []
        places: list[int] = []
        for line in range(len(lines)):
            data = lines.data(line)
            if data == b"null":
                lines.reasons.pop(line, None)
            elif line not in lines.reasons:
                try:
                    line_of = decode(data.decode())
                    kinds = kinds_of(line_of, wanted)
                    rows = rows_of_record(_record(line_of), wanted, self.records, kinds)
                except ValueError as error:
                    lines.reasons[line] = f"the line is not a change record: {error}"
                    continue
                found += rows
                places += [line] * len(rows)
        columns = []
        for index, field in enumerate(wanted):
            texts, wrong = texts_of([row[index] for row in found], field)
            (values,), unparsed = parse_columns([texts], Schema((field,)), trim=False, null=None)
            columns.append(values)
            for place, reason in (unparsed | wrong).items():
                advice = advice_on(found[place][index], field)
                lines.reasons.setdefault(places[place], f"{reason}{advice}")
        good = [place for place, line in enumerate(places) if line not in lines.reasons]
        taken = pa.array(good, pa.int64())
        batch = record_batch([column.take(taken) for column in columns], wanted, len(good))
        starts: Int64Array = lines.starts[np.array(places, np.int64)[good]]
        where = Places(lambda rows: [block.place(start) for start in starts[rows].tolist()])
        return Read(batch, lines.rejected(), where), starts


def open_records(
    options: Mapping[str, str],
    declared: Schema | None,
    base: Path,
    allowed: tuple[Path, ...] | None,
    records: ChangeRecords,
    timestamp: str,
) -> RecordSource:
    """Open the files of change records of the option `path`.

    Columns that are not declared are those of the rows in the records at the beginning of the first file.

    Raises:
        SourceError: a file is missing or not text, or a declared column does not occur.
    """
    files = JsonFiles.of(options, base, allowed)
    rows = [row for one in files.objects for row in _beginnings(Object(one.items()))]
    fields = () if declared is None else tuple(declared)
    table = Schema(tuple(field for field in fields if path_in_record(field.name) is None))
    found = files.columns(rows, None if declared is None else table)
    schema = record_columns(found, timestamp) if declared is None else declared
    return RecordSource(schema, files.parts, files.rows, records)


def _beginnings(line: Object) -> list[dict[str, object]]:
    """The rows of a record, from which columns are inferred; none where it is not one."""
    try:
        record = _record(line)
    except ValueError:
        return []
    rows = (row for row in pick(record or Object(), ("before", "after")) if isinstance(row, Object))
    return [{key: value for key, value in row if path_in_record(key) is None} for row in rows]


def _record(line: Object) -> Object | None:
    """The record of a line; None for one without any, which follows a deletion for Kafka alone.

    Raises:
        ValueError: there is none.
    """
    if not any(key == "payload" for key, _ in line):
        return line
    (payload,) = pick(line, ("payload",))
    if payload is not None and not isinstance(payload, Object):
        raise ValueError("its payload is not an object")
    return payload


def rows_of_record(
    record: Object | None, wanted: Schema, records: ChangeRecords, kinds: Kinds = MappingProxyType({})
) -> list[list[object]]:
    """The values of the wanted columns in the rows that a record takes back or adds.

    Raises:
        ValueError: it is not a change of a row, or lacks what is needed of it.
    """
    if record is None:
        return []
    keys = [name for name in wanted.names if path_in_record(name) is None]
    op, before, after = pick(record, ("op", "before", "after"))
    if op not in ("c", "r", "u", "d"):
        raise ValueError(f"op is {shown(op)}, and not c, r, u or d")
    operation, by_row = str(op), records is ChangeRecords.BY_ROW
    found: list[tuple[str, Object]] = []
    if operation == "d" or (operation == "u" and by_row):
        word = "update_before" if operation == "u" else operation
        found.append((word, _row(before, "before", keys, whole=by_row)))
    if operation != "d":
        word = "update_after" if operation == "u" and by_row else operation
        found.append((word, _row(after, "after", keys, whole=False)))
    return [_values(record, row, word, wanted, kinds) for word, row in found]


def _row(row: object, which: str, keys: Sequence[str], *, whole: bool) -> Object:
    """The row before or after a change.

    Args:
        row: what the record has there.
        which: where.
        keys: those of the wanted columns that are in it.
        whole: whether it has to have all of them.

    Raises:
        ValueError: there is none, or a part of it is missing.
    """
    if not isinstance(row, Object):
        hint = f"; {_WHOLE}" if which == "before" else ""
        raise ValueError(f"{which} is {shown(row)}, and not a row{hint}")
    for key, value in zip(keys, pick(row, keys, _MISSING), strict=True):
        if whole and value is _MISSING:
            raise ValueError(f"before has no {key}; {_WHOLE}")
        if value == _UNCHANGED:
            raise ValueError(f"{which} lacks the value of {key}, which has not changed; {_LOGGED}")
    return row


def _values(record: Object, row: Object, word: object, wanted: Schema, kinds: Kinds) -> list[object]:
    """The values of the wanted columns: of the row, or of the record."""
    of_row = iter(pick(row, [name for name in wanted.names if path_in_record(name) is None]))
    found = []
    for field in wanted:
        path = path_in_record(field.name)
        if path is None:
            found.append(sql_value(next(of_row), field, kinds.get(field.name)))
        else:
            found.append(word if field.name == OPERATION else _instant(_at(record, path), field))
    return found


def _at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(value, Object):
            return None
        (value,) = pick(value, (key,))
    return value


def _instant(value: object, field: Field) -> object:
    """A field of the record; a number in the place of a TIMESTAMP counts what the column's name says."""
    if field.type != TIMESTAMP or not isinstance(value, JsonNumber):
        return value
    unit = field.name.rpartition("_")[2].lower()
    factor = WITHIN.get(unit)
    if factor is None or not value.lstrip("-").isdecimal():
        return value
    try:
        return str(np.datetime64(int(value) * factor, "us"))
    except OverflowError:
        return value
