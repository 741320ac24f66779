"""Where a shell writes: a terminal, or a file or pipe."""

from __future__ import annotations

import pydoc
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.text import Text

from headrace.errors import HeadraceWarning, UserError


class Screen:
    """Standard output, and what is known of it.

    Args:
        file: where answers go.
        is_terminal: whether somebody is looking: then there are colours, and long answers are paged.

    Attributes:
        is_terminal: as given.
    """

    def __init__(self, file: TextIO | None = None, *, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self.console = Console(file=file or sys.stdout, highlight=False, force_terminal=is_terminal or None)

    @property
    def width(self) -> int | None:
        """How many columns there are; None where nothing is shortened."""
        return self.console.width if self.is_terminal else None

    def say(self, text: str, style: str = "") -> None:
        """Print a text, line ends and all else unchanged."""
        self.console.print(Text(text, style), soft_wrap=True)

    def show(self, text: str) -> None:
        """Print an answer; on a terminal a page at a time where it has more lines than that."""
        if self.is_terminal and text.count("\n") + 2 > self.console.height:
            pydoc.pager(text + "\n")
        else:
            self.say(text)

    def fail(self, error: UserError, text: str) -> None:
        """Print an error, with the place in the text that it is about."""
        self.console.print(error_text(error, text), soft_wrap=True)

    @contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Print Headrace's warnings of the block at its end, each once, and none of libraries."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", HeadraceWarning)
            try:
                yield
            finally:
                for message in dict.fromkeys(str(warning.message) for warning in caught):
                    self.say(f"warning: {message}", "yellow")


def error_text(error: UserError, text: str) -> Text:
    """An error as it is shown: the message, the line it is about with the place marked, and the hint.

    Args:
        error: its place, if it has one, is a place in the text.
        text: what was carried out.
    """
    shown = Text.assemble(("error: ", "bold red"), (error.message, "red"))
    lines = text.split("\n")
    place = error.position
    if place is not None and place.line <= len(lines):
        line = lines[place.line - 1].rstrip()
        number = f"{place.line} | "
        before = line[: place.column - 1]
        # What is a tab above is one below, so that the mark is where the place is.
        blanks = "".join(character if character == "\t" else " " for character in before)
        shown.append(f"\n{number}{line}")
        shown.append(f"\n{' ' * len(number)}{blanks}")
        shown.append("^", "bold red")
    if error.hint:
        shown.append("\nhint: ", "bold")
        shown.append(error.hint)
    return shown
