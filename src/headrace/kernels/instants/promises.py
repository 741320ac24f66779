"""What the rows of an epoch promise of streams, and when promises hold: the loops of figure 2.

Srivastava and Widom, *Flexible Time Management in Data Stream Systems*, PODS 2004, sections 3 and 5.1.
"""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, INT1_OUT, INT2, INT2_OUT, kernel
from headrace.time import BEGINNING


@kernel(INT1, INT1, INT, INT1, INT1, INT1, INT1, INT1, INT1)
def promised(
    news: Int64Array,
    group_of: Int64Array,
    groups: int,
    first: Int64Array,
    behind: Int64Array,
    crossing: Int64Array,
    source: Int64Array,
    delta: Int64Array,
    begins: Int64Array,
) -> Int64Array:
    """What some kinds of bounds say of an epoch's rows.

    Args:
        news: int64[streams], the newest row of each (instant), BEGINNING where none came.
        group_of: int64[streams], the group that each is in.
        groups: how many groups there are.
        first, behind: int64[crossing bounds], which group bounds to another are from, and how far that is
            behind (instants).
        crossing: int64[c + 1], where those of each of `c` targets begin and end.
        source: int64[bounds], what each looks at: a stream; or, behind the streams, the others of a stream's
            group; or, behind these, what the crossing bounds to a target say.
        delta: int64[bounds], how far behind that is (instants).
        begins: int64[kinds + 1], where the bounds of each kind begin and end.

    Returns:
        int64[kinds], the largest promise of each (instant), BEGINNING where there is none.
    """
    size = len(news)
    newest = np.full(groups, BEGINNING, dtype=np.int64)
    second = np.full(groups, BEGINNING, dtype=np.int64)
    holder = np.full(groups, -1, dtype=np.int64)
    for stream in range(size):
        group = group_of[stream]
        if news[stream] > newest[group]:
            second[group] = newest[group]
            newest[group] = news[stream]
            holder[group] = stream
        elif news[stream] > second[group]:
            second[group] = news[stream]
    across = np.full(len(crossing) - 1, BEGINNING, dtype=np.int64)
    for target in range(len(across)):
        for bound in range(crossing[target], crossing[target + 1]):
            seen = newest[first[bound]]
            if seen > BEGINNING:
                across[target] = max(across[target], seen - behind[bound])
    found = np.full(len(begins) - 1, BEGINNING, dtype=np.int64)
    for kind in range(len(found)):
        for bound in range(begins[kind], begins[kind + 1]):
            at = source[bound]
            if at < size:
                seen = news[at]
            elif at < 2 * size:
                group = group_of[at - size]
                seen = second[group] if holder[group] == at - size else newest[group]
            else:
                seen = across[at - 2 * size]
            if seen > BEGINNING:
                found[kind] = max(found[kind], seen - delta[bound] + 1)
    return found


@kernel(INT1, INT2, INT1, INT1)
def matured(
    heartbeats: Int64Array, pending: Int64Array, before: Int64Array, now: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The heartbeats once clocks have moved, and what is pending after that.

    Args:
        heartbeats: int64[streams] (instants).
        pending: int64[streams, width], the wrap-around array of section 5.1: what each promises at a granule
            of its clock (instant), at the granule's number modulo the width; BEGINNING for nothing.
        before, now: int64[streams], the granules of the clocks; those after `before` are due up to `now`.
    """
    reached, left = heartbeats.copy(), pending.copy()
    width = pending.shape[1]
    for stream in range(len(heartbeats)):
        for step in range(1, min(now[stream] - before[stream], width) + 1):
            place = (before[stream] + step) % width
            reached[stream] = max(reached[stream], left[stream, place])
            left[stream, place] = BEGINNING
    return reached, left


@kernel(INT1_OUT, INT2_OUT, INT1, INT1, INT1, INT1, INT)
def put(
    heartbeats: Int64Array,
    pending: Int64Array,
    clocks: Int64Array,
    second: Int64Array,
    wait: Int64Array,
    promise: Int64Array,
    granule: int,
) -> None:
    """Write down promises: those without a wait as heartbeats, the others as pending.

    Args:
        heartbeats, pending: as in `matured`; written to.
        clocks: int64[streams] (microseconds).
        second: int64[n], the streams that promises are of.
        wait: int64[n], on their clocks (microseconds).
        promise: int64[n] (instants).
        granule: of the clocks (microseconds); promises hold at a multiple of it.
    """
    width = pending.shape[1]
    for number in range(len(second)):
        stream = second[number]
        if promise[number] <= heartbeats[stream]:
            continue
        if wait[number] == 0:
            heartbeats[stream] = promise[number]
        else:
            place = -(-(clocks[stream] + wait[number]) // granule) % width
            pending[stream, place] = max(pending[stream, place], promise[number])
