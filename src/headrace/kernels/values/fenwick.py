"""Counts of numbered values in a Fenwick tree (Fenwick 1994), one of several that share an array."""

from __future__ import annotations

import numpy as np

from headrace.kernels.jit import inlined


@inlined
def add_count(tree, start, size, place, count):  # type: ignore[no-untyped-def]
    """Add to the count of value `place` of the tree that fills `tree[start : start + size]`."""
    index = place + 1
    while index <= size:
        tree[start + index - 1] += count
        index += index & -index


@inlined
def first_step(size):  # type: ignore[no-untyped-def]
    """With how large a step to begin a search in a tree: the largest power of 2 up to its size."""
    step = np.int64(1)
    while 2 * step <= size:
        step *= 2
    return step


@inlined
def find_place(tree, start, size, step, rank):  # type: ignore[no-untyped-def]
    """The value at a rank, from 0, when all are sorted; `step` is what `first_step` has for `size`."""
    place = 0
    while step > 0:
        if place + step <= size and tree[start + place + step - 1] <= rank:
            place += step
            rank -= tree[start + place - 1]
        step //= 2
    return place


@inlined
def count_below(tree, start, place):  # type: ignore[no-untyped-def]
    """How many values come before value `place`, copies included."""
    count = 0
    while place > 0:
        count += tree[start + place - 1]
        place -= place & -place
    return count
