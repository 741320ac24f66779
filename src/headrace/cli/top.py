"""`headrace top`: the streams, queries and operators of a durable store, while a run is at work on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headrace.algebra.system_streams import system_stream
from headrace.cli.errors import reported
from headrace.cli.glances import cut, listing, picture_of_server
from headrace.cli.progress import readable_bytes
from headrace.cli.remote import Url, client_of, folder_or_url
from headrace.engine.status import instant_text
from headrace.errors import UserError
from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.journal.inspect import Glance, OperatorState, glance
from headrace.runtime.writing.texts import count
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_length

_PLAIN_WIDTH: Final = 160
"""So many characters a line has where no terminal says how many fit."""


@dataclass(frozen=True)
class Look:
    """What was seen, and when."""

    seen: Glance
    at: float


def top(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder of --storage.", show_default=False)
    ] = None,
    url: Url = None,
    interval: Annotated[float, typer.Option(metavar="S", help="Seconds between two looks.")] = 1.0,
    rows: Annotated[int, typer.Option(metavar="N", help="So many streams, queries and operators each.")] = 12,
    once: Annotated[bool, typer.Option("--once", help="Look once, print it, and exit.")] = False,
) -> None:
    """Show the streams, queries and operators of a durable store or a server, again and again until Ctrl-C.

    Nothing is run or changed; a run may be at work on the store. Rates are those between two looks.
    """
    with reported():
        if interval <= 0 or rows <= 0:
            raise UserError("--interval and --rows must be above 0")
        look = _looking_at(folder, url, rows)
        first = look()
        if once or not sys.stdout.isatty():
            width = None if sys.stdout.isatty() else _PLAIN_WIDTH
            Console(width=width, highlight=False).print(first)
            return
        _watch(first, look, interval)


def _looking_at(folder: Path | None, url: str | None, rows: int) -> Callable[[], Group]:
    """What gives a new picture each time.

    Raises:
        UserError: neither a folder nor a URL is given, or both.
    """
    place = folder_or_url(folder, url)
    if isinstance(place, str):
        client = client_of(place)
        return lambda: picture_of_server(client.url, client.status(), rows)
    before: Look | None = None

    def look() -> Group:
        nonlocal before
        now = Look(glance(place), time.monotonic())
        before, earlier = now, before
        return picture(place, earlier, now, rows)

    return look


def _watch(first: Group, look: Callable[[], Group], interval: float) -> None:
    with Live(first, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(interval)
                live.update(look(), refresh=True)
        except KeyboardInterrupt:
            return


def picture(folder: Path, before: Look | None, now: Look, most: int) -> Group:
    """Everything that is shown; rates since the look before, if there was one."""
    passed = None if before is None else now.at - before.at
    earlier = None if before is None else before.seen

    def rate(counted: Callable[[Glance], int]) -> str:
        if earlier is None or not passed:
            return ""
        return f"{(counted(now.seen) - counted(earlier)) / passed:,.0f}"

    return Group(
        _title(folder, now.seen, rate),
        _streams(now.seen, rate, most),
        _queries(now.seen, rate, most),
        _operators(now.seen, most),
    )


Rate = Callable[[Callable[[Glance], int]], str]
"""How fast a count has grown since the last look (per second), as text."""


def _title(folder: Path, seen: Glance, rate: Rate) -> Text:
    taken = "" if not seen.epochs else f", the last at {instant_text(seen.clock, TimeDomain.TIMESTAMP)}"
    speed = rate(_rows)
    return Text(
        f"{folder}: {count(seen.epochs, 'epoch')}{taken}; {count(_rows(seen), 'row')}"
        + (f", {speed}/s" if speed else "")
        + f"; {count(seen.totals.dead_letters, 'dead letter')}",
        style="bold",
    )


def _rows(seen: Glance) -> int:
    """The rows of streams that users have defined."""
    return sum(found.rows for name, found in seen.totals.arrivals.items() if system_stream(name) is None)


def _streams(seen: Glance, rate: Rate, most: int) -> Table:
    table = listing("stream", ("rows", "rows/s", "late", "rejected"), ("heartbeat", "lag"))
    shown = sorted(seen.streams)
    for name in shown[:most]:
        found = seen.totals.arrivals.get(name, Arrivals())
        domain, heartbeat = seen.description.domain_of(name), seen.streams[name].heartbeat
        table.add_row(
            name,
            f"{found.rows:,}",
            rate(partial(_rows_of, name)),
            f"{found.late:,}",
            f"{found.rejected:,}",
            instant_text(heartbeat, domain),
            _lag(found.latest, heartbeat, domain),
        )
    return cut(table, len(shown), most)


def _queries(seen: Glance, rate: Rate, most: int) -> Table:
    table = listing("query", ("changes", "changes/s"), ("final below", "said below", "failed"))
    shown = sorted(seen.description.queries)
    for name in shown[:most]:
        domain = seen.description.query_domains.get(name, TimeDomain.INTEGER)
        heartbeat = seen.heartbeats.get(name, BEGINNING)
        horizon = seen.horizons.get(name, heartbeat)
        table.add_row(
            name,
            f"{seen.totals.emitted.get(name, 0):,}",
            rate(partial(_changes_of, name)),
            instant_text(heartbeat, domain),
            instant_text(horizon, domain) if horizon > heartbeat else "",
            seen.failed[name][0] if name in seen.failed else "",
        )
    return cut(table, len(shown), most)


def _operators(seen: Glance, most: int) -> Table:
    table = listing("operator, by size", ("rows kept", "size", "buckets"), ())
    shown: Sequence[OperatorState] = sorted(seen.state, key=lambda part: -part.bytes)
    for part in shown[:most]:
        title = seen.description.operators.get(part.identity, part.identity)
        table.add_row(title, f"{part.rows:,}", readable_bytes(part.bytes), f"{part.buckets:,}")
    return cut(table, len(shown), most)


def _rows_of(stream: str, seen: Glance) -> int:
    return seen.totals.arrivals.get(stream, Arrivals()).rows


def _changes_of(query: str, seen: Glance) -> int:
    return seen.totals.emitted.get(query, 0)


def _lag(latest: int, heartbeat: int, domain: TimeDomain) -> str:
    """How far a heartbeat is behind the newest row; empty where nothing was read or all is final."""
    if BEGINNING in (latest, heartbeat) or heartbeat == INFINITY:
        return ""
    return format_length(max(0, latest - heartbeat), domain)
