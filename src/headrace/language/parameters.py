"""Which constants of a parsed query may become parameters of its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlglot import exp

from headrace.dataclass_parts import parts_of
from headrace.expressions.parameters import Parameter
from headrace.language.dialect import Nested
from headrace.language.syntax import QuerySyntax, Scalar, SelectQuery

_META: Final = "parameter"


def open_constants(query: QuerySyntax) -> dict[int, Any]:
    """The constants in WHERE and HAVING that the parser has passed on unread, by the offset in the text.

    Elsewhere the parser or the binder reads constants that are no expressions: the length of a window, a
    number of rows, a place in the SELECT list. Where conditions hold queries, they stay closed too.
    """
    return {
        node.meta["start"]: node
        for condition in _conditions(query)
        if not condition.find(Nested)
        for node in condition.find_all(exp.Literal)
        if "start" in node.meta and "suffix" not in node.meta
    }


def put_parameters(nodes: Mapping[int, Any], parameters: Mapping[int, Parameter]) -> None:
    """Let the binder take parameters for constants.

    Args:
        nodes: the constants, by offset; see `open_constants`.
        parameters: those to take, by offset.
    """
    for offset, parameter in parameters.items():
        nodes[offset].meta[_META] = parameter


def parameter_of(node: Any) -> Parameter | None:
    """The parameter in the place of a constant, if there is one."""
    parameter: Parameter | None = node.meta.get(_META)
    return parameter


def _conditions(part: object) -> Iterator[Scalar]:
    if isinstance(part, SelectQuery):
        yield from (found for found in (part.where, part.having) if found is not None)
    for one in parts_of(part):
        yield from _conditions(one)
