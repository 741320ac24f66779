"""Waves: amounts of sliding windows from the blocks in which they begin.

The deterministic wave of Gibbons and Tirthapura (SPAA 2002), begun anew with every *lap* of the window's
length, so that it is a function of the last two windows. A *point* is an instant at which elements of a key
begin, with the amount of its lap up to then. Where a window begins is known to one of the blocks of 1, 2, 4
... into which the amount of a lap is cut, and a point is kept where it is the first or the last of a block
that is small enough still (`headrace.reference.summaries` has the definition).

All kernels take points key after key, in the order of time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import BYTES, INT, INT1, TRUTHS_OUT, Number, inner, int_arrays, kernel

MOST = np.iinfo(np.int64).max
"""The largest amount."""
_NEVER = np.iinfo(np.int64).min


class Views(NamedTuple):
    """Windows of keys that are looked at, m of them.

    Attributes:
        instants: when.
        newest: the last point of the key that has begun by then, -1 without one.
        gone: the last one that has left the window by then, -1 without one.
        first, last: the first and the last point of the lap before; `last < first` without one.
    """

    instants: Int64Array
    newest: Int64Array
    gone: Int64Array
    first: Int64Array
    last: Int64Array


@kernel(INT1, INT1, INT1)
def sum_amounts(begins: Int64Array, values: Int64Array, weights: Int64Array) -> tuple[Int64Array, bool]:
    """What the rows of each instant add up to, and whether all of these sums are BIGINTs.

    Args:
        begins: int64[m + 1], the first row of each instant, then the number of rows.
        values, weights: int64[n], amounts of rows and how many there are of each; neither is negative.
    """
    sums = np.zeros(len(begins) - 1, dtype=np.int64)
    fits = True
    for place in range(len(sums)):
        for row in range(begins[place], begins[place + 1]):
            if values[row] > 0 and weights[row] > (MOST - sums[place]) // values[row]:
                fits = False
            else:
                sums[place] += values[row] * weights[row]
    return sums, fits


@kernel(INT1, INT1, BYTES, INT1, INT1, INT)
def add_up_laps(
    codes: Int64Array,
    times: Int64Array,
    fresh: npt.NDArray[np.uint8],
    amounts: Int64Array,
    counted: Int64Array,
    size: int,
) -> tuple[Int64Array, Int64Array, bool]:
    """The amounts of laps up to points, and the last instants at which something was counted.

    Args:
        codes, times: int64[n], the points' keys and instants.
        fresh: uint8[n], whether a point is new; others have their results already.
        amounts: int64[n], what new points add.
        counted: int64[n], their instant if something is counted there, else BEGINNING.
        size: the length of a lap (instants).

    Returns:
        int64[n] each, and whether all amounts are BIGINTs.
    """
    sums, last, fits = amounts.copy(), counted.copy(), True
    for point in range(1, len(codes)):
        before = point - 1
        if not fresh[point] or codes[before] != codes[point]:
            continue
        last[point] = max(last[point], last[before])
        if times[before] // size == times[point] // size:
            fits = fits and sums[point] <= MOST - sums[before]
            sums[point] += sums[before]
    return sums, last, fits


@kernel(INT1, INT1, BYTES, INT, INT, INT)
def changing_windows(
    begins: Int64Array, times: Int64Array, fresh: npt.NDArray[np.uint8], size: int, before: int, horizon: int
) -> tuple[Int64Array, Views]:
    """The instants at which keys' windows change, then for each key the last one before.

    Args:
        begins: int64[k + 1], the first point of each key, then the number of points.
        times: int64[n], the points' instants; new ones are not below `before`.
        fresh: uint8[n], whether a point is new.
        size: the length of the window (instants).
        before, horizon: changes in between are wanted (instants).

    Returns:
        int64[m + k], the key of each view, and the views: m changes, key after key in the order of time, then
        one for each key, of the instant before `before`.
    """
    keys = len(begins) - 1
    most = 2 * len(times) + keys
    codes, instants = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    newest, gone = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    count = 0
    base_newest, base_gone = np.full(keys, -1, dtype=np.int64), np.full(keys, -1, dtype=np.int64)
    for key in range(keys):
        entering = begins[key]
        while entering < begins[key + 1] and not fresh[entering]:
            entering += 1
        leaving = begins[key]
        while leaving < begins[key + 1] and _end(times[leaving], size) < before:
            leaving += 1
        base_newest[key] = entering - 1 if entering > begins[key] else -1
        base_gone[key] = leaving - 1 if leaving > begins[key] else -1
        while True:
            at = horizon
            if entering < begins[key + 1]:
                at = min(at, times[entering])
            if leaving < entering:
                at = min(at, _end(times[leaving], size))
            if at >= horizon:
                break
            if entering < begins[key + 1] and times[entering] == at:
                entering += 1
            if leaving < entering and _end(times[leaving], size) == at:
                leaving += 1
            codes[count], instants[count] = key, at
            newest[count] = entering - 1
            gone[count] = leaving - 1 if leaving > begins[key] else -1
            count += 1
    for key in range(keys):
        codes[count], instants[count] = key, max(before, _NEVER + 1) - 1
        newest[count], gone[count] = base_newest[key], base_gone[key]
        count += 1
    codes, instants, newest, gone = (
        codes[:count].copy(),
        instants[:count].copy(),
        newest[:count],
        gone[:count],
    )
    first, last = _laps_before(begins, times, codes, instants, size)
    return codes, Views(instants, newest[:count].copy(), gone[:count].copy(), first, last)


@inner
def _laps_before(
    begins: Int64Array, times: Int64Array, codes: Int64Array, instants: Int64Array, size: int
) -> tuple[Int64Array, Int64Array]:
    """The first and the last point of the lap before that of each view."""
    first, last = np.empty(len(codes), dtype=np.int64), np.empty(len(codes), dtype=np.int64)
    low, high, key = np.int64(0), np.int64(0), np.int64(-1)
    for view in range(len(codes)):
        if codes[view] != key or (view > 0 and instants[view] < instants[view - 1]):
            key = codes[view]
            low, high = begins[key], begins[key]
        lap = instants[view] // size
        while low < begins[key + 1] and times[low] // size < lap - 1:
            low += 1
        high = max(high, low)
        while high < begins[key + 1] and times[high] // size < lap:
            high += 1
        first[view], last[view] = low, high - 1
    return first, last


@inner
def _end(time: int, size: int) -> int:
    return time + size if time <= MOST - size else MOST


_VIEWS = int_arrays(Views)


@kernel(INT1, INT1, _VIEWS, INT, INT)
def wave_bounds(
    times: Int64Array, sums: Int64Array, views: Views, size: int, blocks: int
) -> tuple[Int64Array, Int64Array, bool]:
    """Between which bounds the amounts of windows lie.

    Args:
        times, sums: int64[n], the points' instants, and the amount of the lap up to each.
        views: the windows.
        size: their length (instants).
        blocks: of the level that is looked at, fewer than so many reach from where the window begins to now.

    Returns:
        int64[m] each, the lower and the upper bounds, and whether all lower ones are BIGINTs.
    """
    count = len(views.instants)
    lower, upper, fits = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), True
    for view in range(count):
        newest, lap = views.newest[view], views.instants[view] // size
        if newest < 0:
            continue
        first, last, gone = views.first[view], min(views.last[view], newest), np.int64(0)
        since = sums[newest] if times[newest] // size == lap else np.int64(0)
        total = sums[last] if last >= first else np.int64(0)
        place = views.gone[view]
        if first <= place <= last:
            gone = sums[place]
        least, most = gone, gone
        if gone != 0 and gone != total:
            level = _level(total, gone, since, blocks)
            start = gone >> level << level
            most = sums[_last_below(sums, place, last, start, level)]
            least = np.int64(0) if start == 0 else sums[_first_from(sums, first, place, start)]
        if since > MOST - (total - most):
            fits = False
        else:
            lower[view] = total - most + since
        upper[view] = MOST if since > MOST - (total - least) else total - least + since
    return lower, upper, fits


@inner
def _level(total: Number, gone: Number, since: Number, blocks: Number) -> Number:
    """The smallest level of which fewer blocks than that reach from the one with `gone` to the present."""
    level = 0
    while _blocks(total - (gone >> level << level), since, level) >= blocks:
        level += 1
    return level


@inner
def _blocks(one: Number, other: Number, level: Number) -> Number:
    """How many whole blocks two amounts have together, whose sum need not be a BIGINT."""
    rest = (1 << level) - 1
    return (one >> level) + (other >> level) + (((one & rest) + (other & rest)) >> level)


@inner
def _first_from(sums: Int64Array, low: Number, high: Number, start: Number) -> Number:
    """The first of some points from low to high whose amount is not below a start; that of high is not."""
    while low < high:
        middle = (low + high) // 2
        if sums[middle] >= start:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def _last_below(sums: Int64Array, low: Number, high: Number, start: Number, level: Number) -> Number:
    """The last of some points from low to high whose amount is in the block from a start; that of low is."""
    while low < high:
        middle = (low + high + 1) // 2
        if (sums[middle] - start) >> level == 0:
            low = middle
        else:
            high = middle - 1
    return low


@kernel(INT1, INT1, INT1, INT, INT, INT, TRUTHS_OUT)
def keep_points(
    begins: Int64Array,
    times: Int64Array,
    sums: Int64Array,
    size: int,
    now: int,
    blocks: int,
    kept: npt.NDArray[np.bool_],
) -> None:
    """Mark the points that may be the bounds of a window that ends now or later.

    Args:
        begins: int64[k + 1], the first point of each key, then the number of points.
        times, sums: int64[n], the points' instants, none after now, and the amount of the lap up to each.
        size: the length of the window (instants).
        now: the last instant that is known (instant).
        blocks: as of `wave_bounds`.
        kept: bool[n], set to true for points that are kept; other kernels' marks stay.
    """
    lap = now // size
    for key in range(len(begins) - 1):
        low, high = begins[key], begins[key + 1]
        if high == low or _end(times[high - 1], size) <= now:
            # What has no row any more needs none.
            continue
        kept[high - 1] = True
        while times[low] // size < lap - 1:
            low += 1
        middle, gone, latest = low, np.int64(0), np.int64(-1)
        while middle < high and times[middle] // size < lap:
            if _end(times[middle], size) <= now:
                gone, latest = sums[middle], np.int64(middle)
            middle += 1
        if latest >= 0:
            # Without it nothing would seem to have left the window.
            kept[latest] = True
        since = sums[high - 1] if middle < high else np.int64(0)
        total = sums[middle - 1] if middle > low else np.int64(0)
        _keep_of_lap(sums, low, middle, total, since, gone, blocks, kept)
        _keep_of_lap(sums, middle, high, since, np.int64(0), np.int64(0), blocks, kept)


@inner
def _keep_of_lap(
    sums: Int64Array,
    low: Number,
    high: Number,
    total: Number,
    since: Number,
    gone: Number,
    blocks: Number,
    kept: npt.NDArray[np.bool_],
) -> None:
    """Mark the points of one lap, of whose amount `gone` has left the window, and which `since` follows."""
    for point in range(low, high):
        amount = sums[point]
        before = sums[point - 1] if point > low else np.int64(0)
        after = sums[point + 1] if point + 1 < high else amount
        if before != amount and (amount == total or (before == 0 and gone == 0)):
            # From here on, and only from here on, some of the lap has left, or all of it.
            kept[point] = True
            continue
        level = _top_bit((before ^ amount) | (amount ^ after))
        if level < 0 or amount >> level < gone >> level:
            continue
        if _blocks(total - (amount >> level << level), since, level) < blocks:
            kept[point] = True


@inner
def _top_bit(word: Number) -> Number:
    """The place of the highest bit of a number that is not negative; -1 for 0."""
    place = -1
    while word > 0:
        word >>= 1
        place += 1
    return place
