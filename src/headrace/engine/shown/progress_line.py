"""How far a run has come, as a line of text, and that line in a notebook, where it is updated."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Final, Literal, TypeAlias

from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.writing.texts import count
from headrace.time import BEGINNING, INFINITY, MICROSECONDS, TimeDomain, format_instant

DELAY: Final = 1.0
"""Seconds until a notebook shows the line, and between two updates."""

Watcher: TypeAlias = Callable[[Progress], None] | Literal[False] | None
"""Who is told how far a run is: a function, nobody, or a notebook if there is one."""


def describe(progress: Progress) -> str:
    """Rows, rate and heartbeat; a TIMESTAMP's heartbeat to the second, enough to watch."""
    rate = progress.rows / progress.seconds if progress.seconds else 0.0
    text = f"{count(progress.rows, 'row')}  {rate:,.0f} rows/s"
    heartbeat = progress.heartbeat
    if heartbeat in (BEGINNING, INFINITY):
        return text
    if progress.domain is TimeDomain.TIMESTAMP:
        heartbeat -= heartbeat % MICROSECONDS["SECOND"]
    return f"{text}  heartbeat {format_instant(heartbeat, progress.domain)}"


def length_text(seconds: float) -> str:
    """`0:07`, `12:05` or `1:00:09`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Line:
    """A line that a notebook shows when a run takes longer than `DELAY`, and updates.

    Args:
        display: IPython's, which gives a handle with `update` for an object that gets an identity.
        clock: seconds, as `time.monotonic`.
    """

    def __init__(self, display: Callable[..., Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._display = display
        self._clock = clock
        self._start = clock()
        self._newest: Progress | None = None
        self._handle: Any = None
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Show how far the run is after an epoch."""
        self._newest = progress
        self.update()

    def update(self) -> None:
        """Show how long the run has taken, if that is long enough."""
        elapsed = self._clock() - self._start
        if elapsed < DELAY:
            return
        with self._lock:
            # Here, so that nothing older is shown after something newer.
            shown = _bundle(self._newest, elapsed)
            if self._handle is None:
                self._handle = self._display(shown, raw=True, display_id=True)
            else:
                self._handle.update(shown, raw=True)


def _bundle(progress: Progress | None, elapsed: float) -> dict[str, str]:
    """The line in the forms that a notebook may show."""
    if progress is None:
        text = f"{length_text(elapsed)}  starting"
        return {"text/plain": text, "text/html": f"<progress></progress> {escape(text)}"}
    parts = [length_text(elapsed), describe(progress)]
    value = ""
    if progress.share is not None:
        value = f' value="{progress.share:.3f}"'
        parts.insert(0, f"{progress.share:.0%}")
    if progress.remaining:
        parts.insert(2, f"about {length_text(progress.remaining)} left")
    text = "  ".join(parts)
    return {"text/plain": text, "text/html": f"<progress{value}></progress> {escape(text)}"}


@contextmanager
def progress_line(watcher: Watcher) -> Iterator[Callable[[Progress], None] | None]:
    """What is to be called after every epoch.

    Args:
        watcher: if None, and this is a notebook, a line there is updated once in a while.
    """
    display = _notebook_display() if watcher is None else None
    if display is None:
        yield watcher or None
        return
    line, ended = Line(display), threading.Event()

    def tick() -> None:
        while not ended.wait(DELAY):
            line.update()

    ticker = threading.Thread(target=tick, name="headrace progress", daemon=True)
    ticker.start()
    try:
        yield line
    finally:
        ended.set()
        ticker.join()


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's `display`, if there is a notebook behind it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if ipython is None or getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = ipython.display.display
    return display
