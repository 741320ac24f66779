"""The state that operators of a run keep, as their manifests say it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.runtime.tasks.messages import Manifest, StateKey


@dataclass(frozen=True)
class OperatorsKept:
    """The state of operators, by their identities.

    Attributes:
        sizes: what each keeps (bytes).
        groups: of those that keep groups how many each has.
        rows: of windows of rows how many are in each.
        stored: how many rows of state each has, whatever they are.
    """

    sizes: Mapping[str, int]
    groups: Mapping[str, int]
    rows: Mapping[str, int]
    stored: Mapping[str, int]


@dataclass
class StateKept:
    """Looks at state; what has not changed since the last look is not counted again.

    Attributes:
        known: the manifest of each part of an operator at the last look, its bytes, groups, rows in windows
            of rows, and all rows.
    """

    known: dict[StateKey, tuple[Manifest, int, int, int, int]] = field(default_factory=dict)

    def look(self, state: Mapping[StateKey, Manifest]) -> OperatorsKept:
        """The state that there is.

        Args:
            state: the manifests of all operators.
        """
        found = {}
        sums = tuple(defaultdict[str, int](int) for _ in range(4))
        for key, manifest in state.items():
            one = self.known.get(key)
            if one is None or one[0] is not manifest:
                groups, rows = _rows_of(manifest, "bases"), _rows_of(manifest, "rows")
                stored = sum(_rows_of(manifest, area) for area in manifest)
                one = manifest, _bytes_of(manifest), groups, rows, stored
            found[key] = one
            for total, number in zip(sums, one[1:], strict=True):
                total[key[0]] += number
        self.known = found
        return OperatorsKept(*sums)


def _bytes_of(manifest: Manifest) -> int:
    return sum(run.part.length for area in manifest.values() for run in area)


def _rows_of(manifest: Manifest, area: str) -> int:
    return sum(run.rows for run in manifest.get(area, ()))
