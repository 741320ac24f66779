"""Aggregates that are a function of an ARRAY_AGG: STRING_AGG and its like, and sketches."""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import LanguageError
from headrace.expressions.aggregates import aggregates
from headrace.expressions.functions import functions
from headrace.expressions.functions.sketch_rules import size_of
from headrace.expressions.functions.typing_rules import of_types
from headrace.expressions.tree import AggregateCall, Column, Expression
from headrace.language.binding.scalars.context import Context
from headrace.schema import BINARY


def of_array(
    name: str, arguments: tuple[Expression | None, ...], modifiers: aggregates.Modifiers, context: Context
) -> Expression:
    """Note the ARRAY_AGG of such an aggregate, and compute it from its values.

    Raises:
        LanguageError: the arguments or modifiers do not fit; without a position.
    """
    assert context.aggregates is not None
    parts = _sketched if name in aggregates.SKETCHED else aggregates.joined_parts
    call, constant = parts(name, arguments, modifiers)
    values = Column(context.width + context.aggregates.number(call), name.lower(), call.type)
    if name in aggregates.SKETCHED:
        return functions.resolve("THETA_SKETCH", (values, constant))
    empty = functions.resolve("=", (functions.resolve("SIZE", (values,)), functions.literal(0)))
    text = functions.resolve("ARRAY_JOIN", (values, constant))
    return functions.make_case(((empty, functions.literal(None)),), text)


def _sketched(
    name: str, arguments: tuple[Expression | None, ...], modifiers: aggregates.Modifiers
) -> tuple[AggregateCall, Expression]:
    """The ARRAY_AGG of hashes for THETA_SKETCH_AGG, or of sketches for THETA_UNION_AGG; and the size."""
    of_rows = name == "THETA_SKETCH_AGG"
    usage = f"write {name}({'x' if of_rows else 'sketch'}), with a second argument 14 for 2^14 hashes"
    given = tuple(part for part in arguments if part is not None)
    if len(given) != len(arguments) or not 1 <= len(given) <= 2:
        raise LanguageError(f"{name} takes a value and a size", hint=usage)
    if modifiers.order or modifiers.within is not None or modifiers.bound is not None:
        raise LanguageError(f"{name} takes no ORDER BY or WITHIN", hint=usage)
    bits = size_of(name, *given[1:])
    if of_rows:
        value = functions.resolve("THETA_HASH", given[:1])
    else:
        (value,) = of_types(name, given[:1], (BINARY,), "sketches, which are BINARY")
    distinct = replace(modifiers, distinct=True)
    return aggregates.resolve_aggregate("ARRAY_AGG", value, modifiers=distinct), bits
