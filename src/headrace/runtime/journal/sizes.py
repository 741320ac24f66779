"""The sizes of windows and granules within bounds and the shares of rows kept, as a store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headrace.algebra.tunings.tunings import Tuned, Tuning, TuningKind, Tunings
from headrace.steps import Scale, Step

_FIRST: Final = (TuningKind.WINDOW, TuningKind.SHARE)
"""What is told by whether there is a loss."""


def packed_tunings(tunings: Tunings) -> list[dict[str, Any]]:
    """Sizes as JSON has them."""
    return [
        {
            **_packed(tuning),
            "steps": [*map(list, tuned.steps)],
            "queries": list(tuned.queries),
            **({"why": tuned.why} if tuned.why else {}),
            **({"scales": [[one.begin, dict(one.means)] for one in tuned.scales]} if tuned.scales else {}),
        }
        for tuning, tuned in tunings.items()
    ]


def _packed(tuning: Tuning) -> dict[str, Any]:
    """A tuning as JSON has it: without loss where there is none, and of what there was first without kind."""
    packed = {name: value for name, value in tuning._asdict().items() if value or name != "loss"}
    del packed["kind"]
    return packed if tuning.kind in _FIRST else {**packed, "kind": tuning.kind.value}


def unpacked_tunings(content: Sequence[dict[str, Any]]) -> dict[Tuning, Tuned]:
    """Sizes from their JSON.

    Raises:
        KeyError: a part is missing.
        ValueError: there is no such kind.
    """
    found = {}
    for part in content:
        names, bounds = tuple(part["streams"]), (part["smallest"], part["largest"], part["slide"])
        loss = part.get("loss", "")
        kind = TuningKind(part.get("kind", TuningKind.SHARE if loss else TuningKind.WINDOW))
        tuning = Tuning(names, *bounds, loss, kind)
        steps = tuple(Step(begin, value) for begin, value in part["steps"])
        scales = tuple(
            Scale(begin, tuple((name, float(mean)) for name, mean in means.items()))
            for begin, means in part.get("scales", ())
        )
        found[tuning] = Tuned(steps, tuple(part["queries"]), part.get("why", ""), scales)
    return found
