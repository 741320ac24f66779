"""The shares of rows that joins remember: after a commit they are made to keep within their memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.algebra.tunings.tunings import Tuning, size_of
from headrace.byte_sizes import format_bytes
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.remembered import KeptSide, LimitedQuery, limited_queries, part_found
from headrace.runtime.driver.remembering.allocation import allocated
from headrace.steps import WHOLE, share_text
from headrace.time import BEGINNING, INFINITY

_SPARE: Final = 0.15
"""So much of its memory a query is to leave free at least."""
_MORE: Final = 1.5
"""So many times that is left free after less is remembered, so that it is not too much again at once."""
_EPOCHS: Final = 2
"""As much as came with so many of the largest epochs is to fit into what is left free."""
_FADING: Final = 0.95
"""So much of what the largest epoch brought counts with each that follows."""
_GAIN: Final = 0.05
"""More is remembered, or other rows, if so much more of the pairs is found by it."""


@dataclass
class Remembering:
    """Keeps the joins of a run's queries within their memory.

    What is kept rises and falls as rows that have ended are let go of together. So more is remembered by the
    most that was kept while windows passed twice; after a restart that is looked at anew.
    """

    _peaks: dict[tuple[Tuning, ...], tuple[int, tuple[KeptSide, ...]]] = field(default_factory=dict)
    _grown: dict[tuple[Tuning, ...], tuple[float, float]] = field(default_factory=dict)

    def after(self, run: PublishedRun) -> Tune | None:
        """Look at a run after a commit.

        Queries of the same plan with the same limit share what they keep.

        Args:
            run: what is to be seen of it.

        Returns:
            The change of shares that is to follow; None where there is none.
        """
        groups: dict[tuple[Tuning, ...], list[LimitedQuery]] = {}
        for one in limited_queries(run):
            groups.setdefault(one.tunings, []).append(one)
        for seen in (self._peaks, self._grown):
            for gone in seen.keys() - groups.keys():
                del seen[gone]
        sizes: dict[Tuning, int] = {}
        queries: dict[Tuning, list[str]] = {}
        why: dict[Tuning, str] = {}
        for tunings, users in groups.items():
            largest = max(users, key=lambda one: one.used)
            for tuning, share in zip(tunings, self._wanted(run, largest), strict=True):
                before, known = size_of(tuning, run.queries.tunings), run.queries.tunings.get(tuning)
                if share != before:
                    had = () if known is None else known.queries
                    sizes[tuning], why[tuning] = share, _why(largest, before, share)
                    paused = (name for name in had if name in run.queries.paused)
                    queries[tuning] = [*(one.query for one in users), *paused]
        return Tune(sizes, queries, why) if sizes else None

    def _wanted(self, run: PublishedRun, query: LimitedQuery) -> tuple[int, ...]:
        """The shares that are to be in force (millionths)."""
        shares, begin = query.shares(run), _last_change(run, query)
        now = tuple(share / WHOLE for share in shares)
        heartbeat = min(point.heartbeat for point in query.points(run))
        spare = self._spare(query)
        if heartbeat <= begin:
            # What is kept does not tell of the last change before rows were forgotten by it.
            return shares
        # Where what waits takes all, there is no less of it by forgetting the rest.
        waiting = sum(side.waiting for side in query.kept)
        least = _SPARE * query.limit
        spans, room = query.spans(run), max(query.limit - _MORE * spare, least, waiting + least)
        if query.used > query.limit - spare:
            return _millionths(allocated(query.kept, spans, now, now, room, query.joined))
        since, peak = self._peaks.get(query.tunings, (heartbeat, query.kept))
        if since < begin or len(peak) != len(query.kept):
            since, peak = heartbeat, query.kept
        peak = tuple(map(_larger, peak, query.kept))
        self._peaks[query.tunings] = since, peak
        longest = max(one.span for one in query.rows)
        if all(share == WHOLE for share in shares) or longest == INFINITY or heartbeat < since + 2 * longest:
            return shares
        del self._peaks[query.tunings]
        more = allocated(peak, spans, now, (1.0,) * len(now), room, query.joined)
        gained = part_found(more, spans, query.joined) - part_found(now, spans, query.joined)
        return _millionths(more) if gained > _GAIN else shares

    def _spare(self, query: LimitedQuery) -> float:
        """The part of its memory that a query is to leave free for the next epochs (bytes)."""
        before, most = self._grown.get(query.tunings, (query.used, 0.0))
        most = max(_FADING * most, query.used - before)
        self._grown[query.tunings] = query.used, most
        return max(_SPARE * query.limit, _EPOCHS * most)


def _larger(one: KeptSide, other: KeptSide) -> KeptSide:
    return other if other.size > one.size else one


def _last_change(run: PublishedRun, query: LimitedQuery) -> int:
    """The instant from which on the present shares are in force."""
    known = run.queries.tunings
    return max(
        (known[one].steps[-1].begin for one in query.tunings if one in known and known[one].steps),
        default=BEGINNING,
    )


def _why(query: LimitedQuery, before: int, share: int) -> str:
    """Why another share is remembered, as people are told."""
    what = "lowered" if share < before else "raised"
    return (
        f"{what} from {share_text(before)} to {share_text(share)}, since joins kept "
        f"{format_bytes(query.used)} of {format_bytes(query.limit)}"
    )


def _millionths(shares: Sequence[float]) -> tuple[int, ...]:
    return tuple(min(WHOLE, max(1, int(share * WHOLE))) for share in shares)
