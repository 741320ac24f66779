"""RESULTS.md: tables under headings, in parts that each have a command of their own."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True)
class Section:
    """Some figures under a heading, as a Markdown table.

    Attributes:
        title: the heading.
        heads: of the columns.
        rows: the cells; empty where nothing was measured.
        text: what is said before the table.
        incomplete: whether something could not be measured.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: str = ""
    incomplete: bool = False

    def __str__(self) -> str:
        lines = [f"## {self.title}", "", *([self.text, ""] if self.text else [])]
        lines += [_line(self.heads), _line(("---",) * len(self.heads)), *map(_line, self.rows)]
        return "\n".join(lines)


def machine() -> str:
    """When and where figures were measured."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({platform.machine()}), "
        f"Python {platform.python_version()}"
    )


def write_part(title: str, text: str, path: Path = RESULTS) -> None:
    """Replace the part of the results that has this title, or add it at the end.

    Args:
        title: of the part, a heading of the first level.
        text: what comes below it, with headings of the second level.
        path: the file.
    """
    parts = dict(_parts(path.read_text() if path.exists() else ""))
    parts[title] = text.strip()
    path.write_text("\n".join(f"# {name}\n\n{body}\n" for name, body in parts.items()))


def _parts(text: str) -> list[tuple[str, str]]:
    pieces = [piece.partition("\n") for piece in f"\n{text}".split("\n# ")[1:]]
    return [(title.strip(), body.strip()) for title, _, body in pieces]


def _line(cells: tuple[str, ...]) -> str:
    """A line of a table; what went wrong may have lines and bars of its own."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
