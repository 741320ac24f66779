"""How many letters have to be changed to make one text of another."""

from __future__ import annotations

from headrace.elements import Int64Array
from headrace.kernels.jit import INT, INT1, INT1_OUT, kernel


@kernel(INT1, INT1, INT, INT, INT1_OUT)
def edit_rows(left: Int64Array, right: Int64Array, begin: int, end: int, row: Int64Array) -> None:
    """Some rows of the table of Wagner and Fischer (J. ACM 1974) for two texts, in place of the one before.

    Args:
        left, right: int64[n] and int64[m], the letters of the texts.
        begin, end: the rows; the letters from `begin` to before `end` of the left text.
        row: int64[m + 1], the row before: the distances of the beginnings of the right text from the first
            `begin` letters of the left one.
    """
    for place in range(begin, end):
        letter = left[place]
        corner, row[0] = row[0], place + 1
        for other in range(len(right)):
            replaced = corner + (letter != right[other])
            corner = row[other + 1]
            row[other + 1] = min(replaced, corner + 1, row[other] + 1)
