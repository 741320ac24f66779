"""What a shell works on: a database in this process, or the one of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headrace.language.completion.candidates import KnownNames
from headrace.language.named_values import ParameterValue


@dataclass(frozen=True)
class Made:
    """A query that a statement has made.

    Attributes:
        name: the query's.
        notes: what its author may not expect, with places in the text.
    """

    name: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """What a statement answers as text."""

    text: str


Result = Made | Told
"""What comes of a statement, beside its effect."""


@dataclass(frozen=True)
class Ran:
    """What a run to the end has given.

    Attributes:
        answers: the queries and their histories.
        summary: what was read, as text.
        failed: the queries without an answer, and why.
    """

    answers: tuple[tuple[str, pa.Table], ...]
    summary: str
    failed: tuple[tuple[str, str], ...] = ()


class Target(Protocol):
    """A database, as the shell uses it."""

    def execute(self, text: str, base: Path) -> list[Result]:
        """Carry out statements; see `headrace.Database.execute`."""
        ...

    def known(self) -> KnownNames:
        """The names that statements can use; no error where they cannot be had."""
        ...

    def answer(self, query: str, view: str) -> pa.Table:
        """A view of a query's answer: history, changes, stream or latest."""
        ...

    def tail(self, query: str, rows: int) -> pa.Table:
        """The newest rows of a query's answer, the newest one last; see `headrace.Query.tail`."""
        ...

    def is_events(self, query: str) -> bool:
        """Whether a query's answer is a stream of events, whose rows are of an instant each."""
        ...

    def moment(self, query: str) -> tuple[object, str]:
        """What changes with every commit, and how far the query's answer is, as text."""
        ...

    def ask(self, question: str, parameters: Mapping[str, ParameterValue]) -> pa.Table:
        """The answer of a question; see `headrace.Database.ask`."""
        ...

    def push(self, stream: str, rows: str) -> bool:
        """Add rows, given as JSON: an object or a list of them; False if they were a repeat."""
        ...

    def why(self, query: str) -> str:
        """Why a query has no output, or no newer one."""
        ...

    def status(self) -> str:
        """How far everything is."""
        ...

    def settle(self) -> bool:
        """Start answering in the background where a query reads an endless stream; whether it does so now.

        Raises:
            UserError: it cannot start, or what has ended it.
        """
        ...

    def run(self) -> Ran | None:
        """Answer all queries: to the end, or (None) in the background."""
        ...

    def stop(self) -> None:
        """End what goes on in the background.

        Raises:
            UserError: nothing does, or what has ended it.
        """
        ...

    def close(self) -> None:
        """Let it go."""
        ...
