"""How many digits results of DECIMAL arithmetic have, as in Spark SQL."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.schema import DIGITS, MOST_DIGITS, decimal

_KEPT_SCALE: Final = 6
"""So many digits after the point are kept where a result would have more than a DECIMAL has in all."""


def exact_digits(name: str, p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    """The precision and scale that hold every result of +, -, *, / or % of two DECIMALs.

    A quotient has a scale of at least 6, and no more digits than are listed there.
    """
    scale = max(s1, s2)
    match name:
        case "+" | "-":
            return max(p1 - s1, p2 - s2) + scale + 1, scale
        case "*":
            return p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(_KEPT_SCALE, s1 + p2 + 1)
            return p1 - s1 + s2 + scale, scale
        case _:
            return max(1, min(p1 - s1, p2 - s2) + scale), scale


def result_type(name: str, p1: int, s1: int, p2: int, s2: int) -> pa.DataType:
    """The type of a result: of too many digits those after the point give way, as far as 6 of them.

    Too many are more than 38, or more than 76 where an operand has more than 38. What then is too large
    fails, and what has more digits after the point is rounded half away from zero (Spark,
    `spark.sql.decimalOperations.allowPrecisionLoss`).
    """
    precision, scale = exact_digits(name, p1, s1, p2, s2)
    most = _most(p1, p2)
    if precision > most:
        whole = precision - scale
        scale = max(most - whole, min(scale, _KEPT_SCALE))
    return decimal(min(precision, most), scale)


def is_exact(name: str, left: pa.DataType, right: pa.DataType) -> bool:
    """Whether the type of a result holds every one without rounding."""
    precision, _ = exact_digits(name, left.precision, left.scale, right.precision, right.scale)
    return precision <= _most(left.precision, right.precision)


def _most(p1: int, p2: int) -> int:
    return MOST_DIGITS if max(p1, p2) > DIGITS else DIGITS
