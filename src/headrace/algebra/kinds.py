"""The kinds of set operations, joins and places: what each makes of its input."""

from __future__ import annotations

from enum import Enum
from typing import assert_never


class SetKind(Enum):
    """What a set operation makes of a payload's multiplicities l and r; the value is its SQL."""

    UNION = "UNION"
    """1 where l + r > 0."""
    INTERSECT = "INTERSECT"
    """1 where l > 0 and r > 0."""
    EXCEPT = "EXCEPT"
    """1 where l > 0 and r = 0."""
    UNION_MAX = "UNION MAX"
    """The larger of l and r (thesis, equation 8.13: max-union)."""
    INTERSECT_ALL = "INTERSECT ALL"
    """The smaller of l and r (equation 8.12)."""
    INTERSECT_STRICT = "INTERSECT STRICT"
    """l where r > 0: the semi-join by equality of the whole payload (equation 8.11)."""
    EXCEPT_ALL = "EXCEPT ALL"
    """l - r where that is positive (equation 8.6)."""
    EXCEPT_STRICT = "EXCEPT STRICT"
    """l where r = 0 (equation 8.14: strict difference)."""

    def is_brief(self, left: bool, right: bool) -> bool:
        """Whether results hold briefly, where a payload of the left or the right input does or does not."""
        match self:
            case SetKind.UNION | SetKind.UNION_MAX:
                return left and right
            case SetKind.INTERSECT | SetKind.INTERSECT_ALL | SetKind.INTERSECT_STRICT:
                return left or right
            case SetKind.EXCEPT | SetKind.EXCEPT_ALL | SetKind.EXCEPT_STRICT:
                return left
            case _:
                assert_never(self)


class JoinKind(Enum):
    """Which rows a join keeps; the value is its SQL, before JOIN."""

    INNER = "INNER"
    """Pairs that match."""
    LEFT = "LEFT"
    """Those, and left rows without a match."""
    RIGHT = "RIGHT"
    """Those, and right rows without a match."""
    FULL = "FULL"
    """Those, and all rows without a match."""
    SEMI = "LEFT SEMI"
    """Left rows with a match."""
    ANTI = "LEFT ANTI"
    """Left rows without a match."""

    def is_brief(self, left: bool, right: bool) -> bool:
        """Whether results hold briefly, where rows of the left or the right input do or do not."""
        match self:
            case JoinKind.INNER | JoinKind.SEMI:
                return left or right
            case JoinKind.LEFT | JoinKind.ANTI:
                return left
            case JoinKind.RIGHT:
                return right
            case JoinKind.FULL:
                return left and right
            case _:
                assert_never(self)


class Ranking(Enum):
    """What the place of a row in a sorted group counts, besides the row itself; the value is its SQL."""

    ROW_NUMBER = "ROW_NUMBER"
    """The rows before it."""
    RANK = "RANK"
    """The rows that are sorted before it: rows that are equal in the sort keys share a place."""
    DENSE_RANK = "DENSE_RANK"
    """The distinct sort keys before its own."""


class BloomKind(Enum):
    """Of what a Bloom filter tells."""

    DISTINCT = "DISTINCT"
    NEW = "ISTREAM of DISTINCT"
    EXCEPT = "EXCEPT"


class Filling(Enum):
    """The value of a series at the instants of a gap; each is as it is written."""

    LAST = "LAST"
    """The values before the gap."""
    LINEAR = "LINEAR"
    """Those on the line from the values before the gap to those after it."""
    NULL = "NULL"
    """NULLs."""
