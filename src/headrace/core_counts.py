"""Numbers of processor cores as people read them: `1.5 cores`."""

from __future__ import annotations


def format_cores(number: float) -> str:
    """A number of cores for people, with three digits and down to a ten-thousandth.

    Example:
        >>> format_cores(1.5), format_cores(1), format_cores(0.01234), format_cores(0)
        ('1.5 cores', '1 core', '0.0123 cores', '0 cores')
    """
    shown = f"{round(float(f'{number:.3g}'), 4):g}"
    return f"{shown} core" if shown == "1" else f"{shown} cores"
