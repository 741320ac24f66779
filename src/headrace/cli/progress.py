"""How a run reports: a bar while it runs and a summary when it is done, both on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table
from rich.text import Text

from headrace.engine import Summary
from headrace.engine.shown.progress_line import describe, length_text
from headrace.engine.shown.status import OPERATOR_COLUMNS, operator_row
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.driver.facts.status import OperatorStatus
from headrace.runtime.tasks.profile import Profile
from headrace.runtime.writing.texts import count

_MANY_ROWS: Final = 1_000
"""A rate is shown from so many rows on: that of a few rows is the time of a start."""

_MANY_APART: Final = 0.1
"""A larger share of a stream's rows that could not take part deserves a warning."""
_MOST_OPERATORS: Final = 50
"""So many operators are shown, those that took most of the time."""
_LEAST_ROOM: Final = 12
"""So many characters of an operator are shown at least."""
_BETWEEN: Final = 3
"""So many characters of a table are between the texts of two columns."""

_FIRST: Final = "running the first epoch (the first run on a machine compiles)"


@contextmanager
def waiting(wanted: bool, what: str) -> Iterator[None]:
    """Show what takes a while until it is done, if that is wanted and standard error is a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield
        return
    with Console(stderr=True).status(f"{what} ..."):
        yield


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A bar with share, elapsed and remaining time, rows, rate and heartbeat.

    The share and the remaining time are left out where a stream never ends. What does not fit into the
    terminal's width is cut off at the right. Returns None if no bar is wanted, or there is no terminal.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=16),
        _Times(),
        TextColumn("{task.description}", markup=False, table_column=rest),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task(_FIRST, total=None)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                description=describe(progress),
                total=progress.total_rows,
                completed=progress.rows,
                remaining=progress.remaining,
            )

        yield show


class _Times(ProgressColumn):
    """The share, for how long the bar is there, and about how long it will still be."""

    def render(self, task: Task) -> Text:
        parts = [length_text(task.elapsed or 0)]
        if task.total is not None:
            parts.insert(0, f"{task.percentage:.0f} %")
        if remaining := task.fields.get("remaining"):
            parts.append(f"about {length_text(remaining)} left")
        return Text("  ".join(parts), no_wrap=True)


def show_summary(summary: Summary, dead_letters: Path | None) -> None:
    """Print what a run read, how fast, what it held and what it could not use.

    Args:
        summary: of the run.
        dead_letters: the file that the rows which it could not use were written to.
    """
    rate = f"{summary.rows / summary.seconds:,.0f} rows/s, " if summary.rows >= _MANY_ROWS else ""
    read = f"{count(summary.rows, 'row')} in {summary.seconds:.2f} s"
    lines = [f"{read}, {rate}{count(summary.epochs, 'epoch')}"]
    if not summary.rows:
        lines.append("the inputs have no rows")
    if len(summary.streams) > 1:
        width = max(len(stream.name) for stream in summary.streams)
        lines += [f"  {stream.name:<{width}}  {count(stream.rows, 'row'):>16}" for stream in summary.streams]
    if summary.state_rows_peak:
        held, size = count(summary.state_rows_peak, "row"), readable_bytes(summary.state_bytes_peak)
        lines.append(f"state: at most {held}, {size}")
    if summary.growing:
        lines.append(f"state that grows without bound: {', '.join(summary.growing)}")
    lines += map(str, summary.lanes)
    for stream in summary.streams:
        if stream.set_apart is not None:
            lines.append("warning: " * (stream.share_apart > _MANY_APART) + stream.set_apart)
            if (leap := stream.leap) is not None:
                lines.append(f"  {leap.late} came after the row of {leap.timestamp}, which made them late")
            if not stream.rows:
                lines.append(f"  no row of {stream.name} could be used")
    if summary.dead_letters:
        place = f"in {dead_letters}" if dead_letters else "see them with --dead-letters PATH"
        lines.append(f"{count(summary.dead_letters, 'dead letter')}: {place}")
    typer.echo("\n".join(lines), err=True)


def readable_bytes(number: float) -> str:
    """A size with three figures or so: `512 B`, `12.3 kB`, `1.2 GB` (powers of 1000)."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def show_profile(profile: Profile, operators: Sequence[OperatorStatus]) -> None:
    """Print where the time of the epochs went, and what each operator did, to standard error.

    Args:
        profile: where the time went.
        operators: what each operator did.
    """
    console = Console(stderr=True)
    epochs = max(profile.epochs, 1)
    table = Table("level", "what", title=f"Where the time of {count(profile.epochs, 'epoch')} went")
    for head in ("s in all tasks", "%"):
        table.add_column(head, justify="right")
    everything = sum(profile.tasks.values()) or 1.0
    for (level, what), seconds in sorted(profile.tasks.items(), key=lambda item: (item[0][0], -item[1])):
        table.add_row(str(level), what, f"{seconds:.3f}", f"{100 * seconds / everything:.0f}")
    console.print(table)
    console.print(
        f"An epoch took {1000 * (profile.jobs + profile.commits) / epochs:.0f} ms: "
        f"{1000 * profile.busiest / epochs:.0f} ms the longest tasks, "
        f"{1000 * profile.engine / epochs:.0f} ms the runner beside them, "
        f"{1000 * profile.commits / epochs:.0f} ms the commit. "
        f"{profile.moved / 1e6:,.1f} MB moved between tasks."
    )
    console.print(operator_table(operators, console.width))


def operator_table(operators: Sequence[OperatorStatus], width: int) -> Table:
    """What the operators did, no wider than a terminal: of a long text the beginning is shown."""
    busiest = sorted(operators, key=lambda one: one.seconds, reverse=True)[:_MOST_OPERATORS]
    rows = [operator_row(one) for one in sorted(busiest, key=lambda one: one.number)]
    left_out = len(operators) - len(rows)
    table = Table(
        title="What the operators did",
        caption=f"without {count(left_out, 'operator')} that took less" if left_out else None,
    )
    for place, head in enumerate(OPERATOR_COLUMNS):
        table.add_column(head, justify="right" if place else "left", no_wrap=True)
    columns = list(zip(OPERATOR_COLUMNS, *rows, strict=True))
    taken = sum(max(map(len, column)) + _BETWEEN for column in columns[1:]) + _BETWEEN + 1
    for name, *numbers in rows:
        text = Text(name)
        text.truncate(max(width - taken, _LEAST_ROOM), overflow="ellipsis")
        table.add_row(text, *numbers)
    return table
