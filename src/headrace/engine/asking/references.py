"""What a question names of ours, such as HISTORY OF q, and the text with names of tables in its place.

The rest of a question is DuckDB's SQL, of which no more is looked at here than where strings, names in quotes
and comments begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace.errors import LanguageError, Position, UserError
from headrace.language.text import SourceText
from headrace.time import MICROSECONDS, parse_duration


class AskedKind(Enum):
    """What of a query or a stream is asked about; the value is the schema of its table."""

    HISTORY = "history"
    SNAPSHOT = "snapshot"
    CHANGES = "changes"
    STREAM = "stream"
    EPOCHS = "epochs"
    DEAD_LETTERS = "dead_letters"
    ROWS = "kept"


@dataclass(frozen=True)
class BeforeNow:
    """The first instant after that of the answer now, or one before it.

    Attributes:
        length: how long before, as it is written; None for that instant itself.
    """

    length: int | str | None = None


SpanEnd = int | str | BeforeNow
"""An end of a span: an instant as it is written, or one that is counted from the present."""


@dataclass(frozen=True)
class Reference:
    """A table that a question reads.

    Attributes:
        kind: what it is.
        name: of the query or the stream; None for the dead letters of all streams.
        as_of: after which epoch, by its number or a time of the clock; after the last one if None.
        between: of a history or a snapshot the first instant, and the first one after the last; if None, all
            of a history, and the present of a snapshot.
        schema, table: what it is called in the text that is asked.
        position: where it is named.
    """

    kind: AskedKind
    name: str | None
    as_of: int | str | None
    schema: str
    table: str
    position: Position
    between: tuple[SpanEnd, SpanEnd] | None = None


@dataclass(frozen=True)
class Word:
    """A piece of the text that is neither white space nor a comment."""

    text: str
    start: int
    end: int

    def is_(self, *words: str) -> bool:
        """Whether it is one of these words, whatever its case."""
        return self.text.upper() in words

    @property
    def named(self) -> str | None:
        """The name that it is, if it is one."""
        if self.text.startswith('"'):
            return self.text[1:-1].replace('""', '"')
        return self.text if re.fullmatch(r"[^\W\d]\w*", self.text) else None

    @property
    def string(self) -> str | None:
        """The string that it is, if it is one."""
        return self.text[1:-1].replace("''", "'") if self.text.startswith("'") else None


_PIECE: Final = re.compile(
    r"""
    (?P<skipped> \s+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
    | (?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag)
    | \w+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_SPANNED: Final = (AskedKind.HISTORY, AskedKind.SNAPSHOT)
_BEFORE_A_TABLE: Final = ("FROM", "JOIN", ",", "(", "TABLE", "DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT")


def resolved(text: str) -> tuple[str, tuple[Reference, ...]]:
    """A question with tables' names for what it names of ours, each character at the place that it had.

    Raises:
        LanguageError: an AS OF without an epoch or a time, or on what is not kept by epochs.
    """
    source = SourceText(text)
    words = list(words_of(text))
    asked, found = text, list[Reference]()
    index = 0
    while index < len(words):
        is_table = index > 0 and words[index - 1].is_(*_BEFORE_A_TABLE)
        read = _reference(source, words, index, len(found)) if is_table else None
        if read is None:
            index += 1
            continue
        reference, after = read
        start, end = words[index].start, words[after - 1].end
        asked = asked[:start] + _in_place(reference, text[start:end]) + asked[end:]
        found.append(reference)
        index = after
    return asked, tuple(found)


def words_of(text: str) -> Iterator[Word]:
    """The pieces of a question but for white space and comments, from left to right."""
    for match in _PIECE.finditer(text):
        if match["skipped"] is None:
            yield Word(match[0], match.start(), match.end())


def _reference(
    source: SourceText, words: list[Word], index: int, number: int
) -> tuple[Reference, int] | None:
    """The reference that begins at a word, and the index of the word after it; None if none does."""
    kind, after = _kind(words, index)
    if kind is None:
        return None
    position = source.position(words[index].start)
    name: str | None = None
    if after + 1 < len(words) and words[after].is_("OF"):
        name = words[after + 1].named
        if name is None:
            return None
        after += 2
    elif kind is not AskedKind.DEAD_LETTERS:
        return None
    between, after = _between(source, words, after) if kind in _SPANNED else (None, after)
    as_of, behind = _as_of(source, words, after)
    if as_of is not None and kind in (AskedKind.EPOCHS, AskedKind.DEAD_LETTERS, AskedKind.ROWS):
        raise LanguageError(
            f"{kind.name.replace('_', ' ')} cannot be asked for AS OF an epoch",
            position=source.position(words[after].start),
            hint="compare its column epoch instead",
        )
    schema = kind.value if as_of is None and between is None else f"at_{number}"
    if name is None:
        return Reference(kind, None, None, "main", "letters", position), behind
    return Reference(kind, name, as_of, schema, name, position, between), behind


def _kind(words: list[Word], index: int) -> tuple[AskedKind | None, int]:
    """What kind a word names, and the index of the word after it."""
    following = words[index + 1] if index + 1 < len(words) else None
    if words[index].is_("DEAD") and following is not None and following.is_("LETTERS"):
        return AskedKind.DEAD_LETTERS, index + 2
    simple = {kind.name: kind for kind in AskedKind if kind is not AskedKind.DEAD_LETTERS}
    return simple.get(words[index].text.upper()), index + 1


def _between(source: SourceText, words: list[Word], index: int) -> tuple[tuple[SpanEnd, SpanEnd] | None, int]:
    """The instants after BEGIN and END, and the index of the word after them."""
    if index >= len(words) or not words[index].is_("BEGIN"):
        return None, index
    first, (begin, behind) = index + 1, _end(words, index + 1)
    if begin is not None and behind < len(words) and words[behind].is_("END"):
        first, (end, behind) = behind + 1, _end(words, behind + 1)
        if end is not None:
            return (begin, end), behind
    raise LanguageError(
        "BEGIN wants an instant, and END another one",
        position=source.position(words[index].start),
        hint=_advice_on_length(words[first:], behind - first) or _SPANS,
    )


_SPANS: Final = (
    "write HISTORY OF q BEGIN 10 END 20, BEGIN '2024-01-01T00:00:00Z' END NOW, or "
    "BEGIN NOW - 10 MINUTES END NOW"
)


def _advice_on_length(words: list[Word], read: int) -> str | None:
    """The words to write for the length after `NOW -` that words begin with, if not all of it was read.

    Args:
        words: from an end of a span on.
        read: how many of them were read as that end.
    """
    length = _LENGTH.match(" ".join(word.text for word in words))
    if length is None or length.end() <= len(" ".join(word.text for word in words[:read])):
        return None
    number, unit = length["number"].replace(" ", ""), length["unit"]
    try:
        parse_duration(f"{number} {unit}")
    except UserError as error:
        advice = re.sub(r"write (?=\d)", "write NOW - ", error.hint or "")
        return advice if "NOW - " in advice else None
    written = f"{number} {unit}" if unit.upper().removesuffix("S") in MICROSECONDS else f"'{number} {unit}'"
    return f"write NOW - {written}"


_LENGTH: Final = re.compile(
    r"(?:\( )*NOW - (?:INTERVAL )?'?(?P<number>\d+(?: ?\. ?\d+)?)'? (?!END)(?P<unit>[A-Z]+)", re.IGNORECASE
)


def _end(words: list[Word], index: int) -> tuple[SpanEnd | None, int]:
    """An end of a span, also in parentheses, and the index of the word after it."""
    if index < len(words) and words[index].text == "(":
        found, behind = _end(words, index + 1)
        closed = behind < len(words) and words[behind].text == ")"
        return (found, behind + 1) if closed else (None, index)
    if not (index < len(words) and words[index].is_("NOW")):
        return _instant(words, index)
    if not (index + 1 < len(words) and words[index + 1].text == "-"):
        return BeforeNow(), index + 1
    rest = words[index + 2 : index + 4]
    if rest and rest[0].string is not None:
        return BeforeNow(rest[0].string), index + 3
    if not rest or not rest[0].text.isdecimal():
        return None, index
    # No short ones: a letter is more likely an alias.
    if len(rest) == 2 and rest[1].text.upper().removesuffix("S") in MICROSECONDS:
        return BeforeNow(f"{rest[0].text} {rest[1].text}"), index + 4
    return BeforeNow(int(rest[0].text)), index + 3


def _instant(words: list[Word], index: int) -> tuple[int | str | None, int]:
    """The instant that a word is, or a sign and a number, and the index of the word after it."""
    if index < len(words) and words[index].string is not None:
        return words[index].string, index + 1
    sign = -1 if index < len(words) and words[index].text == "-" else 1
    index += sign < 0
    if index < len(words) and words[index].text.isdecimal():
        return sign * int(words[index].text), index + 1
    return None, index


def _as_of(source: SourceText, words: list[Word], index: int) -> tuple[int | str | None, int]:
    """The epoch or the time after AS OF, and the index of the word after it."""
    if index + 1 >= len(words) or not (words[index].is_("AS") and words[index + 1].is_("OF")):
        return None, index
    rest = words[index + 2 : index + 4]
    if rest and rest[0].string is not None:
        return rest[0].string, index + 3
    if len(rest) == 2 and rest[0].is_("EPOCH") and rest[1].text.isdecimal():
        return int(rest[1].text), index + 4
    raise LanguageError(
        "AS OF wants an epoch or a time of the clock",
        position=source.position(words[index].start),
        hint="write AS OF EPOCH 12 or AS OF '2024-01-01T00:00:00Z'",
    )


def _in_place(reference: Reference, text: str) -> str:
    """A table's name, which is shorter than its reference, and blanks; with the lines that the text has."""
    quoted = '"' + reference.table.replace('"', '""') + '"'
    named = quoted if reference.schema == "main" else f"{reference.schema}.{quoted}"
    if "\n" not in text[: len(named)]:
        return named + re.sub(r"[^\n]", " ", text[len(named) :])
    # Over the end of a line: what follows on the last one keeps its place.
    return named + "\n" * text.count("\n") + " " * (len(text) - text.rfind("\n") - 1)
