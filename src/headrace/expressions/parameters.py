"""Constants whose values are open, in a plan that is made once for many texts.

Texts often differ in constants alone. A plan is made for the first of them, with a parameter in the place of
each constant; where nobody has looked at the value of a parameter on the way, the same steps would have
been taken for any other value of its type, and led to the same plan with that value in it.
"""

from __future__ import annotations

from headrace.expressions.tree import Literal


class Parameter(Literal):
    """A constant that notes when its value is looked at.

    It equals what its value equals, so that whoever handles it does what he does with the constant itself.

    Args:
        number: its place among the constants of the text.
        constant: what it is in this text.
        seen: takes the numbers of the parameters whose values have been looked at.

    Attributes:
        number: as given.
    """

    def __init__(self, number: int, constant: Literal, seen: set[int]) -> None:
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "type", constant.type)
        object.__setattr__(self, "_constant", constant)
        object.__setattr__(self, "_seen", seen)

    number: int
    _constant: Literal
    _seen: set[int]

    @property
    def value(self) -> object:
        """The constant's value; whoever reads it is noted."""
        self._seen.add(self.number)
        return self._constant.value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Parameter) and other.number == self.number:
            return True
        return isinstance(other, Literal) and (self.type, self.value) == (other.type, other.value)

    def __hash__(self) -> int:
        return hash(Literal(self.value, self.type))
