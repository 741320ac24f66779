"""Clauses about the past: which rows of a stream are kept, and since when a query answers."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import Position
from headrace.time import INFINITY, Duration


@dataclass(frozen=True)
class RetainClause:
    """`RETAIN duration | n ROWS | ALL`: which rows of a stream are kept once they have been read.

    Attributes:
        length: those that are no older than the heartbeat less this, in the stream's own time; INFINITY for
            all. None where rows are counted.
        rows: so many of the last ones; None where a length is given.
    """

    length: Duration | None = None
    rows: int | None = None

    def __str__(self) -> str:
        if self.length is None:
            return f"RETAIN {self.rows} ROWS"
        return "RETAIN ALL" if self.length.length == INFINITY else f"RETAIN {self.length}"


@dataclass(frozen=True)
class StartClause:
    """Since when a query that is added answers.

    `{STARTING AT instant | FROM -duration | FROM BEGINNING} [WITH DEAD LETTERS] | STARTING NOW`.

    Attributes:
        at: the instant, as it is written: a text or a number; None where another is meant.
        back: how long before the streams' heartbeat; None where an instant is given, or the beginning meant.
        position: where the clause begins.
        now: whether it answers from now on, over the rows that come from then on alone.
        letters: whether it has the rows as well that were too late for the streams, as far as they are kept.
    """

    at: str | int | None
    back: Duration | None
    position: Position
    now: bool = False
    letters: bool = False

    def __str__(self) -> str:
        return f"{self._since}{' WITH DEAD LETTERS' if self.letters else ''}"

    @property
    def _since(self) -> str:
        if self.now:
            return "STARTING NOW"
        if self.back is not None:
            return f"FROM -{self.back}"
        match self.at:
            case None:
                return "FROM BEGINNING"
            case str(text):
                quoted = text.replace("'", "''")
                return f"STARTING AT '{quoted}'"
            case number:
                return f"STARTING AT {number}"
