"""An answer as a chart: step lines over time, one per group or in one drawing each, or a map of colours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.engine.views.frames import optional
from headrace.errors import UserError
from headrace.runtime.writing.texts import count
from headrace.suggestions import did_you_mean
from headrace.value_texts import value_texts

_WIDTH: Final = 560
_HEIGHT: Final = 240
"""Of the drawing, in pixels; the legend is beside it."""

_ACROSS, _BETWEEN = 3, 40
"""So many small drawings are beside each other, and so many pixels between them."""

MOST_ROWS: Final = 20_000
"""More rows make a browser slow; the chart holds all of them as text."""

_FORMATS: Final = (
    (timedelta(seconds=2), "%H:%M:%S.%L"),
    (timedelta(minutes=5), "%H:%M:%S"),
    (timedelta(days=2), "%H:%M"),
    (timedelta(days=20), "%d %b %H:%M"),
)
"""Up to which length of the time axis its labels are of which form; beyond that they are dates."""

_COLOURS: Final = 10
"""So many groups have different colours in the usual palette."""


def chart_of(
    history: pa.Table,
    value: str | None,
    by: Sequence[str] | None,
    title: str,
    kind: str = "lines",
    *,
    at_instant: bool = False,
) -> Any:
    """An Altair chart.

    Args:
        history, value, by, title: as of `specification_of`.
        kind: `lines`, `multiples` (a small drawing for each group) or `heat`.
        at_instant: as of `heat_of`.

    Raises:
        UserError: Altair is not installed, there is no such kind, or as `specification_of` does.
    """
    if kind not in KINDS:
        raise UserError(f"there is no kind {kind} of charts", hint=f"write {' or '.join(map(repr, KINDS))}")
    if kind == "heat":
        made = heat_of(history, value, by, title, at_instant=at_instant)
    else:
        made = specification_of(history, value, by, title)
        made = made if kind == "lines" else _multiples(made)
    of_altair = _CHARTS[next(part for part in _CHARTS if part in made)]
    return getattr(optional("altair", "plot"), of_altair).from_dict(made)


KINDS: Final = ("lines", "multiples", "heat")
"""The kinds of charts."""

_CHARTS: Final = {"facet": "FacetChart", "layer": "LayerChart", "mark": "Chart"}
"""Altair's classes, by what their specifications have."""


def _multiples(lines: dict[str, Any]) -> dict[str, Any]:
    """The same lines, each in a drawing of its own with the same axes."""
    data, title = lines.pop("data"), lines.pop("title")
    parts = lines.get("layer", [lines])
    colour: dict[str, Any] = {}
    for part in parts:
        encoding = {**part["encoding"]}
        colour = encoding.pop("color", {})
        # Labels at the ends would run into those of the next drawing.
        axis = encoding["x"].get("axis", {}) | {"tickCount": 3, "labelBound": True}
        part["encoding"] = encoding | {"x": encoding["x"] | {"axis": axis}}
    facet = {"field": "group", "type": "nominal", "title": colour.get("title")}
    small = {"width": _WIDTH // _ACROSS - _BETWEEN, "height": _HEIGHT // 3}
    return {"title": title, "data": data, "facet": facet, "columns": _ACROSS, "spec": lines | small}


def heat_of(
    rows: pa.Table, value: str | None, by: Sequence[str] | None, title: str, *, at_instant: bool = False
) -> dict[str, Any]:
    """A map of colours as a Vega-Lite chart, whose colour is the value.

    Of two columns that make the groups, such as the series of correlated pairs, each pair is a square; of one
    each group is a row, over time, with a rectangle for each row of the history.

    Args:
        rows: a history: the payload, `valid_from` and `valid_to`. Squares are drawn as they are at the last
            instant at which a row begins.
        value: the column whose values are colours; the last numeric one that is no bound if None.
        by: one column or two. By default, the columns of the payload that are not numeric; if there are
            none, all others but estimates and bounds.
        title: what is written above.
        at_instant: whether the rows are the content of an instant instead: the payload alone.

    Raises:
        UserError: there is no such column, or none with numbers; there are no groups, or more than two
            columns of these; or there are too many rows.
    """
    _check_rows(rows)
    # By their places: a column of the answer may be called valid_from, too.
    times = [] if at_instant else rows.column_names[-2:]
    payload = rows.column_names[: len(rows.column_names) - len(times)]
    bounds = _bounds_in(payload)
    value = _value_column(rows, payload, value, bounds)
    groups = _groups_of_heat(rows, _groups_in(payload, value, bounds)) if by is None else list(by)
    for name in groups:
        _check(name, payload)
    if len(groups) not in (1, 2):
        raise UserError(
            f"a map of colours has one column of groups or two, not {len(groups)}",
            hint="name them: by=['first', 'second'] for pairs, by=['device'] for series over time",
        )
    if len(groups) == 1 and at_instant:
        raise UserError("groups over time have all instants", hint="leave out at, or name two columns in by")
    if len(groups) == 2 and not at_instant:
        rows = _at_last(rows, *times)
    labels = [value_texts(rows[name].combine_chunks()).fill_null("NULL").to_pylist() for name in groups]
    colours = [_number(one) for one in rows[value].to_pylist()]
    colour = {"field": "value", "type": "quantitative", "title": value, "scale": _colour_scale(colours)}
    upright = {"field": "group", "type": "nominal", "title": groups[0]}
    if len(groups) == 2:
        data = [
            {"group": one, "other": other, "value": shown}
            for one, other, shown in zip(*labels, colours, strict=True)
        ]
        across: dict[str, Any] = {"x": {"field": "other", "type": "nominal", "title": groups[1]}}
    else:
        starts, ends = (rows[name].to_pylist() for name in times)
        last = max((time for time in (*starts, *ends) if time is not None), default=None)
        data = [
            {"at": _time(at), "until": _time(last if end is None else end), "group": label, "value": shown}
            for at, end, label, shown in zip(starts, ends, labels[0], colours, strict=True)
        ]
        across = {"x": _time_axis(*(rows[name] for name in times)), "x2": {"field": "until"}}
    return {
        "title": title,
        "width": _WIDTH if len(groups) == 1 else _HEIGHT,
        "height": _HEIGHT,
        "data": {"values": data},
        "mark": {"type": "rect", "tooltip": True},
        "encoding": across | {"y": upright, "color": colour},
    }


def _at_last(history: pa.Table, start: str, end: str) -> pa.Table:
    """The rows that are there at the last instant at which one begins."""
    last = pc.max(history[start])
    ended = pc.less_equal(history[end], last).fill_null(False)
    return history.filter(pc.invert(ended))


def _groups_of_heat(rows: pa.Table, others: list[str]) -> list[str]:
    texts = [name for name in others if not _is_number(rows.schema.field(name).type)]
    return texts or others


def _colour_scale(values: Sequence[float | None]) -> dict[str, Any]:
    """From the smallest to the largest; with numbers below 0, as far to one side of 0 as to the other."""
    known = [abs(value) for value in values if value is not None]
    if any(value is not None and value < 0 for value in values):
        most = max(known)
        return {"scheme": "redblue", "reverse": True, "domain": [-most, most]}
    return {"scheme": "blues"}


def _check_rows(history: pa.Table) -> None:
    if len(history) > MOST_ROWS:
        raise UserError(
            f"a chart shows at most {count(MOST_ROWS, 'row')}, and the answer has {len(history):,}",
            hint="let the answer change less often, with a SLIDE or a GRANULARITY after the window",
        )


def specification_of(
    history: pa.Table, value: str | None, by: Sequence[str] | None, title: str
) -> dict[str, Any]:
    """A history as a Vega-Lite chart: the value over time, as a line of steps per group.

    Where a group has no row there is a gap. A row that holds for ever is drawn to the last instant that any
    row begins or ends at. An answer whose rows are all there for a single instant is drawn as points. An
    estimate `n` has its bounds `n_low` and `n_high` as a band around the line.

    Args:
        history: the payload, `valid_from` and `valid_to`.
        value: the column that is drawn; the last numeric one that is no bound if None.
        by: the columns that make the groups; all others of the payload but estimates and bounds if None.
        title: what is written above.

    Raises:
        UserError: there is no such column, or none with numbers; or there are too many rows.
    """
    _check_rows(history)
    payload, (start, end) = history.column_names[:-2], history.column_names[-2:]
    bounds = _bounds_in(payload)
    value = _value_column(history, payload, value, bounds)
    groups = _groups_in(payload, value, bounds) if by is None else list(by)
    for name in groups:
        _check(name, payload)
    events = _are_events(history[start], history[end])
    points = _events if events else _corners
    drawn = {"value": value} | dict(zip(("low", "high"), bounds.get(value, ()), strict=False))
    columns = {name: history[column].to_pylist() for name, column in drawn.items()}
    data = [
        {"at": _time(at), "group": label}
        | {name: None if row is None else _number(column[row]) for name, column in columns.items()}
        for at, row, label in points(history, _labels(history, groups), (start, end))
    ]
    levels = [point[name] for point in data for name in columns if point[name] is not None]
    upright = _value_axis(value, levels)
    if pa.types.is_integer(history.schema.field(value).type):
        upright["axis"] = {"tickMinStep": 1}
    encoding = {"x": _time_axis(history[start], history[end]), "y": upright}
    if groups:
        encoding["color"] = _colours(", ".join(groups), len({point["group"] for point in data}))
    return {
        "title": title,
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": data},
        **_marks(events, encoding, has_band=value in bounds),
    }


def _marks(events: bool, encoding: dict[str, Any], has_band: bool) -> dict[str, Any]:
    """Points, or a line of steps, maybe with a band around it."""
    if not has_band:
        line = {"type": "circle", "size": 40} if events else {"type": "line", "interpolate": "step-after"}
        return {"mark": line, "encoding": encoding}
    ends = {"y": encoding["y"] | {"field": "low"}, "y2": {"field": "high"}}
    band: dict[str, Any] = {"type": "rule"} if events else {"type": "area", "interpolate": "step-after"}
    layers = [
        {"mark": band | {"opacity": 0.3}, "encoding": encoding | ends},
        {**_marks(events, encoding, has_band=False)},
    ]
    return {"layer": layers}


def _bounds_in(payload: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The columns that have bounds beside them, with the names of these."""
    pairs = {name: (f"{name}_low", f"{name}_high") for name in payload}
    return {name: pair for name, pair in pairs.items() if {*pair} <= {*payload}}


def _groups_in(payload: Sequence[str], value: str, bounds: Mapping[str, tuple[str, str]]) -> list[str]:
    """The columns that are neither the value nor estimates or their bounds."""
    estimated = {*bounds, *(name for pair in bounds.values() for name in pair), value}
    return [name for name in payload if name not in estimated]


def _colours(title: str, groups: int) -> dict[str, Any]:
    colours: dict[str, Any] = {"field": "group", "type": "nominal", "title": title}
    return colours if groups <= _COLOURS else colours | {"scale": {"scheme": "tableau20"}}


def _are_events(starts: pa.ChunkedArray, ends: pa.ChunkedArray) -> bool:
    """Whether there are rows, and each of them is there for a single instant."""
    lengths = pc.subtract(ends.cast(pa.int64()), starts.cast(pa.int64()))
    return bool(pc.all(pc.equal(lengths, 1).fill_null(False), min_count=1).as_py())


def _value_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """The axis of the values, which shows 0 unless more than half of it would be empty then."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    zero = 2 * low <= high if low > 0 else 2 * high >= low
    return {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": zero, "nice": 5}}


def _time_axis(starts: pa.ChunkedArray, ends: pa.ChunkedArray) -> dict[str, Any]:
    if not pa.types.is_timestamp(starts.type):
        return {"field": "at", "title": "time", "type": "quantitative"}
    across = {"field": "at", "title": "time (UTC)", "type": "temporal", "scale": {"type": "utc"}}
    times = [time for time in (*starts.to_pylist(), *ends.to_pylist()) if time is not None]
    if not times:
        return across
    first, last = min(times), max(times)
    form = next((form for length, form in _FORMATS if last - first <= length), "%Y-%m-%d")
    if "%d" not in form:
        days = f"{first:%Y-%m-%d}" if first.date() == last.date() else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
        across["title"] = f"{days}, UTC"
    return across | {"axis": {"format": form}}


def _value_column(
    history: pa.Table, payload: Sequence[str], value: str | None, bounds: Mapping[str, tuple[str, str]]
) -> str:
    ends = {name for pair in bounds.values() for name in pair}
    numeric = [name for name in payload if _is_number(history.schema.field(name).type)]
    if value is None and not numeric:
        raise UserError("no column of numbers can be drawn", hint=f"the columns are {', '.join(payload)}")
    if value is None:
        return next((name for name in reversed(numeric) if name not in ends), numeric[-1])
    _check(value, payload)
    if value not in numeric:
        raise UserError(f"{value} is not a column of numbers", hint=f"draw {' or '.join(numeric)}")
    return value


def _check(name: str, payload: Sequence[str]) -> None:
    if name not in payload:
        known = f"the columns are {', '.join(payload)}"
        raise UserError(f"there is no column {name}", hint=did_you_mean(name, payload) or known)


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def _labels(history: pa.Table, groups: Sequence[str]) -> list[str]:
    """What each row's group is called."""
    texts = [value_texts(history[name].combine_chunks()).fill_null("NULL").to_pylist() for name in groups]
    return [", ".join(parts) for parts in zip(*texts, strict=True)] if texts else [""] * len(history)


def _events(
    history: pa.Table, labels: Sequence[str], times: tuple[str, str]
) -> Iterator[tuple[Any, int | None, str]]:
    """Instant, place and group of each row."""
    return zip(history[times[0]].to_pylist(), range(len(history)), labels, strict=True)


def _corners(
    history: pa.Table, labels: Sequence[str], times: tuple[str, str]
) -> Iterator[tuple[Any, int | None, str]]:
    """The corners of each group's line in order of time: instant, row and group; None where it ends."""
    starts, ends = (history[name].to_pylist() for name in times)
    known = [time for time in (*starts, *ends) if time is not None]
    order = sorted(range(len(history)), key=lambda row: (labels[row], starts[row]))
    for place, row in enumerate(order):
        end = max(known) if ends[row] is None else ends[row]
        following = order[place + 1] if place + 1 < len(order) else None
        goes_on = following is not None and labels[following] == labels[row] and starts[following] <= end
        yield starts[row], row, labels[row]
        if not goes_on:
            yield end, row, labels[row]
            yield end, None, labels[row]


def _number(value: Any) -> float | None:
    """A value as JSON has it: without NaN and infinities, which leave a gap."""
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else None


def _time(at: Any) -> Any:
    return at if isinstance(at, int) else at.isoformat()
