"""A place in the tokens of a text, with what every part of the parser asks of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from headrace.errors import LanguageError, Position
from headrace.language.dialect import RESERVED, Headrace, ScalarError
from headrace.language.foreign import refuse_foreign
from headrace.language.long_lists import TextSpan, tokenize
from headrace.language.parsing.tokens.slips import closing_hint, readable, slip_hint
from headrace.language.syntax import Name, Scalar
from headrace.language.text import SourceText
from headrace.suggestions import did_you_mean

MAX_DEPTH: Final = 150
"""How deep an expression may be nested; plans are walked recursively."""

MAX_QUERIES: Final = 10
"""How deep queries may be nested in expressions; binding one more level may take twice as long."""


_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)

_NEAR: Final = 0.75
"""How close a word must be to one of the language to be taken for it; aliases may be any word."""


class Cursor:
    """Reads tokens from left to right.

    Attributes:
        source: the text the tokens are of.
        index: the token that is looked at.

    Args:
        source: the text.
        nested: reads the query that starts at the cursor, inside an expression; None if none does.
        lists: the long lists of the text that are read as one token each.
    """

    def __init__(
        self, source: SourceText, nested: Callable[[Cursor], object | None], lists: Sequence[TextSpan] = ()
    ) -> None:
        dialect = self._dialect = Headrace()
        self._nested = nested
        self._queries = 0
        self.source = source
        self.index = 0
        self._tokens = _tokenize(dialect, source, lists)
        self._words = ["" if token.token_type in _QUOTED else token.text.upper() for token in self._tokens]

    @property
    def position(self) -> Position:
        """Where the token is; at the end of the text, where it ends."""
        return self.source.position(self._offset)

    @property
    def _offset(self) -> int:
        token = self.peek()
        return int(token.start) if token else len(self.source.text.rstrip())

    def peek(self, ahead: int = 0) -> Token | None:
        """The token at the cursor or some tokens ahead, or None after the end."""
        index = self.index + ahead
        return self._tokens[index] if index < len(self._tokens) else None

    def text_from(self, index: int) -> str:
        """The text from a token, which has been stepped over, up to the cursor."""
        return self.source.text[self._tokens[index].start : self._tokens[self.index - 1].end + 1]

    def word(self, ahead: int = 0) -> str:
        """The token's text in upper case; empty for strings, quoted names and after the end."""
        index = self.index + ahead
        return self._words[index] if index < len(self._words) else ""

    def at(self, *words: str) -> bool:
        """Whether these words come next."""
        return self._words[self.index : self.index + len(words)] == [*words]

    def precedes(self, word: str) -> bool:
        """Whether a word comes somewhere after the cursor, in the same statement."""
        rest = self._words[self.index :]
        return word in (rest[: rest.index(";")] if ";" in rest else rest)

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        found = self.at(*words)
        if found:
            self.index += len(words)
        return found

    def offer(self, *words: str) -> None:
        """Name words that may come next where no word is asked for, for those who complete a text."""

    def expect(self, word: str, where: str) -> None:
        """Step over a word that must come next.

        Raises:
            LanguageError: something else comes next.
        """
        if not self.accept(word):
            what = word if word.isalpha() else f"'{word}'"
            hint = closing_hint(self._tokens, self.index, self.source) if word == ")" else None
            raise self.error(f"{what} is missing {where}, before {self.shown()}", hint)

    def shown(self) -> str:
        """The token as messages show it."""
        return self.source.shown(self.peek())

    def error(self, message: str, hint: str | None = None) -> LanguageError:
        """An error at the cursor, to be raised; a slip such as a word written twice is the hint of it."""
        slip = slip_hint(self._tokens, self.index, self.source)
        return LanguageError(message, position=self.position, hint=slip or hint)

    def misspelt(self, known: Iterable[str]) -> LanguageError | None:
        """An error for the word at the cursor or before it that is nearly a known one, or None.

        The word before has then been read as an alias: `FROM bid WERE price > 5`.
        """
        for index in (self.index - 1, self.index):
            word = self._words[index] if 0 <= index < len(self._words) else ""
            hint = None if word in RESERVED else did_you_mean(word, known, cutoff=_NEAR)
            if hint is not None and word not in known:
                token = self._tokens[index]
                message = f"{self.source.shown(token)} is unexpected here"
                return LanguageError(message, position=self.source.position(token.start), hint=hint)
        return None

    def at_name(self) -> bool:
        """Whether a name comes next that needs no word such as AS before it."""
        token = self.peek()
        if token is None:
            return False
        if token.token_type == TokenType.IDENTIFIER:
            return True
        return _is_word(token) and str(token.text).upper() not in RESERVED

    def name(self, what: str) -> Name:
        """Read a name.

        Raises:
            LanguageError: something else comes next, or the name is empty.
        """
        token = self.peek()
        if token is None or not self.at_name() or not token.text:
            hint = None
            if token is not None and token.token_type == TokenType.STRING:
                hint = f"names are quoted with backticks: `{token.text}`"
            elif token is not None and _is_word(token):
                hint = f"write a name before it, or `{token.text}` if this is the name"
            raise self.error(f"{what} is missing, before {self.shown()}", hint)
        found = Name(str(token.text), self.position)
        self.index += 1
        return found

    def scalar(self, what: str) -> Scalar:
        """Read a scalar expression.

        Raises:
            LanguageError: there is none, or it is malformed.
        """
        return self._parsed(lambda parser: parser.scalar_at, what)

    def window(self, what: str) -> Scalar:
        """Read the `AS (PARTITION BY ... ORDER BY ... frame)` of a named window.

        Raises:
            LanguageError: it is malformed.
        """
        return self._parsed(lambda parser: parser.window_at, what)

    def _parsed(self, reader: Callable[[Any], Any], what: str) -> Scalar:
        start, offset = self.position, self._offset
        try:
            # A parser of its own, since an expression may hold a query that holds expressions.
            read = reader(self._dialect.parser())
            node, index = read(self._tokens, self.index, self.source, self._query_at)
        except ScalarError as error:
            raise self._scalar_error(error) from None
        except RecursionError:
            raise _too_deep(start) from None
        except (ParseError, AttributeError, TypeError, ValueError, IndexError, KeyError, AssertionError):
            # On some malformed texts sqlglot fails with errors of its own.
            raise LanguageError("this expression is malformed", position=start) from None
        if node is None or index == self.index:
            raise self.error(f"{what} is missing, before {self.shown()}")
        self.index = index
        _mark_positions(node, self.source, offset)
        return node

    def _scalar_error(self, error: ScalarError) -> LanguageError:
        slip = slip_hint(self._tokens, error.index, self.source)
        message, hint = readable(error.message, error.token, self.source.shown(error.token))
        if message.startswith("')' is missing"):
            hint = closing_hint(self._tokens, error.index, self.source)
        place = len(self.source.text.rstrip()) if error.token is None else error.token.start
        return LanguageError(message, position=self.source.position(place), hint=slip or hint)

    def _query_at(self, index: int) -> tuple[object, int] | None:
        outer, self.index = self.index, index
        self._queries += 1
        if self._queries > MAX_QUERIES:
            hint = "define the inner ones with CREATE STREAM name AS SELECT ..."
            raise self.error(f"subqueries are nested more than {MAX_QUERIES} levels deep", hint)
        try:
            query = self._nested(self)
            return None if query is None else (query, self.index)
        finally:
            self.index = outer
            self._queries -= 1


def _tokenize(dialect: Headrace, source: SourceText, lists: Sequence[TextSpan]) -> list[Token]:
    tokenizer = dialect.tokenizer()
    try:
        tokens = tokenize(tokenizer, source.text, lists)
    except TokenError as error:
        _refuse_open_comment(tokenizer.tokens, source)
        found = re.search(r"Missing (\S+) from \d+:(\d+)", str(error.__cause__))
        offset = min(int(found[2]) if found else error.start or 0, len(source.text))
        what = f"the closing {found[1]} is missing" if found else "this is not a word, number or string"
        raise LanguageError(what, position=source.position(offset)) from None
    _refuse_open_comment(tokens, source)
    refuse_foreign(tokens, source)
    return tokens


def _refuse_open_comment(tokens: list[Token], source: SourceText) -> None:
    opened = source.open_comment(tokens[-1].end + 1 if tokens else 0)
    if opened is not None:
        raise LanguageError("the comment is never closed", position=source.position(opened), hint="write */")


def _is_word(token: Token) -> bool:
    return token.token_type not in _QUOTED and re.fullmatch(r"[^\W\d]\w*", str(token.text)) is not None


@dataclass(slots=True)
class _Marked:
    """A node that gets a position: its depth, what it is part of, and where its first part starts."""

    node: Scalar
    depth: int
    above: _Marked | None
    offset: int


def _mark_positions(root: Scalar, source: SourceText, start: int) -> None:
    """Note where every node starts, and refuse an expression nested too deeply to be walked.

    A node starts where the first of its parts does: `a + b` at `a`. This is found once, bottom up, since the
    binder asks for it at every level.

    Args:
        root: the expression.
        source: the text it is from.
        start: the offset of its first token, for nodes that sqlglot gives no place.

    Raises:
        LanguageError: it is nested too deeply.
    """
    parts = [_Marked(root, 1, None, root.meta.get("start", start))]
    for part in parts:  # The list grows on the way.
        if part.depth > MAX_DEPTH:
            raise _too_deep(source.position(start))
        parts.extend(
            _Marked(child, part.depth + 1, part, child.meta.get("start", part.offset))
            for child in part.node.iter_expressions()
        )
    for part in reversed(parts):
        part.node.meta["position"] = source.position(part.offset)
        if isinstance(part.node, exp.Literal) and source.text.startswith(
            '"', part.node.meta.get("start", -1)
        ):
            part.node.meta["double"] = True
        if part.above is not None:
            part.above.offset = min(part.above.offset, part.offset)


def _too_deep(position: Position) -> LanguageError:
    return LanguageError(
        "this expression is nested too deeply",
        position=position,
        hint="write a long chain of OR as IN (...), or cut the expression into columns of a subquery",
    )
