"""Completion at every place of the examples: the word that comes there is offered, and nothing fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headrace.language.completion.candidates import WORDS, KnownNames, candidates
from headrace.language.completion.tokens import Token, TokenKind, statements_of, tokens_of
from how_many import examples

ROOT = Path(__file__).parents[3]
FOUND_AT_LEAST = 0.95
"""The share of keywords and names that must be among what is offered where they come."""
FORMATS = dict.fromkeys(("push", "csv", "json", "text", "kafka", "nexmark", "parquet", "rate"), ("path",))
_NAMES = {"FROM": "stream", "JOIN": "stream", "STREAM": "stream", "RELATION": "relation", "QUERY": "query"}


@dataclass(frozen=True)
class Example:
    """A statement, and the names in the text that it is from."""

    text: str
    known: KnownNames

    def __repr__(self) -> str:
        return repr(self.text)


@cache
def all_examples() -> tuple[Example, ...]:
    pages = [*sorted((ROOT / "docs").glob("language*.md")), *sorted((ROOT / "docs" / "recipes").glob("*.md"))]
    texts = [sql for page in pages for sql in re.findall(r"```sql[^\n]*\n(.*?)```", page.read_text(), re.S)]
    for case in sorted((ROOT / "tests" / "golden" / "cases").iterdir()):
        texts += re.findall(r"^== query[^\n]*\n(.*?)^==", case.read_text(), re.S | re.M)
    return tuple(Example(one, _known(text)) for text in texts for _, one in statements_of(text))


def _known(text: str) -> KnownNames:
    """The names that a text defines, or reads from."""
    found: dict[str, dict[str, tuple[str, ...]]] = {"stream": {}, "relation": {}, "query": {}}
    for introduced, name in re.findall(r"\b(FROM|JOIN|STREAM|RELATION|QUERY)\s+([a-z]\w*)", text):
        found[_NAMES[introduced]][name] = ("ts", "v")
    return KnownNames(found["stream"], found["relation"], found["query"], formats=FORMATS)


def _places(text: str) -> Iterator[Token]:
    """The keywords of a statement, and the names after FROM and JOIN."""
    pieces = [one for one in tokens_of(text) if one.kind not in (TokenKind.BLANK, TokenKind.COMMENT)]
    for before, piece in pairwise(pieces):
        is_keyword = piece.kind is TokenKind.WORD and piece.text in WORDS
        is_name = before.text in ("FROM", "JOIN") and re.fullmatch(r"[a-z]\w*", piece.text)
        if (is_keyword or is_name) and before.word != ".":
            yield piece


def _is_offered(example: Example, piece: Token) -> bool:
    """Whether a piece is offered once its first letter is there, in the text up to that letter."""
    written = example.text[: piece.start + 1]
    start, found = candidates(written, len(written), example.known)
    words = {re.split(r"\W", one.text.strip("`").lower())[0] for one in found}
    return start == piece.start and piece.text.lower() in words


@examples(few=40, many=60)
@given(st.data())
def test_nothing_fails_wherever_one_stands(data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(all_examples()))
    at = data.draw(st.integers(0, len(example.text)))
    start, found = candidates(example.text[:at], at, example.known)
    assert 0 <= start <= at
    assert len({(one.text, one.what) for one in found}) == len(found)
    within, _ = candidates(example.text, at, example.known)
    assert within == start


def shares(every: int) -> tuple[int, list[str]]:
    """The number of words looked at, and those that were not offered, with the text before them."""
    places = [(one, piece) for one in all_examples() for piece in _places(one.text)][::every]
    missed = [
        f"{one.text[max(0, piece.start - 40) : piece.start]!r} {piece.text}"
        for one, piece in places
        if not _is_offered(one, piece)
    ]
    return len(places), missed


def test_what_comes_next_is_offered() -> None:
    count, missed = shares(23)
    assert count > 50
    assert 1 - len(missed) / count >= FOUND_AT_LEAST, "\n".join(missed)
