"""The readings of queries: their meaning where the text leaves something out."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Final

from headrace.algebra.nodes import Istream, Plan
from headrace.algebra.properties import is_monotonic
from headrace.algebra.streams import as_answer, is_stream
from headrace.errors import Position
from headrace.language.syntax import RangeWindowFrame, WindowClause
from headrace.time import INFINITY, Duration


class Defaults(Enum):
    """Whose defaults hold; SET dialect chooses them."""

    SQL = "sql"
    """Operators over several rows of a stream look at all of them so far; what only grows is a stream."""
    PIPES = "pipes"
    """A stream in FROM has the now-window, and a query's answer is not wrapped (thesis, 7.2.4)."""
    CQL = "cql"
    """A stream in FROM has an unbounded window; where contents only grow, ISTREAM is put around a query
    (*Query Processing ... in a Data Stream Management System*, 2.2)."""


INITIAL: Final = Defaults.SQL
"""The reading where nothing has been set."""

_UNBOUNDED: Final = RangeWindowFrame(Duration(INFINITY), None)


def answer_of(plan: Plan, defaults: Defaults) -> Plan:
    """The plan of a whole query: contents that only grow are a stream of events, but for PIPES."""
    match defaults:
        case Defaults.SQL:
            return as_answer(plan)
        case Defaults.CQL:
            return Istream(plan) if is_monotonic(plan) else plan
        case Defaults.PIPES:
            return plan


def yields_stream(plan: Plan, defaults: Defaults) -> bool:
    """Whether what a query yields is a stream of events, and not a content that changes."""
    return plan.is_chronon if defaults is Defaults.PIPES else is_stream(plan)


def with_default_window(window: WindowClause | None, position: Position) -> WindowClause:
    """The window of CQL for a stream in FROM, whose clause may have no frame."""
    if window is None:
        return WindowClause(_UNBOUNDED, (), None, position)
    return replace(window, frame=_UNBOUNDED) if window.frame is None else window
