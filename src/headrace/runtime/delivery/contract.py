"""What a sink is, and what is asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa

from headrace.errors import DeliveryError, UserError
from headrace.runtime.results.changes import Change
from headrace.schema import Schema
from headrace.time import TimeDomain

STOP_TIMEOUT: Final = 60.0
"""Seconds that the end of an endless run waits for its sinks, unless another time is given."""

FINAL_ATTEMPTS: Final = 3
"""How often an epoch is tried, at most, when the run is over and its end waits for the sink."""


@dataclass(frozen=True)
class Origin:
    """Where the changes come from that a sink takes.

    Attributes:
        query: the query's name.
        domain: what its instants count.
        delivery: identifies this delivery: the same after every restart on a durable store, another one for
            every run without one. Epochs of different deliveries have nothing to do with each other.
        first: the first epoch that was meant for the sink.
        epoch: the last epoch that the sink has taken for certain, less than `first` before any; the one after
            it may be a repeat.
        start: the epoch from which on the query answers.
        schema: the columns of the answer.
        key: columns of which no two rows at one instant have the same values, as few as are known to be
            enough; None where the query does not say.
        changes: the columns of the changes: the epoch, those of the answer, when a row begins and ends, and
            how often it comes.
        is_stream: whether the answer is a stream of events, whose rows are of an instant each.
        most: the last epoch that the sink's target may have; None if it may have any. The store is a copy as
            of this epoch then, and the one that was copied may have delivered others since.
        branch: identifies, with `delivery`, the epochs after the copy; empty where there was none.
    """

    query: str
    domain: TimeDomain
    delivery: str
    first: int
    epoch: int
    start: int
    schema: Schema
    key: tuple[str, ...] | None
    changes: Schema
    is_stream: bool = False
    most: int | None = None
    branch: str = ""

    def check_most(self, target: str, epoch: int) -> None:
        """See that a target has no epoch that the store does not have.

        Args:
            target: the target, as messages call it.
            epoch: the last epoch that it has.

        Raises:
            DeliveryError: it has one.
        """
        if self.most is not None and epoch > self.most:
            raise DeliveryError(
                f"{target} has epoch {epoch}, and the store is a copy as of epoch {self.most}: what was "
                "delivered after that is not what comes now",
                hint="put the target back to that epoch, or name another target and another sink",
            )


class Sink(Protocol):
    """Takes the changes of one query, epoch by epoch."""

    @property
    def name(self) -> str:
        """What it is called where it gets no other name: letters, digits and underscores."""
        ...

    def open(self, origin: Origin) -> None:
        """Get ready, before the first epoch after every start.

        Raises:
            AwayError: what it delivers to cannot be reached for now; it is opened again later, and so it is
                after an exception of the system's or a driver's that says so.
            UserError: this sink must not take these changes; the run does not start then.
        """
        ...

    def write(self, change: Change) -> None:
        """Take the changes of an epoch, which may be none; once it returns, the epoch counts as taken.

        Epochs come in order and none is left out. After a failure or a crash the last one comes again, with
        the same rows in the same order.
        """
        ...


SinkLike = Sink | Callable[[int, int, pa.Table], object]
"""A sink, or a function that is called with an epoch, the heartbeat after it, and its changes."""


@dataclass(frozen=True)
class Retry:
    """What happens when a sink fails: the same epoch is tried again, and the epochs of the run go on.

    When the run is over, an epoch is tried three times at most, so that the run can end.

    Attributes:
        attempts: how often an epoch is tried before the sink is given up; without end if None.
        pause: seconds before the second attempt; each further pause is twice as long.
        longest: seconds that a pause has at most.

    Raises:
        UserError: a number makes no sense.
    """

    attempts: int | None = None
    pause: float = 0.5
    longest: float = 60.0

    def __post_init__(self) -> None:
        if (self.attempts is not None and self.attempts < 1) or self.pause < 0 or self.longest < 0:
            raise UserError(f"{self} makes no sense", hint="try at least once, and pause for 0 s or more")

    def pause_after(self, failures: int) -> float:
        """Seconds to wait after so many failures."""
        return float(min(self.longest, self.pause * 2.0 ** min(failures - 1, 60)))

    def is_over(self, failures: int, *, final: bool) -> bool:
        """Whether a sink is given up after so many failures; `final` when the run is over."""
        limit = self.attempts
        if final:
            limit = min(limit or FINAL_ATTEMPTS, FINAL_ATTEMPTS)
        return limit is not None and failures >= limit


@dataclass(frozen=True)
class Reached:
    """How far a sink is.

    Attributes:
        query: the name of the query whose changes it takes.
        name: the sink's.
        epoch: the last epoch that it has taken; the one before its first before any.
        behind: how many committed epochs it has yet to take.
        problem: why it does not get on at the moment, or was given up; or None.
    """

    query: str
    name: str
    epoch: int
    behind: int
    problem: str | None


@dataclass(frozen=True)
class Attachment:
    """A sink attached to a query.

    Attributes:
        query: what the query is called.
        name: the sink's name, unique among those of the query.
        sink: what takes the changes.
        from_epoch: the first epoch it gets, if it has not been attached in this store before.
        retry: what happens when it fails.
        from_now: whether, instead, it gets what is committed from the moment on at which it is attached.
        delivery: what identifies what it delivers, where a durable store has given that; see `Origin`. A
            position of another one that had its name is not its own.
        busy: held while the sink works; a run that did not wait for it leaves it held.
        of: the query's identity; its name where that is empty.
    """

    query: str
    name: str
    sink: Sink
    from_epoch: int = 1
    retry: Retry = field(default_factory=Retry)
    from_now: bool = False
    delivery: str | None = None
    busy: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    of: str = ""

    @property
    def identity(self) -> str:
        """The query's identity."""
        return self.of or self.query

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"the sink {self.name} of {self.query}"
