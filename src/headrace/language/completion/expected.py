"""Words that the grammar takes at the end of a text: the parser reads it, and its questions are noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headrace.errors import LanguageError
from headrace.language.parsing.parser import read_statement
from headrace.language.parsing.queries import parse_nested
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import Name, Scalar
from headrace.language.text import SourceText

_NO_WORD: Final = "no_word_of_the_language"


class TextEnd:
    """The end of a text: a statement up to a place between two of its words.

    Args:
        text: the text.

    Attributes:
        words: what the grammar asks for there, in the order of asking: each a word or several that follow
            each other, in upper case, perhaps with symbols behind.
        names: the names that it asks for, as its errors call them, such as `the stream's name`.
        is_in_expression: whether an expression is there, or ends there.
        is_reached: whether the grammar takes the text up to the place.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.words: list[tuple[str, ...]] = []
        self.names: list[str] = []
        self.is_in_expression = False
        self._error: LanguageError | None = None
        try:
            cursor = _NotingCursor(text)
        except LanguageError as error:
            self._error = error
        else:
            self._error = _read(cursor)
            self.words, self.names = list(cursor.words), list(cursor.names)
            self.is_in_expression = cursor.is_in_expression
        self.is_reached = bool(self.words or self.names or self.is_in_expression)

    def takes(self, *words: str) -> bool:
        """Whether the grammar takes words there, and not as names.

        Args:
            words: those that follow each other.
        """
        start = len(self._text) + 1
        try:
            cursor = _NotingCursor(f"{self._text} {' '.join(words)}", start)
        except LanguageError:
            return False
        error = _read(cursor)
        if error is None or error.position is None:
            return True
        if error.position >= cursor.source.position(len(cursor.source.text)):
            return True
        # What is wrong with the text before the place is so with all words, but where one ends an expression.
        is_before = str(error) == str(self._error) and error.position < cursor.source.position(start)
        return is_before and not self.is_in_expression

    def takes_operand(self) -> bool:
        """Whether a column or another operand may come where an expression is, or ends."""
        return self.takes(_NO_WORD)


def _read(cursor: Cursor) -> LanguageError | None:
    """Read a statement, and give the error that ends it."""
    try:
        read_statement(cursor)
    except LanguageError as error:
        return error
    except RecursionError:
        return LanguageError("the query is nested too deeply", position=cursor.source.position(0))
    return None


class _NotingCursor(Cursor):
    """A cursor that notes what is asked for at the end of its text.

    Args:
        text: the text.
        no_names: the offset from which on no word is a name outside of expressions; None where there is none.
    """

    def __init__(self, text: str, no_names: int | None = None) -> None:
        self.words: dict[tuple[str, ...], None] = {}
        self.names: dict[str, None] = {}
        self.is_in_expression = False
        self._no_names = no_names
        super().__init__(SourceText(text), parse_nested)

    def word(self, ahead: int = 0) -> str:
        """As of every cursor; after the end, a word that notes what it is compared with."""
        at_end = self.index + ahead == len(self._words)
        return _AskedWord(self._note) if at_end else super().word(ahead)

    def at(self, *words: str) -> bool:
        """As of every cursor."""
        rest = self._words[self.index :]
        if len(rest) < len(words) and [*words[: len(rest)]] == rest:
            self._note(*words[len(rest) :])
        return super().at(*words)

    def offer(self, *words: str) -> None:
        """Note words at the end."""
        if self.peek() is None:
            for word in words:
                self._note(word)

    def at_name(self) -> bool:
        """Whether a name is next; the words that are being tried are no names."""
        token = self.peek()
        is_word = token is not None and self._no_names is not None and token.start >= self._no_names
        return not is_word and super().at_name()

    def name(self, what: str) -> Name:
        """As of every cursor."""
        if self.peek() is None:
            self.names[what] = None
        return super().name(what)

    def _note(self, *words: str) -> None:
        self.words[words] = None

    def _parsed(self, reader: Callable[[Any], Any], what: str) -> Scalar:
        try:
            read = super()._parsed(reader, what)
        except LanguageError:
            self.is_in_expression = True
            raise
        self.is_in_expression |= self.peek() is None
        return read


class _AskedWord(str):
    """No word, as a cursor has it after its end, that notes what it is compared with."""

    __slots__ = ("_note",)
    _note: Callable[[str], None]

    def __new__(cls, note: Callable[[str], None]) -> _AskedWord:
        """An empty word."""
        made = super().__new__(cls, "")
        made._note = note
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and other:
            self._note(other)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
