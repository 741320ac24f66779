"""The histograms of Gehrke, Korn and Srivastava (SIGMOD 2001) for correlated aggregates, and their rivals.

They answer COUNT{x : x <= (1 + epsilon) MIN(x)} and COUNT{x : x > AVG(x)} from m buckets that lie where the
answer is in doubt: between MIN and (1 + epsilon) MIN, and around the mean (figures 1, 3 and 11). Where the
print is wrong, the text is followed: the new boundaries count in the wholesale policy, and the cut bucket of
the piecemeal policy keeps its frequency by the share that is kept of its width.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import Final, Literal

Policy = Literal["wholesale-uniform", "wholesale-quantile", "piecemeal-uniform", "piecemeal-quantile"]
POLICIES: Final[tuple[Policy, ...]] = (
    "wholesale-uniform", "wholesale-quantile", "piecemeal-uniform", "piecemeal-quantile",
)  # fmt: skip
_NORMAL: Final = NormalDist()


@dataclass(frozen=True)
class Histogram:
    """Adjacent buckets.

    Attributes:
        bounds: where they begin, in order, and where the last one ends.
        counts: how many values are expected in each.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]

    def upto(self, value: float) -> float:
        """The number of values up to one, if each bucket's lie evenly."""
        bounds, counts = self.bounds, self.counts
        if value <= bounds[0]:
            return 0.0
        if value >= bounds[-1]:
            return sum(counts)
        place = bisect_right(bounds, value) - 1
        width = bounds[place + 1] - bounds[place]
        return sum(counts[:place]) + counts[place] * (value - bounds[place]) / width

    def changed(self, value: float, by: int) -> Histogram:
        """The same with a value more or less, in the first or the last bucket if it is beyond these."""
        place = min(max(bisect_right(self.bounds, value) - 1, 0), len(self.counts) - 1)
        counts = (*self.counts[:place], self.counts[place] + by, *self.counts[place + 1 :])
        return Histogram(self.bounds, counts)

    def over(self, bounds: Sequence[float]) -> Histogram:
        """The wholesale reallocation (figure 3a): each new bucket has its share of those that it overlaps."""
        below = [self.upto(bound) for bound in bounds]
        return Histogram(tuple(bounds), tuple(after - before for before, after in pairwise(below)))


def of_values(values: Sequence[float], bounds: Sequence[float]) -> Histogram:
    """The histogram of known values."""
    found = Histogram(tuple(bounds), (0.0,) * (len(bounds) - 1))
    for value in values:
        found = found.changed(value, 1)
    return found


def uniform(low: float, high: float, buckets: int) -> list[float]:
    """Bounds of buckets that are equally wide."""
    return [low + place * (high - low) / buckets for place in range(buckets)] + [high]


def quantiles(known: Histogram, low: float, high: float, buckets: int) -> list[float]:
    """Bounds of buckets that have equally many of the values between two, as far as a histogram knows."""
    part = known.over(_strictly([low, *(bound for bound in known.bounds if low < bound < high), high]))
    total = sum(part.counts)
    if total <= 0:
        return uniform(low, high, buckets)
    found, place, before = [low], 0, 0.0
    for number in range(1, buckets):
        wanted = number * total / buckets
        while place < len(part.counts) - 1 and before + part.counts[place] < wanted:
            before, place = before + part.counts[place], place + 1
        share = (wanted - before) / part.counts[place] if part.counts[place] > 0 else 0.0
        found.append(part.bounds[place] + share * (part.bounds[place + 1] - part.bounds[place]))
    return _strictly([*found, high])


def piecemeal(known: Histogram, low: float, high: float, buckets: int) -> Histogram:
    """The piecemeal reallocation (figure 3b): inner buckets stay, outer ones are cut, the widest split."""
    inside = [bound for bound in known.bounds if low < bound < high]
    bounds = [low, *inside, high]
    while len(bounds) - 1 > buckets:
        widths = [after - before for before, after in zip(bounds, bounds[2:], strict=False)]
        del bounds[1 + widths.index(min(widths))]
    while len(bounds) - 1 < buckets:
        widths = [after - before for before, after in pairwise(bounds)]
        widest = widths.index(max(widths))
        middle = (bounds[widest] + bounds[widest + 1]) / 2
        if not bounds[widest] < middle < bounds[widest + 1]:
            break
        bounds.insert(widest + 1, middle)
    return known.over(bounds)


def balanced(known: Histogram) -> Histogram:
    """Two neighbours merged and one bucket split, where that makes frequencies more alike (3.1.2)."""
    counts = list(known.counts)
    pairs = [one + other for one, other in pairwise(counts)]
    merged = pairs.index(min(pairs))
    split = counts.index(max(counts))
    if split in (merged, merged + 1):
        return known
    # The mean stays, so that the variance falls if the sum of squares does.
    gain = counts[merged] ** 2 + counts[merged + 1] ** 2 + counts[split] ** 2
    if pairs[merged] ** 2 + counts[split] ** 2 / 2 >= gain:
        return known
    middle = (known.bounds[split] + known.bounds[split + 1]) / 2
    bounds = {*known.bounds, middle} - {known.bounds[merged + 1]}
    return known.over(sorted(bounds))


def reallocated(known: Histogram, low: float, high: float, buckets: int, policy: Policy) -> Histogram:
    """The values between two in other buckets."""
    match policy:
        case "wholesale-uniform":
            return known.over(_strictly(uniform(low, high, buckets)))
        case "wholesale-quantile":
            return known.over(quantiles(known, low, high, buckets))
        case "piecemeal-uniform":
            return piecemeal(known, low, high, buckets)
        case "piecemeal-quantile":
            return balanced(piecemeal(known, low, high, buckets))


def landmark_minimum(values: Sequence[float], epsilon: float, buckets: int, policy: Policy) -> list[float]:
    """COUNT{x : x <= (1 + epsilon) MIN(x)} of all values so far (3.1.2); they are above 0."""
    answers, least = [], float("inf")
    kept: list[float] | None = []
    known = Histogram((0.0, 1.0), (0.0,))
    for value in values:
        if value < least:
            if value * (1 + epsilon) <= least:
                kept = []
            least = value
            high = least * (1 + epsilon)
            if kept is not None:
                kept = [one for one in kept if one <= high]
            else:
                lowered = Histogram((least, *known.bounds[1:]), known.counts)
                known = reallocated(lowered, least, high, buckets, policy)
        if value <= least * (1 + epsilon):
            if kept is not None:
                kept.append(value)
            else:
                known = known.changed(value, 1)
        if kept is not None and len(kept) == buckets:
            first = of_values(kept, uniform(least, least * (1 + epsilon), buckets))
            known, kept = reallocated(first, *_ends(first), buckets, policy), None
        answers.append(sum(known.counts) if kept is None else len(kept))
    return answers


def sliding_minimum(
    values: Sequence[float], epsilon: float, buckets: int, policy: Policy, window: int
) -> list[float]:
    """COUNT{x : x <= (1 + epsilon) MIN(x)} of the last values (4.1.2); intervals are tenths of a window."""
    answers: list[float] = []
    interval = max(window // 10, 1)
    lows: deque[tuple[int, float]] = deque()
    known: Histogram | None = None
    ends: tuple[float, float] | None = None
    greatest = max(values)
    for place, value in enumerate(values):
        if place % interval == 0:
            lows.append((place, value))
        lows[-1] = lows[-1][0], min(lows[-1][1], value)
        while lows[0][0] + interval <= place + 1 - window:
            lows.popleft()
        least = min(low for _, low in lows)
        # The interval that goes on may yet get a smaller value.
        whole = [low for _, low in lows][:-1] or [least]
        high = min(max(least, *whole) * (1 + epsilon), greatest)
        if place < buckets:
            answers.append(sum(one <= least * (1 + epsilon) for one in values[: place + 1]))
            continue
        if known is None:
            bounds = _strictly([*uniform(least, max(high, least + 1), buckets - 1), greatest + 1])
            known = of_values(values[:place], bounds)
        elif ends != (least, high):
            known = _outer(known, least, high, greatest + 1, buckets, policy)
        ends = least, high
        known = known.changed(value, 1)
        if place >= window:
            known = known.changed(values[place - window], -1)
        answers.append(max(known.upto(least * (1 + epsilon)), 0.0))
    return answers


def _outer(known: Histogram, low: float, high: float, most: float, buckets: int, policy: Policy) -> Histogram:
    """All but one bucket between two values, and that one above them."""
    first = min(low, known.bounds[0])
    widened = Histogram((first, *known.bounds[1:]), known.counts)
    inner = reallocated(widened, low, max(high, low + 1e-9), buckets - 1, policy)
    # What was below the minimum before is in the first bucket: nothing is lost.
    missing = widened.upto(inner.bounds[-1]) - sum(inner.counts)
    counts = (
        inner.counts[0] + missing,
        *inner.counts[1:],
        widened.upto(most) - widened.upto(inner.bounds[-1]),
    )
    return Histogram((*inner.bounds, max(most, inner.bounds[-1] + 1e-9)), counts)


def average(
    values: Sequence[float],
    buckets: int,
    policy: Policy,
    window: int | None = None,
    *,
    errors: float = 1.0,
    eager: bool = False,
) -> list[float]:
    """COUNT{x : x > AVG(x)} of all values so far, or of the last ones (3.1.3 and 4.1.3).

    Args:
        values: of the stream.
        buckets, policy: of the histogram.
        window: of so many values; all so far if None.
        errors: half the width of the interval around the mean, in standard errors.
        eager: whether buckets are made anew at each step, since the mean has shifted, and not only where it
            has left the interval that was expected to hold it.
    """
    answers: list[float] = []
    known: Histogram | None = None
    focus = (0.0, -1.0)
    total = squares = 0.0
    least, most = float("inf"), float("-inf")
    for place, value in enumerate(values):
        total, squares = total + value, squares + value * value
        least, most = min(least, value), max(most, value)
        leaving = values[place - window] if window is not None and place >= window else None
        if leaving is not None:
            total, squares = total - leaving, squares - leaving * leaving
        number = place + 1 if window is None else min(place + 1, window)
        mean = total / number
        error = errors * sqrt(max(squares / number - mean * mean, 0.0) / (window or number))
        if place < buckets:
            answers.append(sum(one > mean for one in values[: place + 1]))
            continue
        if known is None:
            known = of_values(values[:place], _strictly(uniform(least, most + 1e-9, buckets)))
        if eager or not focus[0] <= mean <= focus[1]:
            focus = mean - error, mean + error
            known = _around(known, (least, *focus, most), buckets, policy)
        known = known.changed(value, 1)
        if leaving is not None:
            known = known.changed(leaving, -1)
        answers.append(sum(known.counts) - known.upto(mean))
    return answers


def _around(
    known: Histogram, ends: tuple[float, float, float, float], buckets: int, policy: Policy
) -> Histogram:
    """One bucket below the mean's interval, one above it, and the others inside."""
    least, low, high, most = ends
    low, high = max(low, least), min(high, most)
    bounds = (min(least, known.bounds[0]), *known.bounds[1:-1], max(most, known.bounds[-1]))
    known = Histogram(bounds, known.counts)
    if not least < low < high < most:
        return known
    if policy == "wholesale-uniform":
        inner: Sequence[float] = uniform(low, high, buckets - 2)
    elif policy == "wholesale-quantile":
        shares = (place / (buckets - 2) for place in range(1, buckets - 2))
        # Between one standard error below the mean and one above it are 68 percent.
        middle, wide = (low + high) / 2, (high - low) / 2
        first, all_of = _NORMAL.cdf(-1), 1 - 2 * _NORMAL.cdf(-1)
        inner = [low, *(middle + wide * _NORMAL.inv_cdf(first + share * all_of) for share in shares), high]
    else:
        inside = piecemeal(known, low, high, buckets - 2)
        inner = (balanced(inside) if policy == "piecemeal-quantile" else inside).bounds
    return known.over(_strictly([bounds[0], *inner, bounds[-1]]))


def rival(
    values: Sequence[float],
    asked: Callable[[float, float], float],
    above: bool,
    buckets: int,
    *,
    deep: bool,
    window: int | None = None,
) -> tuple[list[float], list[float]]:
    """Answers of a true equidepth or equiwidth histogram, made anew at each step from all values.

    Args:
        values: of the stream.
        asked: the bound of the condition, by the least value and the mean.
        above: whether values above it are counted, or those up to it.
        buckets: of the histogram.
        deep: whether buckets have equally many values, or are equally wide.
        window: of so many values; all so far if None.

    Returns:
        The answers, and the exact ones.
    """
    answers, exact = list[float](), list[float]()
    kept: list[float] = []
    total = 0.0
    for place, value in enumerate(values):
        kept.insert(bisect_left(kept, value), value)
        total += value
        if window is not None and place >= window:
            leaving = values[place - window]
            del kept[bisect_left(kept, leaving)]
            total -= leaving
        size = len(kept)
        bound = asked(kept[0], total / size)
        upto = bisect_right(kept, bound)
        exact.append(size - upto if above else upto)
        if deep:
            places = [number * size // buckets for number in range(buckets)] + [size]
            bounds = [kept[min(one, size - 1)] for one in places]
        else:
            bounds = uniform(kept[0], kept[-1], buckets)
            places = [0, *(bisect_left(kept, one) for one in bounds[1:-1]), size]
        found = _interpolated(bounds, places, bound)
        answers.append(size - found if above else found)
    return answers, exact


def _interpolated(bounds: Sequence[float], places: Sequence[int], value: float) -> float:
    """The number of values up to one, by the numbers up to some."""
    if value >= bounds[-1]:
        return places[-1]
    place = bisect_right(bounds, value) - 1
    if place < 0:
        return 0.0
    share = (value - bounds[place]) / (bounds[place + 1] - bounds[place])
    return places[place] + share * (places[place + 1] - places[place])


def memoryless(values: Sequence[float], epsilon: float, *, resets: bool) -> list[float]:
    """The count that goes on, or begins anew, where the minimum changes (3.2.1, Competing Methods)."""
    answers, least, count = list[float](), float("inf"), 0
    for value in values:
        if value < least:
            least, count = value, 0 if resets else count
        count += value <= least * (1 + epsilon)
        answers.append(count)
    return answers


def rmse(answers: Sequence[float], exact: Sequence[float], window: int | None = None) -> list[float]:
    """The root of the mean squared error at each step, of all steps so far or of the last ones (2.3)."""
    found, total = list[float](), 0.0
    errors = [(one - other) ** 2 for one, other in zip(answers, exact, strict=True)]
    for place, error in enumerate(errors):
        total += error
        if window is not None and place >= window:
            total -= errors[place - window]
        found.append(sqrt(max(total, 0.0) / (place + 1 if window is None else min(place + 1, window))))
    return found


def _ends(known: Histogram) -> tuple[float, float]:
    return known.bounds[0], known.bounds[-1]


def _strictly(bounds: Sequence[float]) -> list[float]:
    """Bounds without those that are not above the one before."""
    found = [bounds[0]]
    for bound in bounds[1:]:
        if bound > found[-1]:
            found.append(bound)
    return found if len(found) > 1 else [bounds[0], bounds[0] + 1e-9]
