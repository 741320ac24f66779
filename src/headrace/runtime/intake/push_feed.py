"""Feeds of streams that never end, and the one of rows that are pushed.

A feed is asked for what has arrived, epoch by epoch, and notified when that is committed. Only then is a push
acknowledged.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, SupportsIndex

import pyarrow as pa

from headrace.errors import BusyError, EndedError, UserError, told
from headrace.language.statements.overflow import Overflow
from headrace.runtime.intake.feed import FittedRows
from headrace.runtime.intake.given_rows import Omissible, table_of
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.composed.held import HeldRows
from headrace.runtime.sources.composed.tables import filled, write_arrow
from headrace.runtime.store.paths import make_inside
from headrace.runtime.store.segments import cannot_write

_LOG: Final = logging.getLogger("headrace")

_FAR: Final = 10**15
"""Numbers that are left out between two pushes of a producer: microseconds of thirty years."""

_MOST_WAITING: Final = 4
"""While more epochs' rows wait, whoever pushes waits."""

_CARRIED_BYTES: Final = 2**19
"""So many bytes of an epoch's rows go to the tasks with its work: to write, map and remove a file takes as
long as a small epoch. Each task of Spark's is sent the work, so that more rows go by a file."""


@dataclass(frozen=True, eq=False)
class _Push:
    """Rows that wait for an epoch.

    Attributes:
        table: with the stream's columns.
        producer, sequence: who pushed them and as which of its pushes, or None.
        done: resolved when they are committed: True, or False for a repeat. It cannot be cancelled: an epoch
            may have the rows already.
    """

    table: pa.Table
    producer: str | None
    sequence: int | None
    done: Future[bool]

    @cached_property
    def size(self) -> tuple[int, int]:
        """How many rows they are, and how many bytes."""
        return self.table.num_rows, self.table.nbytes


class PushFeed(FittedRows):
    """Rows pushed from Python.

    Args:
        name: the stream.
        stream: its columns.
        folder: where rows wait for the tasks; one that all tasks can reach.
        max_rows, max_bytes: how many rows an epoch takes at most, and how many bytes of them; a single
            push may have more.
        overflow: what happens to rows while more than four epochs' rows wait.
        wake: called when rows have come.
    """

    def __init__(
        self,
        name: str,
        stream: LiveStream,
        folder: Path,
        max_rows: int,
        max_bytes: int,
        overflow: Overflow,
        wake: Callable[[], None],
    ) -> None:
        self._name = name
        self._stream = stream
        self._folder = folder
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._overflow = overflow
        self._wake = wake
        self._room = threading.Condition()
        self._waiting: deque[_Push] = deque()
        self._rows = self._bytes = 0
        self._come = 0
        self._dropped = 0
        self._taken: list[_Push] = []
        self._repeats: list[_Push] = []
        self._file: Path | None = None
        self._ended: BaseException | None = None
        self._stopped = False

    def limit(self, max_rows: int, max_bytes: int, overflow: Overflow) -> None:
        """Let an epoch take so many rows at most, and so many bytes of them, from the next one on.

        Args:
            max_rows, max_bytes: so many.
            overflow: what happens from now on to rows for which there is no room.
        """
        with self._room:
            self._max_rows, self._max_bytes, self._overflow = max_rows, max_bytes, overflow
            self._room.notify_all()

    def put(
        self, rows: Any, producer: str | None, sequence: int | None, patience: float | None = None
    ) -> Future[bool]:
        """Add rows; while more rows or bytes wait than four epochs take, waits or drops some, by OVERFLOW.

        Args:
            rows: a table or data frame, a list of dictionaries, or one dictionary.
            producer, sequence: who pushes, and as which of its pushes, or None.
            patience: seconds to wait for room at most; None waits as long as it takes.

        Returns:
            Whether the rows are committed, once that is known; BusyError where they are dropped.

        Raises:
            BusyError: there is no room after that time.
            UserError: the rows do not fit the stream's columns, the producer or the sequence number is of no
                use, or the stream has stopped.
        """
        push = _Push(
            table_of(
                rows,
                self._stream.columns.given,
                self._name,
                Omissible.of(self._stream),
            ),
            *_numbered(producer, sequence),
            Future(),
        )
        push.done.set_running_or_notify_cancel()
        with self._room:
            if not self._room.wait_for(self._has_room, patience):
                raise BusyError(
                    f"{self._name} takes no rows for now: epochs have fallen behind",
                    hint="send the same rows again in a moment",
                )
            if self._stopped:
                ended = self._ended
                reason = f"the run ended with: {told(ended)}" if ended else "the database is not started"
                raise EndedError(f"{self._name} takes no rows: {reason}", hint="call start()")
            dropped = self._make_room(push)
            self._come += 1
        with ExitStack() as stack:
            for one in dropped:
                stack.callback(_resolve, one, False, self._lost())
        self._wake()
        return push.done

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Nothing to begin."""

    def read(self, columns: Sequence[str]) -> None:
        """Pushed rows have all columns."""

    def widen(self, stream: LiveStream) -> bool:
        """Take rows with further columns, which those that wait have as NULL."""
        self._stream = stream
        return True

    def ready(self) -> bool:
        """Whether rows wait."""
        return bool(self._waiting)

    def come(self) -> int:
        """How many pushes have come so far."""
        with self._room:
            return self._come

    def has_taken(self, come: int) -> bool:
        """Whether so many pushes have been taken."""
        with self._room:
            return self._come - len(self._waiting) >= come

    def caught_up(self) -> bool:
        """Whether no push waits."""
        return not self._waiting

    def waiting(self) -> int:
        """How many rows wait for an epoch."""
        with self._room:
            return self._rows

    def take(self, point: StreamPoint) -> Intake | None:
        """The pushes that have come, up to the limit; repeats are left out.

        A repeat of a committed push is acknowledged at once; one of a push in this epoch with that push.
        """
        seen: dict[str, int] = {}
        epochs = 0.0
        with self._room:
            while self._waiting and (not self._taken or epochs + self._epochs(*self._waiting[0].size) <= 1):
                push = self._next()
                if _repeated(push, point.producers):
                    push.done.set_result(False)
                    continue
                if _repeated(push, seen):
                    self._repeats.append(push)
                    continue
                if push.producer is not None and push.sequence is not None:
                    _note_jump(push.producer, push.sequence, {**point.producers, **seen})
                    seen[push.producer] = push.sequence
                self._taken.append(push)
                epochs += self._epochs(*push.size)
            self._room.notify_all()
            if not self._taken:
                return None
            dropped, self._dropped = self._dropped, 0
        source = self._stream.columns.over(self._opened(point))
        return Intake(point.position + 1, source, 0, source.size, producers=seen, dropped=dropped)

    def _opened(self, point: StreamPoint) -> SplitSource:
        """What was taken, as an input."""
        columns = self._stream.columns.given
        tables = [filled(push.table, columns.arrow()) for push in self._taken]
        if sum(push.size[1] for push in self._taken) <= _CARRIED_BYTES:
            return HeldRows.of(tables, columns, self._name)
        self._file = self._folder / f"{point.position}.arrow"
        try:
            make_inside(self._folder)
            write_arrow(pa.concat_tables(tables), self._file)
        except OSError as error:
            raise cannot_write(self._file, error) from error
        return open_source("arrow", {"path": str(self._file)}, columns, None, self._name, self._folder)

    def settle(self, error: BaseException | None) -> None:
        """Acknowledge what was taken, or notify its producers of what went wrong."""
        taken, self._taken = self._taken, []
        repeats, self._repeats = self._repeats, []
        file, self._file = self._file, None
        self._ended = error
        # Whatever goes wrong with one, the producers of the others wait for an answer.
        with ExitStack() as stack:
            for push in taken:
                stack.callback(_resolve, push, True, error)
            for push in repeats:
                stack.callback(_resolve, push, False, error)
            if file is not None:
                # A file that stays is in nobody's way.
                stack.callback(_remove, file)

    def trouble(self) -> None:
        """Nothing: it is given what has come."""

    def check(self) -> str | None:
        """Nothing here fails by itself."""
        return None

    def stop(self) -> None:
        """Refuse what still waits."""
        with self._room:
            self._stopped = True
            left, self._waiting = self._waiting, deque()
            self._rows = self._bytes = 0
            self._room.notify_all()
        error = EndedError("the database was stopped before the rows were committed")
        with ExitStack() as stack:
            for push in left:
                stack.callback(_resolve, push, False, error)

    def _has_room(self) -> bool:
        """Whether a push need not wait any longer."""
        drops = self._overflow is not Overflow.BLOCK
        return self._stopped or drops or self._epochs_waiting() < _MOST_WAITING

    def _make_room(self, push: _Push) -> list[_Push]:
        """Let a push wait for an epoch; those that are dropped for it, or it alone."""
        dropped: list[_Push] = []
        match self._overflow:
            case Overflow.DROP_NEWEST if self._epochs_waiting() >= _MOST_WAITING:
                dropped.append(push)
            case Overflow.DROP_OLDEST:
                while self._waiting and self._epochs_waiting() >= _MOST_WAITING:
                    dropped.append(self._next())
        if push not in dropped:
            self._waiting.append(push)
            self._weigh(push, 1)
        self._dropped += sum(one.table.num_rows for one in dropped)
        return dropped

    def _next(self) -> _Push:
        """The push that has waited longest, which waits no longer."""
        push = self._waiting.popleft()
        self._weigh(push, -1)
        return push

    def _weigh(self, push: _Push, sign: int) -> None:
        rows, size = push.size
        self._rows += sign * rows
        self._bytes += sign * size

    def _lost(self) -> BusyError:
        return BusyError(
            f"{self._name} has dropped these rows: epochs have fallen behind, and it says "
            f"OVERFLOW {self._overflow.value}",
            hint=f"ALTER STREAM {self._name} SET (OVERFLOW BLOCK) lets whoever pushes wait instead",
        )

    def _epochs_waiting(self) -> float:
        return self._epochs(self._rows, self._bytes)

    def _epochs(self, rows: int, size: int) -> float:
        """How much of an epoch so many rows and bytes take, whichever is more."""
        return max(rows / self._at_most(self._max_rows), size / self._max_bytes)


def _numbered(producer: str | None, sequence: int | None) -> tuple[str | None, int | None]:
    """Who pushes and as which of its pushes, in the types of a commit record."""
    if producer is None and sequence is None:
        return None, None
    if not (isinstance(producer, str) and isinstance(sequence, SupportsIndex)):
        raise UserError(
            f"a push is numbered by a producer (text) and a sequence (a whole number), not by {producer!r} "
            f"and {sequence!r}",
            hint="give both, as in producer='pi', sequence=1, or none",
        )
    number = operator.index(sequence)
    if not -(2**63) <= number < 2**63:
        raise UserError(
            f"the sequence {str(number)[:30]} of {producer!r} has more than 64 bits",
            hint="let it grow by one with each push; a repeat is what is not above the last one",
        )
    return producer, number


def _note_jump(producer: str, sequence: int, last: Mapping[str, int]) -> None:
    """Note a sequence that leaves out so many that it is rather a mistake: all below are repeats now."""
    if producer in last and sequence - last[producer] > _FAR:
        _LOG.warning(
            "the producer %s went from the sequence %s to %s: what it sends below that is a repeat",
            *(producer, f"{last[producer]:,}", f"{sequence:,}"),
        )


def _resolve(push: _Push, answer: bool, error: BaseException | None) -> None:
    if error is None:
        push.done.set_result(answer)
    else:
        push.done.set_exception(error)


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


def _repeated(push: _Push, seen: Mapping[str, int]) -> bool:
    """Whether a producer's push is among those that have been taken."""
    if push.producer is None or push.sequence is None:
        return False
    return push.producer in seen and push.sequence <= seen[push.producer]
