"""Where answers go: standard output, a file, or a folder with a file per query.

On a terminal tables are fitted to its width; elsewhere all values are written in full.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import typer
from rich.console import Console

from headrace.errors import UserError
from headrace.runtime.store.paths import readable_file_name
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count, pad, width_of
from headrace.schema import STRING
from headrace.value_texts import value_texts


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    NULL = "null"


SUFFIXES = {
    Format.TABLE: ".txt",
    Format.JSONL: ".jsonl",
    Format.CSV: ".csv",
    Format.PARQUET: ".parquet",
    Format.ARROW: ".arrow",
}
"""The ending of each format's files."""


def format_of(path: Path) -> Format:
    """The format that a file's ending means.

    Raises:
        UserError: it does not mean any.
    """
    for format_, suffix in SUFFIXES.items():
        if path.suffix.lower() == suffix:
            return format_
    raise UserError(
        f"{path} does not say its format", hint=f"end its name in one of {' '.join(SUFFIXES.values())}"
    )


def chosen_format(asked: Format | None, output: Path | None, answers: int) -> Format:
    """The format to write: the one that is asked for, else that of the output's ending, else a table.

    Args:
        asked: that of --format, if it is given.
        output: that of --output, if it is given.
        answers: how many there are.

    Raises:
        UserError: the ending means another format than the one that is asked for, or none, or there are
            several answers and the output is named like a file.
    """
    if output is None or output.is_dir() or not output.suffix or (answers > 1 and output.exists()):
        return asked or Format.TABLE
    if answers > 1:
        raise UserError(
            f"{output} is the name of a file, and there are {answers} answers",
            hint=f"name a folder, such as --output {output.stem}, and give --format",
        )
    meant = next((known for known, ending in SUFFIXES.items() if ending == output.suffix.lower()), None)
    if asked is None:
        return format_of(output)
    if meant is not None and asked is not Format.NULL and meant is not asked:
        raise UserError(
            f"{output} ends in {output.suffix}, and --format is {asked}",
            hint=f"leave out --format, or end the name in {SUFFIXES[asked]}",
        )
    return asked


def check_output(format_: Format, output: Path | None, names: Sequence[str]) -> None:
    """Refuse, before anything is computed, a place where the answers cannot be written.

    Args:
        format_: how they are to be written.
        output: where, or None for standard output.
        names: the queries.

    Raises:
        UserError: the format or several answers cannot be printed, or the path is of the wrong kind.
    """
    if format_ is Format.NULL:
        if output:
            raise UserError("--format null writes nothing", hint="leave out --output")
    elif output is None:
        _check_printable(format_, names)
    elif len(names) == 1:
        check_file(output, f"{output / _file_name(names[0], format_)}")
    elif output.exists() and not output.is_dir():
        raise UserError(f"{output} is a file, and there are {len(names)} answers", hint="name a folder")


def _check_printable(format_: Format, names: Sequence[str]) -> None:
    if format_ in (Format.PARQUET, Format.ARROW):
        raise UserError(f"{format_} cannot be printed", hint="add --output PATH")
    if format_ is Format.CSV and len(names) > 1:
        raise UserError(
            f"{len(names)} answers cannot be printed as one {format_}",
            hint="add --output FOLDER for a file per query, or write --format jsonl",
        )


def check_file(path: Path, example: str) -> None:
    """Refuse, before anything is computed, a path at which no file can be written.

    Args:
        path: where a file is to be.
        example: a path that would do where this one is a folder.

    Raises:
        UserError: it is a folder, or it would be in no existing folder.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder", hint=f"name a file, such as {example}")
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent}", hint="make it first")


def print_answers(
    answers: Iterable[tuple[str, pa.Table]], format_: Format, *, several: bool, head: int | None
) -> None:
    """Print answers as texts.

    Args:
        answers: the queries and their tables.
        format_: one that can be printed.
        several: whether there are several; tables then have titles, and JSON lines name their query.
        head: how many rows of each to print; all if None.
    """
    titled = several and format_ is Format.TABLE
    width = terminal_width()
    for name, table in answers:
        if titled:
            typer.echo(f"-- {name}")
        shown = table if head is None else table.slice(0, head)
        write_table(named(shown, name) if several and not titled else shown, format_.value, None, width)
        left_out = table.num_rows - shown.num_rows
        if left_out:
            typer.echo(f"... and {count(left_out, 'row')} more", err=True)
        if titled:
            typer.echo()


def terminal_width() -> int | None:
    """How many columns standard output has; None, so that nothing is shortened, if it is not a terminal."""
    return Console(file=sys.stdout).width if sys.stdout.isatty() else None


def named(rows: pa.Table, query: str) -> pa.Table:
    """The rows with their query's name in a first column `query`."""
    return rows.add_column(0, "query", pa.array([query] * rows.num_rows, STRING))


def with_open_ends(table: pa.Table, place: int) -> pa.Table:
    """The table with the ends of validity as texts, empty where a row holds for ever.

    Args:
        table: a history or changes.
        place: where the column of the ends is, counted from the end.
    """
    name = table.column_names[place]
    texts = value_texts(table.column(name).combine_chunks())
    if pa.types.is_integer(table.schema.field(name).type):
        texts = pad(texts, max(len(name), width_of(texts.drop_null())), left=True)
    return table.set_column(table.num_columns + place, name, texts.fill_null(""))


def write_answers(answers: Iterable[tuple[str, pa.Table]], format_: Format, folder: Path) -> None:
    """Write a file per query into a folder, which is made if it is missing; all of them or none.

    Raises:
        UserError: the files cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".headrace-", dir=folder) as name:
            for query, table in answers:
                write_table(table, format_.value, Path(name, _file_name(query, format_)))
            for file in sorted(Path(name).iterdir()):
                file.replace(folder / file.name)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}") from error


def _file_name(query: str, format_: Format) -> str:
    return readable_file_name(query) + SUFFIXES[format_]
