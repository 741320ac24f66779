"""The definition of heartbeats per value of a column: which rows are late, and how far the stream is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

ArrivedEpoch = tuple[int, Sequence[tuple[Hashable, int]]]
"""When it was, in counted time, and its rows: value and timestamp."""


def per_value(
    epochs: Sequence[ArrivedEpoch],
    disorder: int,
    idle_after: int | None,
    wait: int,
    listed: Sequence[Hashable],
) -> tuple[list[list[int]], list[int | None]]:
    """Per epoch the places of its late rows, and the stream's heartbeat after it, None for nothing promised.

    Args:
        epochs: the input.
        disorder: how much older than the newest row of its value a row may be.
        idle_after: after how long without rows a value does not count.
        wait: how long the stream waits after its first row for values that it does not know.
        listed: values that it knows from the beginning.
    """
    late: list[list[int]] = []
    heartbeats: list[int | None] = []
    heartbeat, first = None, None
    rows_of: dict[Hashable, list[int]] = {value: [] for value in listed}
    heard: dict[Hashable, int] = dict.fromkeys(listed, 0)
    for clock, rows in epochs:
        found = []
        for place, (value, instant) in enumerate(rows):
            own = rows_of.setdefault(value, [])
            below = heartbeat is not None and instant < heartbeat
            if below or (own and instant < max(own) - disorder):
                found.append(place)
            own.append(instant)
            heard[value] = clock
            first = clock if first is None else first
        late.append(found)
        active = [value for value in rows_of if idle_after is None or clock - heard[value] < idle_after]
        if first is not None and clock - first >= wait and active and all(rows_of[value] for value in active):
            reached = min(max(rows_of[value]) - disorder for value in active)
            heartbeat = reached if heartbeat is None else max(heartbeat, reached)
        heartbeats.append(heartbeat)
    return late, heartbeats
