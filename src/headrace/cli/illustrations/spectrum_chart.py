"""The consistency spectrum as a picture: bars per level, a row of charts per scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.cli.illustrations.spectrum_figures import Figures, Scenario, unit_of
from headrace.engine.views.frames import optional
from headrace.errors import UserError

_WIDTH: Final = 150
_BAR: Final = 16
"""Pixels of a bar with the space below it."""


@dataclass(frozen=True)
class _Panel:
    """A chart: the attribute of the figures that it shows, its title, and what a part of the bar is."""

    attribute: str
    title: str
    part: str | None = None


_PANELS: Final = (
    _Panel("behind", "behind the newest row"),
    _Panel("blocked", "blocked rows"),
    _Panel("remembered", "remembered rows"),
    _Panel("output", "output (red: taken back)", "taken_back"),
)


def draw(found: Sequence[tuple[Scenario, Sequence[Figures]]], path: Path) -> None:
    """Write the picture.

    Raises:
        UserError: the file cannot be written.
    """
    saved(specification_of(found), path)


def saved(specification: dict[str, Any], path: Path) -> None:
    """Write a Vega-Lite chart as the picture that the end of a file's name says.

    Raises:
        UserError: the file cannot be written.
    """
    chart = optional("altair", "plot").Chart.from_dict(specification)
    try:
        chart.save(str(path), **({"scale_factor": 2} if path.suffix.lower() == ".png" else {}))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def specification_of(found: Sequence[tuple[Scenario, Sequence[Figures]]]) -> dict[str, Any]:
    """The figures as a Vega-Lite chart."""
    charts = [chart for one in found for chart in _charts(*one)]
    return {
        "concat": charts,
        "columns": len(_PANELS),
        "spacing": {"row": 24, "column": 28},
        "config": {"axis": {"titleFontWeight": "normal"}},
    }


def _charts(scenario: Scenario, figures: Sequence[Figures]) -> list[dict[str, Any]]:
    return [_chart(panel, scenario, figures, is_first=place == 0) for place, panel in enumerate(_PANELS)]


def _chart(
    panel: _Panel, scenario: Scenario, figures: Sequence[Figures], *, is_first: bool
) -> dict[str, Any]:
    values = {one.level: getattr(one, panel.attribute) for one in figures}
    title, scale = panel.title, 1
    if panel.attribute == "behind":
        unit, scale = unit_of(figures, scenario.domain)
        title = f"{title} ({unit})"
    data = [{"level": level, "value": round(value / scale, 3)} for level, value in values.items()]
    levels = {
        "field": "level",
        "type": "nominal",
        "title": None,
        "sort": [one.level for one in figures],
        "axis": {"labelLimit": 140} if is_first else None,
    }
    across = {"field": "value", "type": "quantitative", "title": title, "axis": {"tickCount": 4}}
    mark = {"type": "bar", "height": _BAR - 5}
    encoding = {"y": levels, "x": across}
    layers = [{"data": {"values": data}, "mark": mark, "encoding": encoding}]
    if panel.part is not None:
        parts = [{"level": one.level, "value": getattr(one, panel.part)} for one in figures]
        layers.append({"data": {"values": parts}, "mark": {**mark, "color": "#e45756"}, "encoding": encoding})
    named = {"title": {"text": scenario.name, "anchor": "start"}} if is_first else {}
    return {"width": _WIDTH, "height": _BAR * len(figures), "layer": layers, **named}
