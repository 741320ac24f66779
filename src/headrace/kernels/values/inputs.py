"""Arrays that kernels take together."""

from __future__ import annotations

from typing import NamedTuple

from headrace.elements import Int64Array


class CountChanges(NamedTuple):
    """How the multisets of some keys change, sorted by (code, time).

    Attributes:
        codes: int64[n], the key.
        times: int64[n], when it changes (instants).
        numbers: int64[n], the value or row whose count changes.
        counts: int64[n], by how much.
    """

    codes: Int64Array
    times: Int64Array
    numbers: Int64Array
    counts: Int64Array


class KeyPoints(NamedTuple):
    """Instants of some keys, sorted by (code, time).

    Attributes:
        codes: int64[m], the key.
        times: int64[m], the instants.
    """

    codes: Int64Array
    times: Int64Array


class RankedIntervals(NamedTuple):
    """Intervals of some keys, with ranks; int64[p] each.

    Attributes:
        codes: the key.
        ranks: the smaller, the better.
        starts, ends: from where to where it is there (instants).
    """

    codes: Int64Array
    ranks: Int64Array
    starts: Int64Array
    ends: Int64Array


class GroupPoints(NamedTuple):
    """The instants at which k groups are looked at, and what is known before and after them.

    Attributes:
        bounds: int64[k + 1], where the instants of each group begin.
        times: int64[m], the instants.
        covered: int64[k], up to where what was shown before the first of them was emitted (instant).
        until: int64[k], up to where what is shown after the last of them holds (instant).
    """

    bounds: Int64Array
    times: Int64Array
    covered: Int64Array
    until: Int64Array
