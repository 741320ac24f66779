"""SELECT without FROM at a prompt: what expressions are that read no row."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pyarrow as pa

import headrace as hr
from headrace.errors import UserError
from headrace.language.completion.tokens import TokenKind, tokens_of

_BLANK: Final = (TokenKind.BLANK, TokenKind.COMMENT)
_TIME: Final = "the only instant"
_CLAUSES: Final = (
    *("FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH"),
    *("UNION", "EXCEPT", "MINUS", "INTERSECT"),
)


def constants_in(statement: str) -> str | None:
    """The query that a SELECT without FROM is: over one row. None for any other statement.

    Args:
        statement: its text, which may end with a semicolon.
    """
    pieces = [token for token in tokens_of(statement) if token.kind not in _BLANK and token.word != ";"]
    words = [piece.word for piece in pieces]
    if len(pieces) < 2 or words[0] != "SELECT" or "SELECT" in words[1:]:
        return None
    depth = 0
    for before, word in pairwise(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and (word in _CLAUSES or (word == "*" and before in ("SELECT", ","))):
            return None
    return f"{statement[: pieces[-1].end]} FROM one"


def constants(query: str) -> pa.Table:
    """The one row of a query over one row.

    Args:
        query: as `constants_in` gives it.

    Raises:
        UserError: the query is wrong, or fails.
    """
    with hr.connect("inline") as db:
        db.stream("one", pa.table({_TIME: [0]}), timestamp=_TIME)
        answer = db.query(query)
        run = db.run()
        if run.failed:
            raise UserError("; ".join(message for _, message, *_ in run.failed))
        letters = db.dead_letters()
        if letters.num_rows:
            raise UserError(str(letters["reason"][0]))
        return answer.history().drop_columns(["valid_from", "valid_to"])
