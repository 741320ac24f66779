"""What answers have shown of the bounds that queries have promised, while one share of rows was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.algebra.nodes import LargestWeight, Plan, TimeWindow
from headrace.algebra.properties import walk
from headrace.algebra.tunings.tunings import Tuning, size_of
from headrace.elements import Batch
from headrace.language.parsing.statements.losses import loss_from
from headrace.optimizer.estimates.places import estimates_in
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.precision import least_share, widest
from headrace.steps import WHOLE, StepFunction
from headrace.time import BEGINNING, INFINITY

LastSaid = Callable[[str], Iterable[Batch]]
"""The elements that a commit brought to a query's answer, by the query's identity."""

_AGAIN: Final = 2
"""After a promise that no share holds, all rows are kept for so many times as long as after the last one."""


@dataclass(frozen=True)
class _Seen:
    """What is known of a promise.

    Attributes:
        steps: the shares so far.
        window: for how long a row may be in a window (instants).
        since: the first instant at which no row is in windows from before the last change of the share.
        now: the heartbeat of its streams.
        widths: the heartbeats of the last window's length, each with how far bounds were from estimates then.
        barred: up to this instant all rows are kept, since a share below that has broken the promise.
        patience: for so long all were kept the last time (instants).
    """

    steps: StepFunction = ()
    window: int = 0
    since: int = BEGINNING
    now: int = BEGINNING
    widths: tuple[tuple[int, float], ...] = ()
    barred: int = BEGINNING
    patience: int = 0

    @property
    def width(self) -> float | None:
        """The furthest that bounds were from estimates within the length of a window; None if not known."""
        return max((width for _, width in self.widths), default=None)

    @property
    def settled(self) -> bool:
        """Whether answers of the share were seen for as long as a window, and so all groups that are left."""
        return self.now >= self.since + self.window

    def least(self, tuning: Tuning, share: int) -> int:
        """The smallest share that keeps the promise (millionths)."""
        if self.now < self.barred:
            return WHOLE
        return least_share(loss_from(tuning.loss), share, self.width, self.settled)

    def judged(self, tuning: Tuning, share: int) -> _Seen:
        """It with the instant up to which all rows are to be kept, if it shows that they have to be."""
        if share == WHOLE or self.width is None:
            return self
        if least_share(loss_from(tuning.loss), share, self.width, self.settled) < WHOLE:
            return replace(self, patience=0) if self.settled else self
        patience = _AGAIN * self.patience or max(1, self.window)
        return replace(self, barred=self.now + patience, patience=patience)


@dataclass
class BoundsSeen:
    """The bounds that a run's queries have shown, of those that have promised something of them."""

    _seen: dict[Tuning, _Seen] = field(default_factory=dict)

    def look(self, run: PublishedRun, users: Mapping[Tuning, Mapping[str, Plan]], said: LastSaid) -> None:
        """Remember how far bounds are from estimates after a commit.

        Args:
            run: what is to be seen of it.
            users: the queries by what says which share of their rows is kept.
            said: says what the commit brought to a query's answer.
        """
        known, self._seen = self._seen, {}
        for tuning, plans in users.items():
            if loss_from(tuning.loss).tolerance is not None:
                self._seen[tuning] = _looked_at(known.get(tuning, _Seen()), run, tuning, plans, said)

    def least(self, tuning: Tuning, share: int) -> int:
        """The smallest share that keeps what was promised, if anything was (millionths).

        Args:
            tuning: says whose share it is.
            share: the share that is kept (millionths).
        """
        seen = self._seen.get(tuning)
        return least_share(loss_from(tuning.loss), share) if seen is None else seen.least(tuning, share)


def _looked_at(
    seen: _Seen, run: PublishedRun, tuning: Tuning, plans: Mapping[str, Plan], said: LastSaid
) -> _Seen:
    known = run.queries.tunings.get(tuning)
    steps = () if known is None else known.steps
    if steps != seen.steps:
        seen = replace(seen, steps=steps, widths=())
    window, since = longest_window(plans.values()), drained_from(run, tuning, plans.values())
    seen = replace(seen, window=window, since=since, now=heartbeat_of(run, tuning))
    share = size_of(tuning, run.queries.tunings)
    if share == WHOLE or seen.now < since:
        return seen
    found = [widest(said(name), estimates_in(plan), since) for name, plan in plans.items()]
    new = [(seen.now, width) for width in found if width is not None]
    recent = (one for one in seen.widths if one[0] > seen.now - window)
    return replace(seen, widths=(*recent, *new)).judged(tuning, share)


def drained_from(run: PublishedRun, tuning: Tuning, plans: Iterable[Plan]) -> int:
    """From which instant on no row is in windows from before the last change of a share.

    BEGINNING where it has not changed.

    Args:
        run: what is to be seen of it.
        tuning: says whose share it is.
        plans: those of the queries that have it.
    """
    known = run.queries.tunings.get(tuning)
    if known is None or not known.steps:
        return BEGINNING
    return known.steps[-1].begin + longest_window(plans)


def heartbeat_of(run: PublishedRun, tuning: Tuning) -> int:
    """The heartbeat of the streams of a share: the smallest."""
    return min(run.points[name].heartbeat for name in tuning.streams)


def longest_window(plans: Iterable[Plan]) -> int:
    """For how long a row may be in a window of some plans (instants)."""
    lengths = (
        node.size.length + node.slide.length
        for plan in plans
        for node in walk(plan)
        if isinstance(node, TimeWindow | LargestWeight) and node.size.length != INFINITY
    )
    return max(lengths, default=0)
