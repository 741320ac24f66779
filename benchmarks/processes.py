"""What the processes of a benchmark use: processor time and memory, read from /proc (Linux)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_TICKS = os.sysconf("SC_CLK_TCK")
_INTERVAL = 0.5
"""Seconds between two looks at the memory; one takes some milliseconds per gigabyte."""


@dataclass(frozen=True)
class Usage:
    """What this process and all below it have used.

    Attributes:
        seconds: of processor time, user and system, ended children included.
        worker_bytes: the most resident memory that one Python worker of Spark had since `forget_peaks`.
    """

    seconds: float
    worker_bytes: int

    @classmethod
    def now(cls) -> Usage:
        """Up to now; nothing where there is no /proc."""
        if not Path("/proc/self/stat").exists():
            return cls(0.0, 0)
        seconds, most = 0.0, 0
        for number in _tree(os.getpid()):
            try:
                name, fields = _stat(number)
                status = Path(f"/proc/{number}/status").read_text()
            except OSError:
                continue
            seconds += sum(map(int, fields[11:15])) / _TICKS
            if number != os.getpid() and name.startswith("python"):
                peak = status.partition("VmHWM:")[2].split()
                most = max(most, int(peak[0]) * 1024 if peak else 0)
        return cls(seconds, most)


@dataclass(frozen=True)
class Used:
    """What this process and all below it used in a stretch of time.

    Attributes:
        processor: seconds of processor time.
        peak_bytes: the most memory they had together; pages that several share are counted once.
        foreign: the share of the machine's processors that all others used, from 0 to 1.
    """

    processor: float
    peak_bytes: int
    foreign: float


class Watch:
    """Watches, in a thread of its own, what this process and all below it use from `with` to its end.

    Args:
        interval: the seconds between two looks at the memory.

    Attributes:
        used: what it was; there after the end.
    """

    used: Used

    def __init__(self, interval: float = _INTERVAL) -> None:
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._peak = 0

    def __enter__(self) -> Watch:
        self._begun, self._busy, self._before = time.monotonic(), _busy_seconds(), Usage.now().seconds
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processor = Usage.now().seconds - self._before
        busy, wall = _busy_seconds() - self._busy, time.monotonic() - self._begun
        self._ended.set()
        self._thread.join()
        share = (busy - processor) / (wall * (os.cpu_count() or 1))
        self.used = Used(processor, max(self._peak, memory()), min(max(share, 0.0), 1.0))

    def _look(self) -> None:
        while not self._ended.wait(self._interval):
            self._peak = max(self._peak, memory())


def memory() -> int:
    """The bytes that this process and all below it have in memory."""
    total = 0
    for number in _tree(os.getpid()):
        with suppress(OSError, IndexError):  # It may be gone, or going.
            text = Path(f"/proc/{number}/smaps_rollup").read_text()
            total += int(text.partition("\nPss:")[2].split(maxsplit=1)[0]) * 1024
    return total


def _busy_seconds() -> float:
    """What all processors of this machine have worked, also for other machines on the same host."""
    if not Path("/proc/stat").exists():
        return 0.0
    user, nice, system, _, _, interrupts, soft, stolen = map(
        int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + interrupts + soft + stolen) / _TICKS


def forget_peaks() -> None:
    """Let the most memory that a process ever had begin anew, where the system allows it."""
    for number in _tree(os.getpid()):
        with suppress(OSError):
            Path(f"/proc/{number}/clear_refs").write_text("5")


def _tree(root: int) -> Iterator[int]:
    """The numbers of a process and of all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children.setdefault(int(_stat(int(entry.name))[1][1]), []).append(int(entry.name))
    todo = [root]
    while todo:
        number = todo.pop()
        yield number
        todo += children.get(number, [])


def _stat(number: int) -> tuple[str, list[str]]:
    """The name of a process, and the fields behind it."""
    text = Path(f"/proc/{number}/stat").read_text()
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
