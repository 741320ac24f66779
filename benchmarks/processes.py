"""What the processes of a benchmark use: processor time and memory, read from /proc (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


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


def forget_peaks() -> None:
    """Let the most memory that a process ever had begin anew, where the system allows it."""
    for number in _tree(os.getpid()):
        with suppress(OSError):
            Path(f"/proc/{number}/clear_refs").write_text("5")


def _tree(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(_stat(int(entry.name))[1][1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    todo = [root]
    while todo:
        number = todo.pop()
        yield number
        todo += children.get(number, [])


def _stat(number: int) -> tuple[str, list[str]]:
    """The name of a process, and the fields behind it."""
    text = Path(f"/proc/{number}/stat").read_text()
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
