"""Hints for slips of the hand: a word written twice, a comma too many, a parenthesis that is not closed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot.tokens import Token, TokenType

from headrace.language.dialect import RESERVED
from headrace.language.text import SourceText
from headrace.language.types import type_hint

_BRACKETS: Final = ("(", ")", "[", "]", "{", "}")
_CLOSING: Final = (")", "]", ";")
_COMPARISONS: Final = ("=", "==", "<", "<=", ">", ">=", "<>", "!=")
_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)

_OPERANDS: Final = {
    "Between": "write x BETWEEN 1 AND 5",
    "CastToStrType": "write CAST(x AS BIGINT)",
    "If": "write CASE WHEN a THEN b ELSE c END",
}
"""How an expression is written that lacks a part, by sqlglot's name of it."""


def slip_hint(tokens: Sequence[Token], index: int, source: SourceText) -> str | None:
    """What to leave out where a token is not expected, or None if nothing should be left out.

    Args:
        tokens: of a whole text.
        index: the token that is not expected; their number for the end of the text.
        source: that text.
    """
    token = tokens[index] if index < len(tokens) else None
    before = tokens[index - 1] if index else None
    if before is None:
        return None
    if token is not None and token.text.upper() == before.text.upper() and token.text not in _BRACKETS:
        return f"leave out the second {source.shown(token)}"
    if token is not None and token.text == "[" and index + 2 < len(tokens) and tokens[index + 2].text == "]":
        return f"names are quoted with backticks: `{tokens[index + 1].text}`"
    if before.token_type == TokenType.COMMA and _ends_list(token):
        return "leave out the comma before it"
    return None


def _ends_list(token: Token | None) -> bool:
    """Whether it cannot begin a part of a list."""
    if token is None or token.text in _CLOSING:
        return True
    return token.token_type not in _QUOTED and token.text.upper().split(" ")[0] in RESERVED


def closing_hint(tokens: Sequence[Token], index: int, source: SourceText) -> str | None:
    """Which parenthesis is to be closed before a token; None where none is open."""
    depth = 0
    for token in reversed(tokens[:index]):
        depth += (token.token_type == TokenType.R_PAREN) - (token.token_type == TokenType.L_PAREN)
        if depth < 0:
            place = source.position(token.start)
            goes_on = index < len(tokens) and is_operand(tokens[index])
            also = ", or a comma or an operator is missing" if goes_on else ""
            return f"it closes the '(' at {place.line}:{place.column}{also}"
    return None


def is_operand(token: Token) -> bool:
    """Whether a token is a name, a number or a string, and no word of the language."""
    if token.token_type in (*_QUOTED, TokenType.NUMBER):
        return True
    return re.fullmatch(r"[^\W\d]\w*", token.text) is not None and token.text.upper() not in RESERVED


def unexpected_hint(token: Token) -> str:
    """What may be wrong with a token after a statement that is complete without it."""
    if token.text in (")", "]"):
        opening = "(" if token.text == ")" else "["
        return f"leave it out, or write the '{opening}' that it closes"
    if token.token_type == TokenType.COMMA:
        return "leave it out, or write AND between conditions and parentheses around a list"
    if token.text in _COMPARISONS:
        return "a condition follows WHERE, HAVING or ON"
    if token.text in ("(", "["):
        return "a function, a stream or a comma is missing before it"
    if is_operand(token):
        return "a comma or an operator is missing before it, or a semicolon that ends the statement"
    return "a semicolon ends a statement"


def readable(message: str, token: Token | None, shown: str) -> tuple[str, str | None]:
    """A message of sqlglot's in our words, and a hint.

    Args:
        message: what sqlglot says.
        token: where; None at the end of the text.
        shown: the token as messages show it.
    """
    if part := re.match(r"Required keyword: '\w+' missing for .*?(\w+)'>", message):
        return f"an operand is missing, before {shown}", _OPERANDS.get(part[1])
    if message == "Expected TYPE after CAST":
        if token is None or not is_operand(token):
            return f"the type is missing, before {shown}", "write CAST(x AS BIGINT)"
        return f"there is no type {token.text}", type_hint(token.text)
    if message == "Expected AS after CAST":
        return f"AS is missing after CAST, before {shown}", "write CAST(x AS BIGINT)"
    if message == "Expected END after CASE":
        return f"END is missing after CASE, before {shown}", "write CASE WHEN a THEN b ELSE c END"
    if expected := re.match(r"Expecting (\S+)", message):
        return f"'{expected[1]}' is missing, before {shown}", None
    return message[:1].lower() + message[1:], None
