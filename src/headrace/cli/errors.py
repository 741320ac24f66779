"""What the command line says and how it exits when something goes wrong."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import typer

from headrace.engine import Query
from headrace.errors import HeadraceWarning, Position, SourceError, UserError

USER_ERROR = 2
"""Exit code: the user can fix it."""
FAULT = 1
"""Exit code: Headrace is at fault."""
INTERRUPTED = 130
"""Exit code: Ctrl-C."""
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A disk that is full, a quota that is used up, a file that may not grow."""
READER_GONE = 141
"""Exit code: whoever read our output stopped, as after `| head`; shells show this for SIGPIPE."""


@contextmanager
def reported(file: Path | None = None) -> Iterator[None]:
    """Turn exceptions and warnings of the block into messages on standard error, and an exit code.

    Args:
        file: the SQL text that errors with a position refer to.

    Raises:
        typer.Exit: with the code, whenever the block raised.
    """
    try:
        with _warnings_shown():
            yield
            sys.stdout.flush()
    except typer.Exit:
        raise
    except BrokenPipeError:
        _drop_output()
        raise typer.Exit(READER_GONE) from None
    except (Exception, KeyboardInterrupt) as error:
        raise typer.Exit(_report(error, file)) from None


def _drop_output() -> None:
    """What is still buffered would fail again when the interpreter flushes it on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Warnings of ours as messages of ours; those of libraries are for developers."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", HeadraceWarning)
        shown, before = set(), warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, HeadraceWarning):
                before(message, category, filename, lineno, file, line)
            elif str(message) not in shown:
                shown.add(str(message))
                typer.echo(f"headrace: warning: {message}", err=True)

        warnings.showwarning = show
        yield


def _report(error: BaseException, file: Path | None) -> int:
    """Say what happened; the exit code."""
    if _interrupted(error):
        typer.echo("headrace: interrupted", err=True)
        return INTERRUPTED
    if isinstance(error, UserError):
        typer.echo(describe(error, file), err=True)
        return USER_ERROR
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        _drop_output()
        typer.echo(f"headrace: the output cannot be written: {error.strerror}", err=True)
        return USER_ERROR
    typer.echo("".join(traceback.format_exception(error)), err=True)
    typer.echo(f"headrace: a fault of Headrace, not of yours: {error}", err=True)
    typer.echo("please report it with the lines above and, if you may, the query", err=True)
    return FAULT


def _interrupted(error: BaseException | None) -> bool:
    """Whether it was Ctrl-C; Spark, whose job it cancels, raises another error while it handles the first."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def describe(error: UserError, file: Path | None) -> str:
    """The error as `FILE:line:column: message`, and its hint on a line of its own."""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return f"{_place(file, error.position)}: {error.message}{hint}"


def show_notes(queries: Iterable[Query], file: Path) -> None:
    """Print the notes on queries to standard error; one that several have is shown once."""
    shown = set[str]()
    for note in (note for query in queries for note in query.notes):
        if note.message not in shown:
            shown.add(note.message)
            typer.echo(f"{_place(file, note.position)}: note: {note.message}\nhint: {note.hint}", err=True)


def _place(file: Path | None, position: Position | None) -> str:
    place = str(file) if file else "headrace"
    return f"{place}:{position.line}:{position.column}" if position else place


@dataclass(frozen=True)
class Script:
    """A text with statements.

    Attributes:
        file: what messages call it; relative paths in it start from the folder that it is in.
        text: the SQL.
    """

    file: Path
    text: str


def script_of(file: Path | None, text: str | None) -> Script:
    """The statements that the command line gives.

    Args:
        file: a file, `-` for standard input, or None.
        text: the SQL itself, or None.

    Raises:
        typer.Exit: none is given, or two are, or they cannot be read.
    """
    with reported():
        if (file is None) == (text is None):
            what = "there is no query" if file is None else "there are a file and -e"
            raise UserError(what, hint="name a file, - for standard input, or give -e 'SELECT ...'")
    if file is None:
        return Script(Path("-e"), text or "")
    name = Path("<stdin>") if str(file) == "-" else file
    with reported(name):
        return Script(name, read_text(file))


def read_text(file: Path) -> str:
    """The SQL text in the file, or for `-` in standard input.

    Raises:
        SourceError: it cannot be read or is not UTF-8 text.
    """
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read().decode("utf-8").replace("\r\n", "\n")
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = f"for the text of a query write -e '{file}'" if " " in str(file) else None
        raise SourceError("there is no such file", hint=hint) from None
    except UnicodeDecodeError as error:
        raise SourceError(
            f"byte {error.start} is not UTF-8", hint="save the file as UTF-8 text; it should hold SQL"
        ) from None
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from None
