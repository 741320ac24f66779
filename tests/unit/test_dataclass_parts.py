"""The parts of nested tuples and dataclasses."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

from headrace.dataclass_parts import field_names, is_plain, parts_of
from headrace.errors import Position


@dataclass(frozen=True)
class Part:
    name: str
    inner: object
    position: Position | None = None
    others: tuple[object, ...] = ()


Pair = namedtuple("Pair", ["first", "second"])


def test_parts_come_in_order_without_what_is_plain() -> None:
    """Fields of dataclasses and items of tuples, those with names included."""
    one, other = Part("one", 1), Part("other", None)
    assert list(parts_of(Part("both", one, Position(1, 2), (other,)))) == [one, (other,)]
    assert list(parts_of((1, one, "text", 1.5, None, b"", True, other))) == [one, other]
    assert list(parts_of(Pair(other, one))) == [other, one]


def test_other_values_have_no_parts() -> None:
    """Types of dataclasses are values, too."""
    for value in (1, "text", None, [Part("one", 1)], {1: Part("one", 1)}, Part):
        assert list(parts_of(value)) == []


def test_types_have_the_names_of_their_fields() -> None:
    """Inherited ones come first; a type that is no dataclass has none."""

    @dataclass(frozen=True)
    class Longer(Part):
        more: int = 0

    assert (
        field_names(Longer) == (*field_names(Part), "more") == ("name", "inner", "position", "others", "more")
    )
    assert field_names(Longer) is field_names(Longer)
    assert field_names(int) == ()
    assert is_plain(Position(1, 2))
    assert not is_plain((1, 2))
