"""The sizes of windows within bounds and the shares of rows kept, as a store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.algebra.tunings.tunings import Tuned, Tuning, Tunings
from headrace.steps import Step


def packed_tunings(tunings: Tunings) -> list[dict[str, Any]]:
    """Sizes as JSON has them."""
    return [
        {
            **_packed(tuning),
            "steps": [*map(list, tuned.steps)],
            "queries": list(tuned.queries),
            **({"why": tuned.why} if tuned.why else {}),
        }
        for tuning, tuned in tunings.items()
    ]


def _packed(tuning: Tuning) -> dict[str, Any]:
    """A tuning as JSON has it; a window has no loss, as when there were no shares."""
    return {name: value for name, value in tuning._asdict().items() if value or name != "loss"}


def unpacked_tunings(content: Sequence[dict[str, Any]]) -> dict[Tuning, Tuned]:
    """Sizes from their JSON.

    Raises:
        KeyError: a part is missing.
    """
    found = {}
    for part in content:
        names, bounds = tuple(part["streams"]), (part["smallest"], part["largest"], part["slide"])
        tuning = Tuning(names, *bounds, part.get("loss", ""))
        steps = tuple(Step(begin, value) for begin, value in part["steps"])
        found[tuning] = Tuned(steps, tuple(part["queries"]), part.get("why", ""))
    return found
