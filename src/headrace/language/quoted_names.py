"""Names in double quotes, as standard SQL has them, under `SET dialect = 'ansi'`.

They are put into backticks before a text is read, so that nothing behind knows of two spellings: what a store
keeps and what is shown means the same under every dialect.
"""

from __future__ import annotations

from typing import Final

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from headrace.language.dialect import Headrace
from headrace.language.long_lists import long_lists, tokenize

DIALECT: Final = "ansi"
"""The dialect under which double quotes are around names."""


def with_backticks(text: str, begins_so: bool) -> str:
    """A text with its names in backticks that are in double quotes; as long as before, wherever possible.

    Args:
        text: statements.
        begins_so: whether double quotes are around names where it begins.
    """
    if '"' not in text or not (begins_so or "dialect" in text.lower()):
        return text
    try:
        tokens = tokenize(Headrace().tokenizer(), text, long_lists(text))
    except TokenError:
        # What is wrong with it is said by whoever reads it.
        return text
    parts, end, is_so = [], 0, begins_so
    for place, token in enumerate(tokens):
        if place == 0 or tokens[place - 1].token_type == TokenType.SEMICOLON:
            chosen = _chosen(tokens, place)
            is_so = is_so if chosen is None else chosen == DIALECT
        if is_so and token.token_type == TokenType.STRING and text[token.start] == '"':
            parts += [text[end : token.start], _name(text[token.start : token.end + 1])]
            end = token.end + 1
    return "".join([*parts, text[end:]])


def _chosen(tokens: list[Token], place: int) -> str | None:
    """The dialect that a statement chooses which begins at a token; None if it does not."""
    words = [token.text.lower() for token in tokens[place : place + 4]]
    return words[3] if len(words) == 4 and words[:3] == ["set", "dialect", "="] else None


def _name(quoted: str) -> str:
    name = quoted[1:-1].replace('""', '"').replace("`", "``")
    return f"`{name}`".ljust(len(quoted))
