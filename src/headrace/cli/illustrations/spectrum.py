"""`headrace spectrum`: a query at several levels of consistency, side by side, as a table and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import pyarrow as pa
import typer

from headrace.cli.errors import reported, script_of
from headrace.cli.illustrations.heartbeats_chart import check_file
from headrace.cli.illustrations.spectrum_chart import draw
from headrace.cli.illustrations.spectrum_figures import Figures, Scenario, measured, scenario_of, unit_of
from headrace.runtime.writing.tables import write_table

_COLUMNS: Final = (
    *("scenario", "level", "behind", "blocked", "remembered", "output", "taken back", "lost", "history"),
)


def spectrum(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.sql...", help="Texts with streams that end, and a SELECT at the end."),
    ],
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help="A level, as after CONSISTENCY, such as 'BLOCK 5 SECONDS'; may be given several times.",
            show_default="STRONG, half of DISORDER blocked, MIDDLE, half of it remembered, WEAK",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="In about so many epochs rows come.")] = 50,
    plot: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Draw it: .svg, .png, .html or .json.")
    ] = None,
) -> None:
    """Run queries at several levels of consistency, and show what each costs and says.

    The first level is that with which the histories of the others are compared.
    """
    with reported():
        if plot is not None:
            check_file(plot)
    found: list[tuple[Scenario, list[Figures]]] = []
    for file in files:
        script = script_of(file, None)
        with reported(script.file):
            scenario = scenario_of(script.text, script.file)
            levels = level or scenario.levels
            found.append((scenario, [measured(scenario, one, epochs) for one in levels]))
    with reported():
        _print(found)
        if plot is not None:
            draw(found, plot)


def _print(found: Sequence[tuple[Scenario, Sequence[Figures]]]) -> None:
    lines = [line for scenario, figures in found for line in _lines(scenario, figures)]
    columns = zip(*lines, strict=True)
    names = zip(_COLUMNS, columns, strict=True)
    write_table(pa.table({name: pa.array(column) for name, column in names}), "table", None)


def _lines(scenario: Scenario, figures: Sequence[Figures]) -> Iterator[tuple[object, ...]]:
    unit, scale = unit_of(figures, scenario.domain)
    for one in figures:
        differing = one.differs(figures[0])
        yield (
            *(scenario.name, one.level, f"{one.behind / scale:,.1f} {unit}"),
            *(one.blocked, one.remembered, one.output, one.taken_back, one.lost),
            f"{differing} rows differ" if differing else "the same",
        )
