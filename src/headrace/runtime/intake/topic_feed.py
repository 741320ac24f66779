"""The feed of Kafka topics: the driver asks for end offsets, epochs take ranges, tasks read them.

What has been read is in the commits: of each partition the offset up to which it was, with the name and the
identity of its topic. So an epoch that is run again, by this process or by the next one, takes up where the
last commit left off, whatever was read in between.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from headrace.errors import AwayError, UserError
from headrace.runtime.intake.brokers import Partition, TopicPartitions
from headrace.runtime.intake.feed import FittedRows
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.intake.topic import Topic, TopicStart
from headrace.runtime.journal.followed import ReadFile
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.outside.patience import Away
from headrace.runtime.sources.messages.topic import MESSAGE_BYTES, OffsetRange

_LOG: Final = logging.getLogger("headrace")
_ATTEMPTS: Final = 3
"""So often in a row epochs may fail over a topic whose brokers answer."""
_SETTLED: Final = 30.0
"""Seconds after which a broker that was started again knows how long its partitions are."""
_ENDING: Final = 1.0
"""Seconds that the end waits for a question that is under way."""


_Key = TypeVar("_Key", int, Partition)


class TopicFeed(FittedRows):
    """The messages of some topics, as they come.

    Args:
        name: the stream.
        topic: what is read.
        max_rows, max_bytes: about how many rows an epoch takes at most, and how many bytes of them.
        wake: called when something has come.
    """

    def __init__(
        self, name: str, topic: Topic, max_rows: int, max_bytes: int, wake: Callable[[], None]
    ) -> None:
        self._name = name
        self._topic = topic
        self._most = max(1, min(max_rows, max_bytes // MESSAGE_BYTES))
        self._wake = wake
        self._brokers = topic.brokers()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._identities: dict[str, str] = {}
        self._next: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}
        self._ends: Mapping[Partition, int] = {}
        self._taken: dict[Partition, int] | None = None
        self._news: dict[Partition, int] = {}
        self._has_looked = False
        self._missing: tuple[str, ...] = ()
        self._absence: str | None = None
        self._short_since: float | None = None
        self._failures = 0
        self._error: BaseException | None = None
        self._problem: str | None = None
        self._lost: str | None = None
        self._away: Away | None = None

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Begin to ask the brokers; what `point` names has been read."""
        for label, read in point.files.items():
            topic, identity, number = self._unpacked(label)
            if identity != self._identities.get(topic):
                # What was read of a topic that was made anew since is of no use.
                self._forget(topic)
                self._identities[topic] = identity
            self._committed[topic, number] = read.size
        self._next = dict(self._committed)
        self._has_looked = bool(self._next)
        self._thread = threading.Thread(target=self._keep_asking, name=f"headrace {self._name}", daemon=True)
        self._thread.start()

    def read(self, columns: Sequence[str]) -> None:
        """The columns are chosen when an epoch reads the messages."""

    def ask(self) -> None:
        """Ask the brokers once what has come."""
        try:
            found = self._brokers.partitions()
            begins = self._begins(found)
            self._look_for(found)
        except UserError as error:
            self._note_problem(str(error))
            return
        with self._lock:
            self._problem, self._has_looked = None, True
            if self._is_whole(found):
                for one, at in begins.items():
                    self._next.setdefault(one, at)
                self._identities |= found.identities
                self._ends = found.ends
            ready = self._has_some() or self._lost is not None
        if ready:
            self._wake()

    def widen(self, stream: LiveStream) -> bool:
        """Another feed takes its place: what epochs have not confirmed is read again."""
        return False

    def ready(self) -> bool:
        """Whether messages wait."""
        with self._lock:
            return self._has_some()

    def come(self) -> int:
        """How many offsets there are."""
        with self._lock:
            return sum((self._next | dict(self._ends)).values())

    def has_taken(self, come: int) -> bool:
        """Whether so many have been taken."""
        with self._lock:
            return sum((self._next | (self._taken or {})).values()) >= come

    def caught_up(self) -> bool:
        """Whether no partition had more when the brokers were asked last."""
        with self._lock:
            return self._problem is None and bool(self._ends) and not self._away and not self._has_some()

    def waiting(self) -> int | None:
        """How many messages wait at most."""
        with self._lock:
            return sum(self._lags().values()) if self._ends else None

    def take(self, point: StreamPoint) -> Intake | None:
        """A share of each partition: as much of each as fits, and more of those that are further behind."""
        with self._lock:
            if not self._has_some():
                return None
            shares = shares_of(self._lags(), self._at_most(self._most))
            self._taken = {one: self._next[one] + share for one, share in shares.items()}
            # Where partitions begin of which nothing was read yet is said as well, and holds from then on.
            reached = self._next | self._taken
            self._news = {one: at for one, at in reached.items() if self._committed.get(one) != at}
            ranges = tuple(OffsetRange(*one, self._next[one], end) for one, end in self._taken.items())
            files = {self._label(one): ReadFile(at, 0) for one, at in self._news.items()}
        source = self._topic.source(ranges)
        return Intake(
            point.position + source.size,
            source,
            0,
            source.size,
            comes_again=True,
            files=files,
        )

    def settle(self, error: BaseException | None) -> None:
        """What was taken has been read, or comes again."""
        with self._lock:
            taken, self._taken = self._taken, None
            if taken is None:
                return
            if isinstance(error, AwayError):
                self._note_away(error)
            elif error is None:
                self._failures, self._away = 0, None
                self._next |= taken
                self._committed |= self._news
            elif self._problem is None:
                self._failures, self._error = self._failures + 1, error

    def trouble(self) -> str | None:
        """What was wrong when it was looked for last, or read."""
        away = self._away
        return self._problem or (self._absence if away is None else str(away))

    def check(self) -> str | None:
        """The reason if messages are gone, or no epoch can read them."""
        return self._lost or (str(self._error) if self._failures >= _ATTEMPTS else None)

    def stop(self) -> None:
        """Ask no longer."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_ENDING)

    def _keep_asking(self) -> None:
        while not self._ended.is_set():
            self.ask()
            self._ended.wait(self._topic.every)

    def _label(self, partition: Partition) -> str:
        """What commits call a partition."""
        topic, number = partition
        return f"{topic}:{self._identities[topic]}/{number}"

    def _unpacked(self, label: str) -> tuple[str, str, int]:
        """The topic, its identity and the number of a partition."""
        rest, _, number = label.rpartition("/")
        # An identity may have a slash, and neither it nor a name has a colon.
        topic, _, identity = rest.rpartition(":")
        # A store from before there were several topics does not name the only one.
        return topic or self._topic.wanted.names[0], identity, int(number)

    def _forget(self, topic: str) -> None:
        """Remember nothing of what was read of a topic."""
        for known in (self._committed, self._next):
            for one in [one for one in known if one[0] == topic]:
                del known[one]

    def _lags(self) -> dict[Partition, int]:
        return {one: end - self._next[one] for one, end in self._ends.items() if end > self._next[one]}

    def _look_for(self, found: TopicPartitions) -> None:
        """Say once which topics are not there.

        Raises:
            SourceError: the brokers do not answer.
        """
        is_none = self._topic.wanted.pattern is not None and not found.identities
        missing = found.missing or (("",) if is_none else ())
        if missing == self._missing:
            return
        absence = self._brokers.overview().absence if missing else None
        with self._lock:
            self._missing, self._absence = missing, absence
        if absence is not None:
            _LOG.warning("nothing is read of %s for now: %s", self._name, absence)

    def _has_some(self) -> bool:
        # While its brokers do not answer nothing is taken that could not be read.
        is_there = self._problem is None and self._lost is None and self._failures < _ATTEMPTS
        return is_there and (self._away is None or self._away.is_due) and bool(self._lags())

    def _begins(self, found: TopicPartitions) -> Mapping[Partition, int]:
        """Where to begin in partitions of which nothing was read."""
        if self._has_looked or self._topic.start is TopicStart.EARLIEST:
            # One that comes later is read whole.
            return found.begins
        if self._topic.start is TopicStart.LATEST:
            return found.ends
        assert isinstance(self._topic.start, int)
        return self._brokers.since(self._topic.start, found)

    def _is_whole(self, found: TopicPartitions) -> bool:
        """Whether all that comes next is there; otherwise it is passed over, or the stream is given up."""
        lost = self._lost_in(found)
        if lost is None:
            return True
        if self._taken is not None:
            return False
        if not self._topic.goes_on:
            self._lost = lost
            return False
        _LOG.warning("%s goes on without messages that are gone: %s", self._name, lost)
        for topic in self._made_anew(found):
            self._forget(topic)
        for one, begin in found.begins.items():
            at = self._next.get(one, begin)
            self._next[one] = at if begin <= at <= found.ends[one] else begin
        return True

    def _made_anew(self, found: TopicPartitions) -> list[str]:
        """The topics that are others than those that were read, under their names."""
        known = self._identities
        return [name for name, one in found.identities.items() if known.get(name, one) != one]

    def _lost_in(self, found: TopicPartitions) -> str | None:
        """What is gone of that which was not read yet; None if nothing is."""
        for topic in self._made_anew(found):
            return f"the topic {topic} was deleted and made anew"
        if not self._is_short(found):
            self._short_since = None
        for one, at in self._next.items():
            topic, number = one
            if topic not in found.identities:
                continue
            if one not in found.begins or (found.ends[one] < at and self._is_short_for_good()):
                return (
                    f"partition {number} of the topic {topic} ends before offset {at}, and was read up to it"
                )
            if found.begins[one] > at:
                return (
                    f"the topic {topic} no longer has the messages {at} to {found.begins[one] - 1} of "
                    f"partition {number}"
                )
        return None

    def _is_short(self, found: TopicPartitions) -> bool:
        return any(found.ends.get(one, at) < at for one, at in self._next.items())

    def _is_short_for_good(self) -> bool:
        """Whether a partition has long been shorter than what was read; a broker that starts may seem so."""
        now = time.monotonic()
        self._short_since = now if self._short_since is None else self._short_since
        return now - self._short_since > _SETTLED

    def _note_away(self, error: AwayError) -> None:
        """Remember that something was away that reading needs, and report it once."""
        if self._away is None:
            _LOG.warning("the topic of %s cannot be read for now: %s", self._name, error)
        self._away = Away.after(self._away, error)

    def _note_problem(self, problem: str) -> None:
        """Report once that the brokers do not answer."""
        with self._lock:
            is_new, self._problem = self._problem != problem, problem
        if is_new:
            _LOG.warning("the topic of %s cannot be read: %s", self._name, problem)


def shares_of(lags: Mapping[_Key, int], most: int) -> dict[_Key, int]:
    """How much of each partition an epoch takes: what there is, up to an even share of what it may take.

    Args:
        lags: how many offsets each partition has that were not read.
        most: how many may be taken of all together.
    """
    found, left = {}, most
    for place, (number, lag) in enumerate(sorted(lags.items(), key=lambda one: one[1])):
        share = min(lag, left // (len(lags) - place))
        left -= share
        if share:
            found[number] = share
    return dict(sorted(found.items()))
