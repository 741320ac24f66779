"""An answer as a chart: step lines over time, one per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.engine.frames import optional
from headrace.errors import UserError
from headrace.runtime.writing.texts import value_texts
from headrace.suggestions import did_you_mean

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


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
    row begins or ends at.

    Args:
        history: the payload, `valid_from` and `valid_to`.
        value: the column that is drawn; the last numeric one if None.
        by: the columns that make the groups; all others of the payload if None.
        title: what is written above.

    Raises:
        UserError: there is no such column, or none with numbers.
    """
    payload, (start, end) = history.column_names[:-2], history.column_names[-2:]
    value = _value_column(history, payload, value)
    groups = [name for name in payload if name != value] if by is None else list(by)
    for name in groups:
        _check(name, payload)
    points = list(_points(history, value, groups, (start, end)))
    is_time = pa.types.is_timestamp(history.schema.field(start).type)
    across: dict[str, Any] = {"field": "at", "title": "time", "type": "quantitative"}
    if is_time:
        across |= {"type": "temporal", "scale": {"type": "utc"}}
    encoding = {"x": across, "y": {"field": "value", "type": "quantitative", "title": value}}
    if groups:
        encoding["color"] = {"field": "group", "type": "nominal", "title": ", ".join(groups)}
    return {
        "$schema": _SCHEMA,
        "title": title,
        "data": {"values": points},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": encoding,
    }


def _value_column(history: pa.Table, payload: Sequence[str], value: str | None) -> str:
    numeric = [name for name in payload if _is_number(history.schema.field(name).type)]
    if value is None and not numeric:
        raise UserError("no column of numbers can be drawn", hint=f"the columns are {', '.join(payload)}")
    if value is None:
        return numeric[-1]
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


def _points(
    history: pa.Table, value: str, groups: Sequence[str], times: tuple[str, str]
) -> Iterator[Mapping[str, Any]]:
    """The corners of each group's line in order of time, with NULL where it ends."""
    texts = [value_texts(history[name].combine_chunks()).fill_null("NULL").to_pylist() for name in groups]
    labels = [", ".join(parts) for parts in zip(*texts, strict=True)] if texts else [""] * len(history)
    starts, ends = (history[name].to_pylist() for name in times)
    known = [time for time in (*starts, *ends) if time is not None]
    order = sorted(range(len(history)), key=lambda row: (labels[row], starts[row]))
    values = history[value].to_pylist()
    for place, row in enumerate(order):
        end = max(known) if ends[row] is None else ends[row]
        following = order[place + 1] if place + 1 < len(order) else None
        goes_on = following is not None and labels[following] == labels[row] and starts[following] <= end
        corners = [(starts[row], values[row])]
        if not goes_on:
            corners += [(end, values[row]), (end, None)]
        for at, level in corners:
            yield {"at": _time(at), "value": None if level is None else float(level), "group": labels[row]}


def _time(at: Any) -> Any:
    return at if isinstance(at, int) else at.isoformat()
