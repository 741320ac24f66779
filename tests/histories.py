"""The canonical history of elements by its definition: content by content, without `headrace.history`."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.elements import Batch, to_rows
from headrace.reference.contents import Element, History, content_at, history_of
from headrace.time import INFINITY


def history(batch: Batch, until: int = INFINITY) -> History:
    """The maximal intervals of what a batch holds before an instant, sorted by start, payload and end."""
    return history_of_elements(to_rows(batch), until)


def history_of_elements(elements: Sequence[Element], until: int = INFINITY) -> History:
    """The same of elements."""
    early = [(row, ts, min(te, until), w) for row, ts, te, w in elements if ts < until]
    ends = {end for _, ts, te, _ in early for end in (ts, te)} - {INFINITY}
    return history_of({instant: content_at(early, instant) for instant in ends})
