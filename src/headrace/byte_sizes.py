"""Sizes of memory as people write them: `2 GB`, `512 MiB`."""

from __future__ import annotations

import re
from typing import Final

UNITS: Final = {
    **{unit: 1000**power for power, unit in enumerate(("B", "KB", "MB", "GB", "TB"))},
    **{unit: 1024**power for power, unit in enumerate(("KIB", "MIB", "GIB", "TIB"), start=1)},
}
"""The bytes of a unit, by its name in capitals."""

_WRITTEN: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def bytes_of(text: str) -> int | None:
    """The bytes of a size; None if the text does not give a size of at least one byte.

    Args:
        text: a number and a unit: B, kB, MB, GB and TB count in thousands, KiB, MiB, GiB and TiB in 1,024s.

    Example:
        >>> bytes_of("1.5 GB"), bytes_of("2 KiB"), bytes_of("much")
        (1500000000, 2048, None)
    """
    found = _WRITTEN.fullmatch(text)
    if found is None or (unit := UNITS.get(found[2].upper())) is None:
        return None
    return int(float(found[1]) * unit) or None


def exact_bytes(size: int) -> str:
    """A number of bytes of which `bytes_of` makes the same one.

    Example:
        >>> exact_bytes(1_500_000), exact_bytes(2048), exact_bytes(1001)
        ('1500 kB', '2 KiB', '1001 B')
    """
    units = (("GB", 10**9), ("GiB", 2**30), ("MB", 10**6), ("MiB", 2**20), ("kB", 1000), ("KiB", 1024))
    unit, whole = next((found for found in units if size % found[1] == 0), ("B", 1))
    return f"{size // whole} {unit}"


def format_bytes(size: float) -> str:
    """A number of bytes for people, in thousands and with three digits.

    Example:
        >>> format_bytes(1_536_000), format_bytes(999), format_bytes(20e9), format_bytes(999_999)
        ('1.54 MB', '999 B', '20 GB', '1 MB')
    """
    size, names = round(size), ("B", "kB", "MB", "GB", "TB")
    power = max((power for power in range(5) if size >= 999.5 * 1000 ** (power - 1) and power), default=0)
    return f"{size} B" if not power else f"{float(f'{size / 1000**power:.3g}'):g} {names[power]}"
