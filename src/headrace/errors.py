"""Every exception Headrace raises on purpose, with the place in the text and a hint."""

from __future__ import annotations

import sys
import threading
import warnings
from dataclasses import dataclass
from typing import Final

_MESSAGE_CHARACTERS: Final = 500
"""So much of what another program's exception says is kept."""
_VALUE_CHARACTERS: Final = 100
"""So much of a value is shown in a message."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column, both counted from 1."""

    line: int
    column: int


NOWHERE: Final = Position(1, 1)
"""The place of a statement that no text holds."""


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
    """Something the user can fix: a query, an option, an input. The command line exits with 2."""


class LanguageError(UserError):
    """The text is not a valid statement: syntax, unknown names, wrong types."""


class PlanError(UserError):
    """A plan that the algebra refuses, such as a window over elements longer than a chronon."""


class SourceError(UserError):
    """An input that cannot be read: a missing path, a corrupt file, a missing column."""


class AwayError(SourceError):
    """Something outside that cannot be had for now, such as a server that is silent; it is asked again.

    Attributes:
        pause: seconds after which it may be asked again, where it says so itself; not kept in a pickle.
    """

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        hint: str | None = None,
        pause: float | None = None,
    ) -> None:
        super().__init__(message, position=position, hint=hint)
        self.pause = pause


class PolicyError(UserError):
    """SQL asks for something that the operator's policy does not allow it."""


class StoreError(UserError):
    """A store folder that cannot be used: foreign, locked, damaged or full."""


class ExecutionError(UserError):
    """A query that failed while it ran, such as an integer sum that overflows."""


class DeadLetterError(ExecutionError):
    """More rows could not take part than the run allows; what was committed before their epoch stays."""


class WorkerLostError(ExecutionError):
    """A process that ran a part of an epoch has died; the epoch does not count, and may be tried again."""


class RunnerLostError(ExecutionError):
    """What runs the epochs is gone for good, such as Spark's JVM; a durable store is as its last commit."""


class BusyError(UserError):
    """Rows that find no room for now, since epochs have fallen behind; they may be sent again."""


class EndedError(UserError):
    """What a run that has ended cannot take; once it goes on it may be sent again."""


class DeliveryError(UserError):
    """A sink that cannot take committed results, or would take them with a gap."""


class ReplacedError(UserError):
    """The query that is followed was replaced by one in which its answer does not go on; all was given."""


class HeadraceWarning(UserWarning):
    """Something that is done, and may not be what was meant, such as a column that is left out."""


class DeadLetterWarning(HeadraceWarning):
    """Rows that could not take part in a run to the end of its input: they came too late, or were damaged."""


def warn(message: str, category: type[HeadraceWarning] = HeadraceWarning) -> None:
    """Warn the user, at the line of the user's code that called Headrace."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("headrace."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class HistoryError(HeadraceError):
    """Elements that are not a history, because a multiplicity falls below zero: a fault of ours."""


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning with a note of how long it is; always valid Unicode.

    Args:
        text: any text, also one with half a surrogate pair, which becomes a question mark.
        limit: how many characters of it are kept.
    """
    kept = text[:limit].encode("utf-8", "replace").decode()
    return kept if len(text) <= limit else f"{kept}... ({len(text)} characters in all)"


def is_of_code(error: BaseException) -> bool:
    """Whether an exception is about the code of a user's that raised it; if not, it is meant for the process.

    Python raises KeyboardInterrupt in the main thread alone when somebody asks for it.
    """
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is not threading.main_thread()
    return isinstance(error, Exception | SystemExit | GeneratorExit)


def message_of(error: BaseException) -> str:
    """The first line of what an exception says, shortened; empty where it says nothing or cannot.

    Exceptions of users' code may do anything when they are asked for their text.
    """
    try:
        text = str(error)
    except (Exception, SystemExit):
        return "its text cannot be had"
    return shortened(text.partition("\n")[0], _MESSAGE_CHARACTERS)


def named(error: BaseException) -> str:
    """The type of an exception and its message, in one short line."""
    text = message_of(error)
    return type(error).__name__ + (f": {text}" if text else "")


def told(error: BaseException) -> str:
    """What to show of an exception: an error of Headrace's unchanged, of another one its type and message."""
    return str(error) if isinstance(error, HeadraceError) else named(error)


def as_ours(error: Exception, what: str) -> HeadraceError:
    """An error as one of Headrace's, for whoever called it.

    Args:
        error: whatever was raised.
        what: what has failed, such as `the change`.
    """
    if isinstance(error, HeadraceError):
        return error
    found = ExecutionError(
        f"{what} failed: {named(error)}", hint="it has changed nothing; the log says where"
    )
    found.__cause__ = error
    return found


def shown(value: object) -> str:
    """A value in a message: its `repr`, shortened; its type where that cannot be had."""
    try:
        return shortened(repr(value), _VALUE_CHARACTERS)
    except (Exception, SystemExit):
        return f"a {type(value).__name__}"
