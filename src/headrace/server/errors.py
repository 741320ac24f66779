"""Errors as responses: one body for all of them, in the words of the command line."""

from __future__ import annotations

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
    SourceError,
    StoreError,
    UserError,
)

_KINDS: Final[tuple[tuple[type[HeadraceError], str, int], ...]] = (
    (BusyError, "busy", 429),
    (EndedError, "unavailable", 503),
    (PolicyError, "policy", 403),
    (LanguageError, "language", 400),
    (PlanError, "plan", 400),
    (SourceError, "source", 400),
    (StoreError, "store", 503),
    (ExecutionError, "execution", 400),
    (DeliveryError, "delivery", 400),
    (UserError, "user", 400),
)
"""What an error is called, and the status of its response; the first one that fits counts."""


class RequestError(UserError):
    """A request that is refused for what it asks of the server, not for what it says in SQL.

    Attributes:
        kind: what the error is called.
        status: of the response.
        more: what else the body has beside the error.
        headers: of the response.
    """

    def __init__(
        self,
        kind: str,
        status: int,
        message: str,
        hint: str | None = None,
        more: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.status = status
        self.more = more or {}
        self.headers = headers or {}


def not_found(what: str, hint: str | None = None) -> RequestError:
    """There is no such thing."""
    return RequestError("not_found", 404, f"there is no {what}", hint)


def too_large(message: str, hint: str) -> RequestError:
    """A body or an answer over a limit."""
    return RequestError("too_large", 413, message, hint)


def response_of(error: BaseException) -> tuple[int, dict[str, Any], dict[str, str]]:
    """The status, the body and the headers of the response to a request that failed.

    What is not an error of Headrace's own is a fault; its text may hold anything, and is not shown.
    """
    if not isinstance(error, UserError):
        hint = "please report it; the server's log has the details"
        return 500, body_of("internal", RequestError("internal", 500, "a fault of the server", hint)), {}
    if isinstance(error, RequestError):
        return error.status, {**body_of(error.kind, error), **error.more}, error.headers
    kind, status = next((kind, status) for known, kind, status in _KINDS if isinstance(error, known))
    return status, body_of(kind, error), {"Retry-After": "1"} if status in (429, 503) else {}


def body_of(kind: str, error: HeadraceError) -> dict[str, Any]:
    """The body: what is wrong, where, what may help, and all of it as one text."""
    position = error.position
    return {
        "error": {
            "kind": kind,
            "message": error.message,
            "line": None if position is None else position.line,
            "column": None if position is None else position.column,
            "hint": error.hint,
            "text": str(error),
        }
    }
