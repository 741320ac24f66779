"""Notes on queries over several streams of which one can hold the others back for ever.

Whether a timeout is needed follows from the bounds between streams: theorem 3.3 of Srivastava and Widom,
*Flexible Time Management in Data Stream Systems*, PODS 2004.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from headrace.errors import Position
from headrace.heartbeats.skew import within
from headrace.heartbeats.timing import Timing
from headrace.language.notes import Note
from headrace.language.parsing.pieces import Piece
from headrace.language.syntax import QuerySyntax, TableQuery, WithQuery
from headrace.runtime.driver.clock.timekeeper import rules_of

_NAMED: Final = 3
"""Of so many streams a note has the names, of more the first ones and a number."""


def notes_on_silence(timings: Mapping[str, Timing], position: Position) -> tuple[Note, ...]:
    """What happens to a query if streams that it reads send nothing, where that is not provided for.

    Nothing is said of a query over one stream: its last rows wait for the next ones, as one expects.

    Args:
        timings: what is declared of the streams that the query reads and that never end, by name.
        position: of the query.
    """
    # Those that follow others at once hold nothing back.
    timings = {name: timing for name, timing in timings.items() if timing.idle_after != 0}
    matrix = rules_of({name: _learned(timing) for name, timing in timings.items()}, ()).matrix
    if len(timings) < 2 or not matrix.needs_timeout():
        return ()
    names, found = tuple(timings), []
    unbounded, behind = matrix.stalling()
    alone = [names[place] for place in unbounded if _holds_back(timings[names[place]])]
    if alone:
        found.append(_on_one(alone, len(names), position))
    if any(timing.follows or timing.deviation is not None for timing in timings.values()):
        waiting = [names[place] for place in behind if timings[names[place]].timeout is None]
        if waiting:
            found.append(_on_all(waiting, names, position))
    return tuple(found)


def _learned(timing: Timing) -> Timing:
    """What will hold once bounds that are estimated are known, whatever they will be."""
    follows = (one if one.estimated is None else replace(one, bounds=(within(0),)) for one in timing.follows)
    return replace(timing, follows=tuple(follows))


def place_of(asked: QuerySyntax | Piece) -> Position:
    """Where notes on a whole query are put."""
    match asked:
        case WithQuery(query=query):
            return place_of(query)
        case TableQuery(table=table):
            return table.name.position
        case _:
            return asked.position


def _holds_back(timing: Timing) -> bool:
    """Whether nothing but rows moves a stream's heartbeat, as far as is declared."""
    moved = timing.idle_after is not None or timing.timeout is not None
    return not (moved or timing.heartbeats is not None or timing.by_cti or timing.by_arrival)


def _on_one(alone: Sequence[str], streams: int, position: Position) -> Note:
    some = "a stream that the query reads" if len(alone) == streams else f"{_listed(alone, 'or')}"
    return Note(
        f"while {some} sends nothing, no answer about the rows of the others is final",
        position,
        f"ALTER STREAM {alone[0]} IDLE AFTER 30 SECONDS lets the others go on without it",
    )


def _on_all(waiting: Sequence[str], names: Sequence[str], position: Position) -> Note:
    everybody, some = _listed(names, "and"), _listed(waiting, "and")
    return Note(
        f"if {everybody} all send nothing, {some} may stay behind the last rows",
        position,
        f"ALTER STREAM {waiting[0]} TIMEOUT 30 SECONDS lets it pass them then",
    )


def _listed(names: Sequence[str], word: str) -> str:
    shown = [*names[:_NAMED], *([f"{len(names) - _NAMED} others"] if len(names) > _NAMED else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"
