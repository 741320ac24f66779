"""Text to statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, assert_never

from headrace.algebra.tunings.loss import Loss
from headrace.errors import LanguageError, Position
from headrace.language.long_lists import long_lists
from headrace.language.parsing.queries import parse_nested, parse_query
from headrace.language.parsing.statements.consistency import parse_consistency
from headrace.language.parsing.statements.ddl import parse_alter_stream, parse_create_stream
from headrace.language.parsing.statements.definitions import (
    parse_alter_query,
    parse_comment,
    parse_describe,
    parse_show_create,
)
from headrace.language.parsing.statements.losses import parse_loss
from headrace.language.parsing.statements.past_clauses import parse_start
from headrace.language.parsing.statements.priorities import check_no_priority, parse_priority
from headrace.language.parsing.statements.relations import parse_create_relation
from headrace.language.parsing.statements.settings import parse_set, parse_show
from headrace.language.parsing.statements.sinks import parse_create_sink
from headrace.language.parsing.statements.skews import parse_create_skew, parse_drop_skew
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.parsing.tokens.slips import unexpected_hint
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.sinks import CreateSink, DropSink
from headrace.language.statements.statements import (
    STRONG,
    AskWhy,
    Conditional,
    CreateQuery,
    CreateStreamAs,
    DropQuery,
    DropRelation,
    DropStream,
    Explain,
    ExplainAlter,
    ExplainAnalyze,
    ExplainCost,
    ExplainReplace,
    ExplainShared,
    Heartbeats,
    RefreshRelation,
    Replay,
    Select,
    Stage,
    Statement,
)
from headrace.language.statements.streams import CreateRelation, CreateStream
from headrace.language.syntax import Name, QuerySyntax
from headrace.language.text import BEGIN, SourceText
from headrace.language.unsupported import AFTER, CREATABLE, STATEMENTS
from headrace.suggestions import did_you_mean

_HINT = (
    "a statement starts with CREATE STREAM, CREATE QUERY, SELECT, ISTREAM(...), WITH, EXPLAIN, "
    "WHY, SHOW, DESCRIBE, COMMENT, SET, ALTER, REFRESH, REPLAY or DROP"
)


_QUERIES: Final = ("SELECT", "WITH", "VALUES", "(", "ISTREAM", "DSTREAM", "RSTREAM")
"""What a query starts with."""

_ORDER = "the clauses come once each, in this order: WHERE, GROUP BY, HAVING, WINDOW"
_CLAUSES: Final = (
    *("FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "LIMIT", "OFFSET", "DESC"),
    *("UNION", "EXCEPT", "INTERSECT", "JOIN", "DISORDER"),
)
"""Words of the language that may be misspelt where they follow a name."""

_ELSEWHERE: Final = {
    **dict.fromkeys(("WHERE", "GROUP BY", "HAVING"), _ORDER),
    **dict.fromkeys(("AND", "OR"), "a condition follows WHERE, HAVING or ON"),
    "GROUP": "write GROUP BY",
    "ORDER": "write ORDER BY",
    "=>": "write >= to compare",
    "WITH": "WITH comes before SELECT: WITH name AS (SELECT ...) SELECT ...",
    "SELECT": "a query inside another must be in parentheses; a semicolon ends a statement",
}
"""What to do about a word after a statement that is complete without it."""


def parse(text: str, begin: Position = BEGIN) -> list[Statement]:
    """Read the statements of a text; semicolons separate them, `--` and `/* */` are comments.

    Args:
        text: the text.
        begin: where it begins, if it is a part of another one.

    Raises:
        LanguageError: the text is malformed, or asks for what is not built yet; with the position.
    """
    source, lists = SourceText(text, begin), long_lists(text)
    if lists:
        # What is wrong is said of the text as it is without such tokens.
        with suppress(LanguageError):
            return _statements(Cursor(source, parse_nested, lists))
    return _statements(Cursor(source, parse_nested))


def _statements(cursor: Cursor) -> list[Statement]:
    statements: list[Statement] = []
    while cursor.peek() is not None:
        if cursor.accept(";"):
            continue
        start = cursor.position
        try:
            statements.append(read_statement(cursor))
        except RecursionError:
            hint = "define the inner queries with CREATE STREAM name AS SELECT ..."
            raise LanguageError("the query is nested too deeply", position=start, hint=hint) from None
    return statements


def read_statement(cursor: Cursor) -> Statement:
    """Read one statement, up to the semicolon or the end.

    Raises:
        LanguageError: it is malformed, or followed by something else.
        RecursionError: it is nested too deeply.
    """
    statement = _statement(cursor)
    if cursor.peek() is not None and not cursor.at(";"):
        raise _unexpected(cursor)
    return statement


def _unexpected(cursor: Cursor) -> LanguageError:
    """What is wrong with the token after a statement that is complete without it."""
    token, word = cursor.peek(), cursor.word()
    assert token is not None
    if cursor.at("ON", "WINDOW", "CLOSE"):
        return cursor.error("EMIT ON WINDOW CLOSE is not supported", AFTER["FINAL"][1])
    if word in AFTER:
        return cursor.error(*AFTER[word])
    hint = _ELSEWHERE.get(word) or unexpected_hint(token)
    return cursor.misspelt(_CLAUSES) or cursor.error(f"{cursor.shown()} is unexpected here", hint)


def parse_one(text: str, begin: Position = BEGIN) -> Statement:
    """Read a text of exactly one statement.

    Args:
        text: the text.
        begin: where it begins, if it is a part of another one.

    Raises:
        LanguageError: the text is malformed, or has none or several statements.
    """
    statements = parse(text, begin)
    if len(statements) != 1:
        position = statements[1].position if statements else begin
        raise LanguageError(f"one statement is expected, not {len(statements)}", position=position)
    return statements[0]


def _statement(cursor: Cursor) -> Statement:
    position = cursor.position
    reader = _READERS.get(cursor.word())
    if reader is not None:
        cursor.index += 1
        return reader(cursor, position)
    if cursor.word() in _QUERIES:
        query, text = _with_text(cursor)
        return Select(query, position, text)
    if hint := STATEMENTS.get(cursor.word()):
        raise cursor.error(f"{cursor.word()} is not supported yet", hint)
    raise cursor.error(
        f"{cursor.shown()} starts no statement", did_you_mean(cursor.word(), _STARTS, cutoff=0.7) or _HINT
    )


def _why(cursor: Cursor, position: Position) -> AskWhy:
    return AskWhy(cursor.name("the query's name"), position)


def _show(cursor: Cursor, position: Position) -> Statement:
    return parse_show_create(cursor, position) if cursor.accept("CREATE") else parse_show(cursor, position)


def _refresh(cursor: Cursor, position: Position) -> RefreshRelation:
    cursor.expect("RELATION", "after REFRESH")
    return RefreshRelation(cursor.name("the relation's name"), position)


def _create(cursor: Cursor, position: Position) -> Statement:
    if cursor.accept("SKEW"):
        return parse_create_skew(cursor, position)
    replaces = cursor.at("OR", "REPLACE") and cursor.accept("OR", "REPLACE")
    kind = _accept_kind(cursor)
    if kind is None or (replaces and kind is CatalogKind.SINK):
        raise _not_created(cursor, replaces)
    if not cursor.at("IF", "NOT", "EXISTS"):
        return _created(kind, cursor, position, replaces)
    if replaces:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other", "leave one of them out")
    cursor.accept("IF", "NOT", "EXISTS")
    made = _created(kind, cursor, position, replaces)
    name = made.name if isinstance(made.name, Name) else Name(made.name, position)
    return Conditional(made, kind, name, exists=False)


def _accept_kind(cursor: Cursor) -> CatalogKind | None:
    """The kind of what is created, if it is next."""
    if cursor.accept("MATERIALIZED", "VIEW"):
        return CatalogKind.QUERY
    return next((kind for kind in CatalogKind if cursor.accept(kind.value)), None)


def _created(
    kind: CatalogKind, cursor: Cursor, position: Position, replaces: bool
) -> CreateStream | CreateRelation | CreateStreamAs | CreateQuery | CreateSink:
    """Read what follows CREATE STREAM and its like, from the name on."""
    match kind:
        case CatalogKind.STREAM:
            name = cursor.name("the stream's name")
            if cursor.accept("AS"):
                query, text = _with_text(cursor)
                return CreateStreamAs(name, query, position, text, replaces)
            return replace(parse_create_stream(cursor, name, position), replaces=replaces)
        case CatalogKind.RELATION:
            relation = parse_create_relation(cursor, cursor.name("the relation's name"), position)
            return replace(relation, replaces=replaces)
        case CatalogKind.QUERY:
            return replace(_create_query(cursor, position), replaces=replaces)
        case CatalogKind.SINK:
            return parse_create_sink(cursor, position)
        case _:
            assert_never(kind)


def _not_created(cursor: Cursor, replaces: bool) -> LanguageError:
    """The error for what CREATE does not know."""
    if replaces and cursor.word(-1) == "SINK":
        return cursor.error("a sink cannot be replaced", "write DROP SINK name, and then create it again")
    if hint := CREATABLE.get(cursor.word()):
        return cursor.error(f"CREATE {cursor.word()} is not supported yet", hint)
    if hint := did_you_mean(cursor.word(), ("STREAM", "RELATION", "QUERY", "SINK")):
        return cursor.error(f"there is no CREATE {cursor.word()}", hint)
    hint = "write CREATE STREAM name ... or CREATE QUERY name AS SELECT ..."
    return cursor.error(f"STREAM or QUERY is missing after CREATE, before {cursor.shown()}", hint)


def _check_beside(cursor: Cursor, loss: Loss) -> None:
    """See that a query that bears loss says nothing that it cannot have."""
    clause = "LOSS TOLERANT" if loss.tolerance is None else "WITHIN"
    why = "which share of the rows is kept is known below the heartbeat alone"
    others = ["CONSISTENCY", "HEARTBEATS", "WARM"]
    if loss.values is not None:
        clause, why = "LOSS TOLERANT BY", "which rows are left out is known for those that come"
        others.remove("CONSISTENCY")
    if loss.memory is not None:
        clause, why = "WITHIN MEMORY", "what it has remembered is its own"
        others.remove("CONSISTENCY")
    if any(map(cursor.at, others)):
        raise cursor.error(
            f"a query cannot have {clause} and {cursor.word()}", f"leave one of them out: {why}"
        )


def _create_query(cursor: Cursor, position: Position) -> CreateQuery:
    """Read what follows CREATE QUERY, or EXPLAIN REPLACE."""
    name = cursor.name("the query's name")
    priority = parse_priority(cursor)
    loss = parse_loss(cursor)
    if loss is not None:
        _check_beside(cursor, loss)
    consistency = parse_consistency(cursor) if cursor.at("CONSISTENCY") else STRONG
    if not consistency.is_strong and cursor.at("HEARTBEATS"):
        raise cursor.error(
            "a query cannot have this CONSISTENCY and HEARTBEATS",
            "leave one of them out: an answer that does not wait has operators that do not",
        )
    start = parse_start(cursor)
    if start is not None and (cursor.at("WARM") or (cursor.at("HEARTBEATS") and not start.now)):
        raise LanguageError(
            "a query that answers over rows from before it has no HEARTBEATS or WARM",
            position=start.position,
            hint=f"leave out {start}, or the other clause",
        )
    warm = cursor.accept("WARM")
    if warm and cursor.at("HEARTBEATS"):
        raise cursor.error(
            "a query cannot start WARM and have HEARTBEATS",
            "leave one of them out: operators that wait have other state than those of a query that runs",
        )
    heartbeats = _heartbeats(cursor) if cursor.accept("HEARTBEATS") else Heartbeats.OPERATOR
    check_no_priority(cursor, name.text)
    cursor.expect("AS", f"after CREATE QUERY {name.text}")
    query, text = _with_text(cursor)
    return CreateQuery(name, query, position, warm, heartbeats, consistency, start, loss, priority, text)


def _with_text(cursor: Cursor) -> tuple[QuerySyntax, str]:
    """Read a query, and give its text as well."""
    start = cursor.index
    query = parse_query(cursor)
    return query, cursor.text_from(start)


def _heartbeats(cursor: Cursor) -> Heartbeats:
    """Read what follows HEARTBEATS in CREATE QUERY."""
    for heartbeats in Heartbeats:
        if cursor.accept(heartbeats.value):
            return heartbeats
    words = [heartbeats.value for heartbeats in Heartbeats]
    raise cursor.error(
        f"HEARTBEATS does not know {cursor.shown()}",
        did_you_mean(cursor.word(), words)
        or "write HEARTBEATS OPERATOR, HEARTBEATS MEMORY or HEARTBEATS COMMON",
    )


def _alter(cursor: Cursor, position: Position) -> Statement:
    if cursor.accept("STREAM"):
        return parse_alter_stream(cursor, position)
    if cursor.accept("QUERY"):
        return parse_alter_query(cursor, position)
    hint = "write ALTER STREAM name DISORDER 5 SECONDS, or ALTER QUERY name PAUSE"
    raise cursor.error(f"STREAM or QUERY is missing after ALTER, before {cursor.shown()}", hint)


def _drop(cursor: Cursor, position: Position) -> Statement:
    if cursor.accept("SKEW"):
        return parse_drop_skew(cursor, position)
    for kind in CatalogKind:
        if cursor.accept(kind.value):
            conditional = cursor.accept("IF", "EXISTS")
            name = cursor.name(f"the {kind.word}'s name")
            dropped = _dropped(kind, name, cursor, position)
            return Conditional(dropped, kind, name, exists=True) if conditional else dropped
    hint = "write DROP STREAM name, DROP RELATION name, DROP QUERY name or DROP SINK name"
    if cursor.word() in _QUERY_WORDS:
        hint = "write DROP QUERY name, or DROP STREAM name for CREATE STREAM name AS"
    kinds = "STREAM, RELATION, QUERY or SINK"
    raise cursor.error(f"{kinds} is missing after DROP, before {cursor.shown()}", hint)


_QUERY_WORDS: Final = ("VIEW", "MATERIALIZED")
"""What other systems call a query that goes on."""


def _dropped(
    kind: CatalogKind, name: Name, cursor: Cursor, position: Position
) -> DropStream | DropRelation | DropQuery | DropSink:
    match kind:
        case CatalogKind.QUERY:
            return DropQuery(name, position, cursor.accept("CASCADE"))
        case CatalogKind.STREAM:
            return DropStream(name, position, cursor.accept("CASCADE"))
        case CatalogKind.RELATION:
            return DropRelation(name, position, cursor.accept("CASCADE"))
        case CatalogKind.SINK:
            return DropSink(name, position)
        case _:
            assert_never(kind)


def _replay(cursor: Cursor, position: Position) -> Replay:
    """Read what follows REPLAY."""
    if not cursor.accept("DEAD", "LETTERS", "OF"):
        hint = "write REPLAY DEAD LETTERS OF name [WHERE condition]"
        raise cursor.error(f"DEAD LETTERS OF is missing, before {cursor.shown()}", hint)
    stream = cursor.name("the stream's name")
    return Replay(
        stream, cursor.scalar("the condition after WHERE") if cursor.accept("WHERE") else None, position
    )


def _explained_change(cursor: Cursor, position: Position) -> ExplainReplace | ExplainAlter | None:
    """Read what follows EXPLAIN if it is a statement that changes something."""
    if cursor.accept("REPLACE"):
        return ExplainReplace(replace(_create_query(cursor, position), replaces=True), position)
    if cursor.accept("CREATE", "OR", "REPLACE", "QUERY"):
        return ExplainReplace(replace(_create_query(cursor, position), replaces=True), position)
    if cursor.accept("CREATE", "QUERY"):
        return ExplainReplace(_create_query(cursor, position), position)
    if cursor.accept("ALTER", "QUERY"):
        return ExplainAlter(parse_alter_query(cursor, position), position)
    return None


def _explain(
    cursor: Cursor, position: Position
) -> Explain | ExplainAnalyze | ExplainCost | ExplainShared | ExplainReplace | ExplainAlter:
    if (found := _explained_change(cursor, position)) is not None:
        return found
    if cursor.accept("ANALYZE"):
        is_text = cursor.word() in _QUERIES
        return ExplainAnalyze(parse_query(cursor) if is_text else cursor.name("the query's name"), position)
    if cursor.accept("COST"):
        return _explain_cost(cursor, position)
    if cursor.accept("SHARED"):
        _refuse_other_statements(cursor)
        return ExplainShared(parse_query(cursor) if cursor.word() in _QUERIES else None, position)
    stage = None
    for candidate in Stage:
        if cursor.accept(candidate.value):
            stage = candidate
            break
    if cursor.word() in ("ANALYZE", "VERBOSE", "PLAN", "EXTENDED", "FORMATTED", "CODEGEN"):
        hint = f"leave it out: EXPLAIN SELECT ..., or EXPLAIN {' or '.join(stage.value for stage in Stage)}"
        raise cursor.error(f"EXPLAIN {cursor.word()} is not supported", hint)
    _refuse_other_statements(cursor)
    return Explain(parse_query(cursor), stage, position)


def _explain_cost(cursor: Cursor, position: Position) -> ExplainCost:
    if cursor.accept("CREATE", "QUERY"):
        made = _create_query(cursor, position)
        return ExplainCost(made.query, position, made)
    if cursor.at("CREATE", "OR", "REPLACE", "QUERY") or cursor.at("REPLACE"):
        raise cursor.error(
            "EXPLAIN COST is of a query, or of one that is to be created",
            "write EXPLAIN COST CREATE QUERY with a name that is free, or EXPLAIN CREATE OR REPLACE QUERY",
        )
    _refuse_other_statements(cursor)
    return ExplainCost(parse_query(cursor), position)


def _refuse_other_statements(cursor: Cursor) -> None:
    if cursor.at("CREATE"):
        raise cursor.error("EXPLAIN shows the plan of a query", "write EXPLAIN SELECT ...")


_READERS: Final[Mapping[str, Callable[[Cursor, Position], Statement]]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "REPLAY": _replay,
    "EXPLAIN": _explain,
    "WHY": _why,
    "SET": parse_set,
    "SHOW": _show,
    "DESCRIBE": parse_describe,
    "COMMENT": parse_comment,
    "REFRESH": _refresh,
}
"""From the word that a statement starts with to what reads the rest of it."""

_STARTS: Final = (*_READERS, "SELECT", "WITH")
"""The words that most statements start with."""
