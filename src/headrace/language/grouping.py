"""GROUP BY: expressions over the rows of FROM become expressions over the rows of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from headrace.errors import LanguageError
from headrace.expressions.tree import Call, Case, Cast, Column, Expression, Literal
from headrace.language.scope import OUTER
from headrace.schema import Schema


def regroup(expression: Expression, keys: tuple[Expression, ...], width: int, grouped: Schema) -> Expression:
    """The expression over the row of a group: its keys, then its aggregates.

    Args:
        expression: over the rows of FROM, with aggregate k as column `width + k`.
        keys: what the query groups by, over the rows of FROM.
        width: the number of columns of FROM.
        grouped: the columns of a group's row.

    Raises:
        LanguageError: it reads a column that is neither grouped nor aggregated; without a position.
    """

    def over_group(part: Expression) -> Expression:
        if part in keys:
            return _column(keys.index(part))
        match part:
            case Column(index=index) if index >= OUTER:
                # Of the row around the query, or of a subquery.
                return part
            case Column(index=index) if index >= width:
                return _column(len(keys) + index - width)
            case Column(name=name):
                raise LanguageError(
                    f"the column {name} is neither grouped nor aggregated",
                    hint=f"add {name} to GROUP BY, or aggregate it, such as MAX({name})",
                )
            case Literal():
                return part
            case Call(arguments=arguments):
                return replace(part, arguments=tuple(over_group(below) for below in arguments))
            case Cast(argument=argument):
                return replace(part, argument=over_group(argument))
            case Case(branches=branches, otherwise=otherwise):
                changed = tuple((over_group(condition), over_group(value)) for condition, value in branches)
                return replace(part, branches=changed, otherwise=over_group(otherwise))
            case _:
                assert_never(part)

    def _column(index: int) -> Column:
        return Column(index, grouped[index].name, grouped[index].type)

    return over_group(expression)
