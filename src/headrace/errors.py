"""Every exception Headrace raises on purpose, with the place in the text and a hint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column, both counted from 1."""

    line: int
    column: int


class HeadraceError(Exception):
    """Base of all errors: a message, where it happened, and what may help.

    Attributes:
        message: one sentence, without the position.
        position: the place in the SQL text, or None where there is none.
        hint: what the user may do about it, or None.
    """

    def __init__(self, message: str, *, position: Position | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.position, self.hint)

    def __str__(self) -> str:
        place = f"{self.position.line}:{self.position.column}: " if self.position else ""
        hint = f" (hint: {self.hint})" if self.hint else ""
        return f"{place}{self.message}{hint}"


def _rebuild(
    kind: type[HeadraceError], message: str, position: Position | None, hint: str | None
) -> HeadraceError:
    """Build an error again on the other side of a pickle; errors cross processes under Spark."""
    return kind(message, position=position, hint=hint)


class UserError(HeadraceError):
    """Something the user can mend: a query, an option, an input. The command line exits with 2."""


class LanguageError(UserError):
    """The text is no valid statement: syntax, unknown names, wrong types."""


class PlanError(UserError):
    """A plan that the algebra refuses, such as a window over elements longer than a chronon."""


class SourceError(UserError):
    """An input that cannot be read: a missing path, a corrupt file, a missing column."""


class PolicyError(UserError):
    """SQL asks for something that the operator's policy does not allow it."""


class StoreError(UserError):
    """A store folder that cannot be used: foreign, locked, damaged or full."""


class ExecutionError(UserError):
    """A query that failed while it ran, such as an integer sum that overflows."""


class DeliveryError(UserError):
    """A sink that cannot take committed results, or would take them with a gap."""


class HistoryError(HeadraceError):
    """Elements that are not a history, because a multiplicity falls below zero: a fault of ours."""
