"""`headrace store`: what lies in a durable store, and whether it is whole."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import headrace as hr
from headrace.cli.errors import USER_ERROR, reported
from headrace.cli.output import Format, check_output, chosen_format, print_answers
from headrace.cli.progress import readable_bytes
from headrace.cli.run import View, rows_of
from headrace.errors import UserError
from headrace.runtime.journal.inspect import Contents, KeptResults, contents, verify
from headrace.runtime.journal.journal import LAYOUT
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant


def store(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of --storage.")],
    check: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Read every file that counts and compare it with its checksum; exits 2 on damage.",
        ),
    ] = False,
    query: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the answer of this query instead.")
    ] = None,
    view: Annotated[View, typer.Option("--as", help="With --query: in which form.")] = View.HISTORY,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT",
            help="With --query: the content at an instant, or at the last final one: latest.",
        ),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="With --query: how to write it; else as --output ends."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="PATH", help="With --query: a file for the answer.")
    ] = None,
) -> None:
    """Show what a durable store holds, or the answer of one of its queries.

    Nothing is run or changed, and a run may be at work on the store.
    """
    with reported():
        if query is None and (at is not None or output is not None or view is not View.HISTORY):
            raise UserError("--as, --at and --output are for --query", hint="name one: --query NAME")
        if check:
            _verify(folder)
        elif query is not None:
            chosen = chosen_format(format_, output, 1)
            check_output(chosen, output, [query])
            rows = _answer(hr.open(folder)[query], view, at, chosen)
            if output is None:
                print_answers([(query, rows)], chosen, several=False, head=None)
            else:
                write_table(rows, chosen.value, output)
        else:
            typer.echo("\n".join(_lines(contents(folder))))


def _answer(query: hr.StoredQuery, view: View, at: str | None, format_: Format) -> pa.Table:
    if at is None:
        return rows_of(query, view, format_)
    if at.lower() == "latest":
        return query.latest()
    return query.snapshot(int(at) if re.fullmatch(r"-?\d+", at) else at)


def _verify(folder: Path) -> None:
    checked = verify(folder)
    for problem in checked.problems:
        typer.echo(str(problem))
    what = f"{count(checked.files, 'file')}, {readable_bytes(checked.bytes)}"
    if checked.problems:
        bad = count(len(checked.problems), "problem")
        typer.echo(f"{bad} in {what}; restore the store from a copy", err=True)
        raise typer.Exit(USER_ERROR)
    typer.echo(f"whole: {what}")


def _lines(found: Contents) -> list[str]:
    kept = f", results kept from epoch {found.retained:,} on" if (found.retained or 1) > 1 else ""
    buckets = found.description.buckets
    return [
        f"layout {LAYOUT}, {count(buckets, 'bucket')}, {count(found.epochs, 'epoch')} committed{kept}",
        *_streams(found.streams, found.description.stream_domains),
        *_state(found),
        *_results(found.results, found.description.query_domains),
        count(found.dead_letters, "dead letter"),
    ]


def _streams(streams: Mapping[str, StreamPoint], domains: Mapping[str, TimeDomain]) -> list[str]:
    rows = [
        (
            name,
            f"{point.position:,}",
            _heartbeat(point.heartbeat, domains.get(name, TimeDomain.INTEGER)),
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


def _results(results: Sequence[KeptResults], domains: Mapping[str, TimeDomain]) -> list[str]:
    rows = [
        (
            part.query,
            f"{part.rows:,}",
            f"{part.files:,}",
            readable_bytes(part.bytes),
            _heartbeat(part.heartbeat, domains.get(part.query, TimeDomain.INTEGER))
            + (f"; failed: {part.failed}" if part.failed else "")
            + ("; dropped" if part.dropped else ""),
        )
        for part in results
    ]
    return _table(("results of query", "elements", "files", "size", "final below"), rows, right=(1, 2, 3))


def _heartbeat(instant: int | None, domain: TimeDomain) -> str:
    if instant is None or instant == BEGINNING:
        return "nothing yet"
    return "ended" if instant == INFINITY else format_instant(instant, domain)


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
