"""`headrace run` over streams that never end: rows are printed or written, until Ctrl-C."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import typer

from headrace.cli.output import Format, named, terminal_width, with_open_ends
from headrace.cli.progress import progress_bar
from headrace.engine import Database, Query, Summary
from headrace.errors import UserError
from headrace.runtime.delivery.files import FILE_FORMATS, FileSink
from headrace.runtime.store.paths import file_name
from headrace.runtime.writing.tables import AlignedRows, write_table
from headrace.time import INFINITY


def run_endless(
    db: Database, queries: Sequence[Query], view: str, format_: Format, progress: bool
) -> Summary:
    """Start the database, print what becomes final, stop when the user interrupts.

    Args:
        db: with streams that never end.
        queries: those whose rows are printed.
        view: `history` prints each row of the answer once, when its end has passed, and at the interruption
            the rows that are still open, up to the heartbeat; `changes` prints the elements as they are
            released.
        format_: table, csv or jsonl; several queries at once only as jsonl, where each row names its query.
        progress: whether to show a bar; none where rows are printed on the same terminal.

    Raises:
        UserError: the view or the format is of no use here, or what ended the run.
    """
    if view == "stream":
        raise UserError("--as stream is for inputs that end", hint="ask for --as history or --as changes")
    if format_ in (Format.PARQUET, Format.ARROW):
        raise UserError(f"{format_} cannot be printed row by row", hint="use --format jsonl")
    if len(queries) > 1 and format_ not in (Format.JSONL, Format.NULL):
        raise UserError(f"several answers cannot be printed as {format_} at once", hint="use --format jsonl")
    bar = progress_bar(progress and (format_ is Format.NULL or not sys.stdout.isatty()))
    with bar as show:
        db.start(show)
        return _print_until_interrupted(db, queries, view, format_)


def deliver_endless(
    db: Database, queries: Sequence[Query], folder: Path, format_: Format, progress: bool
) -> Summary:
    """Start the database, write the changes of each epoch into files, stop when the user interrupts.

    On a durable store each change is written once, however often the run is started again.

    Args:
        db: with streams that never end.
        queries: those whose changes are written.
        folder: where to; with several queries each has a folder in it.
        format_: jsonl, csv, parquet or arrow.
        progress: whether to show a bar.

    Raises:
        UserError: the format is of no use here, the folder cannot be used, or what ended the run.
    """
    if format_ not in FILE_FORMATS:
        hint = f"use --format {', '.join(FILE_FORMATS[:-1])} or {FILE_FORMATS[-1]}"
        raise UserError(f"{format_} is not a format of files", hint=hint)
    for query in queries:
        place = folder if len(queries) == 1 else folder / file_name(query.name)
        query.deliver(FileSink(place, format_.value), name="output")
    with progress_bar(progress) as show:
        db.start(show)
        return _print_until_interrupted(db, (), "changes", format_)


def _print_until_interrupted(db: Database, queries: Sequence[Query], view: str, format_: Format) -> Summary:
    if db.differences.added:
        typer.echo(f"headrace: new in this store: {', '.join(db.differences.added)}", err=True)
    if db.differences.dropped:
        typer.echo(f"headrace: dropped from this store: {', '.join(db.differences.dropped)}", err=True)
    if db.differences.anew:
        typer.echo(f"headrace: begun anew in this store: {', '.join(db.differences.anew)}", err=True)
    printer = _Printer(view, format_, named=len(queries) > 1)
    followers = [threading.Thread(target=printer.follow, args=(query,), daemon=True) for query in queries]
    with _interruption() as interrupted:
        for follower in followers:
            follower.start()
        while db.running and printer.error is None and not _has_ended(db):
            if interrupted.wait(timeout=0.5):
                break
        if interrupted.is_set():
            typer.echo("headrace: stopping after this epoch", err=True)
        summary = db.stop()
    for follower in followers:
        follower.join()
    if printer.error is not None:
        raise printer.error
    return summary


def _has_ended(db: Database) -> bool:
    """Whether all streams have come to their ends, as pipes and what is pulled may."""
    streams = db.status.streams
    return bool(streams) and all(stream.heartbeat == INFINITY for stream in streams)


@contextmanager
def _interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets; left to Spark, it would cancel the epoch that is running."""
    event = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


class _Printer:
    """Prints the rows of queries, each from a thread of its own.

    Args:
        view: which rows.
        format_: how.
        named: whether each row has its query's name.

    Attributes:
        error: why nothing can be printed any more, or None.
    """

    def __init__(self, view: str, format_: Format, *, named: bool) -> None:
        self._view = view
        self._format = format_
        self._named = named
        self._lock = threading.Lock()
        self._table = AlignedRows(terminal_width())
        self._begun = False
        self.error: OSError | None = None

    def follow(self, query: Query) -> None:
        """Print the rows of a query as they come, until its run ends."""
        try:
            for rows in query.follow(self._view, begun=self._format is Format.TABLE):
                with self._lock:
                    if rows.num_rows and self._format is not Format.NULL:
                        self._print(query, rows)
        except OSError as error:
            self.error = error
        except UserError:
            # What ended the run is raised by stop(), to the one who waits for it.
            return

    def _print(self, query: Query, rows: pa.Table) -> None:
        if self._format is Format.TABLE:
            rows = with_open_ends(rows, -1 if self._view == "history" else -2)
            text = b"".join(self._table.lines(rows)).decode()
        else:
            written = io.StringIO()
            write_table(named(rows, query.name) if self._named else rows, self._format.value, written)
            # The names of the columns come with the first rows only.
            heading = self._format is Format.CSV and self._begun
            text = written.getvalue().partition("\n")[2] if heading else written.getvalue()
        self._begun = True
        sys.stdout.write(text)
        sys.stdout.flush()
