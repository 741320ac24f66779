"""`OVERFLOW`: what happens to rows that are pushed faster than epochs take them."""

from __future__ import annotations

from enum import Enum


class Overflow(Enum):
    """What a stream FROM push does with rows for which there is no room; the values are as written."""

    BLOCK = "BLOCK"
    """Whoever pushes waits: nothing is lost."""
    DROP_OLDEST = "DROP OLDEST"
    """Those that have waited longest are dropped."""
    DROP_NEWEST = "DROP NEWEST"
    """Those that are pushed now are dropped."""
