"""Time zones by name, or by how far they are from UTC."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_DISTANCE: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::([0-5]\d))?")
_FARTHEST: Final = timedelta(hours=18)
"""As in Java."""


def fixed_distance(zone: str) -> timedelta | None:
    """By how much the clocks of `+05:30`, `-8` or `UTC+1` are ahead of UTC; None for other zones."""
    found = _DISTANCE.fullmatch(zone)
    if found is None:
        return None
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    if ahead > _FARTHEST:
        return None
    return ahead if found[1] == "+" else -ahead
