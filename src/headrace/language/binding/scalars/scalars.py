"""Scalar expressions: sqlglot's trees to typed expressions over the columns of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from headrace.errors import LanguageError, Position
from headrace.expressions.aggregates import aggregates
from headrace.expressions.evaluation.evaluate import computed
from headrace.expressions.functions import functions
from headrace.expressions.tree import AggregateCall, Call, Column, Expression, Literal, SortKey
from headrace.expressions.user import UserAggregate
from headrace.language.binding.columns import GroupPlace
from headrace.language.binding.scalars.aggregate_calls import aggregate_parts
from headrace.language.binding.scalars.array_aggregates import of_array
from headrace.language.binding.scalars.clock_calls import clock_error, is_clock_call
from headrace.language.binding.scalars.context import Context, located
from headrace.language.binding.scalars.hints import call_hint, method_hint, refuse_chain
from headrace.language.binding.scalars.intervals import bind_interval
from headrace.language.binding.scalars.literals import read_list, read_moment, read_number
from headrace.language.binding.scope import names_in
from headrace.language.binding.subqueries.predicates import bind_subquery, holds_query
from headrace.language.dialect import WithinPercent, position_of, shown_of
from headrace.language.long_lists import written_list
from headrace.language.parameters import parameter_of
from headrace.language.synonyms import CALLS
from headrace.language.syntax import Name, Scalar
from headrace.language.types import column_type
from headrace.language.unsupported import NODES
from headrace.schema import BOOLEAN, DATE, UNKNOWN, check_column

BINARY: Final[dict[type, str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "DIV",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
}
"""sqlglot's nodes of two operands, and the function that each is."""


def bind_scalar(node: Scalar, context: Context) -> Expression:
    """The typed expression that a syntax tree means.

    Raises:
        LanguageError: an unknown name, a wrong type, or what is not built yet.
    """
    if holds_query(node):
        with located(position_of(node)):
            return bind_subquery(
                node, context.nesting, context.clause, lambda part: bind_scalar(part, context)
            )
    if operator := BINARY.get(type(node)):
        _refuse_parts(node, "this", "expression", "typed", "safe")
        refuse_chain(node)
        operands = (bind_scalar(node.this, context), bind_scalar(node.expression, context))
        return _resolve(operator, operands, node)
    binder = _BINDERS.get(type(node))
    if binder is None:
        raise _unsupported(node)
    return binder(node, context)


def bind_condition(node: Scalar, context: Context) -> Expression:
    """The expression that a condition means: as `bind_scalar`, but an untyped NULL is a BOOLEAN.

    Raises:
        LanguageError: an unknown name, a wrong type, or what is not built yet.
    """
    bound = bind_scalar(node, context)
    return functions.make_cast(bound, BOOLEAN) if bound.type == UNKNOWN else bound


_ALIASES: Final = {
    "WHERE": "WHERE comes before SELECT; repeat the expression, or filter a subquery in FROM",
    "SELECT": "an alias is known after SELECT only; repeat the expression, or name it in a subquery in FROM",
}
"""What to do about an alias of the SELECT list where it cannot be used, by clause."""


def _column(node: Any, context: Context) -> Expression:
    """`column`, `table.column`, or either with fields of a STRUCT after it."""
    _refuse_parts(node, "this", "table", "db", "catalog")
    if not isinstance(node.this, exp.Identifier):
        raise _unsupported(node)
    names = names_in(node)
    if len(names) == 1:
        return _clock(node, context) if _means_clock(node, context) else _named(names[0], context)
    column, fields = context.scope.path(names)
    return _fields(column, fields)


def _means_clock(node: Any, context: Context) -> bool:
    """Whether a node calls the clock, and is not a column of that name."""
    return is_clock_call(node) and not any(table.named(str(node.name)) for table in context.scope.tables)


def _clock(node: Any, context: Context) -> Expression:
    if context.now is None:
        raise clock_error(node, context.scope)
    return context.now


def _fields(row: Expression, names: Iterable[Name]) -> Expression:
    """The field of a field ... of a STRUCT."""
    for name in names:
        with located(name.position):
            row = functions.resolve("GET_FIELD", (row, functions.literal(name.text)))
    return row


def _dot(node: Any, context: Context) -> Expression:
    """`(x).field`, `x[0].field`."""
    if not isinstance(node.expression, exp.Identifier):
        raise _unsupported(node)
    field = Name(str(node.expression.name), position_of(node.expression))
    return _fields(bind_scalar(node.this, context), [field])


def _subscript(node: Any, context: Context) -> Expression:
    """`array[0]`, `map['key']`."""
    _refuse_parts(node, "this", "expressions")
    return _resolve("[]", tuple(bind_scalar(part, context) for part in (node.this, *node.expressions)), node)


def _named(name: Name, context: Context) -> Expression:
    """The column of a name, or what an alias of that name stands for."""
    alias = context.aliases.get(name.text.lower())
    try:
        column = context.scope.column(None, name)
    except LanguageError as error:
        if alias is not None:
            return alias
        hint = CALLS.get(name.text.upper(), error.hint)
        if name.text.lower() in context.listed:
            hint = _ALIASES.get(context.clause, hint)
        raise LanguageError(error.message, position=error.position, hint=hint) from None
    hidden = alias is not None and context.keys is not None and column not in context.keys
    return alias if alias is not None and hidden else column


def _literal(node: Any, _: Context) -> Expression:
    _refuse_parts(node, "this", "is_string")
    if (parameter := parameter_of(node)) is not None:
        return parameter
    if node.is_string:
        return functions.literal(str(node.this))
    with located(position_of(node)):
        return functions.literal(read_number(str(node.this), node.meta.get("suffix", "")))


def _negation(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this")
    operand = node.this
    if isinstance(operand, exp.Literal) and not operand.is_string:
        with located(position_of(node)):
            # Not NEGATE, since the smallest BIGINT is the negation of no BIGINT.
            return functions.literal(-read_number(str(operand.this), operand.meta.get("suffix", "")))
    return _resolve("NEGATE", (bind_scalar(operand, context),), node)


def _constant(node: Any, _: Context) -> Expression:
    return functions.literal(bool(node.this) if isinstance(node, exp.Boolean) else None)


def _parenthesis(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this")
    return bind_scalar(node.this, context)


def _not(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this")
    return _resolve("NOT", (bind_scalar(node.this, context),), node)


def _is(node: Any, context: Context) -> Expression:
    """IS [NOT] NULL, TRUE, FALSE."""
    _refuse_parts(node, "this", "expression", "negate")
    negated = bool(node.args.get("negate"))
    operand = bind_scalar(node.this, context)
    match node.expression:
        case exp.Null():
            return _resolve("IS NOT NULL" if negated else "IS NULL", (operand,), node)
        case exp.Boolean() as truth:
            test = _resolve("IS NOT DISTINCT FROM", (operand, functions.literal(bool(truth.this))), node)
            return _resolve("NOT", (test,), node) if negated else test
        case other:
            raise LanguageError(
                "IS takes NULL, TRUE or FALSE",
                position=position_of(other),
                hint="write = to compare, or IS NOT DISTINCT FROM where NULL is to equal NULL",
            )


def _is_distinct(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "expression")
    operands = (bind_scalar(node.this, context), bind_scalar(node.expression, context))
    return _resolve("NOT", (_resolve("IS NOT DISTINCT FROM", operands, node),), node)


def _in(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "expressions")
    if not node.expressions:
        raise LanguageError("IN needs a list", position=position_of(node), hint="write x IN (1, 2, 3)")
    tested, written = bind_scalar(node.this, context), written_list(node)
    if written is not None:
        return _resolve("IN", (tested, *read_list(written, position_of(node.expressions[0]))), node)
    return _resolve("IN", (tested, *(bind_scalar(part, context) for part in node.expressions)), node)


def _between(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "low", "high")
    parts = (node.this, node.args["low"], node.args["high"])
    return _resolve("BETWEEN", tuple(bind_scalar(part, context) for part in parts), node)


def _matching(name: str, node: Any, context: Context, *escape: Expression) -> Expression:
    """`x LIKE 'pattern'`, `x ILIKE 'pattern'`, which compares both in lower case, or `x RLIKE 'pattern'`."""
    _refuse_parts(node, "this", "expression", "negate")
    operands = [bind_scalar(node.this, context), bind_scalar(node.expression, context)]
    if name == "ILIKE":
        name, operands = "LIKE", [_lower(operand, node) for operand in operands]
    test = _resolve(name, (*operands, *escape), node)
    return _resolve("NOT", (test,), node) if node.args.get("negate") else test


def _lower(operand: Expression, node: Any) -> Expression:
    lowered = _resolve("LOWER", (operand,), node)
    return computed(lowered) if isinstance(operand, Literal) else lowered


def _escape(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "expression")
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise _unsupported(node)
    name = "LIKE" if isinstance(node.this, exp.Like) else "ILIKE"
    return _matching(name, node.this, context, bind_scalar(node.expression, context))


def _case(node: Any, context: Context) -> Expression:
    """`CASE WHEN condition`, and `CASE value WHEN other`, which compares with each."""
    _refuse_parts(node, "this", "ifs", "default")
    if not node.args["ifs"]:
        raise LanguageError(
            "CASE needs a WHEN", position=position_of(node), hint="CASE WHEN a THEN b ELSE c END"
        )
    subject = node.args.get("this") and bind_scalar(node.this, context)
    branches = []
    for part in node.args["ifs"]:
        _refuse_parts(part, "this", "true")
        condition = bind_scalar(part.this, context)
        if subject is not None:
            condition = _resolve("=", (subject, condition), part)
        branches.append((condition, bind_scalar(part.args["true"], context)))
    default = node.args.get("default")
    otherwise = None if default is None else bind_scalar(default, context)
    with located(position_of(node)):
        return functions.make_case(tuple(branches), otherwise)


def _cast(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "to")
    position = position_of(node)
    dtype = _type(node.args["to"], position)
    if node.meta.get("literal"):
        with located(position):
            return functions.literal(read_moment(str(node.this.this), is_date=dtype == DATE))
    with located(position):
        return functions.make_cast(bind_scalar(node.this, context), dtype)


def _type(to: Any, position: Position) -> pa.DataType:
    """The type that CAST names."""
    match to.this, to.expressions:
        case exp.DType.ARRAY, [exp.DataType() as values]:
            return pa.list_(_type(values, position))
        case exp.DType.MAP, [exp.DataType() as key, exp.DataType() as value]:
            return pa.map_(_type(key, position), _type(value, position))
        case exp.DType.STRUCT, [*fields] if all(isinstance(field, exp.ColumnDef) for field in fields):
            return pa.struct([(str(field.name), _type(field.kind, position)) for field in fields])
    sizes = [part.this for part in to.expressions if isinstance(part, exp.DataTypeParam)]
    if len(sizes) != len(to.expressions) or not all(part.is_int for part in sizes) or to.args.get("nested"):
        hint = "types are BIGINT, STRING, ARRAY<BIGINT>, STRUCT<a: BIGINT>, MAP<STRING, BIGINT> and so on"
        raise LanguageError(f"there is no type {shown_of(to)}", position=position, hint=hint)
    name = to.this.value if isinstance(to.this, exp.DType) else str(to.this)
    return column_type(str(name), tuple(int(part.this) for part in sizes), position)


def _call(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "expressions")
    name = str(node.name)
    user = context.scope.functions.get(name.lower())
    if isinstance(user, UserAggregate) or aggregates.is_aggregate(name.upper()):
        return _aggregate(node, context)
    if user is not None:
        parts = tuple(bind_scalar(part, context) for part in node.expressions)
        with located(position_of(node)):
            return Call(user.name, functions.cast_arguments(user, parts), user.returns, user)
    if is_clock_call(node):
        return _clock(node, context)
    if name.upper() not in (*functions.FUNCTIONS, *functions.TRIMS, "STRUCT"):
        hint = call_hint(node, context.scope)
        raise LanguageError(f"there is no function {name}", position=position_of(node), hint=hint)
    if name.upper() == "STRUCT":
        return _struct(node, context)
    return _resolve(name.upper(), _arguments(name.upper(), node.expressions, context), node)


def _struct(node: Any, context: Context) -> Expression:
    """`STRUCT(a, b + 1 AS c)`, or `(a, b)`: fields are named as columns, or col1, col2 ... (Spark)."""
    parts: list[Expression] = []
    for place, part in enumerate(node.expressions, start=1):
        named = isinstance(part, exp.Column | exp.Dot | exp.Alias)
        name = str(part.alias or part.name) if named else f"col{place}"
        value = part.this if isinstance(part, exp.Alias) else part
        parts += [functions.literal(name), bind_scalar(value, context)]
    return _resolve("NAMED_STRUCT", tuple(parts), node)


def _arguments(name: str, parts: list[Any], context: Context) -> tuple[Expression, ...]:
    """The arguments of a call; a unit as the first one may be a word, as in TIMESTAMPDIFF(SECOND, a, b)."""
    if name in functions.OF_UNITS and len(parts) == 3 and isinstance(parts[0], exp.Column | exp.Var):
        return (functions.literal(str(parts[0].name)), *(bind_scalar(part, context) for part in parts[1:]))
    return tuple(bind_scalar(part, context) for part in parts)


def _interval(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "unit")
    with located(position_of(node)):
        return bind_interval(node, lambda part: bind_scalar(part, context))


def _extract(node: Any, context: Context) -> Expression:
    """`EXTRACT(part FROM x)`."""
    _refuse_parts(node, "this", "expression")
    return _resolve(
        "EXTRACT", (functions.literal(str(node.name)), bind_scalar(node.expression, context)), node
    )


def _at_time_zone(node: Any, context: Context) -> Expression:
    """`x AT TIME ZONE 'zone'`: what the clocks there show."""
    _refuse_parts(node, "this", "zone")
    parts = (bind_scalar(node.this, context), bind_scalar(node.args["zone"], context))
    return _resolve("FROM_UTC_TIMESTAMP", parts, node)


def _try_cast(node: Any, context: Context) -> Expression:
    """`TRY_CAST(x AS type)`: NULL where CAST fails."""
    _refuse_parts(node, "this", "to", "safe")
    position = position_of(node)
    with located(position):
        return functions.make_try_cast(bind_scalar(node.this, context), _type(node.args["to"], position))


def _aggregate(node: Any, context: Context) -> Expression:
    """Note an aggregate, and put a column of the grouped row in its place."""
    parts = aggregate_parts(node, context.scope.functions)
    if parts is None and isinstance(node, WithinPercent):
        hint = "write it after the aggregate, as in COUNT(*) WITHIN 1 PERCENT"
        message = "WITHIN is allowed only after aggregates"
        raise LanguageError(message, position=position_of(node), hint=hint)
    if parts is None and not isinstance(node, exp.Anonymous):
        raise _unsupported(node)
    if parts is None:
        message = "an aggregate lacks its argument"
        hint = "write it first, as in LAST(x ORDER BY ts)"
        raise LanguageError(message, position=position_of(node), hint=hint)
    name, position = parts.name, position_of(node)
    user = context.scope.functions.get(name.lower())
    first: tuple[None, ...] = (None,) if parts.star else ()
    compared = context.aggregates is None and context.groups is not None
    if context.aggregates is None and not (compared and name not in aggregates.OF_ARRAYS):
        hint = "use HAVING, or aggregate in a subquery in FROM"
        if context.clause.endswith("(...)"):
            hint = "aggregate in a subquery in FROM, or compare in FILTER: SUM(x) FILTER (WHERE x > AVG(x))"
        raise LanguageError(f"{name} cannot be used in {context.clause}", position=position, hint=hint)
    clause = f"{name}(...)"
    inner = replace(context, clause=clause, aggregates=None, groups=None, aliases={}, keys=None, over=None)
    filtered = replace(inner, clause="FILTER", groups=None if compared else context.groups)
    of_argument = filtered if name == "COUNT_IF" and user is None else inner
    arguments = [bind_scalar(part, of_argument) for part in parts.arguments]
    within = None if parts.within is None else bind_sort_key(parts.within, inner)
    order = tuple(bind_sort_key(key, inner) for key in parts.order)
    condition = None if parts.condition is None else bind_scalar(parts.condition, filtered)
    modifiers = aggregates.Modifiers(parts.distinct, order, within, condition, parts.bound)
    with located(position):
        for argument in (*arguments, *(key.expression for key in order)):
            check_column(argument.type)
        if name in aggregates.OF_ARRAYS and user is None:
            return of_array(name, (*first, *arguments), modifiers, context)
        if isinstance(user, UserAggregate):
            call = aggregates.resolve_user_aggregate(user, (*first, *arguments), modifiers)
        else:
            call = aggregates.resolve_aggregate(name, *first, *arguments, modifiers=modifiers)
    if context.aggregates is None:
        return _of_group(name, call, context, position)
    return Column(context.width + context.aggregates.number(call), name.lower(), call.type)


def _of_group(name: str, call: AggregateCall, context: Context, position: Position) -> Expression:
    """Note an aggregate of the group that FILTER compares its rows with."""
    assert context.groups is not None
    if call.within is not None:
        hint = "compare with an exact one"
        raise LanguageError(f"an approximate {name} cannot be used in FILTER", position=position, hint=hint)
    return GroupPlace(context.groups.number(call), name.lower(), call.type)


def _over(node: Any, context: Context) -> Expression:
    _refuse_parts(node, "this", "partition_by", "order", "spec", "alias", "over")
    if context.over is None:
        hint = "OVER belongs in the SELECT list, and into the condition after QUALIFY"
        if context.clause == "FILTER":
            hint = "leave OVER out: an aggregate in FILTER is of the row's own group"
        message = f"OVER cannot be used in {context.clause}"
        raise LanguageError(message, position=position_of(node), hint=hint)
    return context.over(node)


def bind_sort_key(key: Any, context: Context) -> SortKey:
    """A part of ORDER BY; NULLs come first, or last with DESC, unless it says otherwise (Spark)."""
    descending = bool(key.args.get("desc"))
    return SortKey(bind_scalar(key.this, context), descending, bool(key.args.get("nulls_first")))


def _resolve(name: str, arguments: tuple[Expression, ...], node: Any) -> Expression:
    with located(position_of(node)):
        return functions.resolve(name, arguments)


def _refuse_parts(node: Any, *known: str) -> None:
    """Refuse a node with parts that sqlglot has read and the binder would ignore."""
    for part, value in node.args.items():
        if part not in known and value not in (None, False, []):
            raise _unsupported(node)


def _unsupported(node: Any) -> LanguageError:
    message, hint = NODES.get(type(node), ("this expression is not supported", None))
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        message, hint = "values have no methods", method_hint(node)
    return LanguageError(message, position=position_of(node), hint=hint)


_BINDERS: Final[dict[type, Callable[[Any, Context], Expression]]] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Bracket: _subscript,
    exp.Literal: _literal,
    exp.Neg: _negation,
    exp.Boolean: _constant,
    exp.Null: _constant,
    exp.Paren: _parenthesis,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeNEQ: _is_distinct,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: partial(_matching, "LIKE"),
    exp.ILike: partial(_matching, "ILIKE"),
    exp.Escape: _escape,
    exp.RegexpLike: partial(_matching, "REGEXP_LIKE"),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _try_cast,
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.AtTimeZone: _at_time_zone,
    exp.Anonymous: _call,
    exp.Tuple: _struct,
    exp.Filter: _aggregate,
    exp.WithinGroup: _aggregate,
    WithinPercent: _aggregate,
    exp.Window: _over,
}
