"""The state of a run as manifests, and what it comes to: an epoch changes little of much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from headrace.operators.state.runs import RunPart
from headrace.runtime.tasks.messages import Manifest, StateKey


class HeldState(dict[StateKey, Manifest]):
    """The manifests of all state; nobody changes it once it is made."""

    @cached_property
    def sizes(self) -> StateSizes:
        """What it comes to."""
        return StateSizes.of(self.values())

    def changed(self, changes: Mapping[StateKey, Manifest]) -> HeldState:
        """The state when some manifests are others."""
        found = HeldState(self)
        found.update(changes)
        found.__dict__["sizes"] = self.sizes.changed(self, changes)
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)


def held(state: Mapping[StateKey, Manifest]) -> HeldState:
    """Some state with what it comes to."""
    return state if isinstance(state, HeldState) else HeldState(state)


class StateSizes:
    """What some state comes to.

    Attributes:
        files: the files that its runs are in, each with how many parts it holds.
        rows: of all runs, of those that several operators have once.
        size: the same in bytes.
    """

    def __init__(self) -> None:
        self._parts: dict[RunPart, tuple[int, int]] | None = {}
        self.files: dict[str, int] = {}
        self.rows = 0
        self.size = 0

    @classmethod
    def of(cls, manifests: Iterable[Manifest]) -> StateSizes:
        """Those of some manifests."""
        found = cls()
        found._count({}, manifests, 1)
        return found

    def changed(
        self, before: Mapping[StateKey, Manifest], changes: Mapping[StateKey, Manifest]
    ) -> StateSizes:
        """Those when some manifests are others.

        What is counted part by part goes over to the sizes after, so that it is not copied for each epoch.

        Args:
            before: the manifests that these are the sizes of.
            changes: the others.
        """
        parts = self._parts
        if parts is None:
            return StateSizes.of({**before, **changes}.values())
        self._parts = None
        found = StateSizes()
        found._parts, found.files, found.rows, found.size = parts, dict(self.files), self.rows, self.size
        found._count(parts, changes.values(), 1)
        found._count(parts, (before[key] for key in changes if key in before), -1)
        return found

    def _count(self, parts: dict[RunPart, tuple[int, int]], manifests: Iterable[Manifest], sign: int) -> None:
        runs = (run for manifest in manifests for area in manifest.values() for run in area)
        for run in runs:
            users, rows = parts.get(run.part, (0, 0))
            users += sign
            if sign > 0:
                # A part that is there may have fewer rows that count than it had.
                self.rows += run.rows - rows
                parts[run.part] = users, run.rows
            elif users:
                parts[run.part] = users, rows
            else:
                self.rows -= rows
                del parts[run.part]
            if users == (1 if sign > 0 else 0):
                self.size += sign * run.part.length
                held = self.files.get(run.part.segment, 0) + sign
                self.files[run.part.segment] = held
                if not held:
                    del self.files[run.part.segment]
        self._parts = parts
