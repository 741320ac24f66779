"""An answer as a chart: step lines over time, one per group."""

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


def chart_of(history: pa.Table, value: str | None, by: Sequence[str] | None, title: str) -> Any:
    """An Altair chart; see `specification_of`.

    Raises:
        UserError: Altair is not installed, or as `specification_of` does.
    """
    return optional("altair", "plot").Chart.from_dict(specification_of(history, value, by, title))


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
    if len(history) > MOST_ROWS:
        raise UserError(
            f"a chart shows at most {count(MOST_ROWS, 'row')}, and the answer has {len(history):,}",
            hint="let the answer change less often, with a SLIDE or a GRANULARITY after the window",
        )
    payload, (start, end) = history.column_names[:-2], history.column_names[-2:]
    bounds = _bounds_in(payload)
    value = _value_column(history, payload, value, bounds)
    estimated = {*bounds, *(name for pair in bounds.values() for name in pair), value}
    groups = [name for name in payload if name not in estimated] if by is None else list(by)
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
