"""`headrace ask`: a question that is asked once, over what a durable store holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import headrace as hr
from headrace.cli.errors import reported
from headrace.cli.output import Format, check_output, chosen_format, print_answers
from headrace.cli.remote import StorageOption, Url, client_of, folder_of
from headrace.cli.run import Parameters
from headrace.engine.asking.question import QuestionLimits
from headrace.errors import UserError
from headrace.language.named_values import ParameterValue, value_of
from headrace.runtime.writing.tables import write_table


def ask(
    place: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder of --storage; left out with --url.")
    ],
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL",
            help="A SELECT of DuckDB's, FROM HISTORY OF a_query or the like.",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    storage: StorageOption = None,
    seconds: Annotated[float, typer.Option(metavar="S", help="End it after so many seconds.")] = 30.0,
    memory: Annotated[int, typer.Option(metavar="MB", help="The memory that DuckDB may use.")] = 1_000,
    threads: Annotated[int, typer.Option(metavar="N", help="The processors that it may use.")] = 2,
    rows: Annotated[int, typer.Option(metavar="N", help="Refuse an answer of more rows.")] = 10_000_000,
    format_: Annotated[
        Format | None, typer.Option("--format", help="How to write it; else as --output ends.")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="PATH", help="A file for the answer.")] = None,
    parameters: Parameters = None,
) -> None:
    """Ask a question over the answers in a durable store or at a server, once: FROM HISTORY OF q,
    SNAPSHOT OF q, CHANGES OF q, STREAM OF q, EPOCHS OF q, DEAD LETTERS, DEAD LETTERS OF s.

    Nothing is run or changed, and a run may be at work on the store.
    """
    with reported():
        if storage is not None:
            folder_of(None if question is None else Path(place), storage)
            place, question = str(storage), place
        chosen = chosen_format(format_, output, 1)
        check_output(chosen, output, ["answer"])
        limits = QuestionLimits(seconds, memory, threads, rows)
        table = _asked(place, question, url, limits, dict(map(value_of, parameters or ())))
        if output is None:
            print_answers([("answer", table)], chosen, several=False, head=None)
        else:
            write_table(table, chosen.value, output)


def _asked(
    place: str,
    question: str | None,
    url: str | None,
    limits: QuestionLimits,
    values: Mapping[str, ParameterValue],
) -> pa.Table:
    """The answer; with a URL the first argument is the question.

    Raises:
        UserError: there is a folder too many, or too few; or the question is wrong.
    """
    if url is not None:
        if question is not None:
            raise UserError("there are a folder and --url", hint="leave one of them out")
        if limits != QuestionLimits():
            options = "--seconds, --memory, --threads and --rows"
            raise UserError(f"{options} are for a folder", hint="the server sets its own limits")
        return client_of(url).ask(place, parameters=values)
    if question is None:
        raise UserError(
            "there is no question", hint="name the folder of a store first, or a server with --url URL"
        )
    return hr.open(Path(place)).ask(
        question,
        seconds=limits.seconds,
        memory=limits.memory,
        threads=limits.threads,
        rows=limits.rows,
        parameters=values,
    )
