"""`headrace top`: streams, queries and operators of a durable store or a server, while a run is at work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import pyarrow as pa
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from headrace.cli.errors import reported
from headrace.cli.glances import OperatorOrder, StatusGlance, picture
from headrace.cli.remote import StorageOption, Url, client_of, folder_of, folder_or_url
from headrace.cli.seen import Seen, seen_in_status, seen_in_store
from headrace.cli.shell.tables import text_of_table, with_instants_in_words
from headrace.engine.stored import open_store
from headrace.errors import UserError
from headrace.runtime.journal.inspect import glance
from headrace.runtime.journal.look import Version, left, mark, unmark

_PLAIN_WIDTH: Final = 160
"""So many characters a line has where no terminal says how many fit."""
_PATIENCE: Final = 1.5
"""So many seconds a process has to answer, or to leave another look."""
Newest = Callable[[str, int], pa.Table]
"""Gives so many of the newest rows of the answer of a query of a name."""
_AROUND: Final = 5
"""So many lines of a table are not rows of it."""


def top(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder of --storage.", show_default=False)
    ] = None,
    url: Url = None,
    storage: StorageOption = None,
    interval: Annotated[float, typer.Option(metavar="S", help="Seconds between two looks.")] = 1.0,
    rows: Annotated[int, typer.Option(metavar="N", help="So many streams, queries and operators each.")] = 12,
    by: Annotated[
        OperatorOrder, typer.Option(help="What operators are in order of.")
    ] = OperatorOrder.SECONDS,
    tail: Annotated[
        str | None, typer.Option(metavar="QUERY", help="Show the newest rows of its answer, too.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once, print it, and exit.")] = False,
) -> None:
    """Show the streams, queries and operators of a durable store or a server, again and again until Ctrl-C.

    Nothing is run or changed; the process that runs on the store says what it is doing. Rates are those
    between two looks.
    """
    with reported():
        if interval <= 0 or rows <= 0:
            raise UserError("--interval and --rows must be above 0")
        with _looking_at(folder_of(folder, storage), url) as (look, newest):
            first, followed = look(), None if tail is None else FollowedAnswer(tail, newest)
            if once or not sys.stdout.isatty():
                console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
                console.print(picture(None, first, rows, by))
                if followed is not None:
                    console.print(followed.picture(rows, console.width))
                return
            _watch(first, look, interval, rows, by, followed)


@dataclass(frozen=True)
class FollowedAnswer:
    """A query whose newest rows are shown.

    Attributes:
        query: its name.
        newest: gives so many rows of a query's answer.
    """

    query: str
    newest: Newest

    def picture(self, rows: int, width: int) -> Text:
        """A table of the rows, or the reason why there are none.

        Raises:
            UserError: there is no such query.
        """
        found = with_instants_in_words(self.newest(self.query, rows))
        text = text_of_table(found, most=rows, width=width, expanded=False)
        return Text.assemble((f"the newest rows of {self.query}", "bold"), "\n", text)


@contextmanager
def _looking_at(folder: Path | None, url: str | None) -> Iterator[tuple[Callable[[], StatusGlance], Newest]]:
    """A function that looks each time, and one that gives the newest rows of an answer.

    Raises:
        UserError: neither a folder nor a URL is given, or both.
    """
    place = folder_or_url(folder, url)
    if isinstance(place, str):
        client = client_of(place)
        yield lambda: StatusGlance(seen_in_status(client.url, client.status()), time.monotonic()), client.tail
        return
    with closing(StoreWatcher(place)) as store:
        yield (
            lambda: StatusGlance(store.look(), time.monotonic()),
            lambda query, rows: open_store(place)[query].tail(rows),
        )


class StoreWatcher:
    """Looks at a store again and again: at what its process says, or at its commits where none answers.

    Args:
        folder: the store's.

    Raises:
        StoreError: it is not a store.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fresh: tuple[Version, float] | None = None
        glance(folder)
        before = left(folder)
        self._stale = None if before is None else before[0]
        mark(folder)
        until = time.monotonic() + (_PATIENCE if _has_process(folder) else 0.0)
        while self._newest() is None and time.monotonic() < until:
            time.sleep(0.02)

    def look(self) -> Seen:
        """What there is to be seen now.

        Raises:
            StoreError: the store is damaged.
        """
        mark(self._folder)
        found = self._newest()
        return seen_in_store(self._folder, glance(self._folder)) if found is None else found

    def close(self) -> None:
        """Watch no longer; others who do mark the folder again."""
        unmark(self._folder)

    def _newest(self) -> Seen | None:
        """What the process has left last; None where it has not for a while, or it left that before."""
        found = left(self._folder)
        if found is None or found[0] == self._stale:
            return None
        version, status = found
        now = time.monotonic()
        if self._fresh is None or self._fresh[0] != version:
            self._fresh = version, now
        if now - self._fresh[1] > _PATIENCE:
            return None
        return seen_in_status(str(self._folder), status)


def _has_process(folder: Path) -> bool:
    """Whether the process that has the store, or had it last, is there."""
    try:
        os.kill(int((folder / "lock").read_text()), 0)
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _watch(
    first: StatusGlance,
    look: Callable[[], StatusGlance],
    interval: float,
    rows: int,
    by: OperatorOrder,
    followed: FollowedAnswer | None,
) -> None:
    before: StatusGlance | None = None
    now, console = first, Console()
    with Live(
        _fitting(None, first, rows, by, console, followed), console=console, screen=True, auto_refresh=False
    ) as live:
        try:
            while True:
                time.sleep(interval)
                before, now = now, look()
                live.update(_fitting(before, now, rows, by, console, followed), refresh=True)
        except KeyboardInterrupt:
            return


def _fitting(
    before: StatusGlance | None,
    now: StatusGlance,
    rows: int,
    by: OperatorOrder,
    console: Console,
    followed: FollowedAnswer | None,
) -> Group:
    """A picture that is no higher than the terminal."""
    room = (console.height - 1 - len(now.seen.notes)) // (3 if followed is None else 4) - _AROUND
    most = max(1, min(rows, room))
    found = picture(before, now, most, by, fills=True)
    return found if followed is None else Group(found, followed.picture(most, console.width))
