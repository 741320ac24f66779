"""What may come next in a statement that is being written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from headrace.expressions.aggregates.aggregates import AGGREGATES, COMPOSED
from headrace.expressions.functions.functions import FUNCTIONS
from headrace.language.completion.tokens import Token, TokenKind, tokens_of
from headrace.language.names import quoted_name

ColumnNames = Mapping[str, tuple[str, ...]]
"""The names of columns by the name of what has them."""


@dataclass(frozen=True)
class KnownNames:
    """The names that statements can use.

    Attributes:
        streams, relations, queries: each with its columns.
        functions: those of users.
        sinks: the names of sinks.
    """

    streams: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    relations: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    queries: ColumnNames = field(default_factory=lambda: MappingProxyType({}))
    functions: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()

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
    "DROP QUERY", "DROP RELATION", "DROP SINK", "DROP STREAM", "EXPLAIN", "EXPLAIN ANALYZE",
    "EXPLAIN COST", "EXPLAIN REPLACE", "EXPLAIN SHARED", "REFRESH RELATION",
    "REPLAY DEAD LETTERS OF", "SELECT", "SET dialect", "SHOW CREATE", "SHOW FUNCTIONS",
    "SHOW QUERIES", "SHOW RELATIONS", "SHOW SINKS", "SHOW SKEWS", "SHOW STREAMS", "WHY", "WITH",
)  # fmt: skip
"""How statements begin."""

_WORDS: Final = """
    ALL ALTER ANALYZE AND ARRIVAL AS ASC ASOF BEGINNING BETWEEN BIGINT BLOCK BOOLEAN BY CASCADE CASE CAST
    CHANGES COLUMN COMMENT CONSISTENCY COST CREATE CROSS CSV CUBE CUMULATE DATE DAY DAYS DEAD DECIMAL
    DESC DESCRIBE DEVIATION DISORDER DISTINCT DOUBLE DROP DSTREAM ELSE END EPOCHS ESTIMATED EVERY EXCEPT
    EXISTS EXPLAIN FALSE FETCH FILTER FIRST FOLLOWING FOR FORMAT FROM FULL GROUP HAVING HEARTBEATS HISTORY HOP
    HOUR HOURS IDLE IN INNER INTERSECT INTERVAL IS ISTREAM JOIN KEEP KEY LATERAL LEFT LETTERS LIKE LIMIT
    MIDDLE MINUTE MINUTES NEWEST NEXT NOT NOW NULL OF OFFSET OLDEST ON ONLY OPTIONS OR ORDER ORDINALITY
    OUTER OVER OVERFLOW PARTITION PAUSE PRECEDING PUSH QUALIFY QUERIES QUERY RANGE RATE RECURSIVE REFRESH
    RELATION RELATIONS REMEMBER RENAME REPLACE REPLAY RESUME RETAIN RIGHT RLIKE ROLLUP ROW ROWS RSTREAM
    SECOND SECONDS SELECT SESSION SET SHARED SHOW SINK SINKS SKEW SLIDE STARTING STREAM STREAMS STRICT
    STRING STRONG THEN TIES TIMESTAMP TO TRUE TUMBLE UNBOUNDED UNION UNNEST USING VALID VERSION WAIT WARM
    WEAK WHEN WHERE WHY WINDOW WITH WITHIN
"""
WORDS: Final = frozenset(_WORDS.split())
"""The words of the language, as far as they are offered and coloured."""

_VIEWS_OF_QUERIES: Final = ("HISTORY", "CHANGES", "STREAM", "EPOCHS")
_CLAUSES: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "BY", "ON", "USING", "WINDOW", "LIMIT"),
    *("SET", "OPTIONS"),
)
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
    found = _fitting(before, statement, word, known)
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
    before: Sequence[Token], statement: Sequence[Token], word: Token | None, known: KnownNames
) -> Iterator[Candidate]:
    """All that fits after the pieces before a place, whatever the letters that are there already."""
    words = [token.word for token in before]
    if not words:
        yield from (Candidate(text, "statement") for text in STATEMENTS)
        return
    named = _named(statement, word, known)
    last = words[-1]
    if last == ".":
        owner = _name_of(before[-2]) if len(before) > 1 else ""
        yield from _columns({owner: named[owner]} if owner in named else {})
        return
    kinds = _after(words, known)
    if kinds is not None:
        yield from kinds
        return
    yield from _columns(named or ({} if "FROM" in words else known.tables))
    yield from (Candidate(quoted_name(alias), "name") for alias in named)
    functions = (*FUNCTIONS, *AGGREGATES, *COMPOSED, *known.functions)
    yield from (Candidate(f"{name}(", "function") for name in functions if name.isidentifier())
    yield from (Candidate(text, "word") for text in sorted(WORDS))


def _after(words: Sequence[str], known: KnownNames) -> Iterable[Candidate] | None:
    """The names that must come after these words; None where other things may come."""
    last, earlier = words[-1], words[-2] if len(words) > 1 else ""
    if last in _NAMED_IN or (last == "," and _clause(words) == "FROM"):
        views = (f"{view} OF" for view in (*_VIEWS_OF_QUERIES, "ROWS", "DEAD LETTERS"))
        return [*names(known), *(Candidate(text, "view") for text in views)]
    if last == "OF":
        if earlier in _VIEWS_OF_QUERIES:
            return named_as(known.queries, "query")
        return named_as(known.streams, "stream")
    if last == "QUERY" or (last == "WHY" and len(words) == 1):
        return named_as(known.queries, "query")
    if earlier in ("ALTER", "DROP", "ON", "REFRESH", "CREATE", "DESCRIBE") and words[0] != "CREATE":
        if last == "STREAM":
            return named_as(known.streams, "stream")
        if last == "RELATION":
            return named_as(known.relations, "relation")
        if last == "SINK":
            return named_as(known.sinks, "sink")
    if last == "FOR" and list(words[:2]) == ["CREATE", "SINK"]:
        return named_as(known.queries, "query")
    if words in (["DESCRIBE"], ["SHOW", "CREATE"]):
        kinds = (Candidate(kind, "word") for kind in ("QUERY", "RELATION", "SINK", "STREAM"))
        return [*names(known), *named_as(known.queries, "query"), *kinds]
    return None


def names(known: KnownNames) -> list[Candidate]:
    """The streams and relations."""
    return [*named_as(known.streams, "stream"), *named_as(known.relations, "relation")]


def named_as(found: Iterable[str], what: str) -> list[Candidate]:
    """Names as they are written, and what they are."""
    return [Candidate(quoted_name(name), what) for name in found]


def _clause(words: Sequence[str]) -> str:
    """The word that begins the clause at the end of these words."""
    return next((word for word in reversed(words) if word in _CLAUSES), "")


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
    every = {name.lower(): columns for name, columns in {**known.queries, **known.tables}.items()}
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
    if index == len(pieces) or pieces[index].word in WORDS:
        return None
    return _name_of(pieces[index]) or None


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
