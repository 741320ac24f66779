"""Until when the clock alone changes an answer over streams that are timed by arrival.

Their heartbeats follow the clock, which always moves. Epochs without input are made for it only while rows
that have come can still change the answer, and not for each microsecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.algebra.bounds import settles_within
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.time import BEGINNING, INFINITY, MICROSECONDS

_PARTS: Final = 64
"""Into so many parts the time is cut in which a row changes an answer; an epoch is made for each."""

_SHORTEST: Final = MICROSECONDS["SECOND"] // 4
"""How long such a part is at least."""

_LONGEST: Final = MICROSECONDS["MINUTE"]
"""How long it is at most where the answer may change for ever, by the periods of a relation."""


@dataclass(frozen=True)
class Settling:
    """How an answer follows the clock.

    Attributes:
        streams: those that the query reads.
        within: how long after the newest row the last change of its answer is (microseconds), at most.
    """

    streams: tuple[str, ...]
    within: int

    @classmethod
    def of(cls, plan: Plan) -> Settling:
        """That of a query's answer."""
        streams = dict.fromkeys(source.name for source in sources_of(plan))
        # The end of a chronon, an instant after its beginning, changes no answer.
        return cls(tuple(streams), settles_within(plan) - plan.is_chronon)

    def is_due(self, newest: int, before: int, after: int, passed: int) -> bool:
        """Whether an epoch is worth its while.

        Args:
            newest: the largest timestamp that came on the streams (instant), BEGINNING if none did.
            before: the answer's heartbeat (instant).
            after: what it would be after the epoch.
            passed: how long ago the last epoch was (microseconds).
        """
        end = newest + self.within
        if newest == BEGINNING or before > end:
            return False
        part = max(self.within // _PARTS, _SHORTEST) if self.within < INFINITY else _LONGEST
        return after > end or after // part > before // part or passed >= part
