"""The feed of a stream whose rows are pulled: a thread pulls, not far ahead of the epochs."""

from __future__ import annotations

import logging
import shutil
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.errors import AwayError, UserError
from headrace.runtime.intake.feed import FittedRows
from headrace.runtime.intake.pulling import EndOfRowsError, FailedError, Pull, PulledPiece
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.outside.patience import Away
from headrace.runtime.store.paths import make_inside
from headrace.runtime.store.segments import cannot_write

_LOG: Final = logging.getLogger("headrace")
_AHEAD: Final = 2
"""So many epochs' rows wait at most before nothing more is pulled."""
_ATTEMPTS: Final = 3
"""So often in a row epochs may fail over the same rows."""
_PAUSE: Final = 1.0
"""Seconds before a source that has failed is asked again, if it is not asked less often."""
_ENDING: Final = 1.0
"""Seconds that the end waits for a pull that is under way."""
_PRODUCER: Final = "pull"
"""Under which name commits have the number of what was pulled last."""


class PullFeed(FittedRows):
    """Rows that are pulled.

    Args:
        name: the stream.
        source: what is pulled.
        folder: where rows wait for the tasks; one that all tasks can reach.
        max_rows, max_bytes: how many rows an epoch takes at most, and how many bytes of them; one piece may
            have more.
        wake: called when rows have come.
    """

    def __init__(
        self,
        name: str,
        source: Pull,
        folder: Path,
        max_rows: int,
        max_bytes: int,
        wake: Callable[[], None],
    ) -> None:
        self._name = name
        self._source = source
        self._folder = folder
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._wake = wake
        self._room = threading.Condition()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._waiting: deque[PulledPiece] = deque()
        self._come = self._count = 0
        self._last: int | None = None
        self._taken = 0
        self._file: Path | None = None
        self._ended = self._end_taken = False
        # Of an iterator that waits nobody knows whether something comes; a function says that nothing has.
        self._may_have_more = source.every > 0
        self._failures = 0
        self._problem: str | None = None
        self._reason: str | None = None
        self._away: Away | None = None
        self._lost: str | None = None

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Begin to pull what comes after the last number that was committed."""
        self._last = point.producers.get(_PRODUCER)
        self._thread = threading.Thread(target=self._work, name=f"headrace {self._name}", daemon=True)
        self._thread.start()

    def read(self, columns: Sequence[str]) -> None:
        """Pulled rows have all columns."""

    def widen(self, stream: LiveStream) -> bool:
        """Another feed takes its place: what epochs have not confirmed is read again."""
        return False

    def ready(self) -> bool:
        """Whether rows wait, or the end."""
        with self._room:
            return self._has_some()

    def come(self) -> int:
        """How many pieces have come so far."""
        with self._room:
            return self._come

    def has_taken(self, come: int) -> bool:
        """Whether so many have been taken."""
        with self._room:
            return self._count + self._taken >= come

    def caught_up(self) -> bool:
        """Whether nothing waits, and a function has brought nothing when it was called last."""
        with self._room:
            return not self._waiting and not self._may_have_more and self._problem is None

    def waiting(self) -> int:
        """How many rows wait for an epoch."""
        with self._room:
            return sum(one.rows for one in self._waiting)

    def take(self, point: StreamPoint) -> Intake | None:
        """The pieces that wait, up to the limit."""
        with self._room:
            if not self._has_some():
                return None
            pieces = self._fitting()
            self._end_taken = self._ended and len(pieces) == len(self._waiting)
            self._taken = len(pieces)
            ended = self._end_taken
        numbers = [one.number for one in pieces if one.number is not None]
        producers = {_PRODUCER: numbers[-1]} if numbers else {}
        if not pieces:
            return Intake(point.position + 1, ended=ended)
        self._file = self._folder / f"{point.position}.rows"
        try:
            make_inside(self._folder)
            _remove(self._file)
            source = self._source.opened(pieces, self._file)
        except OSError as error:
            raise cannot_write(self._file, error) from error
        end = source.size
        return Intake(point.position + 1, source, 0, end, comes_again=True, producers=producers, ended=ended)

    def settle(self, error: BaseException | None) -> None:
        """What was taken has been read, or is taken again."""
        file, self._file = self._file, None
        if file is not None:
            _remove(file)
        with self._room:
            taken, self._taken = self._taken, 0
            if error is not None:
                self._end_taken = False
                if taken:
                    self._failures += 1
                    self._lost = str(error) if self._failures >= _ATTEMPTS else None
                return
            self._failures = 0
            for _ in range(taken):
                self._waiting.popleft()
            self._count += taken
            self._room.notify_all()

    def trouble(self) -> str | None:
        """Why the last pull has failed, after which it is tried again."""
        return self._problem

    def check(self) -> str | None:
        """The reason if nothing more can be pulled, or no epoch can read it."""
        with self._room:
            return self._lost if self._failures >= _ATTEMPTS or not self._waiting else None

    def stop(self) -> None:
        """Pull no longer."""
        self._stopped.set()
        with self._room:
            self._room.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_ENDING)

    def _work(self) -> None:
        try:
            self._keep_pulling()
        finally:
            self._source.end()

    def _keep_pulling(self) -> None:
        while self._await_room():
            try:
                found = self._source.pull(self._last)
            except EndOfRowsError:
                self._note_end(None)
                return
            except FailedError as error:
                self._note_end(str(error))
                return
            except AwayError as error:
                self._away = Away.after(self._away, error)
                self._note_problem(error.message, str(self._away))
                self._stopped.wait(self._away.wait)
                continue
            except UserError as error:
                self._away = None
                self._note_problem(str(error), str(error))
                self._stopped.wait(max(self._source.every, _PAUSE))
                continue
            self._away = None
            self._add(found)
            if found is None or not self._source.drains:
                self._stopped.wait(self._source.every)

    def _await_room(self) -> bool:
        """Wait until not too much waits; whether to go on."""
        with self._room:
            self._room.wait_for(lambda: self._stopped.is_set() or self._epochs(self._waiting) < _AHEAD)
            return not self._stopped.is_set()

    def _add(self, piece: PulledPiece | None) -> None:
        with self._room:
            self._problem = self._reason = None
            self._may_have_more = piece is not None and self._source.drains and self._source.every > 0
            if piece is None:
                return
            self._waiting.append(piece)
            self._come += 1
            self._last = self._last if piece.number is None else piece.number
        self._wake()

    def _note_end(self, reason: str | None) -> None:
        with self._room:
            self._may_have_more = False
            self._ended, self._lost = reason is None, reason
        self._wake()

    def _note_problem(self, reason: str, problem: str) -> None:
        """Report once that nothing can be pulled."""
        with self._room:
            is_new, self._reason, self._problem = self._reason != reason, reason, problem
        if is_new:
            _LOG.warning("%s cannot be read: %s", self._name, reason)

    def _has_some(self) -> bool:
        has_end = self._ended and not self._end_taken
        return self._failures < _ATTEMPTS and (bool(self._waiting) or has_end)

    def _fitting(self) -> list[PulledPiece]:
        """The first pieces that fit into an epoch, at least one if there are any."""
        found: list[PulledPiece] = []
        for one in self._waiting:
            if found and (not self._source.together or self._epochs([*found, one]) > 1):
                break
            found.append(one)
        return found

    def _epochs(self, pieces: Sequence[PulledPiece] | deque[PulledPiece]) -> float:
        """How much of an epoch some pieces take, in rows or in bytes, whichever is more."""
        rows, size = sum(one.rows for one in pieces), sum(one.size for one in pieces)
        return max(rows / self._at_most(self._max_rows), size / self._max_bytes)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there; what stays is in nobody's way."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()
