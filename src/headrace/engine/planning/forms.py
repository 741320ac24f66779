"""Values with parameters in them, from which the same values with other constants are made quickly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.dataclass_parts import field_names, is_plain
from headrace.expressions.parameters import Parameter
from headrace.expressions.tree import Literal, Literals


@dataclass(frozen=True)
class _Step:
    """A part that holds parameters.

    Attributes:
        kind: its class.
        fixed: its attributes, by name; of a tuple its items, by place.
        open: those of them that hold parameters, and which earlier part each of them is.
    """

    kind: type
    fixed: dict[Any, Any]
    open: tuple[tuple[Any, int], ...]


class ParameterForm:
    """A value with parameters in it.

    What holds a parameter is copied, attribute by attribute, with the constant in its place; everything else
    is shared. Parts that are used twice stay one object. Nothing is checked again, since a check that had
    depended on a value would have looked at it.

    Args:
        value: tuples and frozen dataclasses, nested.
        given: the parameters that may be in it; without any it is not looked at.
        count: how many parameters there may be; their numbers are below it.

    Attributes:
        parameters: the numbers of the parameters in the value.
    """

    def __init__(self, value: object, given: Collection[Parameter], count: int) -> None:
        self._count = count
        self.parameters: set[int] = set()
        self._steps: list[_Step] = []
        self._value = value
        self._place = self._part(value, {}) if given else None

    def filled(self, constants: Sequence[Literal]) -> Any:
        """The value with a constant for every parameter, in the order of their numbers."""
        if self._place is None:
            return self._value
        made: list[Any] = list(constants)
        for step in self._steps:
            attributes = step.fixed.copy()
            for name, place in step.open:
                attributes[name] = made[place]
            if step.kind is tuple:
                made.append(tuple(attributes.values()))
            else:
                part: Any = object.__new__(step.kind)
                part.__dict__.update(attributes)
                made.append(part)
        return made[self._place]

    def _part(self, value: object, known: dict[int, int | None]) -> int | None:
        """The number of the part that a value is, constants first; None if there is no parameter in it."""
        if isinstance(value, Parameter):
            self.parameters.add(value.number)
            return value.number
        if is_plain(value) or isinstance(value, Literals):
            return None
        if id(value) not in known:
            known[id(value)] = self._step(value, known)
        return known[id(value)]

    def _step(self, value: object, known: dict[int, int | None]) -> int | None:
        if isinstance(value, tuple):
            attributes: dict[Any, Any] = dict(enumerate(value))
        elif names := field_names(type(value)):
            # What has been derived of a node and kept is derived again, but for what is plain.
            attributes = {name: part for name, part in vars(value).items() if name in names or name in _KEPT}
        else:
            return None
        parts = [(name, self._part(part, known)) for name, part in attributes.items() if name not in _KEPT]
        found = tuple((name, place) for name, place in parts if place is not None)
        if not found:
            return None
        self._steps.append(_Step(type(value), attributes, found))
        return self._count + len(self._steps) - 1


_KEPT = frozenset(["schema", "domain", "is_chronon"])
"""What nodes derive and keep that does not depend on constants."""
