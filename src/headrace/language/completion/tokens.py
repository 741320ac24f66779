"""The pieces of a text while it is being written: strings and comments may still be open.

They begin and end where the language's own tokens do; a test compares the two. Of a text that is not finished
the language makes no tokens, which is why it is not asked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final


class TokenKind(Enum):
    """What a piece is."""

    BLANK = "blank"
    COMMENT = "comment"
    STRING = "string"
    QUOTED = "quoted name"
    NUMBER = "number"
    WORD = "word"
    SYMBOL = "symbol"


@dataclass(frozen=True)
class Token:
    """A piece of a text.

    Attributes:
        kind: what it is.
        text: its characters.
        start: the offset of the first one.
        is_open: whether it is a string, quoted name or comment that still wants its end.
    """

    kind: TokenKind
    text: str
    start: int
    is_open: bool = False

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """A word in upper case, or a symbol; empty for all else."""
        return self.text.upper() if self.kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""


_PIECE: Final = re.compile(
    r"""
    (?P<BLANK> \s+ )
    | (?P<COMMENT> --[^\n]* | /\* )
    | (?P<STRING> [rR]'(?:[^']|'')*(?P<raw>')? | [rR]"(?:[^"]|"")*(?P<raws>")?
        | '(?:[^'\\]|''|\\['"\\]|\\)*(?P<single>')? | "(?:[^"\\]|""|\\['"\\]|\\)*(?P<double>")? )
    | (?P<QUOTED> `(?:[^`]|``)*(?P<back>`)? )
    | (?P<NUMBER> \d[\w.]* )
    | (?P<WORD> \w+ )
    | (?P<SYMBOL> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens_of(text: str) -> Iterator[Token]:
    """The pieces of a text, which together are the text."""
    place = 0
    while place < len(text):
        found = _PIECE.match(text, place)
        assert found is not None, "any character is a symbol"
        kind = TokenKind[found.lastgroup or "SYMBOL"]
        token = _comment(text, place) if found[0] == "/*" else Token(kind, found[0], place, _is_open(found))
        yield token
        place = token.end


def _is_open(found: re.Match[str]) -> bool:
    if found["STRING"] is not None:
        return not any(found[end] for end in ("raw", "raws", "single", "double"))
    return found["QUOTED"] is not None and found["back"] is None


def _comment(text: str, start: int) -> Token:
    """The comment that begins with `/*`; comments are nested, but for one right at the beginning."""
    depth, place = 1, start + 2
    while place < len(text):
        if text.startswith("*/", place):
            depth, place = depth - 1, place + 2
        elif text.startswith("/*", place) and place > start + 2:
            depth, place = depth + 1, place + 3
        else:
            place += 1
        if depth == 0:
            return Token(TokenKind.COMMENT, text[start:place], start)
    return Token(TokenKind.COMMENT, text[start:], start, is_open=True)


def statements_of(text: str) -> Iterator[tuple[int, str]]:
    """The statements of a text with their offsets, the last one without `;`; none of blanks and comments."""
    start, begun = 0, None
    for token in tokens_of(text):
        if token.word == ";":
            if begun is not None:
                yield begun, text[begun : token.start]
            start, begun = token.end, None
        elif begun is None and token.kind not in (TokenKind.BLANK, TokenKind.COMMENT):
            begun = token.start
    if begun is not None:
        yield begun, text[max(begun, start) :].rstrip()
