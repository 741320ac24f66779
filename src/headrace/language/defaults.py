"""What a query means where its text leaves something out: the papers differ in two defaults."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Final

from headrace.algebra.nodes import Dstream, Istream, Plan, Rstream
from headrace.algebra.properties import is_monotonic
from headrace.errors import Position
from headrace.language.syntax import RangeWindowFrame, WindowClause
from headrace.time import INFINITY, Duration


class Defaults(Enum):
    """Whose defaults hold; SET dialect chooses them."""

    PIPES = "pipes"
    """A stream in FROM has the now-window, and a query's answer is not wrapped (thesis, 7.2.4)."""
    CQL = "cql"
    """A stream in FROM has an unbounded window; where contents only grow, ISTREAM is put around a query
    (*Query Processing ... in a Data Stream Management System*, 2.2)."""


_UNBOUNDED: Final = RangeWindowFrame(Duration(INFINITY), None)


def as_answer(plan: Plan, defaults: Defaults) -> Plan:
    """The plan of a whole query: CQL puts ISTREAM around contents that only grow.

    The paper says "a non-aggregation query over streams"; that its contents grow is what CQL's authors
    later asked for instead, since ISTREAM loses what leaves a window.
    """
    return Istream(plan) if defaults is Defaults.CQL and is_monotonic(plan) else plan


def is_stream(plan: Plan) -> bool:
    """Whether CQL calls what a query yields a stream, and not a relation."""
    return isinstance(plan, Istream | Dstream | Rstream)


def with_default_window(window: WindowClause | None, position: Position) -> WindowClause:
    """The window of CQL for a stream in FROM, whose clause may have no frame."""
    if window is None:
        return WindowClause(_UNBOUNDED, (), None, position)
    return replace(window, frame=_UNBOUNDED) if window.frame is None else window
