"""What goes wrong in one node's work stays there: the queries that need the node end, and no others.

Whatever an operator, an expression, a function or a kernel raises is caught where its node is known: a sum
that overflows, but also what nobody has foreseen, such as an error of Arrow's or a lack of memory. The node
yields nothing from then on, and neither do those above it. All of them are of queries that end with this
epoch; what other queries need has been computed as without them.

Errors that are of no node, such as a state file that cannot be read, go through: the epoch does not count.
"""

from __future__ import annotations

import math
import threading
import traceback
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal

from headrace.errors import ExecutionError, StoreError, UserError, is_of_code, message_of, shortened
from headrace.limits import CancelledWorkError, Limit, OutOfTimeError, begin, end
from headrace.lowering.explain import operator_text
from headrace.lowering.graph import Graph

_TITLE_CHARACTERS: Final = 120
"""So much of what a node does is said of one that failed."""
_TRACE_CHARACTERS: Final = 4_000
"""So much of where an exception was raised is kept."""

_MEMORY: Final = (
    "let it make fewer or shorter values, shorten its windows, take smaller epochs (SET epoch_rows), or give "
    "the process more memory"
)
_TIME: Final = "let it do less for a row, take smaller epochs (SET epoch_rows), or SET epoch_timeout higher"
_DROPPED: Final = "where that was refused, ALTER QUERY ... RESUME lets it go on"
_FAULT: Final = "writing the query in another way may help; the log says where it was raised"


@dataclass(frozen=True)
class NodeFailure:
    """A node whose work has failed.

    Attributes:
        node: its number.
        message: why.
        hint: what may help, or None.
        trace: where it was raised, of an exception that nobody has foreseen; empty for others.
    """

    node: int
    message: str
    hint: str | None
    trace: str = ""


class CancelFlag:
    """What is not wanted any more of the epoch that a process is running; other threads set it.

    Attributes:
        queries: the queries that nobody waits for.
        all: whether nobody waits for the epoch.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unwanted = Counter[str]()
        self.queries: frozenset[str] = frozenset()
        self.all = False

    def drop(self, queries: Collection[str]) -> None:
        """Wait for some queries no longer."""
        with self._lock:
            self._unwanted.update(queries)
            self.queries = frozenset(self._unwanted)

    def want(self, queries: Collection[str]) -> None:
        """Take back a `drop`."""
        with self._lock:
            self._unwanted = +(self._unwanted - Counter(queries))
            self.queries = frozenset(self._unwanted)


NEVER: Final = CancelFlag()
"""The flag where no other thread reaches."""


class Fence:
    """The failures of the nodes of one task.

    Args:
        graph: the graph they are in.
        seconds: so long a node may work in the task; None for as long as it takes.
        flag: says what is not wanted any more.

    Attributes:
        failures: the first failure of each node that has failed, by its number.
    """

    def __init__(self, graph: Graph, seconds: float | None = None, flag: CancelFlag = NEVER) -> None:
        self._graph = graph
        self._seconds = math.inf if seconds is None else seconds
        self._flag = flag
        self._spent: dict[int, float] = {}
        self.failures: dict[int, NodeFailure] = {}

    def around(self, *nodes: int) -> _Guard:
        """Work for some nodes; what goes wrong in it is theirs, and goes no further.

        Args:
            nodes: their numbers, at least one.

        Raises:
            StoreError, OSError: state cannot be read or written, and that is not their fault.
            CancelledWorkError: nobody waits for the epoch any more.
        """
        return _Guard(self, nodes)

    def has_failed(self, *nodes: int) -> bool:
        """Whether all of some nodes have failed, so that nothing need be done for them."""
        return bool(self.failures) and all(node in self.failures for node in nodes)

    def fail(self, nodes: Iterable[int], error: BaseException) -> None:
        """Let nodes have failed."""
        for node in nodes:
            self.failures.setdefault(node, self._failure(node, error))

    def is_of_node(self, error: BaseException) -> bool:
        """Whether an error is one of the node in whose work it was raised."""
        if isinstance(error, CancelledWorkError):
            return not self._flag.all
        return is_of_code(error) and not isinstance(error, _OF_NO_NODE)

    def limit(self, nodes: Collection[int]) -> Limit:
        """How long nodes may still work, and whether somebody wants them to."""
        alive = [node for node in nodes if node not in self.failures]
        # What one has spent on its own is no reason to end the others.
        left = self._seconds - min((self._spent.get(node, 0.0) for node in alive), default=0.0)
        return Limit(left, lambda: self._unwanted(nodes))

    def spend(self, nodes: Iterable[int], seconds: float) -> None:
        """Let nodes have worked for some seconds."""
        for node in nodes:
            self._spent[node] = self._spent.get(node, 0.0) + seconds

    def overspent(self, node: int) -> OutOfTimeError | None:
        """The error of a node that has worked for too long; None for others."""
        if self._spent.get(node, 0.0) <= self._seconds:
            return None
        return OutOfTimeError(Limit(self._seconds), "it has taken too long")

    def _unwanted(self, nodes: Iterable[int]) -> str | None:
        flag = self._flag
        if flag.all:
            return "the epoch was given up"
        if flag.queries and all(flag.queries.issuperset(self._graph.users[node]) for node in nodes):
            return "it is dropped or paused"
        return None

    def _failure(self, node: int, error: BaseException) -> NodeFailure:
        if isinstance(error, ExecutionError):
            return NodeFailure(node, error.message, error.hint)
        what = f"#{node} {shortened(operator_text(self._graph.nodes[node].plan), _TITLE_CHARACTERS)}"
        if isinstance(error, OutOfTimeError):
            reason = f"the operator {what} took more than {self._seconds:g} s in one epoch"
            return NodeFailure(node, reason, _TIME)
        if isinstance(error, CancelledWorkError):
            return NodeFailure(node, f"the operator {what} was ended: {error.reason}", _DROPPED)
        if isinstance(error, UserError):
            return NodeFailure(node, f"the operator {what} failed: {error.message}", error.hint)
        said = message_of(error)
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        if isinstance(error, MemoryError):
            return NodeFailure(
                node, f"the operator {what} needs more memory than there is: {reason}", _MEMORY
            )
        trace = "".join(traceback.format_exception(error))[-_TRACE_CHARACTERS:]
        return NodeFailure(node, f"the operator {what} failed: {reason}", _FAULT, trace)


_OF_NO_NODE: Final = (StoreError, OSError)
"""What a node's work may meet that is not its own: state that cannot be read or written."""


class _Guard:
    """Work for some nodes, as a context."""

    __slots__ = ("_fence", "_limit", "_limits", "_nodes")

    def __init__(self, fence: Fence, nodes: tuple[int, ...]) -> None:
        self._fence = fence
        self._nodes = nodes

    def __enter__(self) -> None:
        self._limit = self._fence.limit(self._nodes)
        self._limits = begin(self._limit)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[True] | None:
        fence = self._fence
        end(self._limits)
        fence.spend(self._nodes, self._limit.spent)
        if error is None and len(self._nodes) == 1:
            # It may not have asked on the way, as a function of a user's.
            error = fence.overspent(self._nodes[0])
        if error is None or not fence.is_of_node(error):
            return None
        fence.fail(self._nodes, error)
        return True
