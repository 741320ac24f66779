"""The command `headrace` and its parts, each of which is loaded when it is asked for."""

from __future__ import annotations

import importlib
import logging
import shutil
import sys
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from headrace.runtime.spark.startup.ahead import begin_for

COMMANDS: Final = {
    "run": ("run", "Run the file's queries to the end of their inputs."),
    "explain": ("explain", "Show the plans of the file's queries; reads no input."),
    "heartbeats": (
        "illustrations.heartbeats",
        "Show how the heartbeats of streams move over wall-clock time.",
    ),
    "spectrum": (
        "illustrations.spectrum",
        "Run queries at levels of consistency, and show what each costs and says.",
    ),
    "nexmark": (
        "illustrations.nexmark",
        "Write the events of the NEXMark auction site, or run a query of its suite.",
    ),
    "store": ("store", "Show what a durable store or a server holds, or the answer of one of its queries."),
    "ask": ("ask", "Ask a question over the answers in a durable store or at a server, once."),
    "shell": ("shell.command", "Type statements, ask questions and watch answers."),
    "top": ("top", "Show the streams, queries and operators of a store or a server until Ctrl-C."),
    "doctor": ("doctor", "Check Java, Python, memory and a folder; exits with 2 where something is missing."),
    "serve": ("serve", "Serve streams and queries over HTTP until SIGTERM or Ctrl-C."),
    "keys": ("keys", "Add, list and drop the keys of a server."),
}
"""By the commands' names, the modules that have them, and what they do in one line."""


_WIDE: Final = 110
"""So many columns a terminal has in which the tables of a command's help cut no names."""


class _Command(TyperCommand):
    """A command whose help is plain where tables would cut names; its usage has no braces of Typer's."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help as tables, or in a narrow terminal as names with their texts below."""
        if (ctx.terminal_width or shutil.get_terminal_size().columns) < _WIDE:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the command's name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class _Later(TyperCommand):
    """A command that is listed without being loaded, which takes a second."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """The context of the command itself."""
        return self.loaded().make_context(*arguments, **named)

    def loaded(self) -> Any:
        """The command itself."""
        assert self.name is not None
        module, _ = COMMANDS[self.name]
        found = getattr(importlib.import_module(f"headrace.cli.{module}"), self.name)
        if not isinstance(found, typer.Typer):
            function = found
            found = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            found.command(cls=_Command)(function)
        command = typer.main.get_command(found)
        command.name = self.name
        return command


class _Group(TyperGroup):
    """All commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: _Later(name, help=line) for name, (_, line) in COMMANDS.items()}


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Exact answers at every instant, from continuous SQL, on Apache Spark.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {version('headrace')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """What holds for every command."""


def main() -> None:
    """Run the command line and exit: 0 when done, 2 for the user's errors, 1 for Headrace's own faults."""
    # Libraries log, with tracebacks, what is reported in our own words: Py4J that it has lost its JVM.
    logging.disable(logging.ERROR)
    begin_for(sys.argv[1:])
    app()
