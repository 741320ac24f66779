"""`headrace nexmark`: write the events of an auction site to files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from headrace.cli.errors import reported
from headrace.errors import UserError
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count
from headrace.time import Duration, parse_duration
from headrace.workloads.nexmark import TABLES, Nexmark, generate


class FileFormat(StrEnum):
    """What the files can be, so that CREATE STREAM reads them."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    JSON = "json"


EVENTS_PER_FILE = 1_000_000
"""About how many events a file holds, where the number of files is not given."""


def nexmark(
    events: Annotated[int, typer.Option(metavar="N", min=0, help="Events of all tables together.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="A new folder: bid, auction, person and closed are in it.")
    ],
    seed: Annotated[int, typer.Option(metavar="S", help="Another seed, other events.")] = 1,
    format_: Annotated[FileFormat, typer.Option("--format", help="How to write.")] = FileFormat.PARQUET,
    rate: Annotated[int, typer.Option(metavar="N", min=1, help="Events per second of event time.")] = 10_000,
    disorder: Annotated[
        str, typer.Option(metavar="DURATION", help="How far behind a row may come, such as '5 seconds'.")
    ] = "0 seconds",
    files: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Files per table; one per million events if not given."),
    ] = None,
) -> None:
    """Write the events of the NEXMark auction site, and print the CREATE STREAM statements for them.

    The events are the same as those of a stream FROM nexmark with the same options.
    """
    with reported():
        behind = parse_duration(disorder)
        if behind.unit is None:
            raise UserError(f"the disorder {disorder} has no unit", hint="write '5 seconds'")
        spec = Nexmark(events, seed, rate, behind.length)
        if out.exists():
            raise UserError(f"{out} exists already", hint="name a new folder")
        parts = files or max(1, -(-events // EVENTS_PER_FILE))
        rows = _write(spec, out, format_, parts)
    for table, number in rows.items():
        typer.echo(f"{out / table}: {count(number, 'row')}", err=True)
    for table in TABLES:
        typer.echo(create_stream(table, out, format_, behind))


def _write(spec: Nexmark, out: Path, format_: FileFormat, parts: int) -> dict[str, int]:
    """Write all tables, or nothing; the number of rows of each."""
    sink = "jsonl" if format_ is FileFormat.JSON else format_.value
    rows = dict.fromkeys(TABLES, 0)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as name:
            draft = Path(name, "nexmark")
            for table in TABLES:
                (draft / table).mkdir(parents=True)
                for part, content in enumerate(_parts(spec, table, parts)):
                    write_table(content, sink, draft / table / f"part-{part:05}.{format_}")
                    rows[table] += content.num_rows
            draft.rename(out)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror or error}") from error
    return rows


def _parts(spec: Nexmark, table: str, parts: int) -> Iterator[pa.Table]:
    """The table cut into that many stretches of equally many events."""
    for part in range(parts):
        first, last = spec.events * part // parts, spec.events * (part + 1) // parts
        yield pa.Table.from_batches([generate(spec, table, first, last, TABLES[table].names)])


def create_stream(table: str, out: Path, format_: FileFormat, disorder: Duration) -> str:
    """The statement that reads a table's files; a closing is never out of order."""
    bound = f" DISORDER {disorder}" if disorder.length and table != "closed" else ""
    path = str(out.resolve() / table).replace("'", "''")
    return (
        f"CREATE STREAM {table} {TABLES[table]}\n"
        f"  FROM {format_} OPTIONS (path '{path}') TIMESTAMP BY ts{bound};"
    )
