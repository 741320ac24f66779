"""Windows in GROUP BY, as Flink's and Spark's older texts have them, as the window functions in FROM.

Before: `SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)`. After:
`SELECT window_start FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start,
window_end`. There is one form of a window after that, however it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlglot import exp

from headrace.errors import LanguageError, UserError
from headrace.language.dialect import position_of
from headrace.language.parsing.rewrites.rewrite import column_node, rewritten, rewritten_items, same_text
from headrace.language.syntax import (
    DerivedTable,
    Name,
    NamedTable,
    Scalar,
    ScalarItem,
    SelectQuery,
    StarItem,
    WindowedTable,
    WindowFunction,
)
from headrace.time import Duration, make_duration, parse_duration


@dataclass(frozen=True)
class _Spelling:
    """A function of GROUP BY: which one of FROM it is, its lengths in their order, and an example.

    The first `least` lengths have to be given.
    """

    function: str
    lengths: tuple[str, ...]
    written: str
    least: int = 1


_FLINK: Final = {
    "TUMBLE": _Spelling("TUMBLE", ("SIZE",), "TUMBLE(ts, INTERVAL '10' MINUTE)"),
    "HOP": _Spelling("HOP", ("SLIDE", "SIZE"), "HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)", 2),
    "SESSION": _Spelling("SESSION", ("GAP", "MAX"), "SESSION(ts, INTERVAL '5' MINUTE)"),
}
_SPARK: Final = {
    "WINDOW": _Spelling("HOP", ("SIZE", "SLIDE", "OFFSET"), "window(ts, '10 minutes', '5 minutes')"),
    "SESSION_WINDOW": _Spelling("SESSION", ("GAP", "MAX"), "session_window(ts, '5 minutes')"),
}
_FUNCTIONS: Final[Mapping[str, _Spelling]] = {**_FLINK, **_SPARK}
_BOUNDS: Final = {"START": "window_start", "END": "window_end"}


def with_group_windows(query: SelectQuery) -> SelectQuery:
    """The SELECT with the window of its GROUP BY in FROM; the same SELECT where it has none.

    Raises:
        LanguageError: there are two windows, or the window is not over one table's timestamp.
    """
    found = [key for key in query.group_by if _name(key) in _FUNCTIONS]
    if not found:
        return query
    call, *others = found
    if others:
        raise LanguageError(
            "GROUP BY has two windows",
            position=position_of(others[0]),
            hint="put one of them into a subquery in FROM",
        )
    if len(query.tables) != 1 or not isinstance(query.tables[0], NamedTable | DerivedTable):
        raise LanguageError(
            f"GROUP BY {_name(call)} is over one table, and FROM has another form",
            position=position_of(call),
            hint=f"put the window on one of its tables: FROM {_form(call)}",
        )
    return _moved(query, query.tables[0], call)


def _moved(query: SelectQuery, table: NamedTable | DerivedTable, call: Any) -> SelectQuery:
    keys = tuple(key for key in query.group_by if key is not call)
    function = _function(call, table, keys)
    where = query.where
    if function.function == "SESSION" and where is not None:
        # The rows that WHERE leaves out do not prolong a session.
        function = replace(function, data=_filtered(query, table))
        where = None
    change = _Bounds(call).of
    bounds = tuple(column_node(name, position_of(call)) for name in _BOUNDS.values())
    return replace(
        query,
        items=rewritten_items(map(_named, query.items), change),
        tables=(WindowedTable(function, table.alias, None),),
        where=where,
        group_by=(*(rewritten(key, change) for key in keys), *bounds),
        having=query.having and rewritten(query.having, change),
    )


def _filtered(query: SelectQuery, table: NamedTable | DerivedTable) -> DerivedTable:
    place = query.position
    rows = SelectQuery((StarItem(None, place),), False, (table,), query.where, (), None, None, place)
    name = table.name if isinstance(table, NamedTable) else None
    return DerivedTable(rows, table.alias or name, None, place)


def _function(call: Any, table: NamedTable | DerivedTable, keys: tuple[Scalar, ...]) -> WindowFunction:
    spelling, place = _FUNCTIONS[_name(call)], position_of(call)
    (time, *lengths), function = call.expressions or [None], spelling.function
    if not isinstance(time, exp.Column) or not spelling.least <= len(lengths) <= len(spelling.lengths):
        needed = "a length" if spelling.least == 1 else "two lengths"
        message = f"{_name(call)} takes the timestamp and {needed}"
        raise LanguageError(message, position=place, hint=f"write {spelling.written}")
    _check_table(time, table)
    durations = {
        label: (_length(part, spelling), position_of(part))
        for label, part in zip(spelling.lengths, lengths, strict=False)
    }
    if function == "HOP" and durations.get("SLIDE", durations["SIZE"])[0] == durations["SIZE"][0]:
        function = "TUMBLE"
        durations.pop("SLIDE", None)
    names = tuple(_key(key) for key in keys) if function == "SESSION" else ()
    column = Name(str(time.name), position_of(time))
    return WindowFunction(function, table, column, names, durations, place, grouped=True)


def _check_table(time: Any, table: NamedTable | DerivedTable) -> None:
    """Refuse the timestamp of another table."""
    given = table.alias or (table.name if isinstance(table, NamedTable) else None)
    if time.args.get("table") is not None and (
        given is None or str(time.table).lower() != given.text.lower()
    ):
        raise LanguageError(
            f"there is no table {time.table} in FROM",
            position=position_of(time),
            hint=f"write {time.name} alone",
        )


def _key(key: Scalar) -> Name:
    """The column by which sessions are told apart."""
    if not isinstance(key, exp.Column):
        raise LanguageError(
            "sessions are grouped by columns",
            position=position_of(key),
            hint="compute the column in a subquery in FROM",
        )
    return Name(str(key.name), position_of(key))


def _length(part: Any, spelling: _Spelling) -> Duration:
    """`INTERVAL '10' MINUTE`, `'10 minutes'` or, for integer timestamps, `10`."""
    amount, unit = (part.this, part.args.get("unit")) if isinstance(part, exp.Interval) else (part, None)
    if not isinstance(amount, exp.Literal) or isinstance(unit, exp.IntervalSpan):
        raise LanguageError(
            "a window's length is a constant", position=position_of(part), hint=f"write {spelling.written}"
        )
    text = str(amount.this).strip()
    try:
        if text.isdecimal():
            return make_duration(int(text), None if unit is None else str(unit.name))
        return parse_duration(text if unit is None else f"{text} {unit.name}")
    except UserError as error:
        raise LanguageError(error.message, position=position_of(part), hint=error.hint) from None


class _Bounds:
    """What is in the place of the window's start and end, and of the window itself."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._name = _name(call)

    def of(self, node: Any) -> Any:
        """The column in the place of a node, or the node.

        Raises:
            LanguageError: it is the window itself, or the start of another one.
        """
        if isinstance(node, exp.Column) and node.args.get("table") is not None:
            bound = _BOUNDS.get(str(node.name).upper())
            if bound and self._name in _SPARK and str(node.table).upper() == self._name:
                return column_node(bound, position_of(node))
        whole = isinstance(node, exp.Column) and str(node.name).upper() == self._name and self._name in _SPARK
        if whole or _name(node) == self._name:
            raise LanguageError(
                f"a window is not a value: {self._name} has a start and an end",
                position=position_of(node),
                hint="write window_start and window_end",
            )
        function, _, bound_name = _name(node).rpartition("_")
        if function not in _FLINK or bound_name not in _BOUNDS:
            return node
        if function != self._name or not self._is_same(node):
            raise LanguageError(
                f"{_name(node)} has other arguments than the window of GROUP BY",
                position=position_of(node),
                hint=f"write {_BOUNDS[bound_name]}",
            )
        return column_node(_BOUNDS[bound_name], position_of(node))

    def _is_same(self, node: Any) -> bool:
        theirs, ours = node.expressions, self._call.expressions
        return len(theirs) == len(ours) and all(map(same_text, theirs, ours))


def _named(item: Any) -> Any:
    """An item `window.start` with the name that Spark gives it."""
    node = item.expression if isinstance(item, ScalarItem) else None
    if not isinstance(node, exp.Column) or item.alias is not None or str(node.table).upper() not in _SPARK:
        return item
    return replace(item, alias=Name(str(node.name), position_of(node)))


def _name(node: Any) -> str:
    return str(node.name).upper() if isinstance(node, exp.Anonymous) else ""


def _form(call: Any) -> str:
    function = _FUNCTIONS[_name(call)].function
    lengths = "INTERVAL '5' MINUTES, INTERVAL '10' MINUTES" if function == "HOP" else "INTERVAL '10' MINUTES"
    return f"{function}(TABLE name, DESCRIPTOR(ts), {lengths}) a JOIN ..."
