"""How many rows may be dead letters, judged before the epoch with them counts."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import DeadLetterError
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.dead_letters import letters_of
from headrace.runtime.store.segments import Store


def refuse_dead_letters(
    allowed: int | None, found: int, store: Store, results: Sequence[EpochResults]
) -> None:
    """Refuse dead letters beyond a number.

    Args:
        allowed: how many there may be; any number if None.
        found: how many there are in all.
        store: where they lie.
        results: the epochs whose dead letters are there to be read, those of the last epoch included.

    Raises:
        DeadLetterError: there are more than that.
    """
    if allowed is None or found <= allowed:
        return
    first = next((rows.slice(0, 1).to_pylist()[0] for rows in letters_of(store, results)), None)
    said = f"; the first: {first['stream']}: {first['reason']}" if first else ""
    place = f" ({first['place']})" if first and first["place"] else ""
    rows = "1 row" if found == 1 else f"{found} rows"
    raise DeadLetterError(
        f"{rows} could not take part, where {allowed} may{said}{place}",
        hint="dead_letters() and --dead-letters PATH show them; a larger max_dead_letters allows them",
    )
