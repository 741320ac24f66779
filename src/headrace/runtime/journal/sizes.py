"""The sizes of windows and granules within bounds and the shares of rows kept, as a store keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.algebra.tunings.tunings import Tuned, Tuning, TuningKind, Tunings
from headrace.steps import Scale, Step

_FIRST: Final = (TuningKind.WINDOW, TuningKind.SHARE)
"""What is told by whether there is a loss."""
_LATER: Final = ("loss", "number", "of")
"""Parts that are left out where they say nothing."""


def packed_tunings(tunings: Tunings) -> list[dict[str, Any]]:
    """Sizes as JSON has them."""
    return [
        {
            **packed_tuning(tuning),
            "steps": [*map(list, tuned.steps)],
            "queries": list(tuned.queries),
            **({"why": tuned.why} if tuned.why else {}),
            **({"lacks_earlier": True} if tuned.lacks_earlier else {}),
            **({"scales": [[one.begin, dict(one.means)] for one in tuned.scales]} if tuned.scales else {}),
        }
        for tuning, tuned in tunings.items()
    ]


def packed_tuning(tuning: Tuning) -> dict[str, Any]:
    """A tuning as JSON has it: without what it has not, and of what there was first without kind."""
    packed = {name: value for name, value in tuning._asdict().items() if value or name not in _LATER}
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
        steps = tuple(Step(begin, value) for begin, value in part["steps"])
        scales = tuple(
            Scale(begin, tuple((name, float(mean)) for name, mean in means.items()))
            for begin, means in part.get("scales", ())
        )
        lacks_earlier = part.get("lacks_earlier", False)
        tuned = Tuned(steps, tuple(part["queries"]), part.get("why", ""), lacks_earlier, scales)
        found[unpacked_tuning(part)] = tuned
    return found


def unpacked_tuning(part: Mapping[str, Any]) -> Tuning:
    """A tuning from its JSON.

    Raises:
        KeyError: a part is missing.
        ValueError: there is no such kind.
    """
    names, bounds = tuple(part["streams"]), (part["smallest"], part["largest"], part["slide"])
    loss = part.get("loss", "")
    kind = TuningKind(part.get("kind", TuningKind.SHARE if loss else TuningKind.WINDOW))
    return Tuning(names, *bounds, loss, kind, part.get("number", 0), part.get("of", ""))
