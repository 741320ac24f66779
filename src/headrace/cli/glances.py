"""The tables of `headrace top`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, assert_never

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headrace.cli.progress import readable_bytes
from headrace.cli.seen import MemorySeen, OperatorSeen, QuerySeen, Seen, StreamSeen
from headrace.engine.shown.lanes import lane_row
from headrace.runtime.writing.texts import count

_LEAST: Final = 12
"""So many characters of a name are shown at least."""

One = StreamSeen | QuerySeen | OperatorSeen
Count = Callable[[Any], float]


class OperatorOrder(StrEnum):
    """What operators are in order of, the largest first."""

    SECONDS = "seconds"
    ROWS = "rows"
    SIZE = "size"


@dataclass(frozen=True)
class StatusGlance:
    """What was seen, and when (seconds of a clock that only goes forward)."""

    seen: Seen
    at: float


@dataclass(frozen=True)
class Rates:
    """What came between two looks.

    Attributes:
        before: what was seen before, by what it is; empty at the first look.
        rows: the rows of all streams before.
        passed: the seconds since then; 0 at the first look.
    """

    before: Mapping[tuple[type, str], One]
    rows: int = 0
    passed: float = 0.0

    @classmethod
    def between(cls, before: StatusGlance | None, now: StatusGlance) -> Rates:
        """The rates of a look."""
        if before is None:
            return cls({})
        seen = before.seen
        parts: tuple[One, ...] = (*seen.streams, *seen.queries, *seen.operators)
        return cls({_key(one): one for one in parts}, seen.rows, now.at - before.at)

    def text(self, found: One, counted: Count, smoothed: float | None) -> str:
        """How fast a count has grown (per second), as text.

        Args:
            found: what it is of.
            counted: gives it.
            smoothed: what is shown at the first look; empty if None.
        """
        if self.passed > 0:
            return f"{self.grown(found, counted) / self.passed:,.0f}"
        return "" if smoothed is None else f"{smoothed:,.0f}"

    def grown(self, found: One, counted: Count) -> float:
        """By how much a count has grown: all of it at the first look, and where a process began it anew."""
        earlier = self.before.get(_key(found))
        since = counted(found) - (0 if earlier is None else counted(earlier))
        return counted(found) if since < 0 else since


def _key(one: One) -> tuple[type, str]:
    return type(one), one.identity if isinstance(one, OperatorSeen) else one.name


def picture(
    before: StatusGlance | None, now: StatusGlance, most: int, order: OperatorOrder, *, fills: bool = False
) -> Group:
    """Everything that is shown.

    Args:
        before: the look before, if there was one.
        now: this one.
        most: so many streams, queries and operators are shown each.
        order: of the operators.
        fills: whether the tables fill the terminal.
    """
    rates, seen = Rates.between(before, now), now.seen
    speed = f", {(seen.rows - rates.rows) / rates.passed:,.0f}/s" if rates.passed > 0 else ""
    title = Text(f"{seen.title}; {count(seen.rows, 'row')}{speed}", style="bold")
    notes = [Text(note, style="red") for note in seen.notes]
    memory = [] if seen.memory is None else [_windows(seen.memory, most)]
    lanes = [_lanes(seen, most)] if seen.lanes else []
    others = (
        *(_streams(seen, rates, most), _queries(seen, rates, most)),
        *(*lanes, _operators(seen, rates, most, order)),
    )
    for table in (*memory, *others):
        table.expand = fills
    return Group(title, *notes, *([Text(seen.memory.title)] if seen.memory else []), *memory, *others)


def _windows(memory: MemorySeen, most: int) -> Table:
    table = _listing("window of", ("min", "max", "now", "of the way"), ("why",))
    for one in memory.windows[:most]:
        table.add_row(one.streams, one.smallest, one.largest, one.size, f"{one.place:.0%}", one.why)
    return _cut(table, len(memory.windows), most)


def _streams(seen: Seen, rates: Rates, most: int) -> Table:
    table = _listing("stream", ("rows", "rows/s", "late", "rejected"), ("heartbeat", "lag"))
    for one in seen.streams[:most]:
        speed = rates.text(one, lambda one: one.rows, one.rate)
        table.add_row(
            one.name, f"{one.rows:,}", speed, f"{one.late:,}", f"{one.rejected:,}", one.heartbeat, one.lag
        )
    return _cut(table, len(seen.streams), most)


def _queries(seen: Seen, rates: Rates, most: int) -> Table:
    table = _listing("query", ("changes", "changes/s"), ("final below", "said below", "held by", "note"))
    for one in seen.queries[:most]:
        speed = rates.text(one, lambda one: one.changes, one.rate)
        table.add_row(one.name, f"{one.changes:,}", speed, one.final, one.said, one.held_by, one.note)
    return _cut(table, len(seen.queries), most)


def _lanes(seen: Seen, most: int) -> Table:
    numbers = ("weight", "due", "had", "latency", "waiting", "behind", "turns", "seconds/row")
    table = _listing("queries together", ("lane", *numbers), ("utility",))
    for one in seen.lanes[:most]:
        lane, queries, *rest = lane_row(one)
        table.add_row(queries, lane, *rest)
    return _cut(table, len(seen.lanes), most)


def _operators(seen: Seen, rates: Rates, most: int, order: OperatorOrder) -> Table:
    numbers = ("rows in/s", "rows out/s", "seconds", "rows kept", "size")
    table = _listing(f"operator, by {order.value}", numbers, ("heartbeat",))
    for one in _ordered(seen.operators, rates, order)[:most]:
        kept, size = f"{one.state_rows:,}", readable_bytes(one.state_bytes)
        work = one.work
        if work is None:
            table.add_row(one.title, "", "", "", kept, size, "")
            continue
        smoothed = work.rates or (None, None)
        speeds = rates.text(one, _rows_in, smoothed[0]), rates.text(one, _rows_out, smoothed[1])
        table.add_row(one.title, *speeds, f"{work.seconds:,.3f}", kept, size, work.heartbeat)
    return _cut(table, len(seen.operators), most)


def _ordered(operators: Iterable[OperatorSeen], rates: Rates, order: OperatorOrder) -> Sequence[OperatorSeen]:
    """Operators by what they have done since the look before, or hold; the largest first."""

    def weight(one: OperatorSeen) -> float:
        match order:
            case OperatorOrder.SIZE:
                return one.state_bytes
            case OperatorOrder.ROWS:
                return rates.grown(one, _rows_in)
            case OperatorOrder.SECONDS:
                return rates.grown(one, _seconds)
            case _:
                assert_never(order)

    return sorted(operators, key=weight, reverse=True)


def _rows_in(one: OperatorSeen) -> float:
    return one.work.rows_in if one.work else 0


def _rows_out(one: OperatorSeen) -> float:
    return one.work.rows_out if one.work else 0


def _seconds(one: OperatorSeen) -> float:
    return one.work.seconds if one.work else 0


def _listing(first: str, numbers: Iterable[str], texts: Iterable[str]) -> Table:
    """An empty table: names, which give way to the others, numbers, and texts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True, overflow="ellipsis", ratio=1, min_width=_LEAST)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for name in texts:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    return table


def _cut(table: Table, found: int, most: int) -> Table:
    """The table, which says how many rows were left out."""
    if found > most:
        table.caption, table.caption_justify = f"and {found - most:,} more", "left"
    return table
