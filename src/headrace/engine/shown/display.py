"""What a notebook shows of tables, plans, queries, databases and summaries: small tables of HTML."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import pyarrow as pa

from headrace.runtime.writing.texts import count
from headrace.value_texts import value_texts

MOST_ROWS: Final = 20
"""So many rows of a table are shown."""
_MOST_CHARACTERS: Final = 200
"""So much of a text is shown."""


def show_tables_in_notebooks() -> None:
    """Let a notebook show Arrow tables, such as that of `Query.history`, as it shows a query's answer.

    Nothing is changed where IPython is not running, or where Arrow tables are shown as HTML already.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    if not hasattr(pa.Table, formatter.print_method) and pa.Table not in formatter:
        formatter.for_type(pa.Table, _html_if_possible)


def _html_if_possible(table: pa.Table) -> str | None:
    """A table as HTML; None, so that IPython shows its own text, where Arrow makes no texts of a type."""
    try:
        return html_of_table(table)
    except pa.ArrowException:
        return None


class PlanText(str):
    """A plan as text, which a shell shows line by line, and a notebook with all its spaces."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def html_of_table(table: pa.Table, caption: str = "", most: int = MOST_ROWS) -> str:
    """The first rows of a table as HTML; NULL is shown as such, other values as in text.

    Args:
        table: any table.
        caption: what is written above it, as text.
        most: how many rows are shown at most; below them is said how many there are.
    """
    shown = table.slice(0, most)
    columns = [value_texts(column.combine_chunks()).to_pylist() for column in shown.columns]
    rows = zip(*columns, strict=True) if columns else iter([()] * shown.num_rows)
    left_out = table.num_rows - shown.num_rows
    note = f"first {most} of {count(table.num_rows, 'row')}" if left_out else count(table.num_rows, "row")
    return html_of_rows(table.column_names, rows, caption, note)


def html_of_rows(
    names: Sequence[str], rows: Iterable[Sequence[str | None]], caption: str = "", note: str = ""
) -> str:
    """Rows of texts as HTML; None is NULL.

    Args:
        names: the columns'.
        rows: a text per column.
        caption, note: what is written above and below, as text.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    below = f"<div>{escape(note)}</div>" if note else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _cell(text: str | None) -> str:
    if text is None:
        return "<td><i>NULL</i></td>"
    shown = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
    return f"<td>{escape(shown)}</td>"
