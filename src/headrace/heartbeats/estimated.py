"""The disorder of a stream that is estimated from its rows: what is remembered of it, and when it changes.

An epoch is judged, and its heartbeat is made, with the disorder that was committed before it; what the epoch
brought counts from the next one on. So all tasks and repeats of an epoch agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimation import (
    Adaptivity,
    EstimationRules,
    EstimationState,
    bounds_of,
    estimate,
    start,
)
from headrace.heartbeats.share import Lateness, LateTarget, ShareState, after
from headrace.heartbeats.timing import Estimated, Timing
from headrace.time import MAX_INSTANT

KEPT: Final = 32
"""How many changes of a disorder are kept to be shown."""

_LEARNING: Final = 100
"""How many rows are compared before an adaptive estimate is used."""


@dataclass(frozen=True)
class DisorderChange:
    """That the disorder of a stream has changed.

    Attributes:
        at: the clock's reading for the epoch whose rows changed it (microseconds since 1970).
        disorder: since then (instants).
    """

    at: int
    disorder: int


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is remembered of a stream whose disorder is estimated.

    Attributes:
        known: what the estimate is made from.
        disorder: for the rows of the next epoch (instants); None while it is being learned.
        changes: the last ones, `KEPT` at most.
    """

    known: ShareState | EstimationState
    disorder: int | None = None
    changes: tuple[DisorderChange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Numbers and lists of numbers by name, for a commit record."""
        kind = "share" if isinstance(self.known, ShareState) else "adaptive"
        changes = [[change.at, change.disorder] for change in self.changes]
        return {kind: self.known.to_json(), "disorder": self.disorder, "changes": changes}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Estimate:
        """The estimate of which `to_json` made this.

        Raises:
            KeyError, TypeError, ValueError: it made no such thing.
        """
        known: ShareState | EstimationState
        if "share" in found:
            known = ShareState.from_json(found["share"])
        else:
            known = EstimationState.from_json(found["adaptive"])
        disorder = None if found["disorder"] is None else int(found["disorder"])
        changes = tuple(DisorderChange(int(at), int(length)) for at, length in found["changes"])
        return cls(known, disorder, changes)


def in_force(timing: Timing, found: Estimate | None) -> Timing:
    """What holds for the rows of the next epoch: a declaration with the disorder that is estimated by now."""
    if timing.estimated is None:
        return timing
    return replace(timing, disorder=None if found is None else found.disorder)


def follow(
    rule: Estimated, before: Estimate | None, arrivals: Arrivals, lateness: Lateness, clock: int
) -> Estimate | None:
    """The estimate after an epoch.

    Where another way of estimating has been declared since, the disorder stays until that one has learned.

    Args:
        rule: how it is estimated.
        before: the estimate that the epoch was judged with; None if nothing had come.
        arrivals: what the epoch brought.
        lateness: how far its rows were behind; only looked at for a share of late rows.
        clock: the clock's reading for the epoch (microseconds since 1970).
    """
    if not (arrivals.rows or arrivals.late):
        return before
    known = None if before is None else before.known
    found: ShareState | EstimationState
    match rule:
        case LateTarget():
            state = known if isinstance(known, ShareState) else ShareState()
            found = after(rule, state, arrivals, lateness)
            disorder = found.disorder if found.disorder < MAX_INSTANT else None
        case Adaptivity():
            found, disorder = _adapted(rule, known, arrivals)
        case _:
            assert_never(rule)
    last = None if before is None else before.disorder
    changes = () if before is None else before.changes
    if disorder is None:
        return Estimate(found, last, changes)
    if disorder != last:
        changes = (*changes, DisorderChange(clock, disorder))[-KEPT:]
    return Estimate(found, disorder, changes)


def _adapted(
    rule: Adaptivity, known: ShareState | EstimationState | None, arrivals: Arrivals
) -> tuple[EstimationState, int | None]:
    """The estimate of figure 4 after an epoch, with the disorder that it is.

    A window of time is of the stream's own, so that files are estimated as live streams are.
    """
    rules = EstimationRules(1, ((0, 0),), (0,), 1, rule, _LEARNING)
    if not isinstance(known, EstimationState) or int(known.estimates.window[0, 0]) != rule.window:
        known = start(rules)
        newest = arrivals.latest
    else:
        newest = max(known.clock, arrivals.latest)
    found = replace(estimate(rules, known, {0: arrivals}, newest), changes=())
    bounds = bounds_of(rules, found).between(0, 0)
    # A bound of 0 would say that timestamps only rise, which no number of rows shows.
    return found, max(bounds[0].delta - 1, 0) if bounds else None
