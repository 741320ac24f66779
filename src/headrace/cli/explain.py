"""`headrace explain`: show the plans of a file's queries without running them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import headrace as hr
from headrace.cli.errors import reported, script_of, show_notes
from headrace.errors import LanguageError


class StageOption(StrEnum):
    """Which plan to show."""

    LOGICAL = "logical"
    OPTIMIZED = "optimized"
    PHYSICAL = "physical"


def explain(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.sql", help="The text with streams and queries; - is standard input."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("-e", metavar="SQL", help="The text itself, in place of a file.")
    ] = None,
    stage: Annotated[
        StageOption, typer.Option(help="The plan as written, as rewritten, or as it will run.")
    ] = StageOption.OPTIMIZED,
) -> None:
    """Show the plans of the file's queries; reads no input."""
    script = script_of(file, text)
    with reported(script.file), hr.connect(runner="inline") as db:
        shown = db.execute(script.text, base=script.file.parent)
        if not shown:
            raise LanguageError("there is no query", hint="add a SELECT or a CREATE QUERY name AS ...")
        for item in shown:
            if isinstance(item, str):
                typer.echo(item)
            else:
                typer.echo(f"-- {item.name}\n{item.explain(stage.value)}\n")
        show_notes(db.queries, script.file)
