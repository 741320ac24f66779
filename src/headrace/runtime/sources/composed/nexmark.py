"""The NEXMark generator as a source; positions are event numbers, so that its streams advance together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.errors import SourceError, UserError
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import BATCH_ROWS, Read
from headrace.runtime.sources.rows.options import check_known, whole
from headrace.runtime.sources.rows.widening import find_column
from headrace.schema import Schema, sql_type
from headrace.suggestions import did_you_mean
from headrace.time import parse_duration
from headrace.workloads.nexmark import TABLES, Nexmark, counts, generate

OPTIONS: Final = ("events", "seed", "rate", "disorder", "table")
"""All options of the format."""
_ROW_BYTES = 100


@dataclass(frozen=True)
class NexmarkSource:
    """One table of a generated auction site.

    Attributes:
        schema: the columns that can be read.
        spec: what is generated.
        table: person, auction, bid or closed.
    """

    schema: Schema
    spec: Nexmark
    table: str

    @property
    def size(self) -> int:
        """Events in total, of all tables."""
        return self.spec.events

    @property
    def rows(self) -> int:
        """Rows of this table in total."""
        return counts(self.spec, self.table)

    @property
    def borders(self) -> tuple[int, ...]:
        """None: rows are read singly."""
        return ()

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the rows that come with those events, about as many as they have in memory."""
        return (end - start) * self.rows * _ROW_BYTES // max(self.size, 1)

    @property
    def paths(self) -> tuple[Place, ...]:
        """None: what is generated never changes."""
        return ()

    def mark(self, position: int) -> str:
        """Nothing: what is generated never changes."""
        return ""

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows that arrive with the events `[start, end)`."""
        names = TABLES[self.table].names
        wanted = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        found = [names[find_column(list(names), name, self.table)] for name in columns]
        stop = min(end, self.size)
        for first in range(max(start, 0), stop, BATCH_ROWS):
            rows = generate(self.spec, self.table, first, min(first + BATCH_ROWS, stop), found)
            if rows.num_rows:
                yield Read(rows.rename_columns(list(wanted.names)) if found else rows)


def open_nexmark(options: Mapping[str, str], declared: Schema | None, stream_name: str) -> NexmarkSource:
    """Open a table of the generator.

    Options: `events` (all tables together), `seed` (1), `rate` (events per second of event time, 10000),
    `disorder` (a duration, none), `table` (the stream's name).

    Raises:
        SourceError: an option is wrong, or a declared column is not the table's.
    """
    check_known("nexmark", options, OPTIONS)
    table = options.get("table", stream_name).lower()
    if table not in TABLES:
        hint = f"call the stream by one of {', '.join(TABLES)}, or add the option table 'bid'"
        raise SourceError(f"NEXMark has no table {table}", hint=hint)
    try:
        spec = Nexmark(
            events=whole(options, "events", None),
            seed=whole(options, "seed", 1),
            rate=whole(options, "rate", 10_000),
            disorder_us=_disorder(options.get("disorder", "0 seconds")),
        )
    except UserError as error:
        raise SourceError(error.message, hint=error.hint) from None
    if declared is not None:
        _check_declared(declared, table)
    return NexmarkSource(declared or TABLES[table], spec, table)


def _disorder(text: str) -> int:
    duration = parse_duration(text)
    if duration.unit is None:
        raise SourceError(f"the option disorder is '{text}'", hint="write a unit, such as '5 seconds'")
    return duration.length


def _check_declared(declared: Schema, table: str) -> None:
    known = TABLES[table]
    for field in declared:
        place = known.find(field.name)
        if place is None:
            hint = did_you_mean(field.name, known.names) or f"its columns are {', '.join(known.names)}"
            raise SourceError(f"NEXMark's {table} has no column {field.name}", hint=hint)
        if known[place].type != field.type:
            wrong = sql_type(field.type)
            raise SourceError(
                f"column {field.name} of NEXMark's {table} is {sql_type(known[place].type)}, not {wrong}"
            )
