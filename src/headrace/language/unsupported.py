"""What SQL has and Headrace does not (yet): refused with a word on what to write instead."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headrace.errors import LanguageError
from headrace.language.text import SourceText

STATEMENTS: Final[dict[str, str]] = {
    "INSERT": "streams are filled from their source; write CREATE STREAM name FROM format ...",
    "UPDATE": "a stream only ever grows; derive another with CREATE STREAM name AS SELECT ...",
    "DELETE": "a stream only ever grows; filter it with WHERE",
    "MERGE": "a stream only ever grows; combine streams with a join or UNION ALL",
    "DESC": "write DESCRIBE name; EXPLAIN shows a query's plan",
    "USE": "there is one catalog; names have no prefix",
    "FROM": "start with SELECT: SELECT * FROM ...",
    "SUBSCRIBE": "headrace run --as changes, db[name].subscribe() and GET /queries/NAME/events give changes",
    **dict.fromkeys(
        ("BEGIN", "COMMIT", "ROLLBACK", "START"), "leave it out: each statement takes effect by itself"
    ),
    **dict.fromkeys(("GRANT", "REVOKE"), "headrace keys says what the holders of keys may do"),
    "COPY": "write CREATE STREAM name FROM csv ..., or CREATE SINK name FOR query TO csv ...",
    "TRUNCATE": "a stream only ever grows; DROP STREAM name forgets it",
    "PREPARE": "give values in db.query(text, parameters={'name': 5})",
    "EXECUTE": "give values in db.query(text, parameters={'name': 5})",
    "ANALYZE": "leave it out; ALTER QUERY name REOPTIMIZE plans anew by what has been seen",
    "LIST": "write SHOW STREAMS or SHOW QUERIES",
    "TABLE": "start with SELECT: SELECT * FROM ...",
    "PRINT": "start with SELECT: SELECT * FROM ...",
}
"""Statements that are refused, by their first word, with a hint."""

CREATABLE: Final[dict[str, str]] = {
    "TABLE": "write CREATE STREAM name (columns) FROM format OPTIONS (...) TIMESTAMP BY column",
    "VIEW": "write CREATE STREAM name AS SELECT ...",
    "MATERIALIZED": "write CREATE QUERY name AS SELECT ..., or CREATE STREAM name AS to read it again",
    "SOURCE": "write CREATE STREAM name (columns) FROM format OPTIONS (...) TIMESTAMP BY column",
    "TEMPORARY": "leave TEMPORARY out",
    "TEMP": "leave TEMP out",
    "INDEX": "leave it out; what a query needs to look rows up is kept by itself",
    **dict.fromkeys(("SCHEMA", "DATABASE", "CATALOG"), "there is one catalog; names have no prefix"),
    **dict.fromkeys(("CONNECTION", "SECRET"), "put it into the OPTIONS (...) of each CREATE STREAM"),
    "TYPE": "write the type out: STRUCT<a: BIGINT, b: STRING>",
    "FUNCTION": "define it in Python: db.function(name, body, arguments=[...], returns=...)",
}
"""What CREATE is refused for, by the word after it, with a hint."""

CLAUSES: Final[dict[str, str]] = {
    "ORDER BY": "write it after the whole query, before LIMIT",
    "SORT BY": "leave it out; a history is sorted by time, then by its columns",
    "CLUSTER BY": "leave it out; Headrace partitions by itself",
    "DISTRIBUTE BY": "leave it out; Headrace partitions by itself",
    "LIMIT": "write it after the whole query, once",
    "OFFSET": "write it after LIMIT, once",
    "FETCH": "write ORDER BY ... LIMIT n after the query",
    "QUALIFY": "put the query into FROM (...) and filter it with WHERE",
    "TABLESAMPLE": "write SAMPLE(10) after the stream for ten percent of its rows",
    "LATERAL": "join with ON instead",
    "PIVOT": "write one CASE expression per column",
    "UNPIVOT": "write a UNION ALL with one SELECT per column",
    "INTO": "give the query a name with CREATE QUERY name AS SELECT ...",
    "GROUPING SETS": "write one SELECT per grouping and UNION ALL",
    "ROLLUP": "write one SELECT per grouping and UNION ALL",
    "CUBE": "write one SELECT per grouping and UNION ALL",
    "LEFT": "write LEFT [OUTER | SEMI | ANTI] JOIN ... ON",
    "RIGHT": "write RIGHT [OUTER] JOIN ... ON",
    "FULL": "write FULL [OUTER] JOIN ... ON",
    "SEMI": "write LEFT SEMI JOIN ... ON",
    "ANTI": "write LEFT ANTI JOIN ... ON",
    "NATURAL": "write NATURAL [LEFT | RIGHT | FULL | SEMI | ANTI] JOIN",
    "OUTER": "write LEFT, RIGHT or FULL before OUTER JOIN",
    "INNER": "write INNER JOIN ... ON",
    "CROSS": "write CROSS JOIN",
}
"""Clauses that are refused, by the word that starts them, with a hint."""

TABLES: Final[dict[str, str]] = {
    "VALUES": "write (VALUES (1, 'a'), (2, 'b')) AS t (n, s)",
    "LATERAL": "join the query with ON, or write it into the SELECT list",
    **dict.fromkeys(("UNNEST", "EXPLODE"), "write FROM s, UNNEST(s.items) AS t (item)"),
    **dict.fromkeys(
        ("GENERATE_SERIES", "RANGE", "SEQUENCE"),
        "write it after a stream: FROM s, GENERATE_SERIES(1, s.n) AS t (i)",
    ),
    **dict.fromkeys(
        ("READ_CSV", "READ_PARQUET", "READ_JSON"), "write CREATE STREAM name FROM csv OPTIONS (path '...')"
    ),
}
"""What is refused in FROM, with a hint."""

AFTER: Final[dict[str, tuple[str, str]]] = {
    "CHANGES": (
        "EMIT CHANGES is not supported",
        "leave it out: queries are continuous; headrace run --as changes shows their changes",
    ),
    "WITHIN": (
        "WITHIN is not supported",
        "write WINDOW(RANGE 1 HOUR) after a stream to remember its rows",
    ),
    "CONTAINS": ("CONTAINS is a function", "write CONTAINS(x, 'a')"),
    "WATERMARK": ("WATERMARK is not supported", "write DISORDER 5 SECONDS after TIMESTAMP BY"),
    "FINAL": ("EMIT FINAL is not supported", "leave it out: the history of a query is what is final"),
}
"""What follows a query in other systems, by its last word, with a message and a hint."""

FOREIGN_FORMATS: Final[dict[str, str]] = {
    "excel": "store the rows as CSV",
    "xlsx": "store the rows as CSV",
    "jsonl": "write FROM json, which reads JSON lines",
    "ndjson": "write FROM json, which reads JSON lines",
    "tsv": "write FROM csv OPTIONS (path '...', delimiter '\\t')",
}
"""Formats that are refused, with a hint."""

NODES: Final[dict[type, tuple[str, str | None]]] = {
    exp.Star: ("* is allowed only in a SELECT list and in COUNT(*)", None),
    exp.Distinct: ("DISTINCT is allowed only after SELECT and in an aggregate", None),
    exp.Order: ("ORDER BY is allowed only in an aggregate, such as FIRST(x ORDER BY ts)", None),
    exp.Filter: ("FILTER is allowed only after an aggregate", "write CASE WHEN condition THEN value END"),
    exp.WithinGroup: (
        "WITHIN GROUP is allowed only after PERCENTILE_CONT, PERCENTILE_DISC, MODE and LISTAGG",
        "write PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)",
    ),
    exp.In: ("IN takes a list or a query in parentheses", "write x IN (1, 2, 3)"),
    exp.Column: ("a column is written name or table.name", None),
    exp.Dot: ("a column is written name or table.name", None),
    exp.BitwiseLeftShift: ("there are no operators on bits", "write x * POWER(2, n)"),
    exp.BitwiseRightShift: ("there are no operators on bits", "write x DIV POWER(2, n)"),
    exp.Concat: ("two strings are next to each other", "write || between them"),
    exp.Collate: ("COLLATE is not supported", "strings are compared by their bytes"),
}
"""Kinds of expressions that are refused, with a message and a hint."""


def refuse_after_call(token: Token, following: Token, source: SourceText) -> None:
    """Refuse what SQL lets follow a function call: OVER, FILTER and their like.

    Raises:
        LanguageError: one of them follows.
    """
    word = token.text.upper() if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) else ""
    opens = following.token_type == TokenType.L_PAREN
    if word == "OVER" and not (opens or following.token_type in (TokenType.VAR, TokenType.IDENTIFIER)):
        hint = "write OVER (PARTITION BY k ORDER BY ts)"
        place = source.position(token.start)
        raise LanguageError("OVER takes a window in parentheses, or its name", position=place, hint=hint)
    if word == "FILTER" and opens:
        word, hint = "a second FILTER", "join the conditions with AND"
    elif word in ("IGNORE", "RESPECT") and following.text.upper() == "NULLS":
        hint = "aggregates ignore NULLs; after FIRST_VALUE(x) write FILTER (WHERE x IS NOT NULL)"
        word = f"{word} NULLS"
    else:
        return
    raise LanguageError(f"{word} is not supported", position=source.position(token.start), hint=hint)
