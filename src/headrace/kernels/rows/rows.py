"""Row windows: which numbered rows of a partition enter, leave and stay as more rows come."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, kernel

_INFINITY = np.iinfo(np.int64).max


@kernel(INT1, INT1, INT1, INT1, INT1, INT)
def slide_rows(
    counts: Int64Array, old: Int64Array, fresh: Int64Array, times: Int64Array, sizes: Int64Array, slide: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
    """The changes that new rows make to the windows of their partitions.

    Row i of a partition enters with the first row number that `slide` divides and that is not below i, and
    leaves with the first one j that is not below i plus the size at j (thesis, Algorithms 13, 14 and 19, with
    any slide and, of section 21.2.1, several sizes).

    Args:
        counts: int64[k], how many rows each partition had before.
        old: int64[k + 1], where the rows that are kept of each partition start; the last ones it had, none of
            which has left.
        fresh: int64[k + 1], where the new rows of each partition start.
        times: int64[n], the instants of the new rows, in order within a partition.
        sizes: int64[n], how many rows the window holds as of each new row.
        slide: by how many rows it moves.

    Returns:
        The changes: the row that enters or leaves (kept rows come first, then new ones), ts, te and sign; and
        the new rows that must be kept, with their numbers, and how many rows of their partition have left.
    """
    kept = old[-1]
    size = kept + len(times)
    row, ts = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    te, w = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    stay, numbers = np.empty(len(times), dtype=np.int64), np.empty(len(times), dtype=np.int64)
    gone = np.empty(len(times), dtype=np.int64)
    changes, staying = 0, 0
    for partition in range(len(counts)):
        before = counts[partition]
        after = before + fresh[partition + 1] - fresh[partition]
        held = old[partition + 1] - old[partition]
        # The instant of new row number i is times[i - offset].
        offset = before + 1 - fresh[partition]
        first = staying
        # The first row that pushes out the one looked at; those before it push out none of the later ones.
        leaves = (before + slide) // slide * slide
        left = before - held
        for number in range(before - held + 1, after + 1):
            enters = (number + slide - 1) // slide * slide
            while leaves <= after and leaves - sizes[leaves - offset] < number:
                leaves += slide
            if leaves <= after:
                left = number
            is_old = number <= before
            start = times[enters - offset] if before < enters <= after else _INFINITY
            end = times[leaves - offset] if leaves <= after else _INFINITY
            place = old[partition + 1] - 1 - (before - number) if is_old else kept + number - offset
            if enters <= before and end < _INFINITY:
                row[changes], ts[changes], te[changes], w[changes] = place, end, _INFINITY, -1
                changes += 1
            elif start < end:
                row[changes], ts[changes], te[changes], w[changes] = place, start, end, 1
                changes += 1
            if not is_old and leaves > after:
                stay[staying], numbers[staying] = number - offset, number
                staying += 1
        gone[first:staying] = left
    return (
        row[:changes].copy(),
        ts[:changes].copy(),
        te[:changes].copy(),
        w[:changes].copy(),
        stay[:staying].copy(),
        numbers[:staying].copy(),
        gone[:staying].copy(),
    )
