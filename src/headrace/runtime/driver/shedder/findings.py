"""The findings of the shedder of a run, for whoever looks at the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.algebra.tunings.tunings import Tuning
from headrace.runtime.driver.facts.capacity import Headroom
from headrace.runtime.driver.settings import Managing
from headrace.runtime.driver.shedder.policy import ShareKnob
from headrace.runtime.driver.shedder.values_seen import ThresholdKnob
from headrace.steps import WHOLE, share_text
from headrace.time import BEGINNING, MICROSECONDS, TimeDomain

TIMES: Final = (2, 3, 5)
"""For so many times the load it is said what would be kept."""


@dataclass(frozen=True)
class ShedShare:
    """A share of rows that is kept, and what the shedder has to say of it.

    Of queries that leave out rows by their values it is the share of those that came lately which are worth
    enough; each share is that of a threshold.

    Attributes:
        tuning: the streams, and what may be lost of their rows.
        domain: what instants count.
        knob: the share that is in force, its smallest value, its utility and its costs (seconds for each
            second).
        since: the first instant of rows of which it is kept; BEGINNING if all have been kept so far.
        wanted: the share that the shedder would have (millionths).
        at: the shares that would be kept at each of `TIMES` the load (millionths).
        why: why the share is in force, where nobody has asked for it.
    """

    tuning: Tuning
    domain: TimeDomain
    knob: ShareKnob
    since: int
    wanted: int
    at: tuple[int, ...]
    why: str

    @property
    def share(self) -> int:
        """The share that is in force (millionths)."""
        return self.knob.share

    @property
    def least(self) -> int:
        """The smallest share by what was promised of the answer, or by what values are worth (millionths)."""
        return self.knob.least

    @property
    def utility(self) -> float:
        """The worth of an answer of which the share is kept, from 0 to 1."""
        return self.knob.utility(self.knob.share)

    @property
    def saves(self) -> float:
        """The part of the run's time that a tenth less of the rows would save."""
        return self.knob.cost / 10

    @property
    def by_values(self) -> ThresholdKnob | None:
        """The threshold by which rows are left out by their values; None where they are not."""
        return self.knob if isinstance(self.knob, ThresholdKnob) else None

    def number(self, share: int) -> int:
        """The number by which a share is kept: itself, or a threshold (millionths)."""
        return self.knob.number(share)


@dataclass(frozen=True)
class Shedding:
    """The findings of the shedder after a commit.

    Attributes:
        bound: for how long rows may wait (microseconds).
        mode: what is done about it.
        needed: the part of its time that the run needs for what comes; None before it was looked at for long
            enough.
        behind: for how long rows wait that have come (seconds); None where that is not known.
        room: whether there is room for what comes; None where `needed` is.
        shares: the shares that may change.
        rates: the rows that come of each stream (per second).
    """

    bound: int
    mode: Managing
    needed: float | None
    behind: float | None
    room: Headroom | None
    shares: tuple[ShedShare, ...]
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The state of things, in a few words."""
        bound = f"latency_bound is {self.bound / MICROSECONDS['SECOND']:g} s"
        if self.needed is None or self.room is None:
            return f"{bound}: the run was not looked at for so long yet"
        found = {
            Headroom.ENOUGH: "there is room for what comes",
            Headroom.LITTLE: "there is little room left",
            Headroom.NONE: "more comes than can be answered",
        }[self.room]
        if self.room is Headroom.NONE and all(one.share <= one.least for one in self.shares):
            lacks = "no query bears loss" if not self.shares else "no query bears more loss"
            found = f"{found}, and {lacks}"
        return f"{bound}: {found}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The shares as rows of `headrace.shedding`."""
        return [
            {
                "streams": ", ".join(one.tuning.streams),
                "loss": one.tuning.loss,
                "share": one.share / WHOLE,
                "utility": one.utility,
                "least": one.least / WHOLE,
                "wanted": one.wanted / WHOLE,
                "needed": self.needed,
                "behind": self.behind,
                "why": one.why or None,
            }
            for one in self.shares
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON: the bound in microseconds, times in seconds, shares from 0 to 1."""
        return {
            "bound": self.bound,
            "mode": self.mode.value,
            "needed": self.needed,
            "behind": self.behind,
            "rates": dict(self.rates),
            "room": None if self.room is None else self.room.value,
            "shares": [_plain(one) for one in self.shares],
        }


def _plain(one: ShedShare) -> Mapping[str, Any]:
    return {
        "streams": list(one.tuning.streams),
        "loss": one.tuning.loss,
        "share": one.share / WHOLE,
        "threshold": None if one.by_values is None else one.number(one.share) / WHOLE,
        "since": None if one.since == BEGINNING else one.since,
        "utility": one.utility,
        "wanted": one.wanted / WHOLE,
        "wanted_threshold": None if one.by_values is None else one.number(one.wanted) / WHOLE,
        "least": one.least / WHOLE,
        "at": {str(times): share / WHOLE for times, share in zip(TIMES, one.at, strict=True)},
        "saves": one.saves,
        "why": one.why,
    }


def why_changed(before: int, share: int, needed: float, behind: float | None, bound: int) -> str:
    """Why another share is kept, or another threshold holds, as people are told.

    Args:
        before, share: the shares, or thresholds, before and after the change (millionths).
        needed: the part of its time that the run needed.
        behind: for how long rows waited (seconds), if that is known.
        bound: for how long they may (microseconds).
    """
    what = "lowered" if share < before else "raised"
    waited = "" if behind is None else f", rows waited for {behind:.1f} s,"
    return (
        f"{what} from {share_text(before)} to {share_text(share)} by the shedder, since {100 * needed:.0f} % "
        f"of the run's time were needed{waited} and latency_bound is {bound / MICROSECONDS['SECOND']:g} s"
    )


def why_given_back(before: int, first: int, since: str) -> str:
    """Why all rows are kept again, as people are told.

    Args:
        before: the share, or the threshold, that a shedder had chosen (millionths).
        first: the one with which all are kept (millionths).
        since: what has ended the shedder.
    """
    what = "lowered" if first < before else "raised"
    return f"{what} from {share_text(before)} to {share_text(first)}, since {since}"
