"""Queries that may be estimated of a part of the rows: which nodes and aggregates are monotone under loss.

A row that is left out must make an answer smaller by what the row adds, and by nothing else; what is kept is
then made larger by its weight. Some operators answer with what is wrong where rows are missing: an
EXCEPT has more rows, and a MAX is smaller by no known amount (STREAM, section 5.1.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.algebra.nodes import Aggregate, Plan
from headrace.algebra.properties import walk
from headrace.errors import LanguageError, Position
from headrace.expressions.tree import AggregateCall

_ORDER = "which rows are first, or last, depends on those that are missing"
_ROWS = "a window of rows has others where some are missing"
_DIFFERENT = "how many different rows there are cannot be told from how often those came that are kept"
_MISSING = "a row that is missing on its other side would add rows to the answer"
_SESSIONS = "a session ends where rows are missing"
_GAPS = "rows that are missing would be taken for gaps"
CHANGES: Final = "the changes of an estimate are not estimates of the changes"
_LASTING = "rows that last, or are taken back, are not left out"
_ALONE = "it is not among what is estimated"

NODES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("Source", "Filter", "Project", "TimeWindow", "Lifetime", "WindowBounds", "Union")),
    **dict.fromkeys(("Join", "Relation", "Aggregate", "Rstream", "Istream")),
    "EventSource": _LASTING,
    "Finalize": _LASTING,
    **dict.fromkeys(("RefreshedRelation", "Coalesce", "Granularity", "Split", "Clip", "Early"), _ALONE),
    **dict.fromkeys(("Remember", "Match", "NestedAggregate", "Sample", "Unnest"), _ALONE),
    **dict.fromkeys(
        ("Shed", "LargestWeight"), "it bears loss itself, and estimates of estimates have no bounds"
    ),
    **dict.fromkeys(("Draw", "LimitedJoin", "BloomFilter"), "its operators forget rows themselves"),
    "SemanticDrop": "it leaves out rows by their values itself",
    "RowWindow": _ROWS,
    **dict.fromkeys(("SessionWindow", "SessionAggregate"), _SESSIONS),
    "Over": _ORDER,
    "GapFill": _GAPS,
    "TopK": _ORDER,
    "ApproximateAggregate": "its aggregates are approximate already, WITHIN some percent",
    "Distinct": _DIFFERENT,
    "SetOperation": _MISSING,
    "OuterJoin": _MISSING,
    "SemiJoin": _MISSING,
    "Dstream": CHANGES,
}
"""By the name of a node why nothing is estimated of it; None where something is."""

GROUPED: Final = ("Aggregate", "ApproximateAggregate", "NestedAggregate", "SessionAggregate")
"""The names of the nodes that group rows."""

_EXTREME = "the largest and the smallest value may be among those that are missing"
_VALUES = "it is of single values, and most of them may be missing"
_MOMENTS = "bounds of it would need higher moments; SUM and COUNT are estimated, and AVG"

AGGREGATES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("COUNT", "COUNT_IF", "SUM", "AVG")),
    **dict.fromkeys(("MIN", "MAX", "BOOL_AND", "BOOL_OR", "BIT_AND", "BIT_OR"), _EXTREME),
    **dict.fromkeys(("BIT_XOR", "ARRAY_AGG", "MODE", "TOP_K"), _VALUES),
    **dict.fromkeys(("MEDIAN", "PERCENTILE", "PERCENTILE_DISC"), _VALUES),
    **dict.fromkeys(("FIRST", "LAST", "AUTOCORR", "EWMA", "EWM_STDDEV"), _ORDER),
    **dict.fromkeys(("CORR", "CORRELATED_PAIRS", "COVAR_POP", "COVAR_SAMP"), _MOMENTS),
    **dict.fromkeys(("REGR_AVGX", "REGR_AVGY", "REGR_COUNT", "REGR_INTERCEPT", "REGR_R2"), _MOMENTS),
    **dict.fromkeys(("REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY"), _MOMENTS),
    **dict.fromkeys(("STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP"), _MOMENTS),
}
"""By the name of an aggregate why it is not estimated; None where it is."""

HINT: Final = (
    "leave out LOSS TOLERANT or WITHIN; "
    "what is estimated are COUNT, SUM and AVG of rows, and arithmetic of them"
)


def refused(what: str, why: str, position: Position | None, hint: str = HINT) -> LanguageError:
    """The error of a query of which no row may be left out."""
    return LanguageError(f"no row may be left out of {what}: {why}", position=position, hint=hint)


def refused_node(plan: Plan, position: Position | None) -> LanguageError:
    """The error of a node that is not monotone under loss, or has one below it; or is not where it stands."""
    nodes = list(walk(plan))
    if any(isinstance(node, Aggregate) and not node.aggregates for node in nodes):
        return refused("DISTINCT, or groups without aggregates", _DIFFERENT, position)
    names = list(map(_name, nodes))
    # What is below a query that bears loss was refused there if it had to be.
    names.sort(key=lambda name: name != "LargestWeight")
    name = next((name for name in names if NODES[name] is not None), names[0])
    return refused(_NAMES.get(name, name), NODES[name] or _ALONE, position)


def named(plan: Plan) -> str:
    """A node in messages."""
    return _NAMES.get(_name(plan), _name(plan))


def _name(plan: Plan) -> str:
    """The name by which a node is known here: its own, or that of what it is a kind of."""
    return next(kind.__name__ for kind in type(plan).__mro__ if kind.__name__ in NODES)


def refused_call(call: AggregateCall, position: Position | None) -> LanguageError | None:
    """The error of an aggregate that is not estimated; None for one that is."""
    if call.user is not None:
        return refused(call.function, "it is an aggregate of a user's own", position)
    if call.distinct:
        return refused(f"{call.function}(DISTINCT ...)", _DIFFERENT, position)
    why = AGGREGATES[call.function]
    return None if why is None else refused(call.function, why, position)


_NAMES: Final = {
    "EventSource": "a stream of events that last or are corrected",
    "Finalize": "a stream whose rows are corrected",
    "RowWindow": "a window of rows",
    "SessionWindow": "sessions",
    "SessionAggregate": "sessions",
    "Over": "OVER",
    "GapFill": "GAP_FILL",
    "TopK": "ORDER BY, LIMIT or ROW_NUMBER",
    "Distinct": "DISTINCT",
    "SetOperation": "EXCEPT, INTERSECT or UNION",
    "OuterJoin": "an outer join",
    "SemiJoin": "EXISTS, IN, NOT EXISTS or NOT IN",
    "Istream": "ISTREAM",
    "Dstream": "DSTREAM",
    "RefreshedRelation": "a relation that is refreshed",
    **dict.fromkeys(
        ("Shed", "SemanticDrop", "LargestWeight", "Draw", "LimitedJoin", "BloomFilter"),
        "a query that it reads",
    ),
    "ApproximateAggregate": "aggregates WITHIN some percent",
}
"""The names of nodes in messages."""
