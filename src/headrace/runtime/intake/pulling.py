"""What is pulled from outside: an iterator, or a function that is called again and again (Fjords, 3).

What has been pulled may have a number, which is in the commit that has its rows. After a restart the source
is asked for what comes after it, so that nothing is missing and nothing counts twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from headrace.errors import HeadraceError, UserError, told
from headrace.runtime.intake.given_rows import table_of
from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.composed.tables import write_arrow
from headrace.runtime.sources.rows.contract import SplitSource

_MOST_NUMBER: Final = 2**63


@dataclass(frozen=True, eq=False)
class PulledPiece:
    """What one pull has brought.

    Attributes:
        content: an Arrow table with the stream's columns, or what `Pull.opened` makes rows of.
        rows: how many rows it has, about.
        size: its bytes.
        number: what the source knows it by; None if nothing.
    """

    content: Any
    rows: int
    size: int
    number: int | None = None


class EndOfRowsError(Exception):
    """Nothing more comes."""


class Pull(Protocol):
    """How a stream's rows are pulled.

    Attributes:
        every: seconds between a pull that brought nothing and the next one.
        drains: whether the next pull follows one that brought something at once; if not, after `every`.
        together: whether one epoch may read several pieces.
    """

    every: float
    drains: bool
    together: bool

    def pull(self, last: int | None) -> PulledPiece | None:
        """What has come; None if nothing has. It may wait.

        Args:
            last: the number of the piece before, after a restart that of the last one that was committed.

        Raises:
            EndOfRowsError: nothing comes any more.
            UserError: it cannot be had for now, or is of no use; it is asked again.
            FailedError: it will not be had any more.
        """
        ...

    def opened(self, pieces: Sequence[PulledPiece], path: Path) -> SplitSource:
        """What reads some pieces, which have been written to a file, or to a folder of that name.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def end(self) -> None:
        """Let go of what is open: nothing is pulled until the next start."""
        ...


class FailedError(UserError):
    """A source has failed for good."""


class _Rows:
    """Pieces that are tables.

    Args:
        name: the stream, for errors.
        columns: its columns.
    """

    drains = True
    together = True

    def __init__(self, name: str, columns: ComputedColumns) -> None:
        self._name = name
        self._columns = columns

    def opened(self, pieces: Sequence[PulledPiece], path: Path) -> SplitSource:
        """What reads some tables."""
        write_arrow(pa.concat_tables([one.content for one in pieces]), path)
        given = self._columns.given
        return self._columns.over(
            open_source("arrow", {"path": str(path)}, given, None, self._name, path.parent)
        )

    def end(self) -> None:
        """Nothing is open."""

    def piece(self, given: Any) -> PulledPiece | None:
        """What was given as a piece: rows, or rows and a number.

        Raises:
            UserError: it is nothing of the kind.
        """
        number = None
        if isinstance(given, tuple) and len(given) == 2:
            given, number = given
            is_whole = isinstance(number, int) and not isinstance(number, bool)
            if not is_whole or not -_MOST_NUMBER <= number < _MOST_NUMBER:
                raise UserError(
                    f"the rows of {self._name} have the number {number!r}",
                    hint="return (rows, number) with a whole number of 64 bits",
                )
        if given is None:
            return None
        table = table_of(given, self._columns.given, self._name)
        return PulledPiece(table, table.num_rows, table.nbytes, number) if table.num_rows or number else None


class IteratorPull(_Rows):
    """The rows that an iterator gives, until it ends.

    Args:
        name: the stream, for errors.
        columns: its columns.
        rows: gives tables, record batches, data frames, dictionaries or lists of them.
    """

    every = 0.0

    def __init__(self, name: str, columns: ComputedColumns, rows: Iterator[Any]) -> None:
        super().__init__(name, columns)
        self._given = rows

    def pull(self, last: int | None) -> PulledPiece | None:
        """The next rows."""
        try:
            return self.piece(next(self._given))
        except StopIteration:
            raise EndOfRowsError from None
        except Exception as error:  # whatever it is, an iterator that has raised gives no more
            raise FailedError(f"the iterator of {self._name} has failed: {_reason(error)}") from error


class FunctionPull(_Rows):
    """The rows that a function returns each time that it is called.

    Args:
        name: the stream, for errors.
        columns: its columns.
        function: returns rows, or rows and a number; None if nothing has come. If it takes an argument, that
            is the last number, None at first.
        every: seconds between a call that brought nothing and the next one.
    """

    def __init__(
        self, name: str, columns: ComputedColumns, function: Callable[..., Any], every: float
    ) -> None:
        super().__init__(name, columns)
        self.every = every
        self._function = function
        self._is_told = bool(inspect.signature(function).parameters)

    def pull(self, last: int | None) -> PulledPiece | None:
        """What the function returns."""
        try:
            given = self._function(last) if self._is_told else self._function()
            return self.piece(given)
        except UserError:
            raise
        except Exception as error:  # whatever it is, the function may work the next time
            raise UserError(f"the function of {self._name} has failed: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, HeadraceError) else told(error)
