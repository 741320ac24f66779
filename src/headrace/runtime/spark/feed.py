"""The feed of a Spark stream: batches that a Structured Streaming query hands over, one at a time.

Spark's log of what has been read moves with ours. Where its sources can be read again, it is one batch ahead
of ours: Spark plans a batch while the one before is in an epoch. What Spark counts as done and we do not is
taken out of its log before the query is started again (decision 0014).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from headrace.errors import ExecutionError, StoreError
from headrace.runtime.intake.streams import Intake
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.store.paths import refuse_links

RESTARTS = 3
"""So often a Spark stream that fails is started again before it is given up."""

_FILES: Final = ("avro", "csv", "json", "orc", "parquet", "text")
_REPEATABLE: Final = ("rate", "rate-micro-batch")
_STATELESS: Final = (
    "EventTimeWatermark",
    "Filter",
    "MapInArrow",
    "MapInPandas",
    "Project",
    "StreamingRelation",
    "StreamingRelationV2",
    "SubqueryAlias",
    "Union",
)


def may_read_ahead(frame: Any) -> bool:
    """Whether Spark may take a batch of a streaming frame for done before its epoch is committed.

    So it may where the frame keeps no state, and its sources forget nothing that Spark counts as done: files
    that are left where they are, and generated rows.
    """
    return all(_repeatable(node) for node in _nodes(frame._jdf.queryExecution().analyzed()))


def quoted(name: str) -> str:
    """A column's name as Spark takes it, whatever is in it: a dot would tell of a part of a column."""
    return f"`{name.replace('`', '``')}`"


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _repeatable(node: Any) -> bool:
    match node.nodeName():
        case "StreamingRelation":
            source = node.dataSource()
            return source.className() in _FILES and "cleansource" not in source.options().toString().lower()
        case "StreamingRelationV2":
            return node.sourceName() in _REPEATABLE
        case name:
            return name in _STATELESS


class SparkFeed:
    """Batches of a Structured Streaming query.

    The query's `foreachBatch` blocks until the epoch that took its batch is committed; where Spark may read
    ahead, until an epoch has taken it. A batch whose number is committed already returns at once.

    Args:
        name: the stream.
        frame: a streaming data frame.
        checkpoint: the folder of Spark's own log.
        wake: called when a batch has come.
        ahead: whether Spark may count a batch as done that an epoch has taken; see `may_read_ahead`.
    """

    def __init__(
        self, name: str, frame: Any, checkpoint: Path, wake: Callable[[], None], *, ahead: bool
    ) -> None:
        self._name = name
        self._frame = frame
        self._checkpoint = checkpoint
        self._wake = wake
        self._ahead = ahead
        self._changed = threading.Condition()
        self._columns: tuple[str, ...] = ()
        self._handed: tuple[Any, int] | None = None
        self._taken: int | None = None
        self._committed = 0
        self._failed: BaseException | None = None
        self._stopped = False
        self._restarts = 0
        self._lost: str | None = None
        self._query: Any = None

    def start(self, point: StreamPoint, columns: Sequence[str]) -> None:
        """Start the streaming query; `point.position` is the number of the next batch.

        Raises:
            StoreError: batches are committed, and Spark's log does not tell of them: it would count anew. Or
                the log leads out of the store.
        """
        refuse_links(self._checkpoint)
        self._committed = point.position
        self._columns = tuple(columns)
        if self._committed and not _logged(self._checkpoint, self._committed):
            raise StoreError(
                f"{self._committed} batches of {self._name} are committed, and Spark's log of them is not in "
                f"{self._checkpoint}",
                hint="restore the store from a copy",
            )
        if self._ahead:
            _rewind(self._checkpoint, self._committed)
        self._handed, self._taken, self._failed = None, None, None
        wanted = self._frame.select(*map(quoted, self._columns))
        writer = wanted.writeStream.foreachBatch(self._hand_over)
        self._query = writer.option("checkpointLocation", str(self._checkpoint)).start()

    def read(self, columns: Sequence[str]) -> None:
        """Refuse batches that lack some of these columns; `check` then starts the query again."""
        if not set(columns) <= set(self._columns):
            self._columns, self._restarts = tuple(columns), 0
            self._let_go("other columns are read")

    def ready(self) -> bool:
        """Whether a batch waits."""
        return self._handed is not None and self._taken is None

    def take(self, point: StreamPoint) -> Intake | None:
        """The batch that waits."""
        with self._changed:
            if self._handed is None or self._taken is not None:
                return None
            rows, self._taken = self._handed
            self._handed = None
            self._changed.notify_all()
            return Intake(self._taken + 1, frame=rows)

    def settle(self, error: BaseException | None) -> None:
        """Let the streaming query go on, or fail."""
        with self._changed:
            if self._taken is None:
                return
            if error is None:
                self._committed, self._restarts = self._taken + 1, 0
            else:
                self._failed, self._handed = error, None
            self._taken = None
            self._changed.notify_all()

    def check(self) -> str | None:
        """Start the query again if it or an epoch of its failed, up to `RESTARTS` times in a row."""
        if self._stopped or self._query is None or (self._query.isActive and self._failed is None):
            return None
        if self._restarts >= RESTARTS or self._lost is not None:
            return self._lost or str(self._failed or _reason(str(self._query.exception())))
        self._restarts += 1
        self._query.stop()
        self.start(StreamPoint(self._committed, 0), self._columns)
        return None

    def stop(self) -> None:
        """Stop the streaming query; a batch that was not committed comes again."""
        self._stopped = True
        self._let_go("stopped")
        if self._query is not None:
            self._query.stop()

    def _let_go(self, reason: str) -> None:
        """Let the batch that waits fail, and any that comes before the query is started again."""
        with self._changed:
            self._failed, self._handed = self._failed or ExecutionError(reason), None
            self._changed.notify_all()

    def _hand_over(self, rows: Any, number: int) -> None:
        with self._changed:
            if number < self._committed:
                return
            if self._failed is None:
                self._refuse_gap(number)
                self._handed = rows, number
        self._wake()
        with self._changed:
            self._changed.wait_for(lambda: self._failed is not None or self._may_return(number))
            if not self._may_return(number):
                raise ExecutionError(f"batch {number} of {self._name} was not committed: {self._failed}")

    def _may_return(self, number: int) -> bool:
        return number < self._committed or (self._ahead and number == self._taken)

    def _refuse_gap(self, number: int) -> None:
        """See that no batch is left out.

        Raises:
            ExecutionError: Spark has gone further than what is committed or in an epoch.
        """
        expected = self._committed if self._taken is None else self._taken + 1
        if expected < number:
            self._lost = (
                f"Spark goes on with batch {number} of {self._name}, and {expected} are committed: "
                "the store has lost its last commits"
            )
            raise ExecutionError(self._lost)


def _rewind(checkpoint: Path, batches: int) -> None:
    """Leave so many batches in Spark's log, as if it had been killed after them.

    The offsets of the next batch stay, so that it is the same batch when it comes again.
    """
    for folder, kept in (("offsets", batches + 1), ("commits", batches)):
        for path in (checkpoint / folder).glob("*"):
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= kept:
                path.unlink()


def _logged(checkpoint: Path, batches: int) -> bool:
    """Whether Spark's log says where batch `batches` begins."""
    return any((checkpoint / "offsets" / str(number)).is_file() for number in (batches - 1, batches))


def _reason(text: str) -> str:
    """The first line of what Spark tells of a failure, with the error of a Python source if there is one."""
    first, _, rest = text.partition("\n")
    head, found, _ = first.partition("Traceback (most recent call last)")
    errors = (line for line in rest.splitlines() if line and not line[0].isspace())
    return head + next(errors, "") if found else first
