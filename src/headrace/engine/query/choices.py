"""What is decided about how a query runs that does not follow from its text, as a store remembers it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from headrace.algebra.tunings.tunings import Tunings
from headrace.lowering.lower import Holds
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.joins.join_graph import JoinOrder
from headrace.runtime.journal.definition import Definition
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.inspect import described, is_store

Choices: TypeAlias = Mapping[str, Any]
"""Per kind of decision what was decided, as JSON has it."""


def stored_choices(folder: Path | None) -> Mapping[str, Choices]:
    """What a durable store remembers of each of its queries; nothing where there is no store so far.

    Args:
        folder: the store's, or None if there is none.

    Raises:
        StoreError: as `stored_catalog` does.
    """
    description = _described(folder)
    if description is None:
        return {}
    return {name: one.choices for name, one in description.answered.items()}


def stored_catalog(folder: Path | None) -> tuple[tuple[Definition, ...], int]:
    """What is defined in a durable store, and how many queries it has had; nothing where there is no store.

    Args:
        folder: the store's, or None if there is none.

    Raises:
        StoreError: the store is damaged, foreign or of another version: nothing of it is served as if it
            were whole.
    """
    description = _described(folder)
    return ((), 0) if description is None else (description.catalog or (), description.made)


def stored_tunings(folder: Path | None) -> Tunings:
    """The sizes of windows within bounds, as a durable store has them; empty without a store.

    Args:
        folder: the store's, or None if there is none.

    Raises:
        StoreError: the store is damaged, foreign or of another version.
    """
    description = _described(folder)
    return {} if description is None else description.tunings


def _described(folder: Path | None) -> Description | None:
    if folder is None or not is_store(folder):
        return None
    return described(folder)


def choices_of(decisions: Decisions | None, holds: Holds | None) -> Choices:
    """What a store is to remember of a query for which something was decided.

    Args:
        decisions: what was decided about its plan, or None.
        holds: which of its operators wait for others; None if it does not ask for that.
    """
    found: dict[str, Any] = {}
    if decisions is not None:
        found = {"rules": decisions.rules, "joins": decisions.orders}
    found = {kind: what for kind, what in found.items() if what}
    return found if holds is None else found | {"holds": dict(holds)}


def decisions_in(choices: Choices) -> Decisions:
    """What was decided about a query of which a store remembers that."""
    return Decisions(tuple(choices.get("rules", ())), tuple(map(_order, choices.get("joins", ()))))


def holds_in(choices: Choices) -> Holds | None:
    """Which operators of a query wait for others; None if that was not decided."""
    known = choices.get("holds")
    return None if known is None else {shape: tuple(others) for shape, others in known.items()}


def _order(packed: Any) -> JoinOrder:
    return packed if isinstance(packed, int) else (_order(packed[0]), _order(packed[1]))
