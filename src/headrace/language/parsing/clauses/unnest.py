"""`UNNEST(values)` in FROM, as in SQL, and `LATERAL VIEW EXPLODE(values)`, as in Hive and Spark."""

from __future__ import annotations

from sqlglot import exp

from headrace.errors import LanguageError
from headrace.language.parsing.clauses.select_list import parse_alias
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import FromItem, Name, Scalar, UnnestedTable

WRITTEN = "write FROM s, UNNEST(s.items) AS t (item), or LEFT JOIN UNNEST(s.items) AS t (item) ON TRUE"

SERIES = "GENERATE_SERIES"
"""The function that is a table of its values: `FROM s, GENERATE_SERIES(1, s.n) AS t (i)`."""


def at_unnest(cursor: Cursor) -> bool:
    """Whether `[LATERAL] UNNEST(` or `GENERATE_SERIES(` comes next."""
    at = int(cursor.at("LATERAL"))
    return cursor.word(at) in ("UNNEST", SERIES) and cursor.word(at + 1) == "("


def parse_unnest(cursor: Cursor, left: FromItem, *, outer: bool = False) -> UnnestedTable:
    """Read `UNNEST(values) [WITH ORDINALITY] [[AS] alias [(columns)]]`, or GENERATE_SERIES for it.

    Args:
        cursor: at UNNEST.
        left: the tables before it.
        outer: whether it follows LEFT JOIN.

    Raises:
        LanguageError: it is malformed.
    """
    cursor.accept("LATERAL")
    position = cursor.position
    values = cursor.scalar("the numbers") if cursor.at(SERIES) else _unnested(cursor)
    ordinality = cursor.accept("WITH", "ORDINALITY")
    alias = parse_alias(cursor)
    columns: tuple[Name, ...] = ()
    if alias is not None and cursor.accept("("):
        columns = _names(cursor)
        cursor.expect(")", "after the columns of UNNEST")
    return UnnestedTable(left, values, alias, columns, ordinality, outer, position)


def _unnested(cursor: Cursor) -> Scalar:
    cursor.index += 1
    cursor.expect("(", "after UNNEST")
    values = cursor.scalar("the ARRAY of UNNEST")
    if cursor.at(","):
        raise cursor.error("UNNEST takes one ARRAY", WRITTEN)
    cursor.expect(")", "to close UNNEST")
    return values


def check_condition(cursor: Cursor, *, needed: bool) -> None:
    """Step over `ON TRUE` after a JOIN with UNNEST.

    Raises:
        LanguageError: the condition is another one, or is missing.
    """
    position = cursor.position
    if not cursor.accept("ON"):
        if needed:
            raise cursor.error(f"ON TRUE is missing, before {cursor.shown()}", WRITTEN)
        return
    condition = cursor.scalar("the condition after ON")
    if not (isinstance(condition, exp.Boolean) and condition.this):
        hint = "write ON TRUE, and the condition after WHERE"
        raise LanguageError("JOIN UNNEST has no condition of its own", position=position, hint=hint)


def parse_lateral_view(cursor: Cursor, left: FromItem) -> UnnestedTable:
    """Read `VIEW [OUTER] EXPLODE(values) [alias] [AS column, ...]`, or POSEXPLODE, after LATERAL.

    Raises:
        LanguageError: it is malformed.
    """
    cursor.expect("VIEW", "after LATERAL")
    outer = cursor.accept("OUTER")
    position, function = cursor.position, cursor.word()
    name, _, ending = function.partition("_")
    if name != "EXPLODE" or ending not in ("", "OUTER"):
        hint = "UNNEST(values) WITH ORDINALITY counts from 1" if name == "POSEXPLODE" else WRITTEN
        raise cursor.error(f"LATERAL VIEW takes EXPLODE, not {cursor.shown()}", hint)
    cursor.index += 1
    cursor.expect("(", f"after {function}")
    values = cursor.scalar(f"the ARRAY of {function}")
    cursor.expect(")", f"to close {function}")
    alias = None if cursor.at("AS") else parse_alias(cursor)
    columns = _names(cursor) if cursor.accept("AS") else ()
    return UnnestedTable(left, values, alias, columns, False, outer or bool(ending), position)


def _names(cursor: Cursor) -> tuple[Name, ...]:
    names = [cursor.name("a column's name")]
    # A name with parentheses after it is a table of FROM.
    while cursor.at(",") and cursor.word(2) != "(":
        cursor.index += 1
        names.append(cursor.name("a column's name"))
    return tuple(names)
