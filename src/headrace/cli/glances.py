"""The tables of `headrace top`, and what it shows of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headrace.cli.progress import readable_bytes
from headrace.runtime.writing.texts import count


def listing(first: str, numbers: Iterable[str], texts: Iterable[str]) -> Table:
    """An empty table: a column of names, those of numbers, and those of texts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for name in texts:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    return table


def cut(table: Table, found: int, most: int) -> Table:
    """The table, which says how many rows were left out."""
    if found > most:
        table.caption, table.caption_justify = f"and {found - most:,} more", "left"
    return table


def picture_of_server(url: str, status: Mapping[str, Any], most: int) -> Group:
    """What the status of a server says.

    Args:
        url: the server's.
        status: as `Client.status` gives it.
        most: so many streams, queries and operators are shown each.
    """
    state = "running" if status["running"] else "at rest"
    at = f", the last at {status['at']}" if status["at"] else ""
    title = Text(f"{url}: {state}, {count(status['epoch'], 'epoch')}{at}", style="bold")
    problems = [Text(f"{name}: {what}", style="red") for name, what in status["problems"].items()]
    return Group(title, *problems, _streams(status, most), _queries(status, most), _operators(status, most))


def _streams(status: Mapping[str, Any], most: int) -> Table:
    table = listing("stream", ("rows", "rows/s", "late", "rejected"), ("heartbeat", "newest"))
    found: Sequence[Mapping[str, Any]] = status["streams"]
    for one in found[:most]:
        numbers = (f"{one['rows']:,}", f"{one['rate']:,.0f}", f"{one['late']:,}", f"{one['rejected']:,}")
        table.add_row(one["name"], *numbers, _instant(one["heartbeat"]), _instant(one["latest"]))
    return cut(table, len(found), most)


def _queries(status: Mapping[str, Any], most: int) -> Table:
    table = listing("query", ("changes", "changes/s"), ("final below", "said below", "held by", "failed"))
    found: Sequence[Mapping[str, Any]] = status["queries"]
    for one in found[:most]:
        said = "" if one["horizon"] == one["heartbeat"] else _instant(one["horizon"])
        texts = (_instant(one["heartbeat"]), said, one["held_by"] or "", _reason(one["failed"]))
        table.add_row(one["name"], f"{one['changes']:,}", f"{one['rate']:,.0f}", *texts)
    return cut(table, len(found), most)


def _operators(status: Mapping[str, Any], most: int) -> Table:
    table = listing("operator, by size", ("rows kept", "size", "seconds"), ())
    found = sorted(status["operators"], key=lambda one: -one["state_bytes"])
    for one in found[:most]:
        kept, size = f"{one['state_rows']:,}", readable_bytes(one["state_bytes"])
        table.add_row(one["text"], kept, size, f"{one['seconds']:,.3f}")
    return cut(table, len(found), most)


def _instant(value: object) -> str:
    return "" if value is None else str(value)


def _reason(failed: object) -> str:
    """The message of a failure, which comes with its hint."""
    return str(failed[0] if isinstance(failed, list) and failed else failed or "")
