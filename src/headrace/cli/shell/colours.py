"""The colours of a text that is being written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.expressions.aggregates.aggregates import AGGREGATES, COMPOSED
from headrace.expressions.functions.functions import FUNCTIONS
from headrace.language.completion.candidates import WORDS
from headrace.language.completion.tokens import Token, TokenKind, tokens_of
from headrace.language.dialect import RESERVED

STYLES: Final = {
    "word": "bold ansiblue",
    "function": "ansicyan",
    "string": "ansigreen",
    "number": "ansimagenta",
    "comment": "ansibrightblack",
    "command": "bold ansiyellow",
}
"""How each kind of piece looks, in the names of prompt_toolkit."""

_FUNCTIONS: Final = frozenset((*FUNCTIONS, *AGGREGATES, *COMPOSED))
_PLAIN: Final = {TokenKind.STRING: "string", TokenKind.NUMBER: "number", TokenKind.COMMENT: "comment"}


def coloured(text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a text, each with the name of its style; the empty name is that of all else."""
    if text.lstrip().startswith("\\"):
        command, blank, rest = text.partition(" ")
        yield "command", command
        yield "", blank + rest
        return
    tokens = list(tokens_of(text))
    for index, token in enumerate(tokens):
        called = index + 1 < len(tokens) and tokens[index + 1].text == "("
        yield _style(token, called), token.text


def _style(token: Token, called: bool) -> str:
    if token.kind is not TokenKind.WORD:
        return _PLAIN.get(token.kind, "")
    if called and token.word in _FUNCTIONS:
        return "function"
    return "word" if token.word in WORDS or token.word in RESERVED else ""
