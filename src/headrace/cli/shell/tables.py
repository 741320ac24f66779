"""How answers look at a prompt: as tables that fit the terminal, or a row at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa

from headrace.cli.output import with_open_ends
from headrace.runtime.writing.tables import write_table
from headrace.runtime.writing.texts import count, shown_texts
from headrace.schema import STRING
from headrace.time import in_words


def text_of_table(table: pa.Table, *, most: int, width: int | None, expanded: bool) -> str:
    """An answer as text, which says how many rows it leaves out.

    Args:
        table: the answer.
        most: so many rows of it are shown.
        width: that of the terminal (columns); None where nothing is shortened.
        expanded: whether each value is on a line of its own.
    """
    shown = table.slice(0, most)
    if expanded:
        lines = [*_expanded(shown), f"({count(table.num_rows, 'row')})"]
    else:
        text = io.StringIO()
        write_table(with_empty_ends(shown), "table", text, width)
        lines = text.getvalue().splitlines()
        lines[-1] = f"({count(table.num_rows, 'row')})"
    if left_out := table.num_rows - shown.num_rows:
        lines.append(f"... and {count(left_out, 'row')} more: \\rows {table.num_rows} shows them all")
    return "\n".join(lines)


def with_empty_ends(table: pa.Table) -> pa.Table:
    """The table with the ends of rows that hold for ever empty, where it has such a column."""
    if "valid_to" not in table.column_names:
        return table
    return with_open_ends(table, table.column_names.index("valid_to") - table.num_columns)


def with_instants_in_words(rows: pa.Table) -> pa.Table:
    """The newest rows of an answer, with instants of validity as texts like `just before 10:00:00`."""
    own = 2 if rows.column_names[-1].startswith("valid_to") else 1
    for place in range(rows.num_columns - own, rows.num_columns):
        instants = rows.column(place)
        if pa.types.is_timestamp(instants.type):
            shown = zip(shown_texts(instants.combine_chunks()).to_pylist(), instants.is_valid(), strict=True)
            texts = [in_words(text) if known.as_py() else None for text, known in shown]
            rows = rows.set_column(place, rows.column_names[place], pa.array(texts, STRING))
    return rows


def _expanded(table: pa.Table) -> Iterator[str]:
    """Each row as lines of names and values."""
    names = table.column_names
    room = max(map(len, names), default=0)
    columns = [shown_texts(column.combine_chunks()).to_pylist() for column in table.columns]
    for number in range(table.num_rows):
        yield f"-- row {number + 1}"
        for name, column in zip(names, columns, strict=True):
            yield f"{name:<{room}}  {column[number]}"
