"""The command `headrace` and its parts."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headrace.cli.ask import ask
from headrace.cli.doctor import doctor
from headrace.cli.explain import explain
from headrace.cli.heartbeats import heartbeats
from headrace.cli.keys import keys
from headrace.cli.nexmark import nexmark
from headrace.cli.run import run
from headrace.cli.serve import serve
from headrace.cli.shell.command import shell
from headrace.cli.spectrum import spectrum
from headrace.cli.store import store
from headrace.cli.top import top

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Exact answers at every instant, from continuous SQL, on Apache Spark.",
)


class _Command(TyperCommand):
    """A command whose usage shows arguments as its page does, without Typer's braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the command's name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


for _function in (run, explain, heartbeats, spectrum, nexmark, store, ask, shell, top, doctor, serve):
    app.command(cls=_Command)(_function)
app.add_typer(keys, name="keys")


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
    app()
