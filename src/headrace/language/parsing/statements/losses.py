"""The clause LOSS TOLERANT of a query, and the share of rows that is kept."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Final

from sqlglot.tokens import TokenType

from headrace.algebra.tunings.loss import CONFIDENCE, LEAST_MEMORY, Loss
from headrace.byte_sizes import bytes_of, format_bytes
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.text import SourceText
from headrace.qos_graph import QOS_HINTS, wrong_point
from headrace.steps import WHOLE
from headrace.value_graph import ValueGraph

_BY_VALUE: Final = "write LOSS TOLERANT BY price (0: 0.1, 100: 0.5): a value of the column, and its utility"

_DIGITS: Final = 400


def parse_loss(cursor: Cursor) -> Loss | None:
    """Read what a query says of loss, or None where that does not come next.

    That is `LOSS TOLERANT [(share: utility, ...)] [CONFIDENCE percent]`, `LOSS TOLERANT BY column (value:
    utility, ...)`, `WITHIN percent PERCENT [CONFIDENCE percent]`, or `WITHIN MEMORY 'size'`.

    Raises:
        LanguageError: a share, a utility or a percentage is none, or utility falls where more is kept.
    """
    position = cursor.position
    graph: tuple[tuple[int, Decimal], ...] = ()
    tolerance = None
    if cursor.accept("WITHIN"):
        if cursor.accept("MEMORY"):
            return _once(cursor, Loss(memory=_memory(cursor), position=position))
        tolerance = _tolerance(cursor)
    elif cursor.accept("LOSS"):
        cursor.expect("TOLERANT", "after LOSS")
        if cursor.accept("BY"):
            return _once(cursor, Loss(values=_values(cursor), position=position))
        graph = _graph(cursor) if cursor.accept("(") else ()
    else:
        return None
    confidence = CONFIDENCE
    if cursor.accept("CONFIDENCE"):
        hint = "write CONFIDENCE 95: the bounds then hold in 95 windows of 100"
        confidence = _number(cursor, "the confidence", hint)
        if not 50 <= confidence <= Decimal("99.9"):
            cursor.index -= 1
            raise cursor.error(f"a confidence is from 50 to 99.9 percent, not {confidence:f}", hint)
    return _once(cursor, Loss(graph, confidence, tolerance, position=position))


def _once(cursor: Cursor, loss: Loss) -> Loss:
    """The clause that was read, where it is all that is said of loss.

    Raises:
        LanguageError: there is more.
    """
    if cursor.at("LOSS") or cursor.at("WITHIN"):
        raise cursor.error(
            "a query says one thing of loss: WITHIN some percent, WITHIN MEMORY or LOSS TOLERANT",
            "leave one out: WITHIN 5 PERCENT leaves out rows as long as bounds allow it, LOSS TOLERANT any",
        )
    return loss


@lru_cache(maxsize=4096)
def loss_from(text: str) -> Loss:
    """The clause of a text, as `Loss.text` has it.

    Raises:
        LanguageError: it is none.
    """
    cursor = Cursor(SourceText(text), lambda _: None)
    found = parse_loss(cursor)
    if found is None or cursor.peek() is not None:
        raise cursor.error(f"{text} says nothing of loss", QOS_HINTS["loss"])
    return found


def _tolerance(cursor: Cursor) -> Decimal:
    """Read what follows WITHIN: `5 PERCENT`."""
    hint = "write WITHIN 5 PERCENT: from an estimate to its bounds it is at most so much of it"
    found = _number(cursor, "the percentage", hint)
    if not Decimal("0.1") <= found <= 50:
        cursor.index -= 1
        raise cursor.error(f"bounds are within 0.1 to 50 percent, not {found:f}", hint)
    if not cursor.accept("PERCENT"):
        raise cursor.error(
            f"PERCENT is missing after the percentage, before {cursor.shown()}",
            f"write WITHIN {found.normalize():f} PERCENT",
        )
    return found


def _memory(cursor: Cursor) -> int:
    """Read what follows WITHIN MEMORY: `'50 MB'`, in bytes."""
    token, hint = cursor.peek(), "write WITHIN MEMORY '50 MB', with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
    if token is None or token.token_type != TokenType.STRING:
        raise cursor.error(f"the size of the memory is missing, before {cursor.shown()}", hint)
    size = bytes_of(str(token.text))
    if size is None or size < LEAST_MEMORY:
        small = "" if size is None else f"; it is {format_bytes(LEAST_MEMORY)} at least, so that rows fit"
        raise cursor.error(f"a query's memory cannot be {str(token.text)!r}{small}", hint)
    cursor.index += 1
    return size


def parse_share(cursor: Cursor) -> int:
    """Read a share of the rows, above 0 and up to 1; in millionths.

    Raises:
        LanguageError: there is none.
    """
    hint = "write a number above 0 and up to 1, with at most six digits behind the point, such as 0.3"
    number = _number(cursor, "the share of the rows that is kept", hint)
    share = number * WHOLE
    if not 0 < share <= WHOLE or share != int(share):
        cursor.index -= 1
        raise cursor.error(f"a share that is kept cannot be {number:f}", hint)
    return int(share)


def _graph(cursor: Cursor) -> tuple[tuple[int, Decimal], ...]:
    points: list[tuple[int, Decimal]] = []
    while not points or cursor.accept(","):
        place = cursor.index
        share = parse_share(cursor)
        cursor.expect(":", "between a share that is kept and its utility")
        utility = _number(cursor, "a utility", QOS_HINTS["loss"])
        last = [(before / WHOLE, float(worth)) for before, worth in points[-1:]]
        wrong = wrong_point("loss", last, (share / WHOLE, float(utility)))
        if wrong:
            cursor.index = place
            raise cursor.error(wrong, QOS_HINTS["loss"])
        points.append((share, utility))
    cursor.expect(")", "to close LOSS TOLERANT")
    return tuple(points)


def _values(cursor: Cursor) -> ValueGraph:
    """Read what follows LOSS TOLERANT BY: a column, and what its values are worth."""
    name = cursor.name("the column whose values say what rows are worth")
    if not cursor.accept("("):
        raise cursor.error(f"what values are worth is missing, before {cursor.shown()}", _BY_VALUE)
    points: list[tuple[Decimal, Decimal]] = []
    while not points or cursor.accept(","):
        place = cursor.index
        is_negative = cursor.accept("-")
        value = _number(cursor, "a value", _BY_VALUE)
        value = value.copy_negate() if is_negative and value else value
        cursor.expect(":", "between a value and its utility")
        worth_at = cursor.index
        utility = _number(cursor, "a utility", _BY_VALUE)
        wrong = ""
        if value and abs(value.adjusted()) > _DIGITS:
            wrong = f"a value of a value graph has at most {_DIGITS} digits before and behind the point"
        elif points and value <= points[-1][0]:
            wrong = f"the values of a value graph rise: {value:f} comes after {points[-1][0]:f}"
        if wrong:
            cursor.index = place
            raise cursor.error(wrong, _BY_VALUE)
        if not 0 <= utility <= 1 or utility * WHOLE != int(utility * WHOLE):
            cursor.index = worth_at
            raise cursor.error(
                f"a utility is from 0 to 1, with at most six digits behind the point, not {utility:f}",
                _BY_VALUE,
            )
        points.append((value, utility))
    cursor.expect(")", "to close LOSS TOLERANT BY")
    return ValueGraph(name.text, tuple(points))


def parse_utility(cursor: Cursor) -> int:
    """Read the least utility of rows that are kept, from 0 to 1; in millionths.

    Raises:
        LanguageError: there is none.
    """
    hint = (
        "write a number from 0 to 1, with at most six digits behind the point, such as 0.5; 0 keeps all rows"
    )
    number = _number(cursor, "the least utility of rows that are kept", hint)
    least = number * WHOLE
    if not 0 <= least <= WHOLE or least != int(least):
        cursor.index -= 1
        raise cursor.error(f"the least utility of rows that are kept cannot be {number:f}", hint)
    return int(least)


def _number(cursor: Cursor, what: str, hint: str) -> Decimal:
    token = cursor.peek()
    if token is None or token.token_type != TokenType.NUMBER:
        raise cursor.error(f"{what} is missing, before {cursor.shown()}", hint)
    cursor.index += 1
    return Decimal(str(token.text))
