"""Values with parameters in them."""

from __future__ import annotations

from headrace.engine.planning.forms import ParameterForm
from headrace.expressions.parameters import Parameter
from headrace.expressions.tree import Call, Column, Literal
from headrace.schema import BIGINT, BOOLEAN


def test_constants_take_the_places_of_parameters() -> None:
    """A part that holds none is shared."""
    seen: set[int] = set()
    first, second = (Parameter(number, Literal(number, BIGINT), seen) for number in range(2))
    column = Column(0, "a", BIGINT)
    value = (Call("<", (column, second), BOOLEAN), column, "text", None)
    form = ParameterForm(value, [first, second], 2)
    assert form.parameters == {1}
    found = form.filled([Literal(7, BIGINT), Literal(8, BIGINT)])
    assert found == (Call("<", (column, Literal(8, BIGINT)), BOOLEAN), column, "text", None)
    assert found[1] is column
    assert not seen


def test_a_value_for_which_no_parameters_were_given_is_not_looked_at() -> None:
    """A text without constants that may be others has none."""
    value = (Parameter(0, Literal(1, BIGINT), set()),)
    form = ParameterForm(value, [], 1)
    assert not form.parameters
    assert form.filled([Literal(2, BIGINT)]) is value
