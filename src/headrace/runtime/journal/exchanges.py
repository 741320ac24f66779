"""What has come to answer queries whose plan was exchanged, as a store keeps it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from headrace.algebra.nodes import Plan
from headrace.errors import PlanError, StoreError
from headrace.optimizer.migration import Migration
from headrace.runtime.journal.plans import packed_plans, unpacked_plans, users_in


@dataclass(frozen=True)
class PlanExchange:
    """The last exchange of a query's plan for one that was expected to do less.

    Attributes:
        epoch: in which it began.
        at: from where on the new plan answers (instant).
        before, after: the orders in which the plans join, by the names of what is joined.
        gain: how many times fewer rows the joins were expected to take, to yield and to keep.
        asked: whether somebody has asked for it; otherwise it began by itself.
        times: how often the plan has been exchanged by itself, this time included.
    """

    epoch: int
    at: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    gain: float
    asked: bool
    times: int = 0


def packed_exchanges(
    replaced: Mapping[str, Plan | Migration], last: Mapping[str, PlanExchange]
) -> dict[str, Any]:
    """What answers queries now, as JSON has it: plans, and of exchanges that go on the old ones and when.

    Args:
        replaced: what queries are carried out as, or the exchange that goes on.
        last: the last exchange of each of them.
    """
    if not replaced:
        return {}
    going_on = {name: found for name, found in replaced.items() if isinstance(found, Migration)}
    new = {name: found.new if isinstance(found, Migration) else found for name, found in replaced.items()}
    return {
        "at": {name: found.at for name, found in going_on.items()},
        "another": sorted(name for name, found in going_on.items() if found.is_another),
        "old": packed_plans({name: found.old for name, found in going_on.items()}),
        "new": packed_plans(new),
        "last": {name: asdict(exchange) for name, exchange in last.items()},
    }


def unpacked_exchanges(content: Mapping[str, Any], known: Mapping[str, Plan]) -> dict[str, Plan | Migration]:
    """What answers queries now, from its JSON; see `unpacked_last` for how that came about.

    Args:
        content: as `packed_exchanges` has made it, or empty.
        known: the plans with which the queries were begun; others are left out.

    Raises:
        StoreError: it is damaged.
    """
    try:
        users = users_in(known.values())
        old, new = (unpacked_plans(content.get(part, {}), users) for part in ("old", "new"))
        at, others = content.get("at", {}), content.get("another", ())
        return {
            name: Migration(old[name], plan, int(at[name]), name in others) if name in at else plan
            for name, plan in new.items()
            if name in known
        }
    except (KeyError, TypeError, ValueError, PlanError) as error:
        raise _damaged(error) from None


def unpacked_last(content: Mapping[str, Any], known: Container[str]) -> dict[str, PlanExchange]:
    """The last exchange of each query's plan, from the same JSON.

    Raises:
        StoreError: it is damaged.
    """
    try:
        found = {
            name: PlanExchange(**told) for name, told in content.get("last", {}).items() if name in known
        }
        return {
            name: replace(one, before=tuple(one.before), after=tuple(one.after))
            for name, one in found.items()
        }
    except (AttributeError, TypeError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> StoreError:
    return StoreError(
        f"the plans that the store has of its queries cannot be read: {error!r}",
        hint="start with the version of Headrace, and the functions, that wrote the store",
    )
