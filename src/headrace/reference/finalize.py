"""CEDR's Finalize, as printed: chains of retractions in their order, and CTIs once all is there.

Section 4.6 of *Consistency Sensitive Streaming Operators in CEDR*, where `finalizetime()` always returns the
beginning, so that nothing is forgotten. Two errata: where a retraction is joined to others of its chain, its
own sync time is what counts for a CTI, as the text has it, and not that of the joined one; and the count of
the printed example, five events in [0, 8), includes one with the sync time 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headrace.reference.events import Cti, Event, Insert, Retraction, sync
from headrace.time import BEGINNING


@dataclass(frozen=True)
class ReferenceCti:
    """The promise that a stream has so many events with a sync time from `start` to before `end`."""

    start: int
    end: int
    count: int


@dataclass
class FinalizeDefinition:
    """The operator.

    Attributes:
        last: the last CTI that was issued (instant).
        promises: the external CTIs that are not issued yet, in order of time.
        received: the sync times of the events from the last CTI on.
        broken: the retractions that do not shorten anything that is known.
        inserts: the tuples as they are by now.
    """

    last: int = BEGINNING
    promises: list[ReferenceCti] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    broken: list[Retraction] = field(default_factory=list)
    inserts: list[Insert] = field(default_factory=list)

    def process(self, event: Insert | Retraction | ReferenceCti) -> list[Event]:
        """What an event makes it yield."""
        if isinstance(event, ReferenceCti):
            self.promises = sorted([*self.promises, event], key=lambda promise: promise.start)
            return self._issued()
        if sync(event) < self.last:
            return []
        output = self._insert(event) if isinstance(event, Insert) else self._retract(event)
        self.received.append(sync(event))
        return [*output, *self._issued()]

    def _insert(self, event: Insert) -> list[Event]:
        after = self._take(event.start, event.payload, end=event.end)
        if after is not None:
            event = replace(event, end=after.new_end)
        self.inserts.append(event)
        return [event]

    def _retract(self, event: Retraction) -> list[Event]:
        before = self._take(event.start, event.payload, new_end=event.end)
        if before is not None:
            event = replace(event, end=before.end)
        after = self._take(event.start, event.payload, end=event.new_end)
        if after is not None:
            event = replace(event, new_end=after.new_end)
        known = Insert(event.start, event.end, event.payload)
        if known not in self.inserts:
            self.broken.append(event)
            return []
        self.inserts[self.inserts.index(known)] = replace(known, end=event.new_end)
        return [event]

    def _take(
        self, start: int, payload: tuple[object, ...], *, end: int | None = None, new_end: int | None = None
    ) -> Retraction | None:
        """Remove a broken retraction of a tuple, with that old or new end; None if there is none."""
        for one in self.broken:
            same = (one.start, one.payload) == (start, payload)
            if same and end in (None, one.end) and new_end in (None, one.new_end):
                self.broken.remove(one)
                return one
        return None

    def _issued(self) -> list[Event]:
        """The CTIs that hold now: of the first promise, as long as all that it counts is there."""
        found: list[Event] = []
        while self.promises:
            first = self.promises[0]
            if sum(first.start <= at < first.end for at in self.received) < first.count:
                break
            self.promises.pop(0)
            self.last = max(self.last, first.end)
            self._forget()
            found.append(Cti(self.last))
        return found

    def _forget(self) -> None:
        """Let go of what no later event can be connected to."""
        self.received = [at for at in self.received if at >= self.last]
        self.broken = [one for one in self.broken if one.new_end >= self.last]
        self.inserts = [one for one in self.inserts if one.start >= self.last]
