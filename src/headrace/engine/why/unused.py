"""The rows that a query could not use, as WHY names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from headrace.algebra.events import NOTHING_TAKEN_BACK
from headrace.engine.why.finding import Finding
from headrace.runtime.driver.facts.status import QueryStatus
from headrace.runtime.writing.texts import count

LOOKED_AT: Final = 1_000
"""About so many of the newest dead letters are looked at."""
_MOST: Final = 3
"""So many reasons are named."""
_LONGEST: Final = 200
"""So many characters of a reason or a row are shown."""

_STREAM_HINT: Final = "dead_letters('{}') has them; of late rows, a larger DISORDER takes more"
_NOT_THERE_HINT: Final = (
    "a correction has all columns of what it takes back, as a database logs them with REPLICA IDENTITY FULL; "
    "or declare KEY (column), so that the key is enough"
)
_QUERY_HINT: Final = "dead_letters() has them all; change the expression, or what sends the rows"


def unused_by(query: QueryStatus, letters: pa.Table) -> Iterator[Finding]:
    """What there is to say of the rows that a query could not use, the newest reason first.

    Args:
        query: it.
        letters: the newest dead letters, oldest first, as `dead_letters` gives them.
    """
    found: dict[tuple[str | None, str], list[dict[str, object]]] = {}
    for letter in reversed(letters.to_pylist()):
        if letter["query"] is None and letter["stream"] in query.reads:
            found.setdefault((letter["stream"], letter["reason"]), []).append(letter)
        elif letter["query"] is not None and query.name in letter["query"].split(", "):
            found.setdefault((None, letter["reason"]), []).append(letter)
    for (stream, reason), some in list(found.items())[:_MOST]:
        newest = some[0]
        what = (
            count(len(some), "row") if letters.num_rows < LOOKED_AT else f"at least {count(len(some), 'row')}"
        )
        whose = "" if stream is None else f" of {stream}"
        where = f" ({_cut(newest['place'])})" if newest["place"] else ""
        yield Finding(
            f"{what}{whose} could not be used, the last in epoch {newest['epoch']}: {_cut(reason)}: "
            f"{_cut(newest['row'])}{where}",
            _hint(stream, reason),
        )


def _hint(stream: str | None, reason: str) -> str:
    if stream is not None:
        return _STREAM_HINT.format(stream)
    return _NOT_THERE_HINT if reason == NOTHING_TAKEN_BACK else _QUERY_HINT


def _cut(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
