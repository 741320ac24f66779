"""What a column of a SELECT list is called that has no alias."""

from __future__ import annotations

from sqlglot import exp

from headrace.language.dialect import WithinPercent
from headrace.language.syntax import Scalar


def default_name(node: Scalar) -> str:
    """The name of a result column without an alias: the column's or the function's."""
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Paren() | exp.Cast():
            return default_name(node.this)
        case exp.Anonymous():
            return str(node.name).lower()
        case exp.Filter() | exp.WithinGroup() | WithinPercent():
            return default_name(node.this)
        case exp.Case():
            return "case"
        case exp.Literal() | exp.Boolean() | exp.Null() | exp.Neg():
            return "literal"
        case _:
            return "expression"
