"""ISTREAM over an unbounded window is the stream itself (thesis, 15.1.1)."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Plan, Project, TimeWindow, Union, Unnest
from headrace.time import INFINITY


def without_unbounded_window(plan: Plan) -> Plan | None:
    """The plan over the stream itself, or None where something else than its rows decides."""
    match plan:
        case TimeWindow(size=size, slide=slide, input=below):
            return below if size.length == INFINITY and slide.length == 1 else None
        case Filter(input=below) | Project(input=below) | Unnest(input=below):
            inner = without_unbounded_window(below)
            return None if inner is None else replace(plan, input=inner)
        case Union(inputs=inputs):
            parts = [without_unbounded_window(part) for part in inputs]
            found = tuple(part for part in parts if part is not None)
            return replace(plan, inputs=found) if len(found) == len(parts) else None
        case _:
            return None
