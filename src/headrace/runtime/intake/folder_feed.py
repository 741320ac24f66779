"""The feed of a folder whose files keep coming: each file's rows are read once, in the order of discovery.

What has been read is in the commits: the names of the files, with their sizes and times. So a file whose name
sorts before those that were read is read all the same, and one that is changed later is not read again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from headrace.errors import AwayError, HeadraceError, SourceError, UserError, named
from headrace.runtime.intake.feed import FittedRows
from headrace.runtime.intake.folder import Folder
from headrace.runtime.intake.further_columns import note_left_out
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.journal.followed import ReadFile
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.outside.patience import Away
from headrace.runtime.sources.composed.chained import ChainedSource, Stretch
from headrace.runtime.sources.composed.computed import found_in
from headrace.runtime.sources.composed.unreadable import UnreadableFile
from headrace.runtime.sources.files.files import Stamp
from headrace.runtime.sources.rows.contract import SplitSource

_LOG: Final = logging.getLogger("headrace")
_ATTEMPTS: Final = 3
"""So often in a row epochs may fail over a file."""
_MOST_FILES: Final = 1_000
"""So many files an epoch takes at most."""
_ENDING: Final = 1.0
"""Seconds that the end waits for a poll that is under way."""
_CHANGED: Final = "the file has changed since it was read, and is not read again"
_CHANGED_MEANWHILE: Final = "the file has changed before it was read to its end, and the rest is not read"


@dataclass
class _Taken:
    """What an epoch takes.

    Attributes:
        rows, size: how many more rows and bytes it may take.
        stretches: of which files what is read.
        files: how far these files are read after it.
        partial: the source of the last one, if that is not read to its end.
    """

    rows: int
    size: int
    stretches: list[Stretch] = field(default_factory=list)
    files: dict[str, ReadFile] = field(default_factory=dict)
    partial: SplitSource | None = None

    def add(self, label: str, stamp: Stamp, source: SplitSource, start: int) -> None:
        """Take of a file as much as fits, one position at least."""
        most = min(
            self.rows * source.size // max(source.rows, 1),
            self.size * source.size // max(source.weigh(0, source.size), 1),
        )
        end = min(source.size, start + max(most, 1))
        stretch = Stretch(source, start, end)
        if start < end:
            self.stretches.append(stretch)
            self.rows -= stretch.rows
            self.size -= source.weigh(start, end)
        self.files[label] = ReadFile(stamp.size, stamp.changed, source.size - end)
        self.partial = source if end < source.size else None

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits."""
        return self.partial is not None or self.rows <= 0 or self.size <= 0 or len(self.files) >= _MOST_FILES


class FolderFeed(FittedRows):
    """The files of a folder, as they are added to it.

    Args:
        name: the stream.
        folder: what is looked for.
        max_rows, max_bytes: about how many rows an epoch takes at most, and how many bytes of them.
        wake: called when a file counts.
    """

    def __init__(
        self, name: str, folder: Folder, max_rows: int, max_bytes: int, wake: Callable[[], None]
    ) -> None:
        self._name = name
        self._folder = folder
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._wake = wake
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._read: dict[str, ReadFile] = {}
        self._seen: dict[str, Stamp] = {}
        self._waiting: dict[str, Stamp] = {}
        self._changed: dict[str, Stamp] = {}
        self._begun: tuple[str, SplitSource | None] | None = None
        self._taken: _Taken | None = None
        self._unreadable: dict[str, str] = {}
        self._away: dict[str, Away] = {}
        self._alone = 0
        self._count = 0
        self._failures = 0
        self._error: BaseException | None = None
        self._problem: str | None = None
        self._columns: set[str] = set()

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Begin to look for files; those that `point` names have been read."""
        self._read = dict(point.files)
        begun = next((label for label, file in self._read.items() if file.left), None)
        self._begun = None if begun is None else (begun, None)
        self._thread = threading.Thread(target=self._keep_looking, name=f"headrace {self._name}", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Poll once: see what is there, and which of it counts."""
        try:
            found = self._folder.files()
            with self._lock:
                self._waiting = {label: stamp for label, stamp in self._waiting.items() if label in found}
                self._away = {label: one for label, one in self._away.items() if label in found}
                before, self._seen = self._seen, {}
                for label, stamp in found.items():
                    self._judge(label, stamp, before.get(label))
                ready = self._has_some()
        except HeadraceError as error:
            self._note_problem(str(error))
            return
        self._problem = None
        if ready:
            self._wake()

    def read(self, columns: Sequence[str]) -> None:
        """The columns are chosen when an epoch reads the files."""

    def widen(self, stream: LiveStream) -> bool:
        """Another feed takes its place: what epochs have not confirmed is read again."""
        return False

    def ready(self) -> bool:
        """Whether a file waits."""
        return self._has_some()

    def come(self) -> int:
        """How many files have been taken so far, and wait."""
        with self._lock:
            return self._count + len(self._waiting)

    def has_taken(self, come: int) -> bool:
        """Whether so many files have been taken."""
        with self._lock:
            taken = 0 if self._taken is None else sum(not file.left for file in self._taken.files.values())
            return self._count + taken >= come

    def caught_up(self) -> bool:
        """Whether all files that were there at the last poll have been taken."""
        with self._lock:
            is_left = self._failures < _ATTEMPTS and (self._begun or self._waiting or self._changed)
            return self._problem is None and not self._seen and not is_left

    def waiting(self) -> None:
        """How many rows the files have that wait is not known before they are opened."""

    def take(self, point: StreamPoint) -> Intake | None:
        """The files that wait, in the order in which they were found, as far as they fit into an epoch."""
        with self._lock:
            if not self._has_some():
                return None
            changed = dict(self._changed)
            waiting = {label: stamp for label, stamp in self._waiting.items() if self._is_due(label)}
        taken = _Taken(self._at_most(self._max_rows), self._max_bytes)
        most = 1 if self._failures or self._alone else _MOST_FILES
        if self._begun is not None and not self._try(
            self._begun[0], partial(self._go_on, taken, *self._begun)
        ):
            return None
        for label, stamp in changed.items():
            if not taken.is_full and len(taken.files) < most:
                taken.add(label, stamp, self._refused(label, _CHANGED), 0)
        for label, stamp in waiting.items():
            if not taken.is_full and len(taken.files) < most:
                self._try(label, partial(self._begin, taken, label, stamp))
        with self._lock:
            self._taken = taken if taken.files else None
        if not taken.files:
            return None
        source = ChainedSource(self._folder.schema, tuple(taken.stretches))
        return Intake(
            point.position + source.size,
            source if source.size else None,
            0,
            source.size,
            comes_again=True,
            files=taken.files,
        )

    def settle(self, error: BaseException | None) -> None:
        """What was taken has been read, or comes again."""
        with self._lock:
            taken, self._taken = self._taken, None
            if taken is None:
                return
            if error is not None:
                self._fail(taken, error)
                return
            self._failures = 0
            self._alone = max(0, self._alone - len(taken.files))
            for label, file in taken.files.items():
                self._read[label] = file
                self._away.pop(label, None)
                self._changed.pop(label, None)
                if self._waiting.pop(label, None) is not None:
                    self._count += 1
            last = next(reversed(taken.files))
            self._begun = (last, taken.partial) if taken.files[last].left else None

    def trouble(self) -> str | None:
        """What was wrong when it was looked for last, or which file cannot be opened for now."""
        with self._lock:
            away = next(iter(self._away.values()), None)
            others = f" (and {len(self._away) - 1} more)" if len(self._away) > 1 else ""
        return self._problem or (None if away is None else f"{away}{others}")

    def check(self) -> str | None:
        """The reason if no epoch can read the files."""
        return None if self._failures < _ATTEMPTS else str(self._error)

    def stop(self) -> None:
        """Look no longer."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_ENDING)

    def _keep_looking(self) -> None:
        while not self._ended.is_set():
            self.look()
            self._ended.wait(self._folder.every)

    def _has_some(self) -> bool:
        if self._failures >= _ATTEMPTS:
            return False
        if self._begun is not None:
            return self._is_due(self._begun[0])
        return bool(self._changed) or any(map(self._is_due, self._waiting))

    def _is_due(self, label: str) -> bool:
        """Whether a file is not one that could not be opened just now."""
        return label not in self._away or self._away[label].is_due

    def _judge(self, label: str, stamp: Stamp, before: Stamp | None) -> None:
        """Sort a file that was found: it was read, it counts, it has changed, or it is looked at again."""
        known = self._read.get(label)
        is_known = known is not None and (known.size, known.changed) == (stamp.size, stamp.changed)
        if is_known or (known is not None and known.left) or (self._taken and label in self._taken.files):
            return
        if not self._folder.counts(stamp, before):
            self._seen[label] = stamp
            self._waiting.pop(label, None)
        elif known is not None:
            self._changed[label] = self._seen[label] = stamp
        else:
            self._waiting[label] = self._seen[label] = stamp

    def _try(self, label: str, work: Callable[[], None]) -> bool:
        """Do what opens a file; whether it could be opened. Otherwise it is tried again later."""
        try:
            work()
        except AwayError as error:
            with self._lock:
                self._note_away(label, error)
            return False
        return True

    def _note_away(self, label: str, error: AwayError) -> None:
        """Remember when to try a file again, and report it once."""
        if label not in self._away:
            _LOG.warning("a file of %s cannot be read for now: %s", self._name, error)
        self._away[label] = Away.after(self._away.get(label), error)

    def _begin(self, taken: _Taken, label: str, stamp: Stamp) -> None:
        """Take a file from its beginning; one that is not as it was found, or gone, is waited for."""
        now = self._folder.stamp(label)
        if (now.size, now.changed) == (stamp.size, stamp.changed):
            taken.add(label, stamp, self._source(label), 0)
            return
        with self._lock:
            self._waiting.pop(label, None)

    def _go_on(self, taken: _Taken, label: str, source: SplitSource | None) -> None:
        """Take of a file what an epoch has left of it; nothing of one that has changed."""
        known, now = self._read[label], self._folder.stamp(label)
        if label in self._unreadable:
            taken.add(label, Stamp(now.path, known.size, known.changed), self._source(label), 0)
        elif (now.size, now.changed) != (known.size, known.changed):
            taken.add(label, now, self._refused(label, _CHANGED_MEANWHILE), 0)
        else:
            source = source or self._source(label)
            start = 0 if isinstance(source, UnreadableFile) else source.size - known.left
            taken.add(label, now, source, start)

    def _source(self, label: str) -> SplitSource:
        """The source for a file, or a dead letter where the file is of no use.

        Raises:
            AwayError: it cannot be opened for now.
        """
        if label in self._unreadable:
            return self._refused(label, self._unreadable[label])
        try:
            source = self._folder.opened(label)
        except AwayError:
            raise
        except UserError as error:
            return self._refused(label, str(error))
        except Exception as error:  # whatever it is, the other files are read
            _LOG.warning("a file of %s cannot be read", self._name, exc_info=error)
            return self._refused(label, f"{label}: {named(error)}")
        self._note_further(label, found_in(source))
        return source

    def _note_further(self, label: str, names: Sequence[str]) -> None:
        """Note which columns a file has that are not declared, and that the first one did not have."""
        known, self._columns = self._columns, self._columns | {name.lower() for name in names}
        for name in names if known else ():
            if name.lower() not in known and self._folder.schema.find(name) is None:
                note_left_out(self._name, name, label)

    def _refused(self, label: str, reason: str) -> UnreadableFile:
        return UnreadableFile(self._folder.schema, label, reason)

    def _fail(self, taken: _Taken, error: BaseException) -> None:
        """An epoch could not read its files: each is tried alone, and one that cannot be read is left out."""
        if self._begun is not None:
            self._begun = (self._begun[0], None)
        if isinstance(error, AwayError):
            self._alone = len(taken.files) if len(taken.files) > 1 else max(0, self._alone - 1)
            if len(taken.files) == 1:
                self._note_away(next(iter(taken.files)), error)
            return
        self._failures, self._error = self._failures + 1, error
        if self._failures >= _ATTEMPTS and isinstance(error, SourceError) and len(taken.files) == 1:
            self._unreadable[next(iter(taken.files))] = str(error)
            self._failures = 0

    def _note_problem(self, problem: str) -> None:
        """Report once that the folder cannot be looked into."""
        if self._problem != problem:
            self._problem = problem
            _LOG.warning("the folder of %s cannot be read: %s", self._name, problem)
