"""`headrace ask`: a question that is asked once, over what a durable store holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import headrace as hr
from headrace.cli.errors import reported
from headrace.cli.output import Format, check_output, chosen_format, print_answers
from headrace.runtime.writing.tables import write_table


def ask(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of --storage.")],
    question: Annotated[
        str,
        typer.Argument(metavar="SQL", help="A SELECT of DuckDB's, FROM HISTORY OF a_query or the like."),
    ],
    seconds: Annotated[float, typer.Option(metavar="S", help="End it after so many seconds.")] = 30.0,
    memory: Annotated[int, typer.Option(metavar="MB", help="The memory that DuckDB may use.")] = 1_000,
    threads: Annotated[int, typer.Option(metavar="N", help="The processors that it may use.")] = 2,
    rows: Annotated[int, typer.Option(metavar="N", help="Refuse an answer of more rows.")] = 10_000_000,
    format_: Annotated[
        Format | None, typer.Option("--format", help="How to write it; else as --output ends.")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="PATH", help="A file for the answer.")] = None,
) -> None:
    """Ask a question over the answers in a durable store, once: FROM HISTORY OF q, CHANGES OF q, STREAM OF q,
    EPOCHS OF q, DEAD LETTERS, DEAD LETTERS OF s.

    Nothing is run or changed, and a run may be at work on the store.
    """
    with reported():
        chosen = chosen_format(format_, output, 1)
        check_output(chosen, output, ["answer"])
        table = hr.open(folder).ask(question, seconds=seconds, memory=memory, threads=threads, rows=rows)
        if output is None:
            print_answers([("answer", table)], chosen, several=False, head=None)
        else:
            write_table(table, chosen.value, output)
