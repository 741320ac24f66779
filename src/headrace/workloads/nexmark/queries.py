"""The queries of NEXMark, one text each.

They are over the streams bid, auction, person and closed, over arriving, which has the bids timed by arrival,
and over the relation side_input.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from headrace.errors import UserError

SIDE_INPUT: Final = Path(str(files(__package__) / "side_input.csv"))
"""The rows of side_input: a `key` from 0 to 9,999 and its `value`."""


@dataclass(frozen=True)
class NexmarkQuery:
    """A query of the suite.

    Attributes:
        name: `q0`, `q1` and so on.
        text: its statements, after comments: what it asks, and how it differs from the printed text.
    """

    name: str
    text: str

    @property
    def title(self) -> str:
        """What it asks, in a line."""
        return self.text.splitlines()[0].removeprefix("-- ")


def nexmark_queries() -> tuple[NexmarkQuery, ...]:
    """All queries, in the order of their numbers."""
    found = sorted(files(__package__).iterdir(), key=lambda file: file.name)
    return tuple(
        NexmarkQuery(f"q{int(file.name[1:3])}", file.read_text(encoding="utf-8"))
        for file in found
        if file.name.endswith(".sql")
    )


def nexmark_query(name: str) -> NexmarkQuery:
    """The query of that name; `Q5` and `q05` are q5.

    Raises:
        UserError: there is none.
    """
    queries = nexmark_queries()
    number = name.lower().removeprefix("q").lstrip("0") or "0"
    for query in queries:
        if query.name == f"q{number}":
            return query
    raise UserError(
        f"NEXMark has no query {name}", hint=f"its queries are {', '.join(query.name for query in queries)}"
    )
