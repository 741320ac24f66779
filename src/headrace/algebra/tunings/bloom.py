"""Bloom filters of queries within a limit of memory: their cells, their blocks and their granules."""

from __future__ import annotations

from typing import Final

from headrace.algebra.nodes import BloomFilter, column
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column, Expression
from headrace.time import INFINITY

PROBES: Final = 4
"""So many cells of a block say of a value whether it is there; some of them may be the same."""
BLOCK_BYTES: Final = 256
"""The cells of a block: bytes, or bits where no value leaves."""
_ROW_BYTES: Final = BLOCK_BYTES + 28
"""A block in state, with its number, its hash and its time (bytes)."""
_REST: Final = 7 / 8
"""The part of the memory that is for blocks; they are written again before runs need more than the rest."""
_RUNS: Final = 4_000
"""So much the runs of some buckets need beside their rows (bytes)."""
_WATCHED: Final = 16
"""Of so many blocks one is watched."""
_LEAST_WATCHED: Final = 4
"""Some four are watched at least, but no more than one of four."""


def blocks_within(memory: int) -> int:
    """The number of blocks that fit.

    Args:
        memory: so much state may have (bytes).
    """
    return max(1, int(_REST * (memory - min(_RUNS, memory // 2))) // _ROW_BYTES)


def watched_every(plan: BloomFilter) -> int:
    """The distance between the numbers of blocks of which some values are known exactly."""
    return max(_LEAST_WATCHED, min(_WATCHED, plan.blocks // _LEAST_WATCHED))


def cells_of(plan: BloomFilter) -> int:
    """The number of cells of a block."""
    return 8 * BLOCK_BYTES if plan.size.length == INFINITY else BLOCK_BYTES


def values_of(plan: BloomFilter) -> tuple[Column, ...]:
    """The columns of the input that are compared."""
    return tuple(column(plan.input, place) for place in range(len(plan.schema)))


def block_of(plan: BloomFilter) -> Expression:
    """The block of a row of the input, from 0."""
    positive = resolve("+", (resolve("HASH", values_of(plan)), literal(2**31)))
    return resolve("%", (positive, literal(plan.blocks)))
