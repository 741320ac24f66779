"""Frames: which rows of a partition `aggregate OVER (...)` reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import Plan
from headrace.errors import LanguageError, Position, UserError
from headrace.expressions.tree import Expression, SortKey
from headrace.language.binding.windows import smallest_size
from headrace.language.dialect import FrameBounds, position_of
from headrace.language.lengths import check_duration
from headrace.time import INFINITY, Duration, make_duration, parse_duration

WRITTEN: Final = (
    "write OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)"
)
_BOUNDS: Final = (
    "write RANGE MIN 5 MINUTES, MAX 1 HOUR; or RANGE UNBOUNDED PRECEDING for all rows up to the row's"
)
_LATER: Final = "a row's answer depends on what came before it; frames end with CURRENT ROW or n PRECEDING"


@dataclass(frozen=True)
class Whole:
    """All rows of the partition that are valid at the instant."""

    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class Framed:
    """The rows of the partition that a frame says, by time or by number."""

    keys: tuple[Expression, ...]
    frame: Frame


@dataclass(frozen=True)
class BoundedFrame:
    """The rows of the partition that a window of time within bounds has at the row's instant.

    Attributes:
        keys: the partition's keys.
        smallest, largest: the bounds of the window.
    """

    keys: tuple[Expression, ...]
    smallest: Duration
    largest: Duration


@dataclass(frozen=True)
class PlaceFrame:
    """Places among the partition's rows that are valid at the instant, by another order than time.

    Attributes:
        keys: the partition's keys.
        order: what the rows are sorted by.
        ranking: how places are counted.
    """

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    ranking: Ranking


@dataclass(frozen=True)
class Ordered:
    """Rows around each row, by another order than time, among the partition's that are valid at the instant.

    Attributes:
        keys: the partition's keys.
        order: what the rows are sorted by.
        ranking: how places are counted: by ROW_NUMBER for frames of rows, by DENSE_RANK for RANGE.
        first: how many places before the row's own the frame starts; None for the first place of all.
        last: how many places before the row's own it ends, below 0 for places after it; None for the last.
    """

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    ranking: Ranking
    first: int | None
    last: int | None

    @property
    def has_own_row(self) -> bool:
        """Whether each row is in its own frame, so that no frame is empty."""
        return (self.first is None or self.first >= 0) and (self.last is None or self.last <= 0)


FrameScope = Whole | Framed | BoundedFrame | PlaceFrame | Ordered
"""Which rows of a partition an aggregate reads."""

SO_FAR: Final = RangeFrame(Duration(INFINITY))
"""All rows up to the row's instant."""


def bind_frame(
    node: Any, plan: Plan, keys: tuple[Expression, ...], ordered: bool
) -> Whole | Framed | BoundedFrame:
    """The frame of a call.

    Args:
        node: the call.
        plan: the rows that it is computed over.
        keys: its partition.
        ordered: whether rows are put in order, by their time.

    Raises:
        LanguageError: the frame is malformed, or reaches beyond the row.
    """
    spec = node.args.get("spec")
    if spec is None:
        return Framed(keys, SO_FAR) if ordered else Whole(keys)
    start, side, end = spec.args.get("start"), spec.args.get("start_side"), spec.args.get("end")
    end_side = spec.args.get("end_side")
    position = position_of(node)
    if isinstance(start, FrameBounds):
        _refuse_more(spec)
        return _bounded(start, plan, keys)
    _refuse_half(spec, position)
    if spec.args.get("exclude") or "FOLLOWING" in (side, end_side) or str(spec.args["kind"]) == "GROUPS":
        raise LanguageError("this frame is not supported", position=position, hint=_LATER)
    if str(spec.args["kind"]) == "ROWS":
        return Framed(keys, _rows_frame(start, end, position))
    if end not in (None, "CURRENT ROW") or start is None:
        raise LanguageError("a RANGE frame ends with CURRENT ROW", position=position, hint=WRITTEN)
    return Framed(keys, SO_FAR if start == "UNBOUNDED" else RangeFrame(_range(start, plan)))


def _bounded(bounds: Any, plan: Plan, keys: tuple[Expression, ...]) -> Framed | BoundedFrame:
    """A frame within bounds; one of one size where they leave no other.

    Raises:
        LanguageError: a length is malformed, MIN is above MAX, or the rows are not those of streams as they
            come.
    """
    position = position_of(bounds)
    smallest, largest = (_length(part, plan, _BOUNDS) for part in (bounds.this, bounds.expression))
    least = smallest_size(smallest, largest, plan, position, "one length: " + WRITTEN.removeprefix("write "))
    return Framed(keys, RangeFrame(largest)) if least is None else BoundedFrame(keys, least, largest)


def bind_ordered(node: Any, keys: tuple[Expression, ...], order: tuple[SortKey, ...]) -> Whole | Ordered:
    """The frame of a call over rows that hold for a time, in whatever order; it may reach beyond the row.

    Raises:
        LanguageError: the frame is malformed, or has lengths of time.
    """
    spec, position = node.args.get("spec"), position_of(node)
    if spec is None:
        return Ordered(keys, order, Ranking.DENSE_RANK, None, 0)
    if isinstance(start := spec.args.get("start"), FrameBounds):
        raise LanguageError(
            "a frame with MIN and MAX is over the rows of a stream as they come, in the order of their time",
            position=position_of(start),
            hint="write OVER (PARTITION BY k ORDER BY ts RANGE MIN 5 MINUTES, MAX 1 HOUR), by the stream's "
            f"timestamp alone, with no window in FROM; or {_OF_ROWS.removeprefix('write ')}",
        )
    _refuse_half(spec, position)
    kind = str(spec.args["kind"])
    if spec.args.get("exclude") or kind == "GROUPS":
        raise LanguageError("this frame is not supported", position=position, hint=_OF_ROWS)
    bounds = [(spec.args.get(part), spec.args.get(f"{part}_side")) for part in ("start", "end")]
    first, last = (_places(*bound, kind, position) for bound in bounds)
    if first is None and last is None:
        return Whole(keys)
    if first is not None and last is not None and last > first:
        raise LanguageError("the frame ends before it starts", position=position, hint=_OF_ROWS)
    ranking = Ranking.ROW_NUMBER if kind == "ROWS" else Ranking.DENSE_RANK
    return Ordered(keys, order, ranking, first, last)


_OF_ROWS: Final = "write ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING, or RANGE UNBOUNDED PRECEDING"


def _places(bound: Any, side: str | None, kind: str, position: Position) -> int | None:
    """How many places before the row a bound is; None for the first or the last of all."""
    if bound in (None, "CURRENT ROW"):
        return 0
    if bound == "UNBOUNDED":
        return None
    if kind != "ROWS":
        raise _lengths(position)
    count = whole_number(bound, "ROWS")
    return -count if side == "FOLLOWING" else count


def _lengths(position: Position) -> LanguageError:
    message = "a RANGE frame over rows that hold for a time has no lengths"
    return LanguageError(message, position=position, hint=_OF_ROWS)


def _range(start: Any, plan: Plan) -> Duration:
    """How many instants a RANGE frame holds: both of its ends belong to it."""
    if start == "CURRENT ROW":
        return Duration(1)
    duration = _length(start, plan)
    return Duration(duration.length + 1, None if duration.unit is None else "MICROSECOND")


def _length(node: Any, plan: Plan, written: str = WRITTEN) -> Duration:
    """A length of time, in a unit that fits the rows.

    Args:
        node: the length.
        plan: the rows.
        written: the hint where it is none.
    """
    position = position_of(node)
    try:
        duration = _duration(node, written)
    except UserError as error:
        raise LanguageError(error.message, position=position, hint=error.hint) from None
    check_duration(duration, plan.domain, "INTERVAL", position)
    return duration


def _refuse_half(spec: Any, position: Position) -> None:
    """Refuse a frame without a start, or with lengths that are not said to be PRECEDING."""
    for part in ("start", "end"):
        bound, side = spec.args.get(part), spec.args.get(f"{part}_side")
        if (bound is None and part == "start") or (bound not in (None, "CURRENT ROW") and side is None):
            message = f"the frame's {part} is missing, or PRECEDING after it"
            raise LanguageError(message, position=position, hint=WRITTEN)


def _refuse_more(spec: Any) -> None:
    """Refuse what follows the bounds of a frame, which ends with its row."""
    if any(spec.args.get(part) for part in ("start_side", "end", "exclude")):
        raise LanguageError(
            "a frame with MIN and MAX ends with its row",
            position=position_of(spec.args["start"]),
            hint="write RANGE MIN 5 MINUTES, MAX 1 HOUR, and nothing behind it",
        )


def _rows_frame(start: Any, end: Any, position: Position) -> RowsFrame:
    if end == "UNBOUNDED":
        raise LanguageError("the frame ends before it starts", position=position, hint=_LATER)
    last = 0 if end in (None, "CURRENT ROW") else whole_number(end, "ROWS")
    if start == "UNBOUNDED":
        return RowsFrame(None, last)
    first = 0 if start == "CURRENT ROW" else whole_number(start, "ROWS")
    if last > first:
        hint = "write the larger number first: ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING"
        raise LanguageError("the frame ends before it starts", position=position, hint=hint)
    return RowsFrame(first, last)


def _duration(node: Any, written: str) -> Duration:
    match node:
        case exp.Interval(this=exp.Literal() as number):
            unit = node.args.get("unit")
            text = str(number.this)
            return parse_duration(text) if unit is None else make_duration(_digits(text), str(unit))
        case exp.Literal() if not node.is_string:
            return make_duration(_digits(str(node.this)), None)
        case _:
            raise UserError("a length of time is missing", hint=written)


def _digits(text: str) -> int:
    if not text.strip().isdecimal() or len(text) > 19:
        raise UserError(f"'{text}' is not a valid length of time", hint=WRITTEN)
    return int(text)


def whole_number(node: Any, what: str) -> int:
    """A number of rows.

    Raises:
        LanguageError: there is something else.
    """
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        number = int(node.this)
        if number <= 1_000_000:
            return number
    hint = "write a whole number of rows, at most a million"
    raise LanguageError(f"{what} takes a number of rows", position=position_of(node), hint=hint)
