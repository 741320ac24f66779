"""Plans of queries that come together, so that they share more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headrace.algebra.nodes import Plan
from headrace.lowering.lower import Holds
from headrace.lowering.matched_groups import matched_groups
from headrace.lowering.memory import is_strong
from headrace.lowering.sharing.share import share
from headrace.lowering.sharing.weighing import Look


def shared_by(
    plans: Mapping[str, Plan],
    look: Look,
    holds: Mapping[str, Holds],
    present: Mapping[str, Plan] = MappingProxyType({}),
) -> dict[str, Plan]:
    """The plans that new queries are carried out as to share more, beside those of others.

    Not those whose operators may wait, that say what is not final, or that leave out rows: they share only
    what is equal.
    """
    alike = {name: plan for name, plan in plans.items() if name not in holds and is_strong(plan)}
    shared = share(alike, look).plans
    apart = {name: plan for name, plan in alike.items() if name not in shared}
    return {**shared, **matched_groups(apart, present)}
