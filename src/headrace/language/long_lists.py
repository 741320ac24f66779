"""Long lists of literals: `x IN (1, 2, ...)` with a hundred thousand values, each of them plain.

Such a list is one token and one node of the syntax tree, and the binder reads its values from its text. A
list with anything else in it, such as a text with an escape, is one like others: each literal is a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from headrace.expressions.tree import LONG

_BLANK: Final = r"[ \t\r\n]*+"
_LITERAL: Final = (
    r"(?:-?\d++(?:\.\d++)?(?:[Ee][+-]?\d++)?"
    rf"|(?:(?:(?i:DATE|TIMESTAMP){_BLANK})?'[^'\\]*+')"
    r"|(?i:NULL|TRUE|FALSE))"
)
LONG_LIST: Final = (
    rf"(?i:IN|∈){_BLANK}\({_BLANK}"
    rf"(?P<list>(?:{_LITERAL}{_BLANK},{_BLANK}){{{LONG},}}+{_LITERAL})(?={_BLANK}\))"
)
"""The word IN and a long list, up to the parenthesis that closes it."""

_FOUND: Final = re.compile(rf"(?<!\w){LONG_LIST}")
_EACH: Final = re.compile(_LITERAL)

LIST_TOKEN: Final = TokenType.HEREDOC_STRING
"""The kind of the token that a long list is; of a text it makes no others."""
_LIST: Final = "list"

TextSpan = tuple[int, int]
"""Where something starts in a text, and where it ends."""


def long_lists(text: str) -> list[TextSpan]:
    """Where the long lists of a text are, or what looks like one in a string or a comment."""
    return [match.span("list") for match in _FOUND.finditer(text)]


def tokenize(tokenizer: Any, text: str, lists: Sequence[TextSpan]) -> list[Token]:
    """The tokens of a text, one for each of its long lists.

    Args:
        tokenizer: that of the dialect.
        text: the text.
        lists: those of `long_lists`, or none where each of their literals is to be a token.

    Raises:
        TokenError: it has no tokens.
    """
    if lists:
        # A list in a string, or in part in one, is none: nothing starts there, or not as a list does.
        with suppress(TokenError):
            tokens = list(tokenizer.tokenize(_without_lists(text, lists)))
            if _put_lists(tokens, text, lists):
                return tokens
    return list(tokenizer.tokenize(text))


def _without_lists(text: str, lists: Sequence[TextSpan]) -> str:
    """The text with a number of one digit in the place of each list, and everything else where it was."""
    parts, last = list[str](), 0
    for start, end in lists:
        parts += [text[last:start], "0".ljust(end - start)]
        last = end
    return "".join([*parts, text[last:]])


def _put_lists(tokens: list[Token], text: str, lists: Sequence[TextSpan]) -> bool:
    """Put the lists in the place of the tokens of `_without_lists`; whether all of them are there."""
    places = {token.start: place for place, token in enumerate(tokens)}
    for start, end in lists:
        place = places.get(start, 0)
        before = [token.token_type for token in tokens[max(0, place - 2) : place]]
        if before != [TokenType.IN, TokenType.L_PAREN]:
            return False
        tokens[place] = Token(LIST_TOKEN, text[start:end], start=start, end=end - 1)
    return True


def list_node(written: str) -> exp.Var:
    """The node of a long list; as SQL it is the list with its blanks as usual."""
    node = exp.Var(this=", ".join(text for text, _ in literals_of(written)))
    node.meta[_LIST] = written
    return node


def written_list(node: Any) -> str | None:
    """The long list that is all of what IN looks at, as it is written; None if it looks at other nodes."""
    return node.expressions[0].meta.get(_LIST) if node.expressions else None


def literals_of(written: str) -> Iterator[tuple[str, int]]:
    """The literals of a long list, each with its offset in the list."""
    return ((match[0], match.start()) for match in _EACH.finditer(written))
