"""Queries: SELECT with its clauses, set operations, WITH, and ISTREAM, DSTREAM, RSTREAM around them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Final

from sqlglot.tokens import TokenType

from headrace.algebra.kinds import JoinKind, SetKind
from headrace.algebra.letters import letters_name
from headrace.errors import LanguageError, Position
from headrace.language.dialect import position_of
from headrace.language.parsing.clauses.constants import is_constant, one_row, parse_values
from headrace.language.parsing.clauses.correlated_pairs import at_correlated_pairs, parse_correlated_pairs
from headrace.language.parsing.clauses.limits import LIMITS, parse_limits
from headrace.language.parsing.clauses.named_windows import fill_in_windows, parse_named_windows
from headrace.language.parsing.clauses.psoup_spans import parse_span
from headrace.language.parsing.clauses.query_arithmetic import OPERATORS, parse_quotient
from headrace.language.parsing.clauses.select_list import (
    STREAM_OPERATORS,
    at_stream_operator,
    parse_columns,
    parse_distinct_on,
    parse_list,
)
from headrace.language.parsing.clauses.table_functions import at_table_function, parse_table_function
from headrace.language.parsing.clauses.tables import (
    parse_as_of,
    parse_decoration,
    parse_join_kind,
    parse_system_stream,
)
from headrace.language.parsing.clauses.unnest import WRITTEN as UNNEST_WRITTEN
from headrace.language.parsing.clauses.unnest import (
    at_unnest,
    check_condition,
    parse_lateral_view,
    parse_unnest,
)
from headrace.language.parsing.rewrites.group_windows import with_group_windows
from headrace.language.parsing.rewrites.grouped_windows import with_grouped_windows
from headrace.language.parsing.rewrites.grouping_sets import Sets, parse_grouping, with_grouping_sets
from headrace.language.parsing.rewrites.qualify import with_qualify
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.parsing.tokens.slips import is_operand
from headrace.language.syntax import (
    DerivedTable,
    FromItem,
    JoinedTable,
    Name,
    NamedTable,
    QuerySyntax,
    Scalar,
    ScalarItem,
    SelectQuery,
    SetQuery,
    StarItem,
    StreamQuery,
    TableQuery,
    UnionQuery,
    WindowedTable,
    WithQuery,
)
from headrace.language.unsupported import AFTER, CLAUSES, STATEMENTS, TABLES


def parse_query(cursor: Cursor) -> QuerySyntax:
    """Read a query: `[WITH ...] SELECT ... [UNION ALL ...]`; INTERSECT binds tighter than the others.

    Raises:
        LanguageError: the text at the cursor is not a query.
    """
    if cursor.accept("WITH"):
        return _with(cursor)
    position = cursor.position
    in_list = cursor.at("SELECT")
    queries = [_intersection(cursor)]
    while cursor.word() in _SUMS:
        kind = _set_kind(cursor)
        right = _intersection(cursor)
        if kind is None:
            queries.append(right)
        else:
            queries = [SetQuery(kind, _united(queries, position), right, position)]
    query = _limited(cursor, _united(queries, position), in_list=in_list)
    if cursor.word() in SET_OPERATIONS:
        hint = "put the query before it in parentheses: (SELECT ... LIMIT 3) UNION ALL ..."
        raise cursor.error(f"{cursor.word()} follows LIMIT", hint)
    _refuse_clause(cursor)
    return query


def _limited(cursor: Cursor, query: QuerySyntax, *, in_list: bool) -> QuerySyntax:
    """The query with ORDER BY and LIMIT, if they follow; the operator of a SELECT list is around them."""
    if in_list and isinstance(query, StreamQuery):
        return replace(query, query=parse_limits(cursor, query.query))
    return parse_limits(cursor, query)


_SUMS: Final = ("UNION", "EXCEPT", "MINUS")
SET_OPERATIONS: Final = (*_SUMS, "INTERSECT")
"""The words that start a set operation after a query."""
_BEHIND: Final = (*SET_OPERATIONS, *LIMITS)


def _intersection(cursor: Cursor) -> QuerySyntax:
    position = cursor.position
    query = _term(cursor)
    while cursor.at("INTERSECT"):
        kind = _set_kind(cursor)
        assert kind is not None
        query = SetQuery(kind, query, _term(cursor), position)
    return query


def _united(queries: list[QuerySyntax], position: Position) -> QuerySyntax:
    return queries[0] if len(queries) == 1 else UnionQuery(tuple(queries), position)


def _set_kind(cursor: Cursor) -> SetKind | None:
    """Read a set operation; UNION ALL is None."""
    word = "EXCEPT" if cursor.at("MINUS") else cursor.word()
    cursor.index += 1
    if cursor.accept("ALL"):
        return None if word == "UNION" else SetKind(f"{word} ALL")
    for kind in (SetKind.UNION_MAX, SetKind.INTERSECT_STRICT, SetKind.EXCEPT_STRICT):
        first, second = kind.value.split()
        if word == first and cursor.accept(second):
            return kind
    cursor.accept("DISTINCT")
    if cursor.word() in ("MAX", "STRICT"):
        listed = ", ".join(
            sorted({f"{word} ALL", *(kind.value for kind in SetKind if kind.value.startswith(word))})
        )
        raise cursor.error(f"there is no {word} {cursor.word()}", f"there are {listed}")
    if cursor.at("BY", "NAME"):
        raise cursor.error(
            f"{word} BY NAME is not supported", "list the columns of both queries in one order"
        )
    return SetKind(word)


def parse_nested(cursor: Cursor) -> QuerySyntax | None:
    """Read the query that starts at the cursor inside an expression, or None where none does.

    Raises:
        LanguageError: the query is malformed.
    """
    opens = cursor.at("(") and _opens_query(cursor) and cursor.word(_behind(cursor, 0)) in _BEHIND
    return parse_query(cursor) if opens or cursor.word() in ("SELECT", "WITH", "VALUES") else None


def _with(cursor: Cursor) -> QuerySyntax:
    if cursor.at("RECURSIVE"):
        raise cursor.error(
            "recursive queries are not supported",
            "leave RECURSIVE out if no query of WITH reads itself",
        )
    definitions = []
    while True:
        name = cursor.name("the name of a query")
        columns = parse_columns(cursor) if cursor.at("(") and cursor.word(1) != "SELECT" else ()
        cursor.expect("AS", f"after WITH {name.text}")
        definitions.append((name, _renamed(_in_parentheses(cursor, "after AS"), columns, name.position)))
        if not cursor.accept(","):
            return WithQuery(tuple(definitions), parse_query(cursor))


def _renamed(query: QuerySyntax, columns: tuple[Name, ...], position: Position) -> QuerySyntax:
    """A query whose columns have other names."""
    if not columns:
        return query
    table = DerivedTable(query, None, None, position, columns)
    star = StarItem(None, position)
    return SelectQuery((star,), False, (table,), None, (), None, None, position)


_QUERY: Final = "a query is SELECT ... FROM ..., or ISTREAM(SELECT ...) and its like"


def _term(cursor: Cursor) -> QuerySyntax:
    if cursor.at("("):
        if cursor.word(_behind(cursor, 0)) in OPERATORS:
            return parse_quotient(cursor)
        return _in_parentheses(cursor, "before a query")
    if at_stream_operator(cursor):
        return _stream(cursor)
    if cursor.at("VALUES"):
        return _united(parse_values(cursor), cursor.position)
    if not cursor.at("SELECT"):
        word = cursor.word()
        raise cursor.error(
            f"SELECT is missing, before {cursor.shown()}", CLAUSES.get(word, STATEMENTS.get(word, _QUERY))
        )
    return _select(cursor)


def _in_parentheses(cursor: Cursor, where: str) -> QuerySyntax:
    cursor.expect("(", where)
    query = parse_query(cursor)
    cursor.expect(")", "after a query")
    return query


def _stream(cursor: Cursor) -> StreamQuery:
    position, operator = cursor.position, cursor.word()
    cursor.index += 1
    cursor.expect("(", f"after {operator}")
    at_query = cursor.at("(") or cursor.at("SELECT") or cursor.at("WITH") or at_stream_operator(cursor)
    query: QuerySyntax = parse_query(cursor) if at_query else TableQuery(_named_table(cursor))
    cursor.expect(")", f"to close {operator}")
    return StreamQuery(operator, query, position)


def _select(cursor: Cursor) -> QuerySyntax:
    position = cursor.position
    cursor.expect("SELECT", "before a query")
    distinct_on = parse_distinct_on(cursor)
    operator, distinct, items = parse_list(cursor)
    if not cursor.accept("FROM"):
        if is_constant(items) and (cursor.peek() is None or cursor.word() in (";", ")", ",", *_BEHIND)):
            select = SelectQuery(items, distinct, (one_row(position),), None, (), None, None, position)
            return select if operator is None else StreamQuery(operator, select, position)
        _refuse_clause(cursor)
        if misspelt := cursor.misspelt(("FROM",)):
            raise misspelt
        token = cursor.peek()
        if token is not None and cursor.precedes("FROM") and is_operand(token):
            message = f"a comma or an operator is missing, before {cursor.shown()}"
            raise cursor.error(message, "an alias is one word, or in backticks")
        hint = "a query reads streams, unless all of it is constant: SELECT ... FROM name"
        raise cursor.error(f"FROM is missing, before {cursor.shown()}", hint)
    tables = _tables(cursor)
    where = cursor.scalar("the condition after WHERE") if cursor.accept("WHERE") else None
    tables = parse_span(cursor, tables)
    sets = _group_by(cursor)
    having = cursor.scalar("the condition after HAVING") if cursor.accept("HAVING") else None
    windows = parse_named_windows(cursor, items)
    qualify = cursor.scalar("the condition after QUALIFY") if cursor.accept("QUALIFY") else None
    if qualify is not None:
        fill_in_windows(qualify, dict(windows))
        if len(sets) > 1:
            hint = "put the groups into a subquery in FROM"
            place = position_of(qualify)
            raise LanguageError("QUALIFY after several sets in GROUP BY", position=place, hint=hint)
    end = cursor.position
    emit = end if cursor.accept("EMIT", "EMPTY") else None
    select = SelectQuery(items, distinct, tables, where, (), having, emit, position, windows, distinct_on)
    query = with_grouping_sets(select, sets, partial(_meant, qualify=qualify))
    return query if operator is None else StreamQuery(operator, query, position)


def _meant(query: SelectQuery, qualify: Scalar | None) -> SelectQuery:
    """A SELECT in our words, with the condition after QUALIFY, if there is one."""
    if qualify is not None:
        return with_qualify(query, qualify, partial(_meant, qualify=None))
    return with_grouped_windows(with_group_windows(query))


def _group_by(cursor: Cursor) -> Sets:
    if not cursor.accept("GROUP BY"):
        return ((),)
    if cursor.at("ALL"):
        raise cursor.error("GROUP BY ALL is not supported", "list the columns to group by")
    sets = parse_grouping(cursor)
    if cursor.word() not in (*LIMITS, "QUALIFY"):
        _refuse_clause(cursor)
    return sets


def _tables(cursor: Cursor) -> tuple[FromItem, ...]:
    tables = [_joined(cursor)]
    while cursor.accept(","):
        if cursor.word() in ("WHERE", "GROUP BY", "HAVING"):
            # The thesis' queries have a comma too many there.
            break
        if at_unnest(cursor):
            position = cursor.position
            left = reduce(
                lambda one, other: JoinedTable(JoinKind.INNER, one, other, None, (), position), tables
            )
            tables = [_joined(cursor, parse_unnest(cursor, left))]
        else:
            tables.append(_joined(cursor))
    return tuple(tables)


def _joined(cursor: Cursor, first: FromItem | None = None) -> FromItem:
    item = _table(cursor) if first is None else first
    if isinstance(item, NamedTable) and item.as_of is not None:
        raise LanguageError(
            "FOR SYSTEM_TIME AS OF comes without a JOIN before it",
            position=item.as_of.position,
            hint=f"write FROM stream s JOIN {item.name.text} FOR SYSTEM_TIME AS OF s.ts ON ...",
        )
    while True:
        position = cursor.position
        if cursor.accept("CROSS", "JOIN"):
            if at_unnest(cursor):
                item = parse_unnest(cursor, item)
                continue
            item = JoinedTable(JoinKind.INNER, item, _table(cursor), None, (), position)
        elif cursor.accept("NATURAL"):
            item = _natural_join(cursor, item, position)
        elif cursor.accept("ASOF"):
            item = _as_of_join(cursor, item, position)
        elif (kind := parse_join_kind(cursor)) is not None:
            item = (
                _unnest_join(cursor, kind, item) if at_unnest(cursor) else _join(cursor, kind, item, position)
            )
        elif cursor.at("LATERAL", "VIEW"):
            cursor.index += 1
            item = parse_lateral_view(cursor, item)
        elif cursor.word() in CLAUSES and cursor.word() not in (*_BEHIND, "QUALIFY"):
            raise cursor.error(f"{cursor.word()} is not supported yet", CLAUSES[cursor.word()])
        else:
            return item


def _unnest_join(cursor: Cursor, kind: JoinKind, left: FromItem) -> FromItem:
    """Read `UNNEST(...) ON TRUE` after a JOIN."""
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise cursor.error("UNNEST follows JOIN or LEFT JOIN", UNNEST_WRITTEN)
    item = parse_unnest(cursor, left, outer=kind is JoinKind.LEFT)
    check_condition(cursor, needed=kind is JoinKind.LEFT)
    return item


def _as_of_join(cursor: Cursor, left: FromItem, position: Position) -> JoinedTable:
    written = "FROM s ASOF [LEFT] JOIN r ON s.k = r.k AND s.ts >= r.since"
    kind = parse_join_kind(cursor)
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise LanguageError("ASOF is before JOIN or LEFT JOIN", position=position, hint=f"write {written}")
    joined = _join(cursor, kind, left, position)
    if joined.condition is None:
        raise LanguageError("ASOF JOIN has a condition after ON", position=position, hint=f"write {written}")
    return replace(joined, as_of=True)


def _natural_join(cursor: Cursor, left: FromItem, position: Position) -> JoinedTable:
    written = "NATURAL [LEFT | RIGHT | FULL | SEMI | ANTI] JOIN"
    kind = parse_join_kind(cursor)
    if kind is None:
        raise cursor.error(f"JOIN is missing after NATURAL, before {cursor.shown()}", f"write {written}")
    right = _table(cursor)
    if cursor.word() in ("ON", "USING"):
        hint = "leave out NATURAL, which joins by all columns that both sides have"
        raise cursor.error(f"NATURAL JOIN takes no {cursor.word()}", hint)
    return JoinedTable(kind, left, right, None, (), position, natural=True)


def _join(cursor: Cursor, kind: JoinKind, left: FromItem, position: Position) -> JoinedTable:
    right = _table(cursor)
    if cursor.accept("ON"):
        return JoinedTable(kind, left, right, cursor.scalar("the condition after ON"), (), position)
    if cursor.at("WITHIN"):
        raise cursor.error(*AFTER["WITHIN"])
    if not cursor.accept("USING"):
        hint = "write JOIN ... ON condition, or CROSS JOIN for all pairs"
        raise cursor.error(f"ON is missing after JOIN, before {cursor.shown()}", hint)
    if cursor.at_name():
        message, column = f"'(' is missing after USING, before {cursor.shown()}", cursor.name("a column")
        raise LanguageError(message, position=column.position, hint=f"write USING ({column.text})")
    cursor.expect("(", "after USING")
    columns = [cursor.name("a column")]
    while cursor.accept(","):
        columns.append(cursor.name("a column"))
    cursor.expect(")", "after the columns of USING")
    return JoinedTable(kind, left, right, None, tuple(columns), position)


def _table(cursor: Cursor) -> FromItem:
    position = cursor.position
    if cursor.at("("):
        if _opens_query(cursor):
            query = _in_parentheses(cursor, "before a query")
            # A parenthesis may hold a union whose first part has parentheses of its own.
            return _derived(cursor, query, position)
        cursor.index += 1
        item = _joined(cursor)
        cursor.expect(")", "after the tables in parentheses")
        return item
    if at_stream_operator(cursor):
        return _derived(cursor, _stream(cursor), position)
    if cursor.at("SELECT"):
        # The thesis writes FROM SELECT ... FROM ... WHERE ... without parentheses.
        return DerivedTable(_select(cursor), None, None, position)
    if at_unnest(cursor):
        item = parse_unnest(cursor, one_row(position))
        if not is_constant((ScalarItem(item.values, None, position),)):
            raise LanguageError("UNNEST needs a table before it", position=position, hint=UNNEST_WRITTEN)
        return item
    if at_correlated_pairs(cursor):
        return parse_correlated_pairs(cursor, partial(_in_parentheses, where="after OF"))
    if at_table_function(cursor):
        return WindowedTable(parse_table_function(cursor, _table), *parse_decoration(cursor))
    return _named_table(cursor)


def _opens_query(cursor: Cursor, ahead: int = 0) -> bool:
    """Whether the parenthesis so many tokens ahead opens a query, and not a join in parentheses."""
    first = cursor.word(ahead + 1)
    if first in ("SELECT", "WITH", "VALUES"):
        return True
    nested = first == "(" and _opens_query(cursor, ahead + 1)
    if not nested and not (first in STREAM_OPERATORS and cursor.word(ahead + 2) == "("):
        return False
    # A query with a part in parentheses goes on with UNION or ends; a table of a join does not.
    inner = ahead + 1 if nested else ahead + 2
    return cursor.word(_behind(cursor, inner)) in (")", *_BEHIND)


def _behind(cursor: Cursor, ahead: int) -> int:
    """How far ahead the token is that follows the parenthesis opened there."""
    depth = 0
    while cursor.peek(ahead) is not None:
        depth += (cursor.word(ahead) == "(") - (cursor.word(ahead) == ")")
        ahead += 1
        if depth == 0:
            break
    return ahead


def _named_table(cursor: Cursor) -> NamedTable:
    token = cursor.peek()
    if token is not None and token.token_type == TokenType.STRING and "." in token.text:
        hint = f"define it: CREATE STREAM name FROM csv OPTIONS (path '{token.text}') TIMESTAMP BY column"
        raise cursor.error(f"the name of a stream is missing, before {cursor.shown()}", hint)
    letters = cursor.accept("DEAD", "LETTERS", "OF")
    name = cursor.name("the name of a stream")
    if letters:
        name = replace(name, text=letters_name(name.text))
    if cursor.at("."):
        return parse_system_stream(cursor, name)
    if cursor.at("("):
        hint = TABLES.get(name.text.upper(), "windows are written WINDOW(RANGE ...) after the name")
        lateral = name.text.upper() == "LATERAL"
        message = "LATERAL subqueries are not supported" if lateral else f"{name.text}(...) is not a stream"
        raise LanguageError(message, position=name.position, hint=hint)
    if cursor.at("MATCH_RECOGNIZE"):
        pair = f"{name.text} WINDOW(RANGE ...) A, {name.text} B WHERE A.key = B.key"
        raise cursor.error("MATCH_RECOGNIZE is not supported", f"join the stream with itself: {pair}")
    as_of = parse_as_of(cursor)
    alias, window, columns = parse_decoration(cursor)
    return NamedTable(name, alias, window, as_of, columns)


def _derived(cursor: Cursor, query: QuerySyntax, position: Position) -> DerivedTable:
    """A query in FROM with what follows it."""
    alias, window, columns = parse_decoration(cursor)
    return DerivedTable(query, alias, window, position, columns)


def _refuse_clause(cursor: Cursor) -> None:
    if hint := CLAUSES.get(cursor.word()):
        raise cursor.error(f"{cursor.word()} is not supported yet", hint)
