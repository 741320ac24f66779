"""Algorithms 1 to 5 of Goldstein and Hong: a snapshot-oriented operator that keeps perfect streams perfect.

They are here as they are printed, but for these errors:

- `State.k` is said to count the events that contribute to a state. What the algorithms ask it (1, line 25; 4,
  lines 2, 10 and 20) is whether an entry was there before, and is there without the event: how many events
  begin or end at it. That is what it counts here.
- 2: two tuples that end at one instant would make two entries of it.
- 4, line 11: the payloads that are retracted are those of the entry before, not of the one that goes.
- 4, line 13: the entry before may begin before the last CTI, and the output must not be changed there. Then
  nothing is joined together: the entry stays, and the output is cut where it is. The last entry stays, too,
  since the output ends at it.
- 4, line 23: `SearchEQ` fails where there is no entry, although line 24 handles that case.
- 4, line 26: where the new end is beyond the watermark, the search finds the last entry, in which the tuple
  still is (lemma 14 says that it has to go from there, too).
- 5, line 5: the output of the last entry is still to come and begins at it, so no later CTI may be passed on
  unless its state is empty.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field

from headrace.reference.contents import Payload
from headrace.reference.events import Combine, Cti, Event, Insert, Retraction, Row
from headrace.time import BEGINNING


@dataclass
class _Entry:
    """An entry of the POS: the payloads from its instant on, and how many events begin or end at it (k)."""

    payloads: Counter[Payload]
    ends: int = 0


@dataclass
class Speculation:
    """The operator, event by event.

    Attributes:
        combine: what it makes of a snapshot; nothing of an empty one.
        watermark: the output watermark (tau).
        output: what it has said.
    """

    combine: Combine
    watermark: int = BEGINNING
    output: list[Event] = field(default_factory=list)
    _entries: dict[int, _Entry] = field(default_factory=lambda: {BEGINNING: _Entry(Counter())})
    _waiting: list[Row] = field(default_factory=list)
    _promised: int = BEGINNING

    @property
    def entries(self) -> list[int]:
        """The instants of the POS, in order."""
        return sorted(self._entries)

    def process(self, event: Event) -> None:
        """Take one event."""
        match event:
            case Insert():
                self._insert(event)
            case Retraction():
                self._retract(event)
            case Cti(at=at):
                self._close(at)

    def _search(self, start: int, end: int, *, inclusive: bool = False) -> list[int]:
        """`POS.Search`: the entries from the last one up to `start` to those before `end`.

        `POS.ISearch` has the one at the end as well.
        """
        known = self.entries
        last = bisect_right(known, end) if inclusive else bisect_left(known, end)
        return known[bisect_right(known, start) - 1 : last]

    def _next(self, entry: int) -> int:
        known = self.entries
        return known[bisect_right(known, entry)]

    def _made(self, entry: int) -> list[Payload]:
        """`GetPayloads`."""
        return list(self.combine(+self._entries[entry].payloads))

    def _touch(self, instant: int) -> None:
        """The entry of an instant, made as a copy of the one before if it is missing."""
        if instant not in self._entries:
            (before,) = self._search(instant, instant + 1)
            self._entries[instant] = _Entry(Counter(self._entries[before].payloads))
        self._entries[instant].ends += 1

    def _insert(self, event: Insert) -> None:
        # Phase 1.
        for entry in self._search(event.start, event.end):
            if entry == self.entries[-1]:
                break
            self._take_back(entry, max(event.start, entry))
        # Phase 2.
        self._move_ends(event.start)
        self._touch(event.start)
        if event.end <= self.watermark:
            self._touch(event.end)
        else:
            self._waiting.append((event.start, event.end, event.payload))
        for entry in self._search(event.start, event.end):
            self._entries[entry].payloads[event.payload] += 1
        # Phase 3.
        if self.watermark < event.start:
            self._say(self.watermark, event.start)
            self.watermark = event.start
            return
        for entry in self._search(event.start, event.end, inclusive=True):
            if entry == self.entries[-1] or (entry == event.end and self._entries[entry].ends > 1):
                break
            self._say(entry, entry + 1)

    def _retract(self, event: Retraction) -> None:
        # Phase 1.
        for entry in self._search(event.new_end, event.end, inclusive=True):
            if entry == self.entries[-1] or (entry == event.end and self._entries[entry].ends > 1):
                break
            self._take_back(entry, max(event.new_end, entry))
        joined = event.new_end == event.start and self._goes(event.start)
        if joined:
            before = self.entries[self.entries.index(event.start) - 1]
            self._take_back(before, before)
        # Phase 2.
        self._move_end(event)
        for entry in self._search(event.new_end, event.end):
            if entry >= event.new_end:
                self._entries[entry].payloads[event.payload] -= 1
        if joined:
            del self._entries[event.start]
        # Phase 3.
        self._say(event.new_end, event.end)

    def _move_end(self, event: Retraction) -> None:
        """Algorithm 4, lines 14 to 25: the ends that wait, and the entries of those that do not."""
        if event.end > self.watermark:
            self._waiting.remove((event.start, event.end, event.payload))
        else:
            self._entries[event.end].ends -= 1
            if not self._entries[event.end].ends and event.end != self.entries[-1]:
                del self._entries[event.end]
        if event.new_end > self.watermark:
            self._waiting.append((event.start, event.new_end, event.payload))
        elif event.new_end > event.start:
            self._touch(event.new_end)
        else:
            self._entries[event.start].ends -= 1

    def _goes(self, entry: int) -> bool:
        """Whether an entry goes with the event that begins at it."""
        known = self.entries
        place = known.index(entry)
        is_inner = 0 < place < len(known) - 1
        return is_inner and self._entries[entry].ends == 1 and known[place - 1] >= self._promised

    def _close(self, at: int) -> None:
        self._move_ends(at)
        if self.watermark < at:
            self._say(self.watermark, at)
            self.watermark = self.entries[-1]
        last = self.entries[-1]
        promise = min(at, last) if +self._entries[last].payloads else at
        if promise > self._promised:
            self._promised = promise
            self.output.append(Cti(promise))
        while len(self._entries) > 1 and self.entries[1] < at:
            del self._entries[self.entries[0]]

    def _move_ends(self, until: int) -> None:
        """Algorithm 2: entries for the ends that have been passed."""
        for row in sorted(self._waiting, key=lambda row: row[1]):
            _, end, payload = row
            if end <= until:
                self._waiting.remove(row)
                self._touch(end)
                self._entries[end].payloads[payload] -= 1

    def _say(self, start: int, end: int) -> None:
        """Algorithm 3: the output of the entries of an interval, but for the last one."""
        for entry in self._search(start, end):
            if entry == self.entries[-1]:
                break
            self.output += [Insert(entry, self._next(entry), payload) for payload in self._made(entry)]

    def _take_back(self, entry: int, new_end: int) -> None:
        """What was said of an entry ends at an instant, or is not true at all."""
        end = self._next(entry)
        self.output += [Retraction(entry, end, new_end, payload) for payload in self._made(entry)]
