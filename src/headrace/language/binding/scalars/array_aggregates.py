"""Aggregates that are a function of an ARRAY_AGG: STRING_AGG and its like, and sketches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.errors import LanguageError
from headrace.expressions.aggregates import aggregates
from headrace.expressions.functions import functions
from headrace.expressions.functions.sketch_rules import k_of, size_of, values_of
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
    if name in aggregates.SKETCHED:
        call, size = _sketched(name, arguments, modifiers)
    else:
        call, *size = aggregates.joined_parts(name, arguments, modifiers)
    values = Column(context.width + context.aggregates.number(call), name.lower(), call.type)
    if name in aggregates.SKETCHED:
        return functions.resolve(aggregates.SKETCHED[name], (values, *size))
    empty = functions.resolve("=", (functions.resolve("SIZE", (values,)), functions.literal(0)))
    text = functions.resolve("ARRAY_JOIN", (values, *size))
    return functions.make_case(((empty, functions.literal(None)),), text)


def _sketched(
    name: str, arguments: tuple[Expression | None, ...], modifiers: aggregates.Modifiers
) -> tuple[AggregateCall, Sequence[Expression]]:
    """The ARRAY_AGG of hashes, values or sketches that a sketch is made of; and its size, if it is told."""
    of_rows, is_theta = "SKETCH_AGG" in name, name.startswith("THETA")
    size = "14 for 2^14 hashes" if is_theta else "400 for 400 values"
    usage = f"write {name}({'x' if of_rows else 'sketch'}), with a second argument {size}"
    given = tuple(part for part in arguments if part is not None)
    if len(given) != len(arguments) or not 1 <= len(given) <= 2:
        raise LanguageError(f"{name} takes a value and a size", hint=usage)
    if modifiers.order or modifiers.within is not None or modifiers.bound is not None:
        raise LanguageError(f"{name} takes no ORDER BY or WITHIN", hint=usage)
    sizes = [size_of(name, *given[1:])] if is_theta else [k_of(name, one) for one in given[1:]]
    if not of_rows:
        (value,) = of_types(name, given[:1], (BINARY,), "sketches, which are BINARY")
    elif is_theta:
        value = functions.resolve("THETA_HASH", given[:1])
    else:
        value = values_of(name, given[0])
    # A hash counts once; a value, and a sketch of values, as often as it comes.
    several = replace(modifiers, distinct=is_theta or modifiers.distinct)
    return aggregates.resolve_aggregate("ARRAY_AGG", value, modifiers=several), sizes
