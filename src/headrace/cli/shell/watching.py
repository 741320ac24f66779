"""`\\watch`: a query's answer as it is now, or its newest events, again and again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Group
from rich.live import Live
from rich.text import Text

from headrace.cli.shell.screen import Screen
from headrace.cli.shell.tables import text_of_table, with_instants_in_words
from headrace.cli.shell.target import Target
from headrace.errors import UserError

_SECONDS: Final = 0.1
"""How often it is asked whether there is something new."""
_LINES_AROUND: Final = 6
"""So many lines are not rows of the answer: title, names, rule, counts, the line to type on."""


def watch(target: Target, query: str, screen: Screen, most: int, *, expanded: bool) -> None:
    """Show what a query's answer is now, of events the newest, until Ctrl-C, which ends nothing but this.

    Args:
        target: has the query.
        query: its name.
        screen: a terminal.
        most: so many rows are shown at most, and no more than fit.
        expanded: whether each value is on a line of its own.

    Raises:
        UserError: there is no such query, or nothing was run yet.
    """
    target.moment(query)
    shown, last = Text(), None
    live = Live(Text(), console=screen.console, screen=True, auto_refresh=False)
    with interruption() as interrupted, live:
        while not interrupted.is_set():
            moment, how_far = target.moment(query)
            if moment != last:
                last = moment
                rows = max(1, min(most, screen.console.height - _LINES_AROUND))
                shown = _now(target, query, how_far, rows, screen.width, expanded)
                live.update(Group(shown, Text("Ctrl-C stops the watching", "dim")), refresh=True)
            interrupted.wait(_SECONDS)
    screen.console.print(shown, soft_wrap=True)


def _now(target: Target, query: str, how_far: str, most: int, width: int | None, expanded: bool) -> Text:
    try:
        if target.is_events(query):
            what, table = "the newest, ", with_instants_in_words(target.tail(query, most))
        else:
            what, table = "", target.answer(query, "latest")
        answer = text_of_table(table, most=most, width=width, expanded=expanded)
    except UserError as error:
        what, answer = "", error.message
    return Text.assemble((f"{query}: {what}{how_far}", "bold"), "\n\n", answer)


@contextmanager
def interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets; left to Spark, it would cancel the epoch that is running."""
    event = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
