"""What may come next in a statement that is being written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from headrace.expressions.aggregates.aggregates import AGGREGATES, COMPOSED
from headrace.expressions.functions.functions import FUNCTIONS
from headrace.language.completion.expected import TextEnd
from headrace.language.completion.tokens import Token, TokenKind, tokens_of
from headrace.language.dialect import RESERVED
from headrace.language.names import quoted_name
from headrace.language.parsing.statements.settings import OPTIONS as SETTINGS
from headrace.language.types import DECIMALS, TYPES
from headrace.time import UNITS

ColumnNames = Mapping[str, tuple[str, ...]]
"""The names of columns by the name of what has them."""


@dataclass(frozen=True)
class KnownNames:
    """The names that statements can use.

    Attributes:
        streams, relations, queries: each with its columns.
        functions: those of users.
        sinks: the names of sinks.
        formats: what streams and relations are read from, each with its options.
        kinds_of_sinks: where sinks deliver to, each with its options.
    """

    streams: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    relations: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    queries: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    functions: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    formats: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    kinds_of_sinks: ColumnNames = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tables(self) -> ColumnNames:
        """What can be named in FROM."""
        return {**self.streams, **self.relations}


@dataclass(frozen=True, order=True)
class Candidate:
    """A word that may come next.

    Attributes:
        text: what is written.
        what: what it is, such as `stream`.
    """

    text: str
    what: str


STATEMENTS: Final = (
    "ALTER QUERY", "ALTER STREAM", "COMMENT ON", "CREATE OR REPLACE QUERY", "CREATE QUERY",
    "CREATE RELATION", "CREATE SINK", "CREATE SKEW BETWEEN", "CREATE STREAM", "DESCRIBE",
    "DROP QUERY", "DROP RELATION", "DROP SINK", "DROP STREAM", "EXPLAIN", "EXPLAIN ALTER QUERY",
    "EXPLAIN ANALYZE", "EXPLAIN COST", "EXPLAIN COST CREATE QUERY", "EXPLAIN CREATE QUERY",
    "EXPLAIN REPLACE", "EXPLAIN SHARED",
    "REFRESH RELATION", "REPLAY DEAD LETTERS OF", "SELECT", "SET dialect", "SET scheduling", "SHOW CREATE",
    "SHOW FUNCTIONS", "SHOW LANES", "SHOW MANAGER", "SHOW QUERIES", "SHOW RELATIONS", "SHOW SHEDDING",
    "SHOW SINKS", "SHOW SKEWS", "SHOW STREAMS", "SHOW TUNINGS", "SHOW TUNINGS FOR", "WHY", "WITH",
)  # fmt: skip
"""How statements begin."""

_WORDS: Final = """
    ALL ALTER ANALYZE AND ARRIVAL AS ASC ASOF BEGINNING BETWEEN BIGINT BLOCK BOOLEAN BY CASCADE CASE CAST
    CHANGES COLUMN COMMENT CONSISTENCY COST CREATE CROSS CSV CUBE CUMULATE DATE DAY DAYS DEAD DECIMAL
    DESC DESCRIBE DEVIATION DISORDER DISTINCT DOUBLE DROP DSTREAM ELSE END EPOCHS ESTIMATED EVERY EXCEPT
    EXISTS EXPLAIN FALSE FETCH FILTER FIRST FOLLOWING FOR FORMAT FROM FULL GROUP HAVING HEARTBEATS HISTORY HOP
    HOUR HOURS IDLE IN INNER INTERSECT INTERVAL IS ISTREAM JOIN KEEP KEY LATERAL LEFT LETTERS LIKE LIMIT LOSS
    MIDDLE MINUTE MINUTES NEWEST NEXT NOT NOW NULL OF OFFSET OLDEST ON ONLY OPTIONS OR ORDER ORDINALITY
    OUTER OVER OVERFLOW PARTITION PAUSE PRECEDING PUSH QUALIFY QUERIES QUERY RANGE RATE RECURSIVE REFRESH
    RELATION RELATIONS REMEMBER RENAME REPLACE REPLAY RESUME RETAIN RIGHT RLIKE ROLLUP ROW ROWS RSTREAM
    SECOND SECONDS SELECT SESSION SET SHARED SHOW SINK SINKS SKEW SLIDE SNAPSHOT STARTING STREAM STREAMS
    STRICT STRING STRONG THEN TIES TIMESTAMP TO TRUE TUMBLE UNBOUNDED UNION UNNEST USING VALID VERSION WAIT
    WARM WEAK WHEN WHERE WHY WINDOW WITH WITHIN
    ABOVE ALIGN BELOW COARSEST CONFIDENCE CORRELATED DELAY FINEST GAP_FILL GRANULARITY LAG LANES LATENCY LEAST
    PAIRS QOS TOLERANT UP UTILITY VALUES WEIGHT
"""
WORDS: Final = frozenset(_WORDS.split())
"""The words of the language, as far as they are offered and coloured."""

_VIEWS_OF_QUERIES: Final = ("HISTORY", "SNAPSHOT", "CHANGES", "STREAM", "EPOCHS")
_VIEWS: Final = {
    **dict.fromkeys(_VIEWS_OF_QUERIES, "query"), "ROWS": "stream", "LETTERS": "stream",
}  # fmt: skip
"""Views that a question can name besides, and what they are of."""
_OPERANDS: Final = (
    *("CASE", "CAST", "DATE", "DISTINCT", "EXISTS", "FALSE", "INTERVAL", "NOT", "NULL", "ORDER BY"),
    *("PARTITION BY", "SELECT", "TIMESTAMP", "TRUE", "TRY_CAST", "END", "ELSE", "WHEN"),
)
_CONTINUING: Final = (
    *("AND", "OR", "AS", "IN", "IS", "NOT", "BETWEEN", "LIKE", "ILIKE", "RLIKE"),
    *("WHEN", "THEN", "ELSE", "END", "FROM", "FOR", "OVER", "FILTER", "WITHIN GROUP", "DISTINCT FROM"),
    *("WITHIN 1 PERCENT", "PERCENT", "LOWER BOUND", "UPPER BOUND"),
    *("PARTITION BY", "ORDER BY", "ASC", "DESC", "NULLS FIRST", "NULLS LAST", "ROWS", "RANGE", "UNBOUNDED"),
    *("PRECEDING", "FOLLOWING", "CURRENT ROW", "TO", "WHERE", "NOT IN", "NOT LIKE", "NOT BETWEEN"),
    *(*UNITS, *TYPES, *DECIMALS),
)
_FRAMES: Final = ("BETWEEN", "UNBOUNDED", "CURRENT ROW")
_TRUTHS: Final = ("NULL", "TRUE", "FALSE")
_AFTER: Final = {
    "RANGE": (*_FRAMES, "MIN"),
    **dict.fromkeys(("ROWS", "BETWEEN"), _FRAMES), **dict.fromkeys(("IS", "NOT"), _TRUTHS),
}  # fmt: skip
"""The words that come in expressions after some words only."""
"""The words that come in expressions, at the place of an operand and elsewhere."""
_BEHIND: Final = ((), ("(",), ("JOIN",), ("1",), ("PRECEDING",))
"""Words with those that they may need behind them."""
_SECOND: Final = {
    **dict.fromkeys(("GROUP", "ORDER", "PARTITION"), ("BY",)),
    "WITHIN": ("GROUP", "1 PERCENT"),
    "CURRENT": ("ROW",),
}
"""The words that the grammar knows with another one behind alone."""
_WRITTEN: Final = re.compile(r"\w|'")
_NAMED_IN: Final = ("FROM", "JOIN")


def candidates(text: str, at: int, known: KnownNames) -> tuple[int, list[Candidate]]:
    """What may come next at a place of a text.

    Args:
        text: what is being written, also after the place.
        at: the place (offset).
        known: the names there are.

    Returns:
        The offset at which the word begins that is being written, and what it may become, best first.
    """
    tokens = list(tokens_of(text))
    if in_text(tokens, at):
        return at, []
    tokens = [token for token in tokens if token.kind not in (TokenKind.BLANK, TokenKind.COMMENT)]
    word = next(
        (token for token in tokens if token.kind is TokenKind.WORD and token.start < at <= token.end), None
    )
    start = at if word is None else word.start
    prefix = text[start:at]
    statement = _statement(tokens, start)
    before = [token for token in statement if token.end <= start]
    found = _fitting(before, statement, word, known, prefix)
    return start, matching(found, prefix)


def in_text(tokens: Iterable[Token], at: int) -> bool:
    """Whether a place is inside a string, a comment or the like, where nothing is offered."""
    found = (token for token in tokens if token.start < at < token.end or _goes_on(token, at))
    inside = next((token for token in found if token.kind is not TokenKind.BLANK), None)
    return inside is not None and inside.kind not in (TokenKind.WORD, TokenKind.SYMBOL)


def _goes_on(token: Token, at: int) -> bool:
    """Whether a place at the end of a piece is inside it: of one that is open, and of a comment of a line."""
    return token.end == at and (token.is_open or token.text.startswith("--"))


def _statement(tokens: Sequence[Token], at: int) -> list[Token]:
    """The pieces of the statement around a place."""
    ends = [index for index, token in enumerate(tokens) if token.word == ";"]
    first = max((index + 1 for index in ends if tokens[index].end <= at), default=0)
    last = min((index for index in ends if tokens[index].start >= at), default=len(tokens))
    return list(tokens[first:last])


def _fitting(
    before: Sequence[Token], statement: Sequence[Token], word: Token | None, known: KnownNames, prefix: str
) -> Iterator[Candidate]:
    """All that fits after the pieces before a place; of the words, those that begin with a prefix."""
    words = [token.word for token in before]
    if not words:
        yield from (Candidate(text, "statement") for text in STATEMENTS)
        return
    named = _named(statement, word, known)
    if words[-1] == ".":
        owner = _name_of(before[-2]) if len(before) > 1 else ""
        columns_of = named if "FROM" in words else {**_by_name(known), **named}
        yield from _columns({owner: columns_of[owner]} if owner in columns_of else {})
        return
    if words[-1] == "OF" and len(words) > 1 and words[-2] in _VIEWS:
        of = known.queries if words[-2] in _VIEWS_OF_QUERIES else known.streams
        yield from named_as(of, _VIEWS[words[-2]])
        return
    if (second := _SECOND.get(words[-1])) is not None:
        yield from (Candidate(text, "word") for text in second)
        return
    place = TextEnd(_text_of(before))
    columns = list(_columns(_readable(named, statement, before, known)))
    operands = [
        *columns,
        *(Candidate(quoted_name(alias), "name") for alias in named),
        *_functions(known),
    ]
    if not place.is_reached:
        # The grammar does not know what is before the place: a question for DuckDB, or a text with a mistake.
        yield from operands
        yield from (Candidate(text, "word") for text in sorted(WORDS))
        return
    for what in place.names:
        yield from _of_name(what, before, statement, known, columns)
    after = _AFTER.get(words[-1], ())
    if place.is_in_expression and not _ends_operand(before) and place.takes_operand():
        yield from operands
        yield from _words(place, prefix, (*after, *_OPERANDS))
    else:
        yield from _words(place, prefix, (*after, *_CONTINUING))


def _text_of(before: Sequence[Token]) -> str:
    """The text of pieces, each at its place."""
    start, text = before[0].start, ""
    for token in before:
        text = text.ljust(token.start - start) + token.text
    return text


def _ends_operand(before: Sequence[Token]) -> bool:
    """Whether the pieces of an expression end with an operand."""
    token = before[-1]
    if token.kind is TokenKind.WORD:
        return token.word == "END" or not (token.text.isupper() and token.text in WORDS)
    if token.word == "*":
        return before[-2].word in ("SELECT", ",", "(", "DISTINCT", "ALL", ".")
    return token.kind is not TokenKind.SYMBOL or token.word in (")", "]")


def _words(place: TextEnd, prefix: str, in_expressions: Iterable[str]) -> Iterator[Candidate]:
    """The words of the language that go on with a prefix at a place; and those of expressions, in one."""
    asked = [*place.words, *((word,) for word in in_expressions if place.is_in_expression)]
    seen = set[str]()
    for sequence in asked:
        shown = " ".join(sequence).rstrip("( ")
        if not shown or shown in seen or not shown.startswith(prefix.upper()) or not _WRITTEN.match(shown):
            continue
        seen.add(shown)
        if any(place.takes(shown, *more) for more in _BEHIND):
            yield Candidate(shown, "value" if shown.startswith("'") else "word")


def _functions(known: KnownNames) -> Iterator[Candidate]:
    functions = (*FUNCTIONS, *AGGREGATES, *COMPOSED, *known.functions)
    return (Candidate(f"{name}(", "function") for name in functions if name.isidentifier())


def _of_name(
    what: str,
    before: Sequence[Token],
    statement: Sequence[Token],
    known: KnownNames,
    columns: list[Candidate],
) -> Iterable[Candidate]:
    """The names of what the grammar asks for, in the words of its errors."""
    is_new = before[0].word == "CREATE" and before[-1].word != "FOR"
    every: Mapping[str, Iterable[str]] = {
        "stream": known.streams, "relation": known.relations, "query": known.queries, "sink": known.sinks,
    }  # fmt: skip
    match what.removesuffix("'s name").removeprefix("the ").split():
        case [("stream" | "relation" | "query" | "sink") as kind]:
            return () if is_new else named_as(every[kind], kind)
        case ["a", "name"] | ["name", "of", "a", "stream,", *_]:
            return [*names(known), *named_as(known.queries, "query")]
        case ["name", "of", "a", "stream"]:
            views = (f"{view} OF" for view in _VIEWS if view != "LETTERS")
            defined = named_as(_defined(before), "name")
            queries = named_as(known.queries, "query")
            return [*names(known), *queries, *defined, *(Candidate(text, "view") for text in views)]
        case ["a", "stream"] | ["first", "stream"]:
            return named_as(known.streams, "stream")
        case ["a", "list", "of", "values", *_]:
            return named_as(known.relations, "relation")
        case ["a", "format"]:
            return _plain(known.formats, "format")
        case ["what", "the", "sink", "is"]:
            return _plain(known.kinds_of_sinks, "kind")
        case ["an", "option"]:
            given = {token.text.lower() for token in before}
            return (one for one in _options(statement, known) if one.text not in given)
        case ["name", "of", "an", "option"]:
            return [Candidate(name, "option") for name in SETTINGS]
        case ["a", "column"] if before[0].word == "CREATE" and "(" in (before[-1].word, before[-2].word):
            return ()
        case described if {"column", "timestamp", "start:"} & set(described):
            return columns
        case _:
            return ()


def _options(statement: Sequence[Token], known: KnownNames) -> Iterable[Candidate]:
    """The options of what a CREATE reads from, or delivers to."""
    is_sink = [token.word for token in statement[:2]] == ["CREATE", "SINK"]
    of = known.kinds_of_sinks if is_sink else known.formats
    for introducing, token in pairwise(statement):
        if introducing.word in ("FROM", "SOURCE", "TO") and token.text.lower() in of:
            return _plain(of[token.text.lower()], "option")
    return ()


def _plain(found: Iterable[str], what: str) -> Iterator[Candidate]:
    """Names that need quotes only where they are reserved."""
    return (Candidate(quoted_name(name) if name.upper() in RESERVED else name, what) for name in found)


def _defined(before: Sequence[Token]) -> Iterator[str]:
    """The names of the queries of WITH before a place."""
    for earlier, token, following in zip(before, before[1:], before[2:], strict=False):
        if earlier.word in ("WITH", ",") and following.word == "AS" and before[0].word in ("WITH", "CREATE"):
            yield _name_of(token)


def _readable(
    named: ColumnNames, statement: Sequence[Token], before: Sequence[Token], known: KnownNames
) -> ColumnNames:
    """The columns that a statement can use, by what has them."""
    if named:
        return named
    words = [token.word for token in before]
    if words[:2] in (["CREATE", "STREAM"], ["CREATE", "RELATION"]) and "AS" not in words[2:4]:
        return {"": tuple(_declared(before))}
    every = _by_name(known)
    about = {name: every[name] for token in before if (name := _name_of(token)) in every}
    return about or ({} if "FROM" in words else known.tables)


def _declared(before: Sequence[Token]) -> Iterator[str]:
    """The names of the columns that a CREATE declares in parentheses."""
    depth = 0
    for earlier, token in pairwise(before):
        depth += (earlier.word in ("(", "<")) - (earlier.word in (")", ">"))
        if depth == 1 and earlier.word in ("(", ",") and (name := _name_of(token)):
            yield name
        if depth == 0 and earlier.word == ")":
            return


def names(known: KnownNames) -> list[Candidate]:
    """The streams and relations."""
    return [*named_as(known.streams, "stream"), *named_as(known.relations, "relation")]


def named_as(found: Iterable[str], what: str) -> list[Candidate]:
    """Names as they are written, and what they are."""
    return [Candidate(quoted_name(name), what) for name in found]


def _columns(named: ColumnNames) -> Iterator[Candidate]:
    seen = dict.fromkeys(name for columns in named.values() for name in columns)
    return (Candidate(quoted_name(name), "column") for name in seen)


def _named(statement: Sequence[Token], word: Token | None, known: KnownNames) -> dict[str, tuple[str, ...]]:
    """The columns of what a statement names in FROM, by its alias or else its name, in lower case.

    Args:
        statement: its pieces.
        word: the one that is being written, which names nothing yet.
        known: all names.
    """
    every = _by_name(known)
    pieces = [token for token in statement if token is not word]
    found: dict[str, tuple[str, ...]] = {}
    for index, token in enumerate(pieces):
        introduced = index > 0 and pieces[index - 1].word in (*_NAMED_IN, ",", "OF")
        name = _name_of(token)
        if introduced and name in every:
            found[_alias(pieces, index + 1) or name] = every[name]
    return found


def _alias(pieces: Sequence[Token], index: int) -> str | None:
    """The alias of what is named before a place, after its window if it has one."""
    if index < len(pieces) and pieces[index].word == "[":
        closing = (place for place in range(index, len(pieces)) if pieces[place].word == "]")
        index = next(closing, len(pieces)) + 1
    if index < len(pieces) and pieces[index].word == "AS":
        index += 1
    if index >= len(pieces) or pieces[index].word in WORDS:
        return None
    return _name_of(pieces[index]) or None


def _by_name(known: KnownNames) -> dict[str, tuple[str, ...]]:
    """The columns of everything that has some, by its name in lower case."""
    return {name.lower(): columns for name, columns in {**known.queries, **known.tables}.items()}


def _name_of(token: Token) -> str:
    """The name that a piece is, in lower case; empty where it is none."""
    if token.kind is TokenKind.QUOTED:
        return token.text.strip("`").replace("``", "`").lower()
    return token.text.lower() if token.kind is TokenKind.WORD else ""


def matching(found: Iterable[Candidate], prefix: str) -> list[Candidate]:
    """Those that begin with a prefix, whatever the case; words and functions in the case of the prefix."""
    lower = prefix.islower()
    matching = {
        Candidate(one.text.lower() if lower and one.what in _OF_THE_LANGUAGE else one.text, one.what): None
        for one in found
        if one.text.strip("`").lower().startswith(prefix.lower())
    }
    return list(matching)


_OF_THE_LANGUAGE: Final = ("function", "statement", "view", "word")
