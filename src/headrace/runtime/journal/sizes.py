"""The sizes of windows within bounds, as a store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.algebra.tunings.tunings import Tuned, Tuning, Tunings
from headrace.steps import Step


def packed_tunings(tunings: Tunings) -> list[dict[str, Any]]:
    """Sizes as JSON has them."""
    return [
        {
            **tuning._asdict(),
            "steps": [*map(list, tuned.steps)],
            "queries": list(tuned.queries),
            **({"why": tuned.why} if tuned.why else {}),
        }
        for tuning, tuned in tunings.items()
    ]


def unpacked_tunings(content: Sequence[dict[str, Any]]) -> dict[Tuning, Tuned]:
    """Sizes from their JSON.

    Raises:
        KeyError: a part is missing.
    """
    found = {}
    for part in content:
        tuning = Tuning(tuple(part["streams"]), part["smallest"], part["largest"], part["slide"])
        steps = tuple(Step(begin, value) for begin, value in part["steps"])
        found[tuning] = Tuned(steps, tuple(part["queries"]), part.get("why", ""))
    return found
