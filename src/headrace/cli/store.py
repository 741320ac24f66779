"""`headrace store`: what lies in a durable store, and whether it is whole."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import headrace as hr
from headrace.cli.errors import USER_ERROR, reported
from headrace.cli.output import Format, check_output, chosen_format, print_answers, with_open_ends
from headrace.cli.progress import readable_bytes, waiting
from headrace.cli.remote import StorageOption, Url, client_of, folder_of, folder_or_url
from headrace.cli.run import ViewOption, rows_of
from headrace.client import Client
from headrace.engine.catalog.texts import catalog_text
from headrace.engine.copies import copy_store
from headrace.errors import UserError
from headrace.runtime.delivery.positions import sink_positions
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.inspect import Check, Contents, KeptResults, Problem, contents, verify
from headrace.runtime.journal.journal import LAYOUT
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.store.segments import FolderStore
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant


def store(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder of --storage.", show_default=False)
    ] = None,
    url: Url = None,
    storage: StorageOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Read every file that counts and compare it with its checksum; exits 2 on damage.",
        ),
    ] = False,
    catalog: Annotated[
        bool, typer.Option("--catalog", help="Print the statements that define all that is defined in it.")
    ] = False,
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="TARGET",
            help="Copy the store to a folder that is missing or empty, also while a run is at work on it; "
            "with --as-of EPOCH as of that epoch.",
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the answer of this query instead.")
    ] = None,
    view: Annotated[
        ViewOption, typer.Option("--as", help="With --query: in which form.")
    ] = ViewOption.HISTORY,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT",
            help="With --query: the content at an instant, or at the last final one: latest.",
        ),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="EPOCH|TIME",
            help="With --query: the answer after this epoch, or after the last one that took its rows by a "
            "time of the clock.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="EPOCH|TIME",
            help="With --query: how the answer differs from that after this epoch, or time of the clock.",
        ),
    ] = None,
    epochs: Annotated[
        bool,
        typer.Option("--epochs", help="With --query: the epochs that --as-of and --since can name."),
    ] = False,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="With --query: how to write it; else as --output ends."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="PATH", help="With --query: a file for the answer.")
    ] = None,
) -> None:
    """Show what a durable store or a server holds, or the answer of one of its queries; or copy a store.

    Nothing is run or changed, and a run may be at work on the store.
    """
    with reported():
        folder = folder_of(folder, storage)
        if copy is not None:
            _copy(folder_or_url(folder, url), copy, _named(as_of))
            return
        asked = AnswerRequest(view, at, _named(as_of), _named(since), epochs)
        if query is None and (asked != AnswerRequest() or output is not None):
            options = "--as, --at, --as-of, --since, --epochs and --output"
            raise UserError(f"{options} are for --query", hint="name one: --query NAME")
        place = folder_or_url(folder, url)
        if query is not None and not (check or catalog):
            chosen = chosen_format(format_, output, 1)
            check_output(chosen, output, [query])
            rows = _rows(place, query, asked, chosen)
            if output is None:
                print_answers([(query, rows)], chosen, several=False, head=None)
            else:
                write_table(rows, chosen.value, output)
        elif isinstance(place, str):
            _show_server(place, check)
        elif check:
            _verify(place)
        elif catalog:
            typer.echo(catalog_text(contents(place).description.catalog or ()))
        else:
            typer.echo("\n".join(_lines(contents(place), place)))


def _copy(place: Path | str, target: Path, as_of: int | str | None) -> None:
    """Copy a store, and say what the copy has."""
    if isinstance(place, str):
        raise UserError(
            "a store is copied where it lies", hint="name its folder, on the machine of the server"
        )
    if isinstance(as_of, str):
        raise UserError(
            f"--as-of {as_of} is not the number of an epoch", hint=f"headrace store {place} names the last"
        )
    with waiting(True, f"copying {place}"):
        made = copy_store(place, target, as_of)
    links = f", {made.linked:,} of them linked" if made.linked else ""
    files = f"{count(made.files, 'file')}, {readable_bytes(made.bytes)}{links}"
    typer.echo(f"{target} is a copy as of epoch {made.epoch:,}: {files}")


def _rows(place: Path | str, query: str, asked: AnswerRequest, format_: Format) -> pa.Table:
    """The answer of a query in a store, or at a server."""
    if isinstance(place, str):
        return answer_at(client_of(place), query, asked, format_)
    return asked.of(hr.open(place)[query], format_)


def _show_server(url: str, check: bool) -> None:
    """Print what is defined at a server, or whether its store is whole."""
    if not check:
        typer.echo(client_of(url).catalog)
        return
    found = client_of(url).check_store()
    problems = tuple(Problem(one["file"], one["reason"]) for one in found["problems"])
    _report(Check(problems, found["files"], found["bytes"]))


@dataclass(frozen=True)
class AnswerRequest:
    """What is asked for of a query's answer.

    Attributes:
        view: in which form.
        at: the instant of a snapshot, or `latest`; all instants if None.
        as_of: after which epoch: its number or a time of the clock; the last one if None.
        since: how it differs from the answer after this one; not compared if None.
        epochs: the epochs are asked for that can be named.
    """

    view: ViewOption = ViewOption.HISTORY
    at: str | None = None
    as_of: int | str | None = None
    since: int | str | None = None
    epochs: bool = False

    def of(self, query: hr.StoredQuery, format_: Format) -> pa.Table:
        """What is asked for.

        Raises:
            UserError: the options do not go together, or as the views of the answer do.
        """
        self.check()
        if self.epochs:
            return query.epochs()
        if self.is_latest:
            return query.latest()
        at = None if self.at is None else _named(self.at)
        if self.since is not None:
            table = query.difference(self.since, self.as_of, at)
            return with_open_ends(table, -2) if at is None and format_ is Format.TABLE else table
        if at is not None:
            return query.snapshot(at, self.as_of)
        return rows_of(query, self.view, format_, self.as_of)

    @property
    def is_latest(self) -> bool:
        """Whether the last final instant is asked for."""
        return self.at is not None and self.at.lower() == "latest"

    def check(self) -> None:
        """See that the options go together.

        Raises:
            UserError: they do not.
        """
        if self.is_latest and (self.as_of is not None or self.since is not None):
            raise UserError(
                "--at latest is the answer now, and --as-of and --since are for earlier ones",
                hint="give an instant: --at 2024-01-01T00:00:00Z",
            )
        if self.since is not None and self.view is not ViewOption.HISTORY:
            raise UserError("--since compares histories or snapshots", hint="leave out --as")
        if self.epochs and self != AnswerRequest(epochs=True):
            raise UserError("--epochs goes with no view of the answer", hint="leave out the other options")


def answer_at(client: Client, query: str, asked: AnswerRequest, format_: Format) -> pa.Table:
    """What is asked for of a query's answer at a server.

    Raises:
        UserError: the options do not go together, or as the views of the answer do.
    """
    asked.check()
    if asked.since is not None:
        table = client.difference(query, asked.since, asked.as_of, asked.at)
        return with_open_ends(table, -2) if asked.at is None and format_ is Format.TABLE else table
    if asked.epochs:
        return client.epochs(query)
    if asked.at is not None:
        return client.snapshot(query, None if asked.is_latest else asked.at, asked.as_of)
    match asked.view:
        case ViewOption.HISTORY:
            answer, end = client.history(query, asked.as_of), -1
        case ViewOption.CHANGES:
            answer, end = client.changes(query, asked.as_of), -2
        case ViewOption.STREAM:
            return client.stream(query, asked.as_of)
    return with_open_ends(answer, end) if format_ is Format.TABLE else answer


def _named(text: str | None) -> int | str | None:
    """A number where a text is one."""
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else text


def _verify(folder: Path) -> None:
    _report(verify(folder))


def _report(checked: Check) -> None:
    for problem in checked.problems:
        typer.echo(str(problem))
    what = f"{count(checked.files, 'file')}, {readable_bytes(checked.bytes)}"
    if checked.problems:
        bad = count(len(checked.problems), "problem")
        typer.echo(f"{bad} in {what}; restore the store from a copy", err=True)
        raise typer.Exit(USER_ERROR)
    typer.echo(f"whole: {what}")


def _lines(found: Contents, folder: Path) -> list[str]:
    kept = f", results kept from epoch {found.retained:,} on" if (found.retained or 1) > 1 else ""
    buckets = found.description.buckets
    return [
        f"layout {LAYOUT}, {count(buckets, 'bucket')}, {count(found.epochs, 'epoch')} committed{kept}",
        *_catalog(found),
        *_streams(found.streams, found.description),
        *_state(found),
        *_results(found.results, found.description),
        *_sinks(folder, found.epochs, found.description),
        count(found.dead_letters, "dead letter"),
    ]


def _streams(streams: Mapping[str, StreamPoint], description: Description) -> list[str]:
    rows = [
        (
            name,
            f"{point.position:,}",
            _heartbeat(point.heartbeat, description.domain_of(name)),
            ", ".join(f"{producer} {number}" for producer, number in point.producers.items()),
        )
        for name, point in sorted(streams.items())
    ]
    return _table(("stream", "position", "heartbeat", "producers"), rows, right=(1,))


def _state(found: Contents) -> list[str]:
    rows = [
        (part.identity, f"{part.buckets:,}", f"{part.rows:,}", readable_bytes(part.bytes))
        for part in found.state
    ]
    return _table(("state of operator", "buckets", "rows", "size"), rows, right=(1, 2, 3))


def _results(results: Sequence[KeptResults], description: Description) -> list[str]:
    rows = [
        (
            description.name_of(part.query),
            f"{part.rows:,}",
            f"{part.files:,}",
            readable_bytes(part.bytes),
            _heartbeat(part.heartbeat, description.domain_of_answer(part.query))
            + (f"; failed: {part.failed}" if part.failed else "")
            + ("; paused" if part.paused else "")
            + ("; dropped" if part.dropped else _lacks(description, part.query)),
        )
        for part in results
    ]
    return _table(("results of query", "elements", "files", "size", "final below"), rows, right=(1, 2, 3))


def _sinks(folder: Path, epochs: int, description: Description) -> list[str]:
    """How far sinks are, those included that no run has attached of late."""
    rows = [
        (name, description.name_of(query), f"{at.epoch:,}", f"{max(0, epochs - at.epoch):,}")
        for (query, name), at in sorted(sink_positions(FolderStore(str(folder), durable=True)).items())
    ]
    return _table(("sink", "of query", "has epoch", "behind"), rows, right=(2, 3))


def _lacks(description: Description, query: str) -> str:
    """About which instants a query says nothing, or not all, if there are any."""
    domain = description.domain_of_answer(query)
    gaps = [gap.text(domain) for gap in description.gaps_of(query) if gap.end is not None]
    return f"; {'; '.join(gaps)}" if gaps else ""


def _heartbeat(instant: int | None, domain: TimeDomain) -> str:
    if instant is None or instant == BEGINNING:
        return "nothing yet"
    return "ended" if instant == INFINITY else format_instant(instant, domain)


def _catalog(found: Contents) -> list[str]:
    """What is defined, each on a line of its own."""
    rows = [
        (one.kind.lower(), one.name, " ".join((one.text or f"({one.lacks})").split()))
        for one in found.description.catalog or ()
    ]
    return _table(("defined", "name", "as"), rows, ())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> list[str]:
    """Lines of columns, each as wide as its widest text; none where there are no rows."""
    if not rows:
        return []
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *rows)
    ]
