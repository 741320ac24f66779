"""How far streams are behind others, estimated from their rows.

Srivastava and Widom, *Flexible Time Management in Data Stream Systems*, PODS 2004, section 6. The rows that
an epoch brings are compared with the newest that the others had brought before it, and count from the next
epoch on, as for the disorder of one stream (`estimated`). Streams that are said to follow the same others in
one statement have one bound, the weakest of theirs (section 5.2), so that they stay a group.

Of the bounds of section 6.1, one for each wait, those are estimated that hold at once and after a few waits
up to the one that is asked for. With a wait, rows are compared with the newest that the others had brought so
long before the epoch took the rows: time alone could have moved the heartbeat until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import KEPT, DisorderChange, Estimate
from headrace.heartbeats.estimation import (
    Adaptivity,
    EstimationRules,
    EstimationState,
    bounds_of,
    estimate,
    start,
)
from headrace.heartbeats.skew import within, without_redundant
from headrace.heartbeats.state import StreamState
from headrace.heartbeats.timing import Follow, Timing
from headrace.time import BEGINNING

_OTHERS: Final = 0
_STREAM: Final = 1

_LEARNING: Final = 100
"""How many rows are compared before an estimate is used."""

_GRANULES: Final = 16
"""Into how many parts a wait is divided: for so many instants it is remembered how far others were."""


def after_epoch(
    timings: Mapping[str, Timing],
    before: Mapping[str, Mapping[str, Estimate]],
    arrivals: Mapping[str, Arrivals],
    times: Mapping[str, StreamState],
    caught_up: Mapping[str, bool],
    clock: int,
) -> dict[str, dict[str, Estimate]]:
    """The estimates after an epoch, by stream and by `Follow.key_after`.

    Args:
        timings: what the streams declare.
        before: the estimates that the epoch was judged with.
        arrivals: what the epoch brought.
        times: how far the time of each stream has come after it.
        caught_up: per stream, whether all that its source had was taken; else the rows of others promise
            nothing of it yet.
        clock: the clock's reading for the epoch (microseconds since 1970).
    """

    @cache
    def newest_two(names: tuple[str, ...]) -> list[tuple[int, str]]:
        return sorted((times[name].latest, name) for name in names if name in times)[-2:]

    found: dict[str, dict[str, Estimate]] = {}
    for name, timing in timings.items():
        for follow in timing.follows:
            if follow.estimated is None:
                continue
            others = [latest for latest, other in newest_two(follow.streams) if other != name]
            newest = max(others, default=BEGINNING) if caught_up[name] else BEGINNING
            for wait in follow.waits:
                key, counted = follow.key_after(wait), times[name].clock
                made = follow_others(
                    replace(follow.estimated, wait=wait),
                    before[name].get(key),
                    newest,
                    arrivals.get(name, Arrivals()),
                    clock,
                    counted,
                )
                if made is not None:
                    found.setdefault(name, {})[key] = made
    return found


def follow_others(
    rule: Adaptivity, before: Estimate | None, newest: int, arrivals: Arrivals, clock: int, counted: int = 0
) -> Estimate | None:
    """The estimate of how far a stream is behind others, after an epoch.

    Args:
        rule: how it is estimated; with a wait, of the bound that holds after it.
        before: the estimate that the epoch was judged with; None if nothing had come.
        newest: the largest timestamp of the others up to and with the epoch (instant), which later rows are
            compared with; BEGINNING for none.
        arrivals: what the epoch brought of the stream.
        clock: the clock's reading for the epoch (microseconds since 1970).
        counted: the counted time of the stream (microseconds); looked at for a wait only.
    """
    heard = {_OTHERS: Arrivals(1, latest=newest)} if newest > BEGINNING else {}
    if arrivals.rows or arrivals.late:
        heard[_STREAM] = arrivals
    if not heard:
        return before
    granule = max(rule.wait // _GRANULES, 1)
    rules = EstimationRules(2, ((_OTHERS, _STREAM),), (rule.wait,), granule, rule, _LEARNING)
    now = counted if rule.wait else max(seen.latest for seen in heard.values())
    known = None if before is None else before.known
    if isinstance(known, EstimationState) and int(known.estimates.window[0, 0]) == rule.window:
        now = max(now, known.clock)
    else:
        known = start(rules)
    if rule.wait and (others := heard.pop(_OTHERS, None)) is not None:
        known = estimate(rules, known, {_OTHERS: others}, now)
    found = replace(estimate(rules, known, heard, now), changes=())
    last, changes = (None, ()) if before is None else (before.disorder, before.changes)
    bounds = bounds_of(rules, found).between(_OTHERS, _STREAM)
    if not bounds:
        return Estimate(found, last, changes)
    # A bound of 0 would say that rows are younger than those of the others, which no number of rows shows.
    behind = max(bounds[0].delta - 1, 0)
    if behind != last:
        changes = (*changes, DisorderChange(clock, behind))[-KEPT:]
    return Estimate(found, behind, changes)


def skews_in_force(
    timings: Mapping[str, Timing], estimates: Mapping[str, Mapping[str, Estimate]]
) -> dict[str, Timing]:
    """What holds for the rows of the next epoch: declarations with the bounds that are estimated by now.

    Args:
        timings: what the streams declare, by name.
        estimates: of each, by `Follow.key_after`.
    """
    behind: dict[tuple[Follow, int], int] = {}
    estimated = [name for name, timing in timings.items() if any(one.estimated for one in timing.follows)]
    for name in estimated:
        for follow in timings[name].follows:
            for wait in follow.waits:
                known = estimates[name].get(follow.key_after(wait))
                if known is not None and known.disorder is not None:
                    behind[follow, wait] = max(behind.get((follow, wait), 0), known.disorder)
    return dict(timings) | {name: _with_bounds(timings[name], estimates[name], behind) for name in estimated}


def _with_bounds(
    timing: Timing, known: Mapping[str, Estimate], behind: Mapping[tuple[Follow, int], int]
) -> Timing:
    follows = []
    for follow in timing.follows:
        learned = [
            replace(within(behind[follow, wait]), wait=wait)
            for wait in follow.waits
            if (found := known.get(follow.key_after(wait))) is not None and found.disorder is not None
        ]
        follows.append(replace(follow, bounds=without_redundant(learned)) if learned else follow)
    return replace(timing, follows=tuple(follows))
