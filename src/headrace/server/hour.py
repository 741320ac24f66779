"""The numbers of the last hour, also of before somebody looks: one sample every few seconds."""

from __future__ import annotations

import logging
import os
import resource
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio
import anyio.to_thread

from headrace.algebra.system_streams import system_stream
from headrace.engine.shown.status import Status
from headrace.errors import UserError
from headrace.time import TimeDomain

_LOG: Final = logging.getLogger("headrace")
SECONDS: Final = 10.0
"""Between two samples."""
SAMPLES: Final = 360
"""So many are kept: those of an hour."""
_NAMES: Final = 256
"""Of so many streams, and of so many queries, the rates are kept; with the others the sums alone."""


@dataclass(frozen=True)
class PastRates:
    """Numbers per second between two samples; those of names in one array."""

    names: tuple[str, ...]
    rates: array[float]


@dataclass(frozen=True)
class PastSample:
    """Numbers at a moment, and since the sample before.

    Attributes:
        at: when it was taken (seconds since 1970).
        rows: rows of all streams per second.
        lag: how far the query that is furthest behind is behind its newest row (seconds).
        epoch: seconds of work per epoch.
        memory: bytes of the process.
        streams, queries: rows and changes per second of each.
    """

    at: float
    rows: float | None
    lag: float | None
    epoch: float | None
    memory: int | None
    streams: PastRates
    queries: PastRates


@dataclass(frozen=True)
class _Counts:
    """Numbers that only grow, at a moment (seconds of a clock that only goes forward)."""

    at: float
    epoch: int
    seconds: float
    streams: Mapping[str, int]
    queries: Mapping[str, int]


class SampledHour:
    """The samples of the last hour: some hundred kB, whatever is defined.

    Args:
        status: the status of the run, or None while there is none.
        clock: seconds that only go forward.
    """

    def __init__(
        self, status: Callable[[], Status | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._status = status
        self._clock = clock
        self._samples: deque[PastSample] = deque(maxlen=SAMPLES)
        self._before: _Counts | None = None

    @property
    def samples(self) -> tuple[PastSample, ...]:
        """Those that are kept, in order."""
        return tuple(self._samples)

    async def keep_sampling(self) -> None:
        """Take a sample every few seconds until it is cancelled.

        Whatever goes wrong ends no server: it is logged once, and the next sample is tried.
        """
        failed = False
        while True:
            try:
                await anyio.to_thread.run_sync(self.take)
            except Exception as error:
                if not failed and not isinstance(error, UserError):
                    _LOG.exception("the numbers of the last hour cannot be taken")
                    failed = True
            await anyio.sleep(SECONDS)

    def take(self) -> None:
        """Take a sample now."""
        status = self._status()
        now = self._clock()
        if status is None:
            self._before = None
            return
        counts = _Counts(
            now,
            status.epoch,
            sum(one.seconds for one in status.operators),
            {one.name: one.rows for one in status.streams if system_stream(one.name) is None},
            {one.name: one.changes for one in status.queries},
        )
        before, self._before = self._before, counts
        if before is None or now <= before.at:
            return
        last = self._samples[-1] if self._samples else None
        passed = now - before.at
        streams = _rates(before.streams, counts.streams, passed, None if last is None else last.streams)
        queries = _rates(before.queries, counts.queries, passed, None if last is None else last.queries)
        rows = [_grown(before.streams, name, count) for name, count in counts.streams.items()]
        epochs, work = counts.epoch - before.epoch, counts.seconds - before.seconds
        self._samples.append(
            PastSample(
                time.time(),
                sum(rows) / passed,
                _lag(status),
                work / epochs if epochs > 0 and work >= 0 else None,
                _memory(),
                streams,
                queries,
            )
        )


def _grown(before: Mapping[str, int], name: str, count: int) -> int:
    """By how much a count has grown: all of it where it is new, or began anew."""
    since = count - before.get(name, 0)
    return count if since < 0 else since


def _rates(
    before: Mapping[str, int], now: Mapping[str, int], passed: float, last: PastRates | None
) -> PastRates:
    names = tuple(list(now)[:_NAMES])
    if last is not None and last.names == names:
        names = last.names  # one tuple for all samples
    return PastRates(names, array("f", (_grown(before, name, now[name]) / passed for name in names)))


def _lag(status: Status) -> float | None:
    lags = [one.lag for one in status.queries if one.lag is not None and one.domain is TimeDomain.TIMESTAMP]
    return max(lags) / 1e6 if lags else None


def _memory() -> int | None:
    """Bytes that the process has in memory; those that it has had at most where that is not known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def by_name(samples: Sequence[PastRates], sees: Callable[[str], bool]) -> dict[str, list[float | None]]:
    """The rates of each name that is there now and may be seen, one per sample; None where it was not."""
    names: Iterable[str] = filter(sees, samples[-1].names) if samples else ()
    places = [dict(zip(one.names, one.rates, strict=True)) for one in samples]
    return {
        name: [None if (found := place.get(name)) is None else round(found, 3) for place in places]
        for name in names
    }
