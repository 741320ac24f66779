"""What the command line says and how it exits when something goes wrong."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from headrace.errors import SourceError, UserError

USER_ERROR = 2
"""Exit code: the user can mend it."""
FAULT = 1
"""Exit code: Headrace is at fault."""
INTERRUPTED = 130
"""Exit code: Ctrl-C."""
READER_GONE = 141
"""Exit code: whoever read our output stopped, as after `| head`; shells show this for SIGPIPE."""


@contextmanager
def reported(file: Path | None = None) -> Iterator[None]:
    """Turn exceptions of the block into messages on standard error and an exit code.

    Args:
        file: the SQL text that errors with a position refer to.

    Raises:
        typer.Exit: with the code, whenever the block raised.
    """
    try:
        yield
        sys.stdout.flush()
    except UserError as error:
        typer.echo(describe(error, file), err=True)
        raise typer.Exit(USER_ERROR) from None
    except KeyboardInterrupt:
        typer.echo("headrace: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # What is still buffered would fail again when the interpreter flushes it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(READER_GONE) from None
    except typer.Exit:
        raise
    except Exception as error:
        typer.echo(traceback.format_exc(), err=True)
        typer.echo(f"headrace: a fault of Headrace, not of yours: {error}", err=True)
        typer.echo("please report it with the lines above and, if you may, the query", err=True)
        raise typer.Exit(FAULT) from None


def describe(error: UserError, file: Path | None) -> str:
    """The error as `FILE:line:column: message`, and its hint on a line of its own."""
    place = str(file) if file else "headrace"
    if error.position:
        place = f"{place}:{error.position.line}:{error.position.column}"
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return f"{place}: {error.message}{hint}"


def read_text(file: Path) -> str:
    """The SQL text in the file.

    Raises:
        SourceError: it cannot be read or is no UTF-8 text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SourceError("there is no such file") from None
    except UnicodeDecodeError as error:
        raise SourceError(
            f"byte {error.start} is not UTF-8", hint="save the file as UTF-8 text; it should hold SQL"
        ) from None
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}") from None
