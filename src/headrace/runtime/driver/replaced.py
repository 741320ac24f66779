"""What has come to answer queries whose plan was exchanged, as a store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.algebra.nodes import Plan
from headrace.errors import PlanError, StoreError
from headrace.optimizer.migration import Migration
from headrace.runtime.journal.plans import packed_plans, unpacked_plans, users_in


def packed_exchanges(replaced: Mapping[str, Plan | Migration]) -> dict[str, Any]:
    """What answers queries now, as JSON has it: plans, and of exchanges that go on the old ones and when."""
    if not replaced:
        return {}
    going_on = {name: found for name, found in replaced.items() if isinstance(found, Migration)}
    new = {name: found.new if isinstance(found, Migration) else found for name, found in replaced.items()}
    return {
        "at": {name: found.at for name, found in going_on.items()},
        "old": packed_plans({name: found.old for name, found in going_on.items()}),
        "new": packed_plans(new),
    }


def unpacked_exchanges(content: Mapping[str, Any], known: Mapping[str, Plan]) -> dict[str, Plan | Migration]:
    """What answers queries now, from its JSON.

    Args:
        content: as `packed_exchanges` has made it, or empty.
        known: the plans with which the queries were begun; others are left out.

    Raises:
        StoreError: it is damaged.
    """
    try:
        users = users_in(known.values())
        old, new = (unpacked_plans(content.get(part, {}), users) for part in ("old", "new"))
        at = content.get("at", {})
        return {
            name: Migration(old[name], plan, int(at[name])) if name in at else plan
            for name, plan in new.items()
            if name in known
        }
    except (KeyError, TypeError, ValueError, PlanError) as error:
        raise StoreError(
            f"the plans that the store has of its queries cannot be read: {error!r}",
            hint="start with the version of Headrace, and the functions, that wrote the store",
        ) from None
