"""How a run cuts its input, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from headrace.lowering.sharing.weighing import Look, shows_nothing
from headrace.time import Clock, SystemClock

DEFAULT_EPOCH_BYTES: Final = 256 * 2**20
"""About how many bytes of rows an epoch takes, from all streams together."""

DEFAULT_EPOCH_TIMEOUT: Final = 600.0
"""So many seconds an operator may work in an epoch: what large files take is far from it."""
SERVED_EPOCH_TIMEOUT: Final = 30.0
"""The same of a server, where others wait."""


class Managing(Enum):
    """The deed that follows from a limit of memory or processor time, or from a bound of latency."""

    ADVISE = "advise"
    """The change that would be made is said."""
    ACT = "act"
    """The change is made; and queries for which there is no room are refused."""
    OFF = "off"
    """Nothing."""


@dataclass(frozen=True)
class RunSettings:
    """How a run cuts its input, and what it keeps.

    Attributes:
        epoch_rows: about how many rows an epoch takes; if None, more as more have been read.
        epoch_bytes: about how many bytes of rows an epoch takes.
        buckets: how many buckets state is spread over; the runner's parallelism if None.
        keep_results: whether results are stored, or only counted.
        retain: of how many epochs results are kept; of all if None.
        clock: wall-clock time.
        look: says what is expected of operators, which decides what queries share.
        epoch_timeout: so long an operator may work in an epoch (seconds); `usual_timeout` if None.
        usual_timeout: the same where nobody has said anything.
        reoptimize_every: how often plans are looked at that others may be better than (seconds of wall-clock
            time, at least); never if None.
        memory_limit: how many bytes of state there may be in an endless run; any number if None.
        processing_limit: how much processor time an endless run may need (cores, which is seconds for each
            second); any number if None.
        cores: on how many cores the run works, where that is known.
        manager: what is done about these two limits; `managing` if None.
        latency_bound: for how long rows may wait in an endless run that have come (microseconds); for any
            time if None.
        shedder: what is done about that; `shedding` if None.
        scheduling: the name of the policy by which queries that are behind take turns; `USUAL_POLICY` if
            None.
    """

    epoch_rows: int | None = None
    epoch_bytes: int = DEFAULT_EPOCH_BYTES
    buckets: int | None = None
    keep_results: bool = True
    retain: int | None = None
    clock: Clock = field(default_factory=SystemClock)
    look: Look = shows_nothing
    reoptimize_every: float | None = None
    epoch_timeout: float | None = None
    usual_timeout: float = DEFAULT_EPOCH_TIMEOUT
    memory_limit: int | None = None
    processing_limit: float | None = None
    cores: int | None = None
    manager: Managing | None = None
    latency_bound: int | None = None
    shedder: Managing | None = None
    scheduling: str | None = None

    @property
    def timeout(self) -> float:
        """So long an operator may work in an epoch (seconds)."""
        return self.usual_timeout if self.epoch_timeout is None else self.epoch_timeout

    @property
    def managing(self) -> Managing:
        """The deed that follows from the limits: they are kept unless somebody has said otherwise."""
        if self.manager is not None:
            return self.manager
        return Managing.ACT if self.has_limits else Managing.ADVISE

    @property
    def has_limits(self) -> bool:
        """Whether there is a limit of memory, or of processor time."""
        return self.memory_limit is not None or self.processing_limit is not None

    @property
    def shedding(self) -> Managing:
        """The deed that follows from the bound of latency: it is kept unless somebody has said otherwise."""
        if self.shedder is not None:
            return self.shedder
        return Managing.ADVISE if self.latency_bound is None else Managing.ACT
