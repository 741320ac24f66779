"""The pieces of unfinished text begin and end where the language's own tokens do."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import assume, given
from hypothesis import strategies as st
from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from headrace.cli.shell.shell import is_complete, parts_of
from headrace.language.completion.tokens import statements_of, tokens_of
from headrace.language.dialect import Headrace
from how_many import examples

_BITS = ["'", '"', "`", ";", "-", "--", "/*", "*/", "\\", "a", "r", "\n", "1", ".", " ", "''"]


@examples(67, 200)
@given(st.lists(st.sampled_from(_BITS), max_size=10).map("".join))
def test_statements_end_where_the_language_says(text: str) -> None:
    # How an end right beside a nested comment's is read differs, of which nobody takes care.
    assume("*/*" not in text and "/*/*" not in text)
    pieces = list(tokens_of(text))
    assert "".join(piece.text for piece in pieces) == text
    with suppress(TokenError):
        theirs = [
            token.start for token in Headrace().tokenize(text) if token.token_type is TokenType.SEMICOLON
        ]
        assert [piece.start for piece in pieces if piece.word == ";"] == theirs
        assert not any(piece.is_open for piece in pieces if not piece.text.startswith("/*"))
        return
    assert any(piece.is_open for piece in pieces)


def test_statements_and_their_places() -> None:
    text = "-- first\nSELECT ';' ;; /* ; */ SELECT `a;b`\n FROM s -- end\n"
    found = list(statements_of(text))
    assert [(text[at : at + 6], statement) for at, statement in found] == [
        ("SELECT", "SELECT ';' "),
        ("SELECT", "SELECT `a;b`\n FROM s -- end"),
    ]


def test_a_text_is_complete_after_a_semicolon() -> None:
    assert all(map(is_complete, ("", "  -- nothing", "SELECT 1;", "SELECT 1; -- why\n /* so */ ")))
    assert not any(map(is_complete, ("SELECT 1", "SELECT ';", "SELECT 1; /* ;", "SELECT 1; SELECT", "/*")))


def test_commands_of_a_file_are_lines_between_statements() -> None:
    text = "SELECT 1;\nSELECT '\n\\q';\n  \\run now\n\\x\nSELECT 2"
    assert [text[begin:end] for begin, end in parts_of(text)] == [
        "SELECT 1;\nSELECT '\n\\q';\n",
        "  \\run now\n",
        "\\x\n",
        "SELECT 2",
    ]
