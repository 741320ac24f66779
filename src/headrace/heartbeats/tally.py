"""External CTIs: promises of how many rows there are in an interval, which hold once so many have come.

CEDR's Finalize (*Consistency Sensitive Streaming Operators in CEDR*, sections 3 and 4.6) makes internal CTIs
of them, at the earliest correct moment. They may come in any order, before and after the rows that they
count, and their intervals do not overlap. One difference: the printed algorithm looks at the first interval
that it knows, though an earlier one may still be on its way. Here an interval counts only where it goes on
from what is final already; the first one begins with the beginning of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headrace.elements import Int64Array
from headrace.time import BEGINNING


@dataclass(frozen=True, order=True)
class ExternalCti:
    """That a stream has so many rows that change what holds from `start` to before `end`.

    Attributes:
        start, end: the interval (instants); it begins at BEGINNING where no row is before it.
        count: how many rows.
    """

    start: int
    end: int
    count: int


@dataclass(frozen=True)
class Tally:
    """What is remembered of a stream with external CTIs.

    Attributes:
        waiting: those whose rows have not all come, by their beginning.
        received: how many rows have come, by the instant from which on they change what holds; of instants
            that are final or that something waits for. It has an entry per instant that is not final.
    """

    waiting: tuple[ExternalCti, ...] = ()
    received: tuple[tuple[int, int], ...] = ()

    def after(self, times: Int64Array, promises: Iterable[ExternalCti], heartbeat: int) -> tuple[int, Tally]:
        """What is promised once some rows and external CTIs have come.

        Args:
            times: int64[n], from which instants on the rows change what holds; those of late rows left out.
            promises: the external CTIs.
            heartbeat: what is promised otherwise (instant).

        Returns:
            The heartbeat, which is not below the given one, and what is remembered from then on.
        """
        known = np.array(self.received, dtype=np.int64).reshape(-1, 2)
        instants, places = np.unique(np.concatenate([known[:, 0], times]), return_inverse=True)
        rows = np.zeros(len(instants), dtype=np.int64)
        np.add.at(rows, places, np.concatenate([known[:, 1], np.ones(len(times), dtype=np.int64)]))
        waiting = sorted({*self.waiting, *promises})
        while waiting and waiting[0].start <= heartbeat:
            first = waiting[0]
            within = (instants >= first.start) & (instants < first.end)
            if first.end > heartbeat and rows[within].sum() < first.count:
                break
            heartbeat = max(heartbeat, first.end)
            waiting.pop(0)
        kept = instants >= min(heartbeat, waiting[0].start if waiting else heartbeat)
        received = zip(instants[kept].tolist(), rows[kept].tolist(), strict=True)
        return heartbeat, Tally(tuple(waiting), tuple(received))

    def to_json(self) -> dict[str, Any]:
        """Lists of numbers by name, for a commit record."""
        waiting = [[one.start, one.end, one.count] for one in self.waiting]
        return {"waiting": waiting, "received": [list(one) for one in self.received]}

    @classmethod
    def from_json(cls, found: Any) -> Tally:
        """That of which `to_json` made this.

        Raises:
            KeyError, TypeError, ValueError: it made no such thing.
        """
        waiting = tuple(ExternalCti(*map(int, one)) for one in found["waiting"])
        return cls(waiting, tuple((int(at), int(rows)) for at, rows in found["received"]))


NOTHING_TALLIED: Final = Tally()
"""Of a stream without external CTIs, or of which nothing has come."""


def is_cut(promise: ExternalCti, heartbeat: int) -> bool:
    """Whether a part of an interval is final already, so that the rows there are no longer known."""
    return BEGINNING < promise.start < heartbeat < promise.end
