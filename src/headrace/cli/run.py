"""`headrace run`: run a file's queries over bounded inputs and print or write their answers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import headrace as hr
from headrace.algebra.properties import sources_of
from headrace.cli.endless import deliver_endless, run_endless
from headrace.cli.errors import USER_ERROR, Script, describe, reported, script_of, show_notes
from headrace.cli.output import (
    Format,
    check_file,
    check_output,
    chosen_format,
    format_of,
    print_answers,
    with_open_ends,
    write_answers,
)
from headrace.cli.progress import progress_bar, show_profile, show_summary, waiting
from headrace.engine import Database, Query, Summary
from headrace.engine.views.readable import Readable
from headrace.errors import DeadLetterError, DeadLetterWarning, ExecutionError, LanguageError, UserError
from headrace.language.named_values import ParameterValue, value_of
from headrace.runtime.driver.settings import DEFAULT_EPOCH_BYTES
from headrace.runtime.results.instants import form_of, stream_instants
from headrace.runtime.tasks.heap import keep_freed_memory
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count


class ViewOption(StrEnum):
    """In which form an answer is shown."""

    HISTORY = "history"
    CHANGES = "changes"
    STREAM = "stream"


class RunnerChoice(StrEnum):
    """Where the queries run."""

    SPARK = "spark"
    INLINE = "inline"


@dataclass(frozen=True)
class _MostLetters:
    """The rows that may be unable to take part: a number, or a share in percent; None for any number."""

    rows: int | None = None
    percent: float | None = None

    @classmethod
    def of(cls, text: str | None) -> _MostLetters:
        """The meaning of the option: `5` or `2.5%`.

        Raises:
            UserError: it is neither a number of rows nor a share.
        """
        if text is None:
            return cls()
        if text.isascii() and text.isdigit():
            return cls(rows=int(text))
        if (share := re.fullmatch(r"(\d{1,3}(?:\.\d+)?)\s*%", text)) and float(share[1]) <= 100:
            return cls(percent=float(share[1]))
        hint = "write a number of rows, or a share of them such as 5%"
        raise UserError(f"--max-dead-letters {text} is neither", hint=hint)

    def check(self, summary: Summary) -> None:
        """See that a run had no larger share of rows that could not take part.

        Raises:
            DeadLetterError: it had; the answers are there all the same.
        """
        share = 100 * summary.dead_letters / max(summary.rows, 1)
        if self.percent is not None and share > self.percent:
            raise DeadLetterError(
                f"{share:.1f}% of the rows could not take part, more than {self.percent:g}%",
                hint="the answers are of the others; see them with --dead-letters PATH",
            )


@dataclass(frozen=True)
class _Wanted:
    """What runs the queries, and what is to become of the answers, as the options say."""

    runner: RunnerChoice
    view: ViewOption
    format: Format | None
    output: Path | None
    head: int | None
    dead_letters: Path | None
    profile: bool
    progress: bool
    most_letters: _MostLetters = field(default_factory=_MostLetters)


_File = Annotated[
    Path | None,
    typer.Argument(metavar="FILE.sql", help="The text with the streams and queries; - is standard input."),
]
_Text = Annotated[str | None, typer.Option("-e", metavar="SQL", help="The text itself, in place of a file.")]
_View = Annotated[
    ViewOption,
    typer.Option(
        "--as",
        help="history: final intervals; changes: elements as emitted; stream: rows of ISTREAM, "
        "DSTREAM or RSTREAM.",
    ),
]
_Format = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="How to write the answers; null computes and writes nothing.",
        show_default="by the ending of --output, else table",
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A file for the answer, or a folder when there are several, or when they never end.",
    ),
]
_Runner = Annotated[RunnerChoice, typer.Option(help="On Spark, or in this process.")]
_Storage = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A folder that makes the run durable: started again, it goes on."),
]
_Sync = Annotated[
    bool,
    typer.Option("--sync", help="Drop what the store has and the text has not: its streams and queries."),
]
_EpochRows = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="About how many rows an epoch takes.", show_default="500000, growing"
    ),
]
_EpochBytes = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="About how many bytes of rows an epoch takes.",
        show_default=str(DEFAULT_EPOCH_BYTES),
    ),
]
_Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master, such as local[4].", show_default="all cores"),
]
_DeadLetters = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Write the rows that could not take part, with the reason."),
]
_Strict = Annotated[bool, typer.Option("--strict", help="End with an error when a row cannot take part.")]
_MaxDeadLetters = Annotated[
    str | None,
    typer.Option(
        metavar="N|P%",
        help="End with an error if more rows than that cannot take part; for a share, after the answers.",
        show_default="any number",
    ),
]
_Head = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Print only the first N rows of each answer.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="NAME=VALUE", help="The value of :NAME in the text; may be given often."),
]
"""The option that gives parameters values."""
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How many threads do the work with --runner inline.",
        show_default="all cores",
    ),
]
"""The option that says how many threads the runner inline has."""
_Profile = Annotated[bool, typer.Option("--profile", help="Show where the time of the epochs went.")]
_Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show a bar on a terminal.")]


def run(
    file: _File = None,
    text: _Text = None,
    view: _View = ViewOption.HISTORY,
    format_: _Format = None,
    output: _Output = None,
    runner: _Runner = RunnerChoice.SPARK,
    storage: _Storage = None,
    sync: _Sync = False,
    epoch_rows: _EpochRows = None,
    epoch_bytes: _EpochBytes = None,
    master: _Master = None,
    threads: Threads = None,
    dead_letters: _DeadLetters = None,
    strict: _Strict = False,
    max_dead_letters: _MaxDeadLetters = None,
    head: _Head = None,
    profile: _Profile = False,
    progress: _Progress = True,
    parameters: Parameters = None,
) -> None:
    """Run the file's queries to the end of their inputs.

    Answers go to standard output, progress and the summary to standard error.
    """
    with reported():
        if master and runner is not RunnerChoice.SPARK:
            raise UserError("--master is for --runner spark")
        values = dict(map(value_of, parameters)) if parameters else None
        most = _MostLetters.of("0" if strict else max_dead_letters)
        if strict and max_dead_letters is not None:
            raise UserError("--strict is --max-dead-letters 0", hint="leave one of them out")
        if dead_letters:
            check_file(dead_letters, str(dead_letters / "dead_letters.jsonl"))
            format_of(dead_letters)
    wanted = _Wanted(runner, view, format_, output, head, dead_letters, profile, progress, most)
    script = _script(file, text, storage, sync=sync)
    keep_freed_memory()
    with (
        reported(script.file),
        hr.connect(
            runner=runner.value,
            master=master,
            threads=threads,
            storage=storage,
            epoch_rows=epoch_rows,
            epoch_bytes=epoch_bytes,
            keep_results=format_ is not Format.NULL,
            max_dead_letters=most.rows,
        ) as db,
    ):
        queries = _register(db, script, values, sync=sync)
        if queries:
            _answer(db, queries, script.file, wanted)


def _script(file: Path | None, text: str | None, storage: Path | None, *, sync: bool) -> Script:
    """The statements that the command line gives; none where a store says what is to be run."""
    with reported():
        if sync and storage is None:
            raise UserError("--sync is for --storage", hint="name the folder of a store")
    known = storage is not None and (storage / "store.json").exists()
    if file is None and text is None and known and not sync:
        return Script(Path("-e"), "")
    return script_of(file, text)


def _answer(db: Database, queries: Sequence[Query], file: Path, wanted: _Wanted) -> None:
    """Run all queries, and print or write all that is wanted of some."""
    read = {source.name for query in db.queries for source in sources_of(query.plan)}
    try:
        if read.intersection(db.endless):
            with reported():
                _check_endless(db, read, wanted)
            if wanted.output is None:
                format_ = wanted.format or Format.TABLE
                summary = run_endless(db, queries, wanted.view.value, format_, wanted.progress)
            else:
                format_ = wanted.format or Format.JSONL
                summary = deliver_endless(db, queries, wanted.output, format_, wanted.progress)
        else:
            summary = _run_to_the_end(db, queries, wanted)
    except DeadLetterError:
        _write_dead_letters(db, wanted.dead_letters)
        raise
    _write_dead_letters(db, wanted.dead_letters)
    show_summary(summary, wanted.dead_letters)
    if wanted.profile:
        show_profile(summary.profile, db.status.operators)
    _show_failed(file, summary)
    with reported():
        wanted.most_letters.check(summary)


def _write_dead_letters(db: Database, file: Path | None) -> None:
    if file is not None:
        with reported():
            write_table(db.dead_letters(), format_of(file).value, file)


def _run_to_the_end(db: Database, queries: Sequence[Query], wanted: _Wanted) -> Summary:
    """Read bounded inputs to their end, and print or write the answers."""
    with reported():
        format_ = chosen_format(wanted.format, wanted.output, len(queries))
        check_output(format_, wanted.output, [query.name for query in queries])
        if wanted.view is ViewOption.STREAM:
            for query in queries:
                stream_instants(query.name, form_of(query.plan))
    with waiting(wanted.progress and wanted.runner is RunnerChoice.SPARK, "starting Spark"):
        db.prepare()
    with progress_bar(wanted.progress) as show, warnings.catch_warnings():
        # The summary tells it.
        warnings.simplefilter("ignore", DeadLetterWarning)
        summary = db.run(progress=show)
    with reported():
        _deliver(queries, summary, wanted, format_)
    return summary


def _check_endless(db: Database, read: Collection[str], wanted: _Wanted) -> None:
    """Refuse options that make no sense where rows are printed as they become final, and what has no rows."""
    if wanted.head is not None:
        raise UserError("--head is for inputs that end", hint="leave it out, or pipe into head")
    for name in db.pushed:
        if name in read:
            raise UserError(
                f"the rows of {name} are pushed by a program, and headrace run has none",
                hint=f"write it in Python: db.start(), then db.push('{name}', rows); or serve the text: "
                "headrace serve FILE.sql --storage DIR, and POST the rows",
            )


def _register(
    db: Database, script: Script, values: Mapping[str, ParameterValue] | None, *, sync: bool
) -> Sequence[Query]:
    """Execute the statements, and print what EXPLAIN and SHOW give and the notes on queries.

    Where there are answers, these alone go to standard output.

    Returns:
        The queries whose answers are wanted: those of the text; without a text, those of the store.
    """
    made = db.execute(script.text, base=script.file.parent, parameters=values)
    if sync:
        db.sync()
    if not script.text and db.queries:
        return db.queries
    if not made:
        raise LanguageError("there is no query", hint="add a SELECT or a CREATE QUERY name AS ...")
    for item in made:
        if isinstance(item, str):
            typer.echo(item, err=bool(db.queries))
    given = set(map(id, made))
    queries = [query for query in db.queries if id(query) in given]
    show_notes(queries, script.file)
    return queries


def _deliver(queries: Sequence[Query], summary: Summary, wanted: _Wanted, format_: Format) -> None:
    """Print or write the answers of the queries that did not fail."""
    failed = {name for name, _, _ in summary.failed}
    going_on = [query for query in queries if query.name not in failed]
    answers = ((query.name, rows_of(query, wanted.view, format_)) for query in going_on)
    if format_ is Format.NULL:
        for name, elements in summary.emitted.items():
            typer.echo(f"{name}: {count(elements, 'element')}", err=True)
    elif wanted.output is None:
        print_answers(answers, format_, several=len(queries) > 1, head=wanted.head)
    elif len(queries) == 1:
        for _, table in answers:
            write_table(table, format_.value, wanted.output)
    else:
        write_answers(answers, format_, wanted.output)


def _show_failed(file: Path, summary: Summary) -> None:
    """Report the queries that ended early; they have no answer.

    Raises:
        typer.Exit: there were some.
    """
    for name, message, hint in summary.failed:
        typer.echo(describe(ExecutionError(f"{name} failed: {message}", hint=hint), file), err=True)
    if summary.failed:
        raise typer.Exit(USER_ERROR)


def rows_of(query: Readable, view: ViewOption, format_: Format, as_of: int | str | None = None) -> pa.Table:
    """A view of an answer, after an epoch if one is named; in a table for people its open ends are empty."""
    match view:
        case ViewOption.HISTORY:
            answer, end = query.history(as_of), -1
        case ViewOption.CHANGES:
            answer, end = query.changes(as_of), -2
        case ViewOption.STREAM:
            return query.stream(as_of)
    return with_open_ends(answer, end) if format_ is Format.TABLE else answer
