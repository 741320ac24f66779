"""`headrace run` over streams that never end: rows are printed as they become final, until Ctrl-C."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import typer

from headrace.cli.output import Format
from headrace.cli.progress import progress_bar
from headrace.engine import Database, Query, Summary
from headrace.errors import UserError
from headrace.runtime.writing.tables import write_table


def run_endless(db: Database, view: str, format_: Format, progress: bool) -> Summary:
    """Start the database, print what becomes final, stop when the user interrupts.

    Args:
        db: with streams that never end.
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
    if len(db.queries) > 1 and format_ not in (Format.JSONL, Format.NULL):
        raise UserError(f"several answers cannot be printed as {format_} at once", hint="use --format jsonl")
    bar = progress_bar(progress and (format_ is Format.NULL or not sys.stdout.isatty()))
    with bar as show:
        db.start(show)
        return _print_until_interrupted(db, view, format_)


def _print_until_interrupted(db: Database, view: str, format_: Format) -> Summary:
    if db.differences.added:
        typer.echo(f"headrace: new in this store: {', '.join(db.differences.added)}", err=True)
    if db.differences.dropped:
        typer.echo(f"headrace: dropped from this store: {', '.join(db.differences.dropped)}", err=True)
    lock = threading.Lock()
    followers = [
        threading.Thread(target=_follow, args=(query, view, format_, lock, len(db.queries) > 1), daemon=True)
        for query in db.queries
    ]
    with _interruption() as interrupted:
        for follower in followers:
            follower.start()
        while db.running and not interrupted.wait(timeout=0.5):
            pass
        if interrupted.is_set():
            typer.echo("headrace: stopping after this epoch", err=True)
        summary = db.stop()
    for follower in followers:
        follower.join()
    return summary


@contextmanager
def _interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets; left to Spark, it would cancel the epoch that is running."""
    event = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _follow(query: Query, view: str, format_: Format, lock: threading.Lock, named: bool) -> None:
    first = True
    try:
        for rows in query.follow(view):
            with lock:
                if rows.num_rows and format_ is not Format.NULL:
                    _print(rows, query.name if named else None, format_, first)
                    first = False
    except UserError:
        # What ended the run is raised by stop(), to the one who waits for it.
        return


def _print(rows: pa.Table, name: str | None, format_: Format, first: bool) -> None:
    if name is not None:
        rows = rows.add_column(0, "query", pa.array([name] * rows.num_rows))
    text = io.StringIO()
    write_table(rows, format_.value, text)
    # The names of the columns come with the first rows only.
    heading = format_ in (Format.CSV, Format.TABLE)
    sys.stdout.write(text.getvalue() if first or not heading else text.getvalue().partition("\n")[2])
    sys.stdout.flush()
