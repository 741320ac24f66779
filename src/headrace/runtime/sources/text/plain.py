"""Plain text files as a source: a line is a row of one column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import empty_columns, record_batch
from headrace.errors import SourceError
from headrace.runtime.outside.trouble import reading
from headrace.runtime.sources.files.files import list_files
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS, account_of
from headrace.runtime.sources.rows.contract import Places, Read, Rejected
from headrace.runtime.sources.rows.options import check_known, required
from headrace.runtime.sources.text import coding
from headrace.runtime.sources.text.blocks import Block, is_utf8
from headrace.runtime.sources.text.coding import codings_of
from headrace.runtime.sources.text.line_source import LineSource
from headrace.runtime.sources.text.lines import BlockRecords
from headrace.runtime.sources.text.samples import FileSample, estimate_rows, take_sample
from headrace.schema import STRING, Field, Schema, sql_type

OPTIONS: Final = ("path", "missing", *coding.OPTIONS, *ACCOUNT_OPTIONS)
"""All options of the format."""
_NEWLINE: Final = ord("\n")
LINE: Final = Schema((Field("line", STRING),))
"""The column of a text whose columns are not declared."""


class PlainText(LineSource):
    """Text files laid end to end; each line is a row, also an empty one."""

    kind = "text file"

    def parse(self, block: Block, wanted: Schema) -> Read:
        """The lines of a block; one that is not text is rejected."""
        data = block.data.removesuffix(b"\n")
        if is_utf8(data):
            lines = pc.split_pattern(pa.array([data.decode()], pa.large_string()), "\n").values
            rejected: tuple[Rejected, ...] = ()
            where = Places(lambda rows: _records(block, data).places(rows))
        else:
            records = _records(block, data)
            records.refuse_non_text()
            kept = records.kept()
            lines = pa.array([records.data(row).decode() for row in kept], pa.large_string())
            rejected = records.rejected()
            where = Places(lambda rows: records.places(kept[rows]))
        if b"\r" in data:
            lines = pc.replace_substring_regex(lines, "\r$", "")
        if not len(wanted):
            return Read(empty_columns(len(lines)), rejected, where)
        return Read(record_batch([lines.cast(STRING)], wanted, len(lines)), rejected, where)


def open_text(
    options: Mapping[str, str], declared: Schema | None, base: Path, allowed: tuple[Path, ...] | None
) -> PlainText:
    """Open the text files of the option `path`.

    Their column is `line`, unless one STRING with another name is declared.

    Raises:
        SourceError: a file is missing or no text, or other columns are declared.
    """
    check_known("text", options, OPTIONS)
    schema = declared or LINE
    if len(schema) != 1 or schema[0].type != STRING:
        listed = ", ".join(f"{field.name} {sql_type(field.type)}" for field in schema)
        raise SourceError(
            f"a line of text is one STRING, and the columns are {listed}",
            hint="declare line STRING; others may be computed of it: n AS SPLIT_PART(line, ' ', 1)",
        )
    first: FileSample | None = None
    codings, parts = codings_of(options), []
    for path, label in list_files(required(options, "path"), base, allowed, account_of(options)):
        with reading(label, PlainText.kind):
            sample = take_sample(path, label, codings.of(path))
        parts.append(sample.part(sample.body))
        first = first or (sample if sample.data else None)
    return PlainText(schema, tuple(parts), estimate_rows(first, sum(part.size for part in parts)))


def _records(block: Block, data: bytes) -> BlockRecords:
    """The lines of a block."""
    found = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    return BlockRecords(block, np.concatenate([[0], found + 1]), np.append(found, len(data)))
