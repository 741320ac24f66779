"""Faults put into the work of one query: an error raised in some call that is made for it alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Final, Literal
from unittest.mock import patch

import pyarrow as pa

from headrace.lowering.query_id import first_name
from headrace.runtime.tasks import fence

KINDS: Final[tuple[type[BaseException], ...]] = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowTypeError,
    ValueError,
    FloatingPointError,
    MemoryError,
    RecursionError,
    StopIteration,
    AssertionError,
    KeyError,
    SystemExit,
)
"""What operators, expressions and functions may raise: errors of Arrow's, of NumPy's and of Python's."""


@dataclass
class Fault:
    """An error in the n-th call of a function, Python's or C's, within the work for one query alone.

    Attributes:
        query: its name.
        at: the number of the call, from 0; None raises nothing and only looks.
        kind: the error.
        calls: the functions that were called so far, in order.
        nodes: the kinds of plan nodes that were at work.
        raised: whether it has been raised.
    """

    query: str
    at: int | None = None
    kind: type[BaseException] = ValueError
    calls: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)
    raised: bool = False

    def seen(self, frame: FrameType, event: str, argument: Any) -> None:
        """Look at what the interpreter does, as `sys.setprofile` has it."""
        if event == "call":
            name = frame.f_code.co_qualname
        elif event == "c_call":
            name = getattr(argument, "__qualname__", str(argument))
        else:
            return
        # A lock is given back whatever has happened.
        if (
            name == "setprofile"
            or name.endswith(("__exit__", "release"))
            or frame.f_code.co_qualname.startswith(("_Guard.", "faulty."))
            # Numba makes what a kernel returns, and does not look whether that has failed.
            or name == "_numba_unpickle"
        ):
            return
        self.calls.append(name)
        if self.at is not None and len(self.calls) > self.at and not self.raised:
            self.raised = True
            raise self.kind("a fault")


@contextmanager
def faulty(fault: Fault) -> Iterator[Fault]:
    """Let a fault be raised where it is to be."""
    enter, leave = fence._Guard.__enter__, fence._Guard.__exit__

    def entered(guard: Any) -> None:
        enter(guard)
        graph = guard._fence._graph
        if all([*map(first_name, graph.users[node])] == [fault.query] for node in guard._nodes):
            fault.nodes.update(type(graph.nodes[node].plan).__name__ for node in guard._nodes)
            sys.setprofile(fault.seen)

    def left(
        guard: Any, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[True] | None:
        sys.setprofile(None)
        return leave(guard, kind, error, trace)

    with patch.object(fence._Guard, "__enter__", entered), patch.object(fence._Guard, "__exit__", left):
        yield fault
