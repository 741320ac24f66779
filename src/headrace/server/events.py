"""Changes as server-sent events, with ids by which a client that was cut off continues.

An id is `start.epoch.part`: the first epoch of the query, the epoch, and how many of its rows the client has
with this event; `.end` follows where these are all. The rows of an epoch have a fixed order, so that the part
means the same to every server on the same store.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from headrace.engine.shown.status import instant_text
from headrace.runtime.results.changes import Change
from headrace.runtime.writing.tables import write_table
from headrace.time import TimeDomain

_PART_BYTES: Final = 64 * 2**10
"""About so many bytes of rows an event has at most, so that a client that does not read holds no more."""
_ID: Final = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})(\.end)?")


@dataclass(frozen=True)
class ClientPlace:
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


@dataclass(frozen=True)
class EventPart:
    """An event with some rows of an epoch, or a comment where it has none.

    Attributes:
        begin: how many rows of the epoch come before it.
        after: the place of a client that has it.
        data: what is sent.
    """

    begin: int
    after: ClientPlace
    data: bytes

    def follows(self, place: ClientPlace) -> bool:
        """Whether it is what a client at a place needs next, or something later."""
        epoch = self.after.epoch
        return epoch > place.epoch or (epoch == place.epoch and not place.whole and self.begin >= place.part)


def place_of(text: str) -> ClientPlace | None:
    """The place that an id names; None where it is not one."""
    found = _ID.fullmatch(text.strip())
    if found is None:
        return None
    start, epoch, part = (int(found[group]) for group in (1, 2, 3))
    return ClientPlace(start, epoch, part, found[4] is not None)


def parts_of(
    change: Change, start: int, domain: TimeDomain, part_rows: int, part: int = 0
) -> Iterator[EventPart]:
    """What an epoch changed, as events, made one by one; a comment where it changed nothing.

    Args:
        change: it.
        start: the first epoch of the query.
        domain: what its instants count.
        part_rows: how many rows an event has at most; of wide rows it has fewer.
        part: how many of the rows the client has already.
    """
    final = instant_text(change.heartbeat, domain) or "nothing"
    count = change.rows.num_rows
    if part >= count:
        after = ClientPlace(start, change.epoch, count, True)
        yield EventPart(part, after, f": final below {final}\nid: {after}\n\n".encode())
        return
    fitting = _PART_BYTES * count // max(1, change.rows.nbytes)
    step = max(1, min(part_rows, fitting))
    for begin in range(part, count, step):
        lines = _json_lines(change.rows.slice(begin, step))
        done = begin + len(lines)
        after = ClientPlace(start, change.epoch, done, done == count)
        head = json.dumps({"epoch": change.epoch, "final_below": final, "last": after.whole})[:-1]
        text = f'id: {after}\nevent: changes\ndata: {head}, "rows": [{", ".join(lines)}]}}\n\n'
        yield EventPart(begin, after, text.encode())


def greeting(place: ClientPlace) -> bytes:
    """What a client gets at once: that it is connected, and the id that it continues after.

    Without the id a client that began with the next epoch, and is cut off before it, would begin with a later
    one when it connects again.
    """
    return f": connected\nid: {place}\n\n".encode()


def event(name: str, data: dict[str, Any]) -> bytes:
    """An event without an id."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _json_lines(rows: Any) -> list[str]:
    text = io.BytesIO()
    write_table(rows, "jsonl", text)
    return text.getvalue().decode().splitlines()
