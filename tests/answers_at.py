"""The content of an answer at an instant, by its changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Change = Mapping[str, Any]
"""A row of `Query.changes()`."""


def content_at(changes: Sequence[Change], columns: Sequence[str], instant: int) -> dict[tuple[Any, ...], int]:
    """The rows that changes leave at an instant, with how often each is there.

    Args:
        changes: all changes of an answer.
        columns: the columns of the rows.
        instant: the instant.
    """
    found: Counter[tuple[Any, ...]] = Counter()
    for row in changes:
        end = row["valid_to"]
        if row["valid_from"] <= instant and (end is None or instant < end):
            found[tuple(row[column] for column in columns)] += row["change"]
    return {row: count for row, count in found.items() if count}
