"""`headrace run`: run a file's queries over bounded inputs and print or write their answers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import headrace as hr
from headrace.cli.endless import run_endless
from headrace.cli.faults import USER_ERROR, describe, read_text, reported
from headrace.cli.output import (
    Format,
    check_file,
    check_output,
    format_of,
    print_answers,
    with_open_ends,
    write_answers,
)
from headrace.cli.progress import count, progress_bar, show_profile, show_summary
from headrace.engine import Database, Query, Summary
from headrace.errors import ExecutionError, LanguageError, UserError
from headrace.runtime.sinks import write_table
from headrace.runtime.views import stream_instants


class View(StrEnum):
    """In which form an answer is shown."""

    HISTORY = "history"
    CHANGES = "changes"
    STREAM = "stream"


class Runner(StrEnum):
    """Where the queries run."""

    SPARK = "spark"
    INLINE = "inline"


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.sql", help="The text with the streams and queries.")],
    view: Annotated[
        View,
        typer.Option(
            "--as",
            help="history: final intervals; changes: elements as emitted; stream: rows of ISTREAM, "
            "DSTREAM or RSTREAM.",
        ),
    ] = View.HISTORY,
    format_: Annotated[
        Format, typer.Option("--format", help="How to write the answers; null computes and writes nothing.")
    ] = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A file for the answer, or a folder when there are several."),
    ] = None,
    runner: Annotated[Runner, typer.Option(help="On Spark, or in this process.")] = Runner.SPARK,
    storage: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder that makes the run durable: started again, it goes on."),
    ] = None,
    epoch_rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="About how many rows an epoch takes.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master, such as local[4].")
    ] = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the rows that could not take part, with the reason."),
    ] = None,
    head: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Print only the first N rows of each answer.")
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Show where the time of the epochs went.")
    ] = False,
    progress: Annotated[
        bool, typer.Option("--progress/--no-progress", help="Show a bar on a terminal.")
    ] = True,
) -> None:
    """Run the file's queries to the end of their inputs.

    Answers go to standard output, progress and the summary to standard error.
    """
    with reported():
        if master and runner is not Runner.SPARK:
            raise UserError("--master is for --runner spark")
        if dead_letters:
            check_file(dead_letters, str(dead_letters / "dead_letters.jsonl"))
            format_of(dead_letters)
    with (
        reported(file),
        hr.connect(
            runner=runner.value,
            master=master,
            storage=storage,
            epoch_rows=epoch_rows,
            keep_results=format_ is not Format.NULL,
        ) as db,
    ):
        _register(db, file)
        if not db.queries:
            return
        if db.endless:
            with reported():
                _check_endless(output, head)
            summary = run_endless(db, view.value, format_)
        else:
            summary = _run_to_the_end(db, view, format_, output, head, progress)
        if dead_letters:
            with reported():
                write_table(db.dead_letters(), format_of(dead_letters).value, dead_letters)
        show_summary(summary, dead_letters)
        if profile:
            show_profile(summary.profile)
        _show_failed(file, summary)


def _run_to_the_end(
    db: Database, view: View, format_: Format, output: Path | None, head: int | None, progress: bool
) -> Summary:
    """Read bounded inputs to their end, and print or write the answers."""
    with reported():
        check_output(format_, output, [query.name for query in db.queries])
        if view is View.STREAM:
            for query in db.queries:
                stream_instants(query.name, query.plan)
    with progress_bar(progress) as show:
        summary = db.run(progress=show)
    with reported():
        _deliver(db, summary, view, format_, output, head)
    return summary


def _check_endless(output: Path | None, head: int | None) -> None:
    """Refuse options that make no sense where rows are printed as they become final."""
    if output is not None:
        raise UserError(
            "--output is for inputs that end",
            hint="redirect the standard output, or deliver to a sink from Python",
        )
    if head is not None:
        raise UserError("--head is for inputs that end", hint="leave it out, or pipe into head")


def _register(db: Database, file: Path) -> None:
    """Execute the file's statements and print what EXPLAIN gives."""
    made = db.execute(read_text(file), base=file.parent)
    if not made:
        raise LanguageError("the file holds no query", hint="add a SELECT or a CREATE QUERY name AS ...")
    for item in made:
        if isinstance(item, str):
            typer.echo(item)


def _deliver(
    db: Database, summary: Summary, view: View, format_: Format, output: Path | None, head: int | None
) -> None:
    """Print or write the answers of the queries that did not fail."""
    failed = {name for name, _, _ in summary.failed}
    answers = ((query.name, _view(query, view, format_)) for query in db.queries if query.name not in failed)
    if format_ is Format.NULL:
        for name, elements in summary.emitted.items():
            typer.echo(f"{name}: {count(elements, 'element')}", err=True)
    elif output is None:
        print_answers(answers, format_, titled=len(db.queries) > 1, head=head)
    elif len(db.queries) == 1:
        for _, table in answers:
            write_table(table, format_.value, output)
    else:
        write_answers(answers, format_, output)


def _show_failed(file: Path, summary: Summary) -> None:
    """Report the queries that ended early; there is no answer of theirs.

    Raises:
        typer.Exit: there were some.
    """
    for name, message, hint in summary.failed:
        typer.echo(describe(ExecutionError(f"{name} failed: {message}", hint=hint), file), err=True)
    if summary.failed:
        raise typer.Exit(USER_ERROR)


def _view(query: Query, view: View, format_: Format) -> pa.Table:
    match view:
        case View.HISTORY:
            answer, end = query.history(), -1
        case View.CHANGES:
            answer, end = query.changes(), -2
        case View.STREAM:
            return query.stream()
    return with_open_ends(answer, end) if format_ is Format.TABLE else answer
