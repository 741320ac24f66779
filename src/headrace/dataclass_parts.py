"""The parts of values that are nested tuples and dataclasses: syntax trees, plans, expressions.

Whoever plans hundreds of queries goes over thousands of such values, several times over, and of most there is
nothing to see but numbers and texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Final

from headrace.errors import Position


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a dataclass, in order; none of another type."""
    known = _NAMES.get(kind)
    if known is None:
        known = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        _NAMES[kind] = known
    return known


def is_plain(value: object) -> bool:
    """Whether a value is a number, a text, a place in a text or None."""
    return type(value) in _PLAIN


def parts_of(value: object) -> Iterable[object]:
    """The items of a tuple, and what the fields of a dataclass hold, in order; without what is plain.

    Example:
        >>> from headrace.dataclass_parts import parts_of
        >>> parts_of((1, ("a", "b"), None))
        [('a', 'b')]
        >>> parts_of("abc")
        []
    """
    if isinstance(value, tuple):
        return [part for part in value if type(part) not in _PLAIN]
    held = [getattr(value, name) for name in field_names(type(value))]
    return [part for part in held if type(part) not in _PLAIN]


_PLAIN: Final = frozenset([bool, int, float, str, bytes, type(None), Position])

_NAMES: Final[dict[type[Any], tuple[str, ...]]] = {}
"""The names of fields by type: there are a few hundred types."""
