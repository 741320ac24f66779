"""Changes as server-sent events, with ids by which a client that was cut off continues.

An id is `start.epoch.part`: the first epoch of the query, the epoch, and how many of its rows the client has
with this event; `.end` follows where these are all. The rows of an epoch have a fixed order, so that the part
means the same to every server on the same store.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from headrace.engine.status import instant_text
from headrace.runtime.results.changes import Change
from headrace.runtime.writing.tables import write_table
from headrace.time import TimeDomain

_ID: Final = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})(\.end)?")


@dataclass(frozen=True)
class Place:
    """Up to where a client has a query's changes.

    Attributes:
        start: the first epoch of the query.
        epoch: the last epoch of which it has something.
        part: how many rows of that it has.
        whole: whether these are all.
    """

    start: int
    epoch: int
    part: int
    whole: bool

    def __str__(self) -> str:
        return f"{self.start}.{self.epoch}.{self.part}{'.end' if self.whole else ''}"

    @property
    def due(self) -> int:
        """The first epoch of which it lacks something."""
        return self.epoch + 1 if self.whole else self.epoch


def place_of(text: str) -> Place | None:
    """The place that an id names; None where it is not one."""
    found = _ID.fullmatch(text.strip())
    if found is None:
        return None
    start, epoch, part = (int(found[group]) for group in (1, 2, 3))
    return Place(start, epoch, part, found[4] is not None)


def events_of(change: Change, start: int, domain: TimeDomain, part_rows: int, part: int = 0) -> bytes:
    """What an epoch changed, as events; a comment where it changed nothing.

    Args:
        change: it.
        start: the first epoch of the query.
        domain: what its instants count.
        part_rows: how many rows an event has at most.
        part: how many of the rows the client has already.
    """
    final = instant_text(change.heartbeat, domain) or "nothing"
    rows, count = change.rows.slice(part), change.rows.num_rows
    if not rows.num_rows:
        return f": final below {final}\nid: {Place(start, change.epoch, count, True)}\n\n".encode()
    lines = _json_lines(rows)
    events = []
    for begin in range(0, len(lines), part_rows):
        sent = lines[begin : begin + part_rows]
        done = part + begin + len(sent)
        place = Place(start, change.epoch, done, done == count)
        head = json.dumps({"epoch": change.epoch, "final_below": final, "last": place.whole})[:-1]
        events.append(f'id: {place}\nevent: changes\ndata: {head}, "rows": [{", ".join(sent)}]}}\n\n')
    return "".join(events).encode()


def event(name: str, data: dict[str, Any]) -> bytes:
    """An event without an id."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _json_lines(rows: Any) -> list[str]:
    text = io.BytesIO()
    write_table(rows, "jsonl", text)
    return text.getvalue().decode().splitlines()
