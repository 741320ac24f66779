"""`headrace shell`: statements, questions and answers at a prompt."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import headrace as hr
from headrace.cli.errors import USER_ERROR, describe, reported
from headrace.cli.remote import Url, client_of
from headrace.cli.run import Parameters, RunnerChoice
from headrace.cli.shell.local import LocalTarget
from headrace.cli.shell.remote import RemoteTarget
from headrace.cli.shell.screen import Screen
from headrace.cli.shell.shell import MisstepError, Shell, is_complete
from headrace.cli.shell.target import Target
from headrace.engine.views.frames import optional
from headrace.errors import UserError
from headrace.language.named_values import ParameterValue, value_of

_TAB_SECONDS: Final = 2.0
"""So long a server may take to say what names there are."""


def shell(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.sql", help="Statements that are carried out first.")
    ] = None,
    storage: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of a durable store, which goes on.")
    ] = None,
    url: Url = None,
    runner: Annotated[
        RunnerChoice | None, typer.Option(help="On Spark, or in this process.", show_default="spark")
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark's master, such as local[4].", show_default="all cores"),
    ] = None,
    parameters: Parameters = None,
) -> None:
    """Type statements, ask questions and watch answers.

    Without a terminal, statements and commands are read from standard input, up to the first that fails.
    """
    with reported():
        is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        # Before anything is run: what is missing for a terminal should be known at once.
        module = _terminal() if is_terminal else None
        values = dict(map(value_of, parameters or ()))
        with closing(_target(storage, url, runner, master)) as target:
            if module is None:
                _read_input(target, file, values)
            else:
                _prompt(target, file, values, module)


def _target(storage: Path | None, url: str | None, runner: RunnerChoice | None, master: str | None) -> Target:
    """A server's database, or one in this process."""
    if url is not None:
        if storage is not None or runner is not None or master is not None:
            raise UserError("--storage, --runner and --master are the server's, and there is --url")
        return RemoteTarget(client_of(url), client_of(url, _TAB_SECONDS))
    if master and runner is RunnerChoice.INLINE:
        raise UserError("--master is for --runner spark")
    return LocalTarget(hr.connect((runner or RunnerChoice.SPARK).value, storage, master=master))


def _terminal() -> Any:
    """The module that reads from a terminal, which needs a library of its own."""
    optional("prompt_toolkit", "shell")
    return importlib.import_module("headrace.cli.shell.terminal")


def _read_input(target: Target, file: Path | None, values: Mapping[str, ParameterValue]) -> None:
    """Carry out a file and standard input.

    Raises:
        typer.Exit: something failed.
    """
    screen = Screen(is_terminal=False)
    shell = Shell(target, screen, values)
    try:
        if file is not None:
            with screen.showing_warnings():
                shell.include(file)
        _carry_out_lines(shell, screen)
        shell.settle()
    except MisstepError as misstep:
        sys.stdout.flush()
        typer.echo(describe(misstep.error, misstep.file), err=True)
        raise typer.Exit(USER_ERROR) from None


def _carry_out_lines(shell: Shell, screen: Screen) -> None:
    """Carry out standard input, each statement and command as soon as it has come."""
    source = Path("<stdin>")
    text, begin = "", 0
    for line in sys.stdin:
        if shell.left:
            return
        text += line
        pending = text[begin:]
        if not pending.strip() or not (is_complete(pending) or pending.lstrip().startswith("\\")):
            continue
        with screen.showing_warnings():
            shell.do(text, source, begin)
        sys.stdout.flush()
        begin = len(text)
    if text[begin:].strip() and not shell.left:
        with screen.showing_warnings():
            shell.do(text, source, begin)


def _prompt(target: Target, file: Path | None, values: Mapping[str, ParameterValue], module: Any) -> None:
    """Carry out a file, and then what is typed until somebody leaves."""
    screen = Screen(is_terminal=True)
    shell = Shell(target, screen, values)
    terminal = module.Terminal(target.known, history_file())
    if file is not None:
        with _kept_going(screen):
            shell.include(file)
    screen.say("\\? lists the commands, \\q leaves; statements end with ;", "dim")
    while not shell.left:
        with _kept_going(screen):
            shell.settle()
        try:
            text = terminal.read()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip():
            with _kept_going(screen):
                shell.do(text)


@contextmanager
def _kept_going(screen: Screen) -> Iterator[None]:
    """Show what goes wrong in the block, and go on; Ctrl-C ends the block alone, not the run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with screen.showing_warnings():
            yield
    except MisstepError as misstep:
        if misstep.file is not None:
            screen.say(str(misstep.file), "bold")
        screen.fail(misstep.error, misstep.text)
    except UserError as error:
        screen.fail(error, "")
    except KeyboardInterrupt:
        screen.say("interrupted", "dim")
    except Exception as error:
        screen.say("".join(traceback.format_exception(error)))
        screen.say(f"a fault of Headrace, not of yours: {error}", "red")
    finally:
        signal.signal(signal.SIGINT, before)


def history_file() -> Path | None:
    """The file of what was typed: that of HEADRACE_HISTORY, which may be empty for none, or one at home."""
    named = os.environ.get("HEADRACE_HISTORY")
    if named is not None:
        return Path(named) if named else None
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(folder, "headrace", "history")
