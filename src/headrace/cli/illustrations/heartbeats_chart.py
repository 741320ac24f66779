"""A timeline of heartbeats as a chart: rows as points, heartbeats as lines of steps."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.engine.views.frames import optional
from headrace.errors import UserError
from headrace.heartbeats.timeline import ArrivalTimeline
from headrace.time import MICROSECONDS, TimeDomain, format_instant

_RENDERED: Final = (".svg", ".png")
_ENDINGS: Final = (*_RENDERED, ".html", ".json")


@dataclass(frozen=True)
class Axis:
    """What the numbers of a timeline mean.

    Attributes:
        names: of the streams.
        domains: what the instants of each count.
        clock: TIMESTAMP where the clock is a date and time, None where it is seconds.
    """

    names: tuple[str, ...]
    domains: tuple[TimeDomain, ...]
    clock: TimeDomain | None

    def clock_text(self, clock: int) -> str:
        """A reading of the clock (microseconds) as text."""
        if self.clock is not None:
            return format_instant(clock, self.clock)
        return f"{clock / MICROSECONDS['SECOND']:.6f}".rstrip("0").rstrip(".") + " s"


def check_file(path: Path) -> None:
    """See that a picture can be written to a file.

    Raises:
        UserError: its ending is not one of a picture, or what draws it is not installed.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise UserError(
            f"{path} does not say its format", hint=f"end its name in one of {' '.join(_ENDINGS)}"
        )
    optional("altair", "plot")
    if path.suffix.lower() in _RENDERED and importlib.util.find_spec("vl_convert") is None:
        raise UserError(
            f"vl-convert is not installed, which draws {path.suffix} files",
            hint="pip install vl-convert-python, or write an .html file",
        )


def draw(seen: ArrivalTimeline, axis: Axis, path: Path) -> None:
    """Write the picture.

    Raises:
        UserError: the streams' timestamps have no axis in common, or the file cannot be written.
    """
    chart = optional("altair", "plot").Chart.from_dict(specification_of(seen, axis))
    try:
        chart.save(str(path), **({"scale_factor": 2} if path.suffix.lower() == ".png" else {}))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def specification_of(seen: ArrivalTimeline, axis: Axis) -> dict[str, Any]:
    """A timeline as a Vega-Lite chart, its heartbeats drawn to a little beyond its end.

    Raises:
        UserError: some streams are timed by TIMESTAMPs and some by integers.
    """
    if len(set(axis.domains)) > 1:
        raise UserError(
            "some streams are timed by TIMESTAMPs and some by integers, which have no axis in common",
            hint="draw a file with the streams of one kind",
        )
    upright = _axis("at", "timestamp", axis.domains[0])
    across = _axis("clock", "clock (UTC)" if axis.clock else "clock (seconds)", axis.clock)
    rows = [
        {
            **_point(row.arrival.clock, row.arrival.instant or 0, row.arrival.stream, axis),
            "kind": "late row" if row.is_late else "row",
        }
        for row in seen.rows
    ]
    lines = [_point(move.clock, move.heartbeat, move.stream, axis) for move in seen.moves]
    last = {move.stream: move.heartbeat for move in seen.moves}
    # The last step, too, is to be seen.
    beyond = seen.end + (seen.end - min((move.clock for move in seen.moves), default=seen.end)) // 40
    lines += [_point(beyond, heartbeat, stream, axis) for stream, heartbeat in last.items()]
    colour = {"field": "stream", "type": "nominal", "title": "stream", "sort": list(axis.names)}
    # Where heartbeats are the same, the thinner line is drawn on the thicker one.
    widths = {"domain": list(axis.names), "range": _widths(len(axis.names))}
    width = {"field": "stream", "type": "nominal", "scale": widths, "legend": None}
    kinds = {"domain": ["row", "late row"], "range": ["circle", "cross"]}
    shape = {"field": "kind", "type": "nominal", "title": None, "scale": kinds}
    return {
        "title": {"text": "Rows (points) and heartbeats (lines)", "anchor": "start"},
        "width": 620,
        "height": 320,
        "layer": [
            {
                "data": {"values": lines},
                # Over time, even where the timestamps are the only axis of dates.
                "mark": {"type": "line", "interpolate": "step-after", "orient": "vertical"},
                "encoding": {"x": across, "y": upright, "color": colour, "strokeWidth": width},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.8},
                "encoding": {"x": across, "y": upright, "color": colour, "shape": shape},
            },
        ],
    }


def _widths(streams: int) -> list[float]:
    """Of the lines in pixels, the thickest first."""
    return [1.5 + 3.5 * (streams - place - 1) / streams for place in range(streams)]


def _point(clock: int, instant: int, stream: int, axis: Axis) -> dict[str, Any]:
    return {
        "clock": clock / MICROSECONDS["SECOND"] if axis.clock is None else format_instant(clock, axis.clock),
        "at": instant if axis.domains[stream] is TimeDomain.INTEGER else _iso(instant),
        "stream": axis.names[stream],
    }


def _iso(instant: int) -> str:
    return format_instant(instant, TimeDomain.TIMESTAMP)


def _axis(field: str, title: str, domain: TimeDomain | None) -> dict[str, Any]:
    found: dict[str, Any] = {"field": field, "title": title}
    if domain is not TimeDomain.TIMESTAMP:
        return found | {"type": "quantitative", "scale": {"zero": False, "nice": False, "padding": 12}}
    form = {"format": "%H:%M:%S", "labelOverlap": True}
    return found | {"type": "temporal", "scale": {"type": "utc", "padding": 12}, "axis": form}
