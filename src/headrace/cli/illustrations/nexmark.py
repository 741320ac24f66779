"""`headrace nexmark`: write the events of an auction site to files, or run a query over them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from headrace.cli.errors import reported
from headrace.cli.run import RunnerChoice, run
from headrace.errors import UserError
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count
from headrace.time import Duration, parse_duration
from headrace.workloads.nexmark import TABLES, Nexmark, generate
from headrace.workloads.nexmark.queries import (
    SIDE_INPUT,
    NexmarkQuery,
    nexmark_queries,
    nexmark_query,
)


class FileFormat(StrEnum):
    """What the files can be, so that CREATE STREAM reads them."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    JSON = "json"


EVENTS_PER_FILE = 1_000_000
"""About how many events a file holds, where the number of files is not given."""


EVENTS_OF_A_QUERY = 100_000
"""How many events a query runs over where their number is not given."""

_Events = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Events of all tables together.", show_default="100000 for --query"
    ),
]
_Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A new folder: bid, auction, person and closed are in it."),
]
_Query = Annotated[
    str | None, typer.Option(metavar="NAME", help="Run a query of the suite, such as q5, over the events.")
]
_List = Annotated[bool, typer.Option("--list", help="List the queries, with what each asks.")]
_Print = Annotated[
    bool, typer.Option("--print", help="Print the SQL of --query and its streams in place of running it.")
]
_Seed = Annotated[int, typer.Option(metavar="S", help="Another seed, other events.")]
_Format = Annotated[
    FileFormat | None,
    typer.Option("--format", help="How to write the files of --out.", show_default="parquet"),
]
_Rate = Annotated[int, typer.Option(metavar="N", min=1, help="Events per second of event time.")]
_Disorder = Annotated[
    str, typer.Option(metavar="DURATION", help="How far behind a row may come, such as '5 seconds'.")
]
_Files = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Files per table; one per million events if not given."),
]
_Head = Annotated[int | None, typer.Option(metavar="N", min=0, help="Print only the first N rows.")]


def nexmark(
    events: _Events = None,
    out: _Out = None,
    query: _Query = None,
    list_: _List = False,
    print_: _Print = False,
    seed: _Seed = 1,
    format_: _Format = None,
    rate: _Rate = 10_000,
    disorder: _Disorder = "0 seconds",
    files: _Files = None,
    runner: Annotated[
        RunnerChoice, typer.Option(help="Run --query on Spark, or in this process.")
    ] = RunnerChoice.SPARK,
    head: _Head = None,
) -> None:
    """Write the events of the NEXMark auction site to files, or run a query of its suite over them.

    With --out, the CREATE STREAM statements for the files are printed. The events are the same as those of a
    stream FROM nexmark with the same options.
    """
    with reported():
        _check_one([list_, query is not None, out is not None])
        if out is None and (format_ or files):
            hint = "headrace nexmark --query q5 --print | headrace run - has all formats for answers"
            raise UserError("--format and --files are for --out", hint=hint)
        if query is None and (print_ or head is not None):
            raise UserError("--print and --head are for --query", hint="add --query q5, or leave them out")
        behind = _disorder(disorder)
    if list_:
        _list()
    elif query is not None:
        with reported():
            spec = Nexmark(EVENTS_OF_A_QUERY if events is None else events, seed, rate, behind.length)
            text = _script(nexmark_query(query), spec, behind)
        if print_:
            typer.echo(text, nl=False)
        else:
            run(text=text, runner=runner, head=head)
    elif out is not None:
        with reported():
            if events is None:
                raise UserError("the number of events is missing", hint="add --events 100000")
            spec = Nexmark(events, seed, rate, behind.length)
        _to_files(spec, out, format_ or FileFormat.PARQUET, behind, files)


def _check_one(wanted: Sequence[bool]) -> None:
    """Refuse a command line that asks for nothing, or for several things.

    Raises:
        UserError: not exactly one of them is true.
    """
    if sum(wanted) != 1:
        several = "only one of --list, --query and --out can be given"
        raise UserError(
            several if any(wanted) else "there is nothing to do",
            hint="write --list, or --query q5, or --events 100000 --out DIR",
        )


def _disorder(text: str) -> Duration:
    """The disorder as a duration.

    Raises:
        UserError: it is not one, or has no unit.
    """
    behind = parse_duration(text)
    if behind.unit is None:
        raise UserError(f"the disorder {text} has no unit", hint="write '5 seconds'")
    return behind


def _list() -> None:
    """Print the queries, with what each asks."""
    for query in nexmark_queries():
        typer.echo(f"{query.name:<4} {query.title}")


def _script(query: NexmarkQuery, spec: Nexmark, behind: Duration) -> str:
    """The statements that run a query over generated events."""
    options = f"events={spec.events}, seed={spec.seed}, rate={spec.rate}"
    if behind.length:
        options += f", disorder='{behind}'"
    streams = (
        f"CREATE STREAM {table} FROM nexmark OPTIONS ({options}) TIMESTAMP BY ts{_bound(table, behind)};\n"
        for table in TABLES
    )
    arriving = f"CREATE STREAM arriving FROM nexmark OPTIONS ({options}, table='bid') TIMESTAMP BY ARRIVAL;\n"
    path = str(SIDE_INPUT).replace("'", "''")
    side_input = f"CREATE RELATION side_input FROM csv OPTIONS (path '{path}');\n"
    return "".join([*streams, arriving, side_input, "\n", query.text])


def _to_files(spec: Nexmark, out: Path, format_: FileFormat, behind: Duration, files: int | None) -> None:
    """Write all tables, and print the statements that read them."""
    with reported():
        if out.exists():
            raise UserError(f"{out} exists already", hint="name a new folder")
        rows = _write(spec, out, format_, files or max(1, -(-spec.events // EVENTS_PER_FILE)))
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
        stretches = range(first, max(last, first + 1), EVENTS_PER_FILE)
        yield pa.Table.from_batches(
            generate(spec, table, start, min(start + EVENTS_PER_FILE, last), TABLES[table].names)
            for start in stretches
        )


def create_stream(table: str, out: Path, format_: FileFormat, disorder: Duration) -> str:
    """The statement that reads a table's files."""
    path = str(out.resolve() / table).replace("'", "''")
    return (
        f"CREATE STREAM {table} {TABLES[table]}\n"
        f"  FROM {format_} OPTIONS (path '{path}') TIMESTAMP BY ts{_bound(table, disorder)};"
    )


def _bound(table: str, disorder: Duration) -> str:
    """The clause for the disorder of a table; a closing is never out of order."""
    return f" DISORDER {disorder}" if disorder.length and table != "closed" else ""
