"""The text of statements, and where in it something is."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from sqlglot.tokens import Token

from headrace.errors import Position

BEGIN: Final = Position(1, 1)
"""Where a text of its own begins."""


class SourceText:
    """A text with an index of its lines.

    Args:
        text: the text itself.
        begin: where it begins, if it is a part of another one.

    Attributes:
        text: as given.
    """

    def __init__(self, text: str, begin: Position = BEGIN) -> None:
        self.text = text
        self._begin = begin
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        """The line and column of the character at that offset."""
        line = bisect_right(self._starts, offset)
        before = self._begin.column - 1 if line == 1 else 0
        return Position(self._begin.line + line - 1, before + offset - self._starts[line - 1] + 1)

    def shown(self, token: Token | None) -> str:
        """A token as messages show it, a text in the quotes that it has; None is the end of the text."""
        if token is None:
            return "the end of the text"
        text = self.text[token.start : token.end + 1]
        return text if text.startswith("'") else f"'{text}'"

    def open_comment(self, start: int) -> int | None:
        """The offset of a `/*` after `start` that is never closed, or None.

        Args:
            start: the offset after the last token; what follows is white space and comments.
        """
        depth, opened, index = 0, 0, start
        while index < len(self.text):
            pair = self.text[index : index + 2]
            if depth == 0 and pair == "--":
                end = self.text.find("\n", index)
                index = len(self.text) if end < 0 else end
            elif pair == "/*":
                opened = index if depth == 0 else opened
                depth, index = depth + 1, index + 2
            elif depth and pair == "*/":
                depth, index = depth - 1, index + 2
            else:
                index += 1
        return opened if depth else None
