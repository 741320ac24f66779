"""What the SQL of other systems holds and ours does not: refused by its tokens, before they are parsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot.tokens import Token, TokenType

from headrace.errors import LanguageError
from headrace.language.text import SourceText

_COMMENT: Final = "a comment starts with --, or is between /* and */"
_REGULAR: Final = "RLIKE 'a.*' to look for a regular expression"
_PARAMETER: Final = "write :name, and give its value"

_BITS: Final = "there are no operators on bits"

_PAIRS: Final[dict[tuple[TokenType, TokenType], tuple[str, str]]] = {
    (TokenType.SLASH, TokenType.SLASH): ("// starts no comment", _COMMENT),
    (TokenType.STAR, TokenType.STAR): ("** is not an operator", "write POWER(x, y)"),
    (TokenType.EQ, TokenType.LT): ("=< is not an operator", "write <="),
    (TokenType.GT, TokenType.LT): (">< is not an operator", "write <> for unequal"),
}
"""Tokens without a blank between them that no statement has, with a message and a hint."""

_KINDS: Final[dict[TokenType, tuple[str, str]]] = {
    TokenType.HASH: ("# starts no comment", _COMMENT),
    TokenType.TILDE: ("~ is not an operator", f"write {_REGULAR}"),
    TokenType.PLACEHOLDER: ("parameters are written :name", _PARAMETER),
    TokenType.PARAMETER: ("parameters are written :name", _PARAMETER),
    TokenType.L_BRACE: ("parameters are written :name", _PARAMETER),
    TokenType.SIMILAR_TO: ("SIMILAR TO is not supported", f"write LIKE 'a%', or {_REGULAR}"),
    TokenType.DAMP: ("&& is not an operator", "write AND"),
    TokenType.AMP: (_BITS, "write x % 2 for the last bit, or db.function in Python"),
    TokenType.PIPE: (_BITS, "write OR between conditions, and || between texts"),
    TokenType.CARET: (_BITS, "write POWER(x, y) for a power"),
    TokenType.COLON_EQ: (":= is not an operator", "write = to compare, and AS name for an alias"),
    TokenType.DQMARK: ("?? is not an operator", "write COALESCE(x, y)"),
}
"""Kinds of tokens that no statement has, with a message and a hint."""

_BOUNDED: Final = (
    "write RANGE MIN 5 MINUTES, MAX 1 HOUR for the rows of that time up to the row's, or one size"
)

_CURLY: Final = re.compile("[‘’‚“”„]")
"""Quotes of a text processor."""
_SINGLE: Final = "‘’‚"


def refuse_foreign(tokens: Sequence[Token], source: SourceText) -> None:
    """Refuse tokens of which we know what is meant, and that it is written otherwise.

    Args:
        tokens: of a whole text.
        source: that text.

    Raises:
        LanguageError: there is one.
    """
    curly = _CURLY.search(source.text) is not None
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind in _KINDS:
            raise _error(*_KINDS[kind], token, source)
        # Without a pattern it may be a name.
        if kind == TokenType.GLOB and _precedes(tokens, index, TokenType.STRING):
            raise _error("GLOB is not supported", "write LIKE 'a%'", token, source)
        if kind in (TokenType.ARROW, TokenType.DARROW):
            raise _error(*_without_json(tokens, index), token, source)
        if (pair := _pair(tokens, index)) is not None:
            raise _error(*pair, token, source)
        if (what := _bounds_frame(tokens, index)) is not None:
            raise _error(what, _BOUNDED, token, source)
        if curly and kind == TokenType.VAR and (found := _CURLY.search(str(token.text))):
            straight = "'text'" if found[0] in _SINGLE else "'text', or `name` for a name"
            raise _error(f"{found[0]} is not a quote of SQL", f"write {straight}", token, source)


def _bounds_frame(tokens: Sequence[Token], index: int) -> str | None:
    """The fault of a token that is the MIN or MAX of a frame of OVER; None where there is none."""
    words = [str(token.text).upper() for token in tokens[max(0, index - 2) : index + 1]]
    of_frame = words[-1] in ("MIN", "MAX") and not _precedes(tokens, index, TokenType.L_PAREN)
    between = "BETWEEN" in words
    if not of_frame or not {"RANGE", "ROWS"} & {*words[-2:-1], *(words[:1] if between else ())}:
        return None
    if words[-2] == "RANGE":
        return None
    what = "a frame of rows of OVER has one size, not MIN and MAX"
    if "ROWS" not in words:
        what = "a frame of OVER with MIN and MAX has no BETWEEN"
    opened = 0
    for place in range(index, 0, -1):
        kind = tokens[place].token_type
        opened += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if opened < 0:
            return what if str(tokens[place - 1].text).upper() in ("OVER", "AS") else None
    return None


def _precedes(tokens: Sequence[Token], index: int, kind: TokenType) -> bool:
    """Whether a token of that kind follows."""
    return index + 1 < len(tokens) and bool(tokens[index + 1].token_type == kind)


def _pair(tokens: Sequence[Token], index: int) -> tuple[str, str] | None:
    """What is wrong with a token and the one that follows it without a blank."""
    here, following = tokens[index], tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None or following.start != here.end + 1:
        return None
    if here.token_type == TokenType.COLON and following.token_type == TokenType.VAR:
        return _without_value(tokens[index - 1] if index else None, here, str(following.text))
    return _PAIRS.get((here.token_type, following.token_type))


def _without_value(before: Token | None, colon: Token, name: str) -> tuple[str, str]:
    """What is wrong with `:name` that has no value, or with `column:name` for a field of a JSON text."""
    if before is not None and before.token_type == TokenType.VAR and before.end + 1 == colon.start:
        return (
            ": is not an operator",
            f"write GET_JSON_OBJECT({before.text}, '$.{name}') for a field of a JSON text",
        )
    return f"the parameter :{name} has no value", (
        f"give it one: parameters={{'{name}': 5}} in Python, -D {name}=5, or \\set {name} 5 in the shell"
    )


def _without_json(tokens: Sequence[Token], index: int) -> tuple[str, str]:
    """The message and the hint for `column ->> 'field'`."""
    before, after = (tokens[at].text if 0 <= at < len(tokens) else "" for at in (index - 1, index + 1))
    text, field = (
        part if part.isidentifier() else other for part, other in ((before, "x"), (after, "field"))
    )
    return (
        f"{tokens[index].text} is not an operator",
        f"write GET_JSON_OBJECT({text}, '$.{field}') for a field of a JSON text",
    )


def _error(message: str, hint: str, token: Token, source: SourceText) -> LanguageError:
    return LanguageError(message, position=source.position(token.start), hint=hint)
