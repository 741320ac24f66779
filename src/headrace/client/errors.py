"""The responses of a server that refuses something, as the errors of the library."""

from __future__ import annotations

import json
from typing import Any, Final

from headrace.errors import (
    BusyError,
    DeliveryError,
    EndedError,
    ExecutionError,
    HeadraceError,
    LanguageError,
    PlanError,
    PolicyError,
    Position,
    SourceError,
    StoreError,
    UserError,
)

_CLASSES: Final[dict[str, type[HeadraceError]]] = {
    "busy": BusyError,
    "unavailable": EndedError,
    "policy": PolicyError,
    "language": LanguageError,
    "plan": PlanError,
    "source": SourceError,
    "store": StoreError,
    "execution": ExecutionError,
    "delivery": DeliveryError,
    "internal": HeadraceError,
}
"""The class of each kind of error; of all others it is UserError."""


class GoneError(UserError):
    """Changes that are no longer kept, or are those of a query that has been replaced.

    Attributes:
        resume: the id after which changes can be had; None if none is known.
        history, snapshot: the paths at the server of the answer as of that id; None if none is known.
    """

    resume: str | None = None
    history: str | None = None
    snapshot: str | None = None


def error_of(status: int, body: bytes) -> HeadraceError:
    """The error that a response reports.

    Args:
        status: of the response.
        body: that of `headrace serve`, or of whatever else has answered.
    """
    told = _object(body)
    found = told.get("error")
    if not isinstance(found, dict):
        return UserError(
            f"the server has answered {status}, and not as Headrace does",
            hint="is `headrace serve` what listens there?",
        )
    line, column = found.get("line"), found.get("column")
    place = Position(line, column) if isinstance(line, int) and isinstance(column, int) else None
    message, hint = str(found.get("message")), found.get("hint")
    if status == 410:
        return _gone(message, hint, told.get("start_from"))
    made = _CLASSES.get(str(found.get("kind")), UserError)
    return made(message, position=place, hint=hint)


def _gone(message: str, hint: str | None, begin: object) -> GoneError:
    error = GoneError(message, hint=hint)
    if isinstance(begin, dict):
        error.resume, error.history, error.snapshot = (
            begin.get(key) for key in ("id", "history", "snapshot")
        )
    return error


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
