"""The findings of the manager of a run's memory and time, for whoever looks at the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

from headrace.byte_sizes import format_bytes
from headrace.core_counts import format_cores
from headrace.runtime.driver.facts.sizes import WindowStatus
from headrace.runtime.driver.manager.policy import PARTS, USED
from headrace.runtime.driver.manager.resources import Resource
from headrace.runtime.driver.settings import Managing
from headrace.time import BEGINNING, TimeDomain

_KEPT_FREE: Final = round(100 * (1 - USED))
"""So many parts in a hundred of a limit are not given out."""


@dataclass(frozen=True)
class ManagedWindow:
    """Windows of one size, or granules of one length, which may change within bounds.

    Attributes:
        window: their bounds and their size.
        domain: what instants count.
        wanted: the size that they would have by the manager (instants, or rows).
    """

    window: WindowStatus
    domain: TimeDomain
    wanted: int

    @property
    def place(self) -> float:
        """Its place on the way from what needs the least to what needs the most; 1 if these are the same."""
        window = self.window
        way, gone = window.largest - window.smallest, abs(window.first - window.size)
        return 1 - gone / way if way else 1.0

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """The smallest, the largest and the present size, and the one that it would have, as written."""
        window = self.window
        sizes = (window.smallest, window.largest, window.size, self.wanted)
        smallest, largest, size, wanted = (window.kind.text(one, self.domain) for one in sizes)
        return smallest, largest, size, wanted


@dataclass(frozen=True)
class ManagedTime:
    """The findings about the processor time of a run.

    Attributes:
        limit: how much may be needed (cores).
        used: how much epochs took lately (cores).
        expected: how much is needed with the sizes in force, when all windows are full and rows come as they
            come now (cores).
        least, most: the same with the smallest, and with the largest sizes (cores).
        missing: by how much the limit, without its reserve, is too small for the smallest sizes; 0 if it is
            not (cores).
    """

    limit: float
    used: float
    expected: float
    least: float
    most: float
    missing: float

    @property
    def text(self) -> str:
        """The state of things, in a few words."""
        found = f"processing_limit is {format_cores(self.limit)}, of which {_KEPT_FREE} % are kept free"
        if self.missing:
            return f"{found}: {format_cores(self.missing)} too few for the smallest windows"
        return f"{found}: {format_cores(self.expected)} are needed with full windows"


@dataclass(frozen=True, eq=False)
class Managed:
    """The findings of the manager after a commit.

    Attributes:
        limit: how many bytes of state there may be; any number if None.
        managing: what is done about it.
        used: the bytes of state that there are.
        working: about how many bytes the largest of the last epochs has worked with.
        epoch_rows: how many rows an epoch may take, so that what it works with fits; any number if None.
        expected: those that are expected with the sizes in force, when all windows are full and rows come
            as they come now.
        fraction: how far from the smallest sizes to the largest all windows could be.
        least, most: what is expected with the smallest, and with the largest sizes (bytes).
        missing: by how many bytes the limit, without its reserve, is too small for the smallest sizes; 0 if
            it is not.
        time: the same of processor time; None where it has no limit, and before enough was seen.
        tightest: what there is the least of for what is needed.
        find_windows: says what `windows` says, when somebody asks.
    """

    limit: int | None
    managing: Managing
    used: int
    working: float
    epoch_rows: int | None
    expected: float
    fraction: float
    least: float
    most: float
    missing: float
    time: ManagedTime | None
    tightest: Resource
    find_windows: Callable[[], tuple[ManagedWindow, ...]] = field(repr=False)

    @cached_property
    def windows(self) -> tuple[ManagedWindow, ...]:
        """The windows whose sizes may change."""
        return self.find_windows()

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON: sizes and limits in bytes, lengths in instants or microseconds."""
        return {
            "limit": self.limit,
            "managing": self.managing.value,
            "used": self.used,
            "working": round(self.working),
            "epoch_rows": self.epoch_rows,
            "expected": round(self.expected),
            "fraction": self.fraction,
            "least": round(self.least),
            "most": round(self.most),
            "missing": round(self.missing),
            "text": self.text,
            "time": None if self.time is None else {**asdict(self.time), "text": self.time.text},
            "tightest": self.tightest.value,
            "windows": [_plain(window) for window in self.windows],
        }

    @property
    def text(self) -> str:
        """The state of things, in a few words."""
        can_be = f"windows can be {round(PARTS * self.fraction)} % of the way from MIN to MAX"
        if self.limit is None:
            return f"there is no memory_limit: {can_be}"
        reserve = f"of which {_KEPT_FREE} % are kept free"
        if self.working:
            reserve = f"of which {format_bytes(self.working)} are for what an epoch works with"
            reserve += f", and {_KEPT_FREE} % of the rest are kept free"
        found = f"memory_limit is {format_bytes(self.limit)}, {reserve}"
        if self.working > self.limit:
            lacks = format_bytes(self.working - self.limit)
            return f"{found}: {lacks} too few for the largest epoch alone"
        if self.missing:
            return f"{found}: {format_bytes(self.missing)} too few for the smallest windows"
        return f"{found}: {can_be}"

    @property
    def lacking(self) -> tuple[str, ...]:
        """The resource of which there is too little even with the smallest windows, in a few words."""
        time = () if self.time is None or not self.time.missing else (self.time.text,)
        return (*((self.text,) if self.missing else ()), *time)


def _plain(managed: ManagedWindow) -> Mapping[str, Any]:
    window = managed.window
    return {
        "streams": list(window.streams),
        "kind": window.kind.value,
        "smallest": window.smallest,
        "largest": window.largest,
        "size": window.size,
        "place": managed.place,
        "wanted": managed.wanted,
        "domain": managed.domain.value,
        "since": None if window.since == BEGINNING else window.since,
        "why": window.why,
    }
