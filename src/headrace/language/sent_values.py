"""Values of parameters as JSON, as clients send them to a server.

None, booleans, whole numbers, finite numbers and texts are JSON's own. Others are an object with one field
that says what they are: `{"timestamp": "2024-05-01T09:00:00+00:00"}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from headrace.errors import UserError
from headrace.language.named_values import ParameterValue

_MICROSECOND: Final = timedelta(microseconds=1)
_READ: Final[dict[str, Callable[[Any], ParameterValue]]] = {
    "decimal": lambda text: Decimal(_text(text)),
    "double": lambda text: float(_text(text)),
    "date": lambda text: date.fromisoformat(_text(text)),
    "timestamp": lambda text: datetime.fromisoformat(_text(text)),
    "microseconds": lambda number: int(number) * _MICROSECOND,
}
"""How values are read that are no values of JSON, by the field that they are in."""


def sent_values(values: Mapping[str, ParameterValue] | None) -> dict[str, Any] | None:
    """Values as JSON; None where there are none."""
    return None if values is None else {name: _sent(value) for name, value in values.items()}


def received_values(found: Any) -> dict[str, ParameterValue] | None:
    """The values that a client has sent; None where it has sent none.

    Args:
        found: what was in the JSON.

    Raises:
        UserError: it is no object of values.
    """
    if found is None:
        return None
    if not isinstance(found, dict):
        hint = 'send {"name": 5, "since": {"timestamp": "2024-05-01T09:00:00Z"}}'
        raise UserError("the parameters are not a JSON object", hint=hint)
    return {name: _received(name, value) for name, value in found.items()}


def _sent(value: ParameterValue) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return {"double": str(value)}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case timedelta():
            return {"microseconds": value // _MICROSECOND}
        case _:
            return value


def _received(name: str, value: Any) -> ParameterValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind, written = next(iter(value.items()), (None, None)) if isinstance(value, dict) else (None, None)
    read = _READ.get(kind) if kind is not None and len(value) == 1 else None
    if read is None:
        kinds = ", ".join(f'{{"{known}": ...}}' for known in _READ)
        raise UserError(
            f"the value of :{name} is none that a parameter has", hint=f"others are sent as {kinds}"
        )
    try:
        return read(written)
    except (ArithmeticError, ValueError, TypeError):
        raise UserError(f"the value of :{name} is not a {kind}") from None


def _text(value: Any) -> str:
    """A text; numbers are not taken, since JSON's are not exact."""
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value
