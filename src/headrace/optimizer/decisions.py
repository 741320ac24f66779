"""What is decided about a plan by numbers, and so does not follow from the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.optimizer.joins.join_graph import Orders


@dataclass(frozen=True)
class Decisions:
    """What was decided about a plan.

    Attributes:
        rules: the names of those of `CHOSEN_RULES` that are applied.
        orders: in which orders it joins, after these rules.
    """

    rules: tuple[str, ...] = ()
    orders: Orders = ()
