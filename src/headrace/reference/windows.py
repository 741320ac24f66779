"""The definitions of windows that look back at what was valid at each instant so far."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import assert_never

from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import BloomKind, Filling
from headrace.algebra.nodes import (
    BloomFilter,
    BoundedRowWindow,
    GapFill,
    Granularity,
    LiveRow,
    Over,
    Plan,
    RelationIndex,
    RowWindow,
    SessionWindow,
    TimeWindow,
    WindowBounds,
    WindowEvents,
    instant_type,
)
from headrace.algebra.tunings.bloom import PROBES, block_of, cells_of, values_of
from headrace.reference.contents import Content, Payload, order, payload
from headrace.reference.sampling import drawn
from headrace.reference.scalars import value
from headrace.schema import BIGINT
from headrace.steps import value_at
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT

PastContents = Mapping[int, Content]
"""The content of a stream of chronons at every instant at which it is not empty, up to some instant."""

LooksBack = RowWindow | SessionWindow | BloomFilter | GapFill
"""Nodes whose content is of single rows of before, or, on a line, of later ones."""

Series = dict[int, Payload]
"""The rows of a series by the multiple of the step at which each counts."""


def window_content(plan: LooksBack, instant: int, past: PastContents) -> Content:
    """The content at an instant, from those of its input up to it; of series from all of these."""
    match plan:
        case GapFill():
            return _gaps_filled(plan, instant, past)
        case RowWindow():
            return _row_window_content(plan, past)
        case SessionWindow():
            return _session_content(plan, instant, past)
        case BloomFilter():
            return _bloom_content(plan, instant, past)
        case _:
            assert_never(plan)


def with_bounds(plan: WindowBounds, instant: int, below: Content) -> Content:
    """The rows of an instant with the latest window whose last instant is not after it."""
    end = instant + 1 - (instant + 1 - plan.offset.length) % plan.slide.length
    if isinstance(plan, WindowEvents) and end != instant + 1:
        return Counter()
    bounds = instant_value(end - plan.size.length, plan), instant_value(end, plan)
    return Counter({row + bounds: count for row, count in below.items()})


def frames(plan: Over, instant: int, past: PastContents) -> Iterator[tuple[Payload, list[list[Payload]]]]:
    """Every row of an instant, with the rows of its partition that the frame of each aggregate holds."""
    for rows in _partitions(plan, {then: past[then] for then in past if then <= instant}).values():
        before = sum(then < instant for then, _ in rows)
        for place in range(before, len(rows)):
            yield rows[place][1], [_framed(frame, rows, place) for _, _, frame in plan.aggregates]


def _framed(frame: Frame, rows: list[tuple[int, Payload]], place: int) -> list[Payload]:
    """The rows of a frame, among those of a partition up to the instant of the one at a place."""
    match frame:
        case RowsFrame(first=first, last=last):
            start = 0 if first is None else max(place - first, 0)
            return [row for _, row in rows[start : max(place - last + 1, 0)]]
        case RangeFrame(size=size):
            return [row for then, row in rows if then > rows[place][0] - size.length]
        case _:
            assert_never(frame)


def _partitions(plan: RowWindow | Over, past: PastContents) -> dict[Payload, list[tuple[int, Payload]]]:
    """The rows of each partition with their instants, in the order of instant and payload."""
    partitions: dict[Payload, list[tuple[int, Payload]]] = defaultdict(list)
    for then in sorted(past):
        for row in sorted(past[then].elements(), key=lambda row: tuple(map(order, row))):
            partitions[tuple(row[key.index] for key in plan.keys)].append((then, row))
    return partitions


def bound_changes(plan: WindowBounds, start: int, end: int) -> Collection[int]:
    """The instants of an interval at which one window takes over from another, or its rows have gone."""
    slide = plan.slide.length
    last = range(start + (plan.offset.length - 1 - start) % slide, end, slide)
    return {*last, *(instant + 1 for instant in last)} if isinstance(plan, WindowEvents) else last


def _end_of(plan: BloomFilter, instant: int) -> int:
    """Until when the value of a row of an instant is there (instant, exclusive)."""
    end, granule = min(instant + plan.size.length, INFINITY), plan.granule
    if plan.size.length == INFINITY:
        return INFINITY
    rest = end % granule
    if plan.kind is BloomKind.DISTINCT or rest == 0:
        return end - rest
    return min(end - rest + granule, INFINITY)


def _bloom_content(plan: BloomFilter, instant: int, past: PastContents) -> Content:
    """The rows that a Bloom filter does not know, by looking at all that have entered."""
    entered = list(_entered(plan, past))
    cells = {row: _cells(plan, row) for rows in past.values() for row in rows}
    since = (then for then in past if plan.kind is BloomKind.DISTINCT or then == instant)
    content: Content = Counter()
    for then in since:
        for row in past[then]:
            if plan.kind is BloomKind.EXCEPT and row[-1] == 1:
                continue
            before = [
                (other, _end_of(plan, when))
                for other, when in entered
                if when < then or (plan.kind is BloomKind.EXCEPT and when == then)
            ]
            until = min(
                max((end for other, end in before if cell in cells[other]), default=BEGINNING)
                for cell in cells[row]
            )
            end = _end_of(plan, then) if plan.kind is BloomKind.DISTINCT else then + 1
            if max(then, until) <= instant < end:
                content[row[: len(plan.schema)]] = 1
    return content


def _entered(plan: BloomFilter, past: PastContents) -> Iterator[tuple[Payload, int]]:
    """The rows that enter the filter, with their instants."""
    for then, rows in past.items():
        yield from ((row, then) for row in rows if plan.kind is not BloomKind.EXCEPT or row[-1] == 1)


def _cells(plan: BloomFilter, row: Payload) -> frozenset[tuple[object, int]]:
    """The cells of a row, each with its block."""
    values, types = row[: len(plan.schema)], [part.type for part in values_of(plan)]
    block = value(block_of(plan), row)
    return frozenset((block, drawn(values, types, number) % cells_of(plan)) for number in range(PROBES))


def _row_window_content(plan: RowWindow, past: PastContents) -> Content:
    """The last rows of each partition, numbered by instant and payload, up to the last slide, if live.

    Of what a relation keeps it is the largest row, which came with its own instant as its first column.
    """
    content: Content = Counter()
    for rows in _partitions(plan, past).values():
        if isinstance(plan, BoundedRowWindow):
            content.update(row for _, row in rows[_pushed_out(plan, [then for then, _ in rows]) :])
            continue
        if isinstance(plan, RelationIndex):
            rows = [max(rows, key=lambda row: tuple(map(order, row[1])))]
        last = len(rows) // plan.slide * plan.slide
        content.update(row for _, row in rows[max(last - plan.rows, 0) : last])
    if not isinstance(plan, LiveRow):
        return content
    return Counter({row: count for row, count in content.items() if row[plan.live.index] is True})


def _pushed_out(plan: BoundedRowWindow, instants: list[int]) -> int:
    """The number of rows of a partition that later ones have pushed out, each by the size at its instant."""
    sizes = (value_at(plan.rows, plan.steps, then) for then in instants)
    return max(0, *(number - size for number, size in enumerate(sizes, start=1)))


def _session_content(plan: SessionWindow, instant: int, past: PastContents) -> Content:
    """The rows of the sessions that ended at this instant or less than a gap before it."""
    gap, longest = plan.gap.length, _longest(plan)
    by_key: dict[Payload, dict[int, Content]] = defaultdict(lambda: defaultdict(Counter))
    for then, rows in past.items():
        for row, count in rows.items():
            by_key[tuple(row[key.index] for key in plan.keys)][then][row] = count
    content: Content = Counter()
    for contents in by_key.values():
        for session in _sessions(sorted(contents), gap, longest):
            end = min(session[-1] + gap, session[0] + longest)
            if end - 1 <= instant < end - 1 + gap:
                bounds = instant_value(session[0], plan), instant_value(end, plan)
                rows = sum((contents[then] for then in session), Counter())
                content.update({row + bounds: count for row, count in rows.items()})
    return content


def _sessions(instants: list[int], gap: int, longest: int) -> list[list[int]]:
    """The instants of rows cut where the gap or more lies between two, and where a session gets too long."""
    sessions: list[list[int]] = []
    for instant in instants:
        if sessions and instant < min(sessions[-1][-1] + gap, sessions[-1][0] + longest):
            sessions[-1].append(instant)
        else:
            sessions.append([instant])
    return sessions


def _longest(plan: SessionWindow) -> int:
    return INFINITY if plan.longest is None else plan.longest.length


def session_changes(plan: SessionWindow | GapFill, instant: int) -> Iterator[int]:
    """When a session is there, and when it goes, whose last row is of an instant, or whose first one is.

    Of series when there may be something of a row of an instant.
    """
    if isinstance(plan, GapFill):
        first = _step_of(plan, instant)
        for multiple in range(first, first + plan.longest.length + 1, plan.step.length):
            yield from (multiple, multiple + 1)
        return
    lengths = (plan.gap, plan.longest)
    for end in (instant + length.length for length in lengths if length is not None):
        yield from (end - 1, end - 1 + plan.gap.length)


def instant_value(instant: int, plan: Plan) -> object:
    """An instant as a value of a column that holds instants of the plan."""
    if instant_type(plan) == BIGINT:
        return instant
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)


def rows_shown(
    plan: TimeWindow | Granularity,
    instant: int,
    instants: Callable[[Plan], Iterable[int]],
    contents: Callable[[Plan, int], Content],
) -> Content:
    """The rows that a window shows at an instant, or granules of several lengths over one.

    Args:
        plan: the window or the granules.
        instant: the instant.
        instants: those at which the content of a plan may change.
        contents: the content of a plan at an instant.
    """
    content: Content = Counter()
    rows = _rows_under(plan)
    # These are chronons: between their instants the content is empty.
    for past in instants(rows):
        if _shows(plan, past, instant):
            content += contents(rows, past)
    return content


def granules_shown(plan: Granularity, instants: Callable[[Plan], Iterable[int]]) -> Iterator[int]:
    """The instants at which rows come and go with granules of several lengths; `instants` as above."""
    for past in instants(_rows_under(plan)):
        yield from _granule_changes(plan, past)


def _shows(plan: TimeWindow | Granularity, past: int, instant: int) -> bool:
    """Whether a window shows the rows of one instant at another, or granules of several lengths over it."""
    if isinstance(plan, Granularity):
        enters, leaves = _granule_changes(plan, past)
        return enters <= instant < leaves
    slide, offset = plan.slide.length, plan.offset.length
    last = (instant + 1 - offset) // slide * slide + offset - 1
    size = value_at(plan.size.length, plan.steps, past)
    return past <= last and (size == INFINITY or last < past + size)


def _rows_under(plan: TimeWindow | Granularity) -> Plan:
    """The stream of chronons that a window is over, also where granules are between."""
    if isinstance(plan, Granularity):
        return _rows_under(plan.input) if isinstance(plan.input, TimeWindow) else plan.input
    return plan.input


def _granule_changes(plan: Granularity, instant: int) -> tuple[int, int]:
    """When rows of an instant enter and leave: at multiples of the granule that there is at it."""
    granule = value_at(plan.granule.length, plan.steps, instant)
    enters, leaves = instant, instant + 1
    if isinstance(plan.input, TimeWindow):
        enters, leaves = window_changes(plan.input, instant)
    ends = leaves if leaves == INFINITY else -(-leaves // granule) * granule
    return -(-enters // granule) * granule, ends


def window_changes(plan: TimeWindow | BloomFilter, instant: int) -> tuple[int, int]:
    """When what is valid at an instant enters the window, and when it leaves it (thesis, algorithm 18)."""
    if isinstance(plan, BloomFilter):
        return instant, _end_of(plan, instant)
    size = value_at(plan.size.length, plan.steps, instant)
    slide, offset = plan.slide.length, plan.offset.length
    enters = -(-(instant + 1 - offset) // slide) * slide + offset - 1
    leaves = INFINITY
    if size < INFINITY:
        leaves = (instant + size - offset + slide) // slide * slide + offset - 1
    return enters, leaves


def _gaps_filled(plan: GapFill, instant: int, contents: PastContents) -> Content:
    """The rows of all series at an instant.

    Args:
        plan: the node.
        instant: the instant.
        contents: of its input, at all instants, also later ones.
    """
    found: Content = Counter()
    if instant % plan.step.length == 0:
        for rows in _series(plan, contents).values():
            row = _at(plan, instant, rows)
            if row is not None:
                found[payload(_timed(plan, row, instant))] += 1
    return found


def _step_of(plan: GapFill, instant: int) -> int:
    """The multiple of the step at which a row of an instant counts."""
    return -(-instant // plan.step.length) * plan.step.length


def _series(plan: GapFill, contents: PastContents) -> dict[Payload, Series]:
    found: dict[Payload, Series] = defaultdict(dict)
    for then in sorted(contents):
        for row in sorted(contents[then], key=lambda row: tuple(map(order, row))):
            # A later row takes the place of an earlier one of its step.
            found[tuple(row[key.index] for key in plan.keys)][_step_of(plan, then)] = row
    return found


def _at(plan: GapFill, instant: int, rows: Series) -> Payload | None:
    """The row of a series at a multiple of the step, but for its time; None if it has none there."""
    if instant in rows:
        return rows[instant]
    before = max((at for at in rows if at < instant), default=None)
    if before is None or instant > min(before + plan.longest.length, MAX_INSTANT):
        return None
    match plan.filling:
        case Filling.LAST:
            return rows[before]
        case Filling.NULL:
            return _with(plan, rows[before], [None] * len(plan.filled))
        case Filling.LINEAR:
            after = min((at for at in rows if at > instant), default=None)
            if after is None or after > before + plan.longest.length:
                return None
            part = (instant - before) / (after - before)
            pairs = ((rows[before][place], rows[after][place]) for place in plan.filled)
            return _with(plan, rows[before], [_between(one, other, part) for one, other in pairs])


def _between(one: object, other: object, part: float) -> float | None:
    """The value at a part of the way from one to another."""
    if not (isinstance(one, float) and isinstance(other, float)):
        return None
    rise = other - one
    if math.isinf(rise) and math.isfinite(one) and math.isfinite(other):
        return one * (1 - part) + other * part
    return one + rise * part


def _with(plan: GapFill, row: Payload, values: list[float | None]) -> Payload:
    filled = list(row)
    for place, one in zip(plan.filled, values, strict=True):
        filled[place] = one
    return tuple(filled)


def _timed(plan: GapFill, row: Payload, instant: int) -> Payload:
    return (*row[: plan.time], instant_value(instant, plan), *row[plan.time + 1 :])
