"""What `Database.stream` is told of rows that have lifetimes or change others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import NOWHERE, LanguageError, UserError
from headrace.language.catalog import StreamInfo, describe_stream, timed_by_arrival
from headrace.language.statements.streams import NOTHING_SAID, ByArrival, CreateStream, EventsClause
from headrace.language.syntax import Name
from headrace.schema import Schema


@dataclass(frozen=True)
class Said:
    """What is said of the rows of a stream.

    Attributes:
        timestamp: the column that they are timed by.
        key: the columns that say which row is changed; none where rows are not changed by key.
        events: what else says when rows are valid; None where each is valid for its instant.
    """

    timestamp: str | ByArrival
    key: tuple[Name, ...] = ()
    events: EventsClause | None = None

    def info(self, name: str, columns: Schema) -> StreamInfo:
        """The catalog's entry for a stream with those columns.

        Raises:
            UserError: a column is missing, or cannot be what it is named for.
        """
        if self.events is None and isinstance(self.timestamp, ByArrival):
            return timed_by_arrival(name, columns, self.timestamp)
        statement = CreateStream(
            name, None, "arrow", (), self.timestamp, NOTHING_SAID, NOWHERE, NOWHERE, self.key, self.events
        )
        try:
            return describe_stream(statement, columns)
        except LanguageError as error:
            raise UserError(error.message, hint=error.hint) from None


def said_of_rows(
    timestamp: str | ByArrival | None,
    valid: str | tuple[str, str | None] | None,
    changes_by: str | None,
    key: str | Sequence[str] | None,
    version: str | None,
) -> Said:
    """What the arguments of `Database.stream` say.

    Raises:
        UserError: they do not fit each other.
    """
    keys = tuple(map(_name, [key] if isinstance(key, str) else key or ()))
    if (timestamp is None) == (valid is None):
        raise UserError(
            "a stream has either a timestamp or lifetimes", hint='give timestamp="ts" or valid=("from", "to")'
        )
    if keys and (changes_by is None or valid is not None):
        raise UserError(
            "a key is for rows that are changed by it", hint='give changes_by="op" and timestamp="ts" with it'
        )
    if version is not None and changes_by is None:
        raise UserError("a version is for rows that change others", hint="give changes_by with it")
    if isinstance(timestamp, ByArrival) and changes_by is not None and not keys:
        raise UserError(
            "rows that are timed by arrival take nothing back: they have other instants",
            hint="name the column with the instant of the row and its correction",
        )
    begin, end = (valid, None) if isinstance(valid, str) else valid or (None, None)
    timed = begin if timestamp is None else timestamp
    assert timed is not None
    if begin is None and changes_by is None:
        return Said(timed)
    change, ends, number = (None if one is None else _name(one) for one in (changes_by, end, version))
    return Said(timed, keys, EventsClause(begin is not None, ends, change, number))


def _name(text: str) -> Name:
    return Name(text, NOWHERE)
