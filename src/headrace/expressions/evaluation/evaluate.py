"""Evaluation of expressions over batches of rows, column by column.

A row whose value cannot be computed fails: it has a NULL in the values and a reason in the failures. A call
fails where one of its arguments does, even if another one is NULL. Only four forms look at their parts one
after the other, as in Spark: CASE, COALESCE, AND and OR fail only where a part that they need has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, empty_columns
from headrace.expressions.evaluation import calendar as evaluate_calendar
from headrace.expressions.evaluation import comparisons as evaluate_comparisons
from headrace.expressions.evaluation import from_json, hashes, quantile_sketches, sequences, shapes, sketches
from headrace.expressions.evaluation import nested as evaluate_nested
from headrace.expressions.evaluation import numbers as evaluate_numbers
from headrace.expressions.evaluation import patterns as evaluate_patterns
from headrace.expressions.evaluation import text_edits as evaluate_text_edits
from headrace.expressions.evaluation import texts as evaluate_texts
from headrace.expressions.evaluation import times as evaluate_times
from headrace.expressions.evaluation.casts import cast
from headrace.expressions.evaluation.values import (
    Datum,
    Failures,
    Kernel,
    KernelResult,
    LargeValuesError,
    Outcome,
    is_constant,
    rows_of,
    spread,
    truth,
    without,
)
from headrace.expressions.tree import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Literals,
    children,
    walk,
)
from headrace.expressions.user import call_user
from headrace.limits import check
from headrace.nested import is_nested
from headrace.schema import BINARY, STRING

__all__ = ["Outcome", "computed", "evaluate", "failure_of", "predicate_mask"]

_KERNELS: Final[dict[str, Kernel]] = {
    **evaluate_numbers.KERNELS,
    **evaluate_comparisons.KERNELS,
    **evaluate_texts.KERNELS,
    **evaluate_text_edits.KERNELS,
    **evaluate_times.KERNELS,
    **evaluate_calendar.KERNELS,
    **evaluate_patterns.KERNELS,
    **evaluate_nested.KERNELS,
    **from_json.KERNELS,
    **hashes.KERNELS,
    **sequences.KERNELS,
    **shapes.KERNELS,
    **sketches.KERNELS,
    **quantile_sketches.KERNELS,
    "TRY_CAST": lambda call, arguments: (cast(arguments[0], call.type)[0], ()),
}


_MOST: Final = 2**30
"""So many bytes the values of an expression have at most, for the rows of a batch."""
_MANY: Final = 2**14
"""Of so many rows texts and nested values are computed without a look at whether they are still wanted."""
_TOGETHER: Final = 2**21
"""So many bytes of long values are computed without a look at whether they are still wanted."""
_LONG: Final = 2**10
"""So many bytes a row has that counts as long."""
_TEXT: Final = 2**12
"""So many bytes a text has at most from which something is computed before there are rows."""
_LITERAL: Final = 2**17
"""The same of other values."""


def evaluate(expression: Expression, rows: pa.RecordBatch) -> Outcome:
    """The values of an expression for each row, and the rows for which it has none.

    Args:
        expression: its columns are positions in `rows`, with the types that these have.
        rows: n rows.
    """
    check()
    if not _are_long(rows) and (rows.num_rows <= _MANY or not _is_of_values(expression)):
        try:
            values, failures = _evaluate(expression, rows)
            return Outcome(spread(values, rows.num_rows), failures)
        except LargeValuesError:
            if rows.num_rows < 2:
                raise
    middle = rows.num_rows // 2
    return _joined([evaluate(expression, part) for part in (rows.slice(0, middle), rows.slice(middle))])


@lru_cache(maxsize=1_000)
def _is_of_values(expression: Expression) -> bool:
    """Whether a function looks into texts or nested values, which takes up to some microseconds for a row."""
    calls = (part for part in walk(expression) if isinstance(part, Call) and part.function not in _QUICK)
    return any(
        part.type in (STRING, BINARY) or is_nested(part.type)
        for call in calls
        for part in (call, *call.arguments)
    )


_QUICK: Final = frozenset(
    {
        *("=", "<>", "<", "<=", ">", ">=", "IS NULL", "IS NOT NULL", "IS NOT DISTINCT FROM"),
        *("AND", "OR", "NOT", "IN", "COALESCE", "LENGTH", "UPPER", "LOWER", "||", "CONCAT", "REVERSE"),
        *("TRIM", "LTRIM", "RTRIM", "LIKE", "REPLACE", "STARTSWITH", "ENDSWITH", "CONTAINS"),
    }
)
"""Functions that take some ten nanoseconds for a short text."""


def _are_long(rows: pa.RecordBatch) -> bool:
    """Whether rows have so long values that some of them are computed at a time, to ask in between."""
    size = int(rows.nbytes)
    return bool(rows.num_rows > 1 and size > max(_TOGETHER, _LONG * rows.num_rows))


def _joined(parts: Sequence[Outcome]) -> Outcome:
    """The values of rows that were computed apart, and those that failed.

    Raises:
        MemoryError: they are too large.
    """
    size = sum(part.values.nbytes for part in parts)
    if size > _MOST:
        raise MemoryError(f"values of more than {_MOST // 2**20:,} MiB")
    reasons = dict.fromkeys(reason for part in parts for reason, _ in part.failures)
    none = [np.zeros(len(part.values), dtype=np.bool_) for part in parts]
    masks = {
        reason: np.concatenate(
            [dict(part.failures).get(reason, empty) for part, empty in zip(parts, none, strict=True)]
        )
        for reason in reasons
    }
    return Outcome(pa.concat_arrays([part.values for part in parts]), tuple(masks.items()))


def computed(expression: Expression) -> Expression:
    """An expression without columns as a literal; itself where it fails, or where there is no such literal.

    There are none of ARRAYs, STRUCTs, MAPs and BINARY, and Python's dates end with the year 9999. What takes
    long or much memory is left to whoever runs it.
    """
    outcome = _soon(expression)
    if outcome is None or outcome.values.nbytes > _TEXT:
        return expression
    try:
        value = outcome.values[0].as_py()
    except (OverflowError, ValueError):
        return expression
    is_literal = value is None or not (is_nested(expression.type) or expression.type == BINARY)
    return Literal(value, expression.type) if is_literal and not outcome.failures else expression


def failure_of(expression: Expression) -> str | None:
    """Why an expression without columns cannot be computed, or None if it can."""
    outcome = _soon(expression)
    return None if outcome is None else outcome.reason


def _soon(expression: Expression) -> Outcome | None:
    """The value of an expression without columns; None where it is not to be had soon.

    That depends on how large the values are that it is made of, and on no clock: the plan of a query is the
    same whenever it is made.
    """
    one = empty_columns(1)
    for part in children(expression):
        found = _soon(part)
        if found is None or found.values.nbytes > (_TEXT if found.values.type == STRING else _LITERAL):
            return None
    try:
        return evaluate(expression, one)
    except MemoryError:
        return None


def predicate_mask(outcome: Outcome) -> BoolArray:
    """The rows for which a BOOLEAN expression is true; NULL and failed rows are not."""
    return truth(outcome.values, len(outcome.values))


def _evaluate(expression: Expression, rows: pa.RecordBatch) -> KernelResult:
    match expression:
        case Column(index=index):
            return rows.column(index), ()
        case Literal(value=value, type=dtype):
            return pa.scalar(value, dtype), ()
        case Literals(array=array):
            return pa.ListArray.from_arrays([0, len(array)], array)[0], ()
        case Cast(argument=argument, type=dtype):
            part = _evaluate(argument, rows)
            return _strict(lambda arguments: cast(arguments[0], dtype), [part], rows.num_rows)
        case Case():
            return _case(expression, rows)
        case Call(function="AND" | "OR"):
            return _logic(expression, rows)
        case Call(function="COALESCE"):
            return _coalesce(expression, rows)
        case Call():
            kernel, call = _kernel(expression), expression
            parts = [_evaluate(argument, rows) for argument in call.arguments]
            return _strict(lambda arguments: kernel(call, arguments), parts, rows.num_rows)
        case _:
            assert_never(expression)


def _kernel(call: Call) -> Kernel:
    if call.user is None:
        return _KERNELS[call.function]
    user = call.user
    return lambda _, arguments: call_user(user, _columns(arguments))


def _columns(arguments: Sequence[Datum]) -> list[pa.Array]:
    count = rows_of(arguments)
    return [spread(argument, count) for argument in arguments]


def _strict(
    compute: Callable[[Sequence[Datum]], KernelResult], parts: Sequence[KernelResult], count: int
) -> KernelResult:
    """What a kernel computes, without the rows in which an argument has failed."""
    arguments = [values for values, _ in parts]
    if all(map(is_constant, arguments)):
        values, found = _once(compute, arguments, count)
    else:
        values, found = compute(arguments)
    failures = _merged([*(failures for _, failures in parts), found])
    return _without_failed(values, failures, count), failures


def _once(
    compute: Callable[[Sequence[Datum]], KernelResult], constants: Sequence[Datum], count: int
) -> KernelResult:
    """A kernel over constants, computed for one row that represents all."""
    values, failures = compute([spread(constant, 1) for constant in constants])
    return values[0], tuple((reason, np.repeat(mask, count)) for reason, mask in failures if count)


def _logic(call: Call, rows: pa.RecordBatch) -> KernelResult:
    """From left to right: FALSE AND what fails is FALSE, TRUE OR what fails is TRUE."""
    (left, left_failures), (right, right_failures) = (_evaluate(part, rows) for part in call.arguments)
    kernel = pc.and_kleene if call.function == "AND" else pc.or_kleene
    values = kernel(left, right)
    if right_failures:
        decided = truth(pc.invert(left) if call.function == "AND" else left, rows.num_rows)
        right_failures = _restricted(right_failures, ~decided)
    failures = _merged([left_failures, right_failures])
    return _without_failed(values, failures, rows.num_rows), failures


def _coalesce(call: Call, rows: pa.RecordBatch) -> KernelResult:
    parts = [_evaluate(part, rows) for part in call.arguments]
    values = pc.coalesce(*(values for values, _ in parts))
    if not any(failures for _, failures in parts):
        return values, ()
    missing = np.ones(rows.num_rows, dtype=np.bool_)
    found: list[Failures] = []
    for part, failures in parts:
        found.append(_restricted(failures, missing))
        missing &= truth(pc.is_null(part), rows.num_rows)
    failures = _merged(found)
    return _without_failed(values, failures, rows.num_rows), failures


def _case(case: Case, rows: pa.RecordBatch) -> KernelResult:
    none: KernelResult = pa.scalar(None, case.type), ()
    branches: list[tuple[KernelResult, KernelResult]] = []
    otherwise: KernelResult | None = None
    for when, then in case.branches:
        condition = _evaluate(when, rows)
        # What is chosen in no row is not computed, and cannot fail.
        if _always(condition):
            otherwise = _evaluate(then, rows)
            break
        branches.append((condition, none if _never(condition) else _evaluate(then, rows)))
    otherwise = _evaluate(case.otherwise, rows) if otherwise is None else otherwise
    values = otherwise[0]
    for (condition, _), value in reversed(branches):
        if value is not none:
            values = pc.if_else(pc.fill_null(condition, False), value[0], values)
    failures = _case_failures(branches, otherwise, rows.num_rows)
    return _without_failed(values, failures, rows.num_rows), failures


def _always(condition: KernelResult) -> bool:
    """Whether a condition is true in every row, which is found out much faster than values are chosen."""
    values, _ = condition
    return not is_constant(values) and bool(pc.all(values, skip_nulls=False).as_py())


def _never(condition: KernelResult) -> bool:
    """Whether a condition is true in no row."""
    values, _ = condition
    return not is_constant(values) and not pc.any(values).as_py()


def _case_failures(
    branches: Sequence[tuple[KernelResult, KernelResult]], otherwise: KernelResult, count: int
) -> Failures:
    parts = [part for branch in branches for part in branch]
    if not any(failures for _, failures in (*parts, otherwise)):
        return ()
    left = np.ones(count, dtype=np.bool_)
    found: list[Failures] = []
    for (condition, condition_failures), (_, value_failures) in branches:
        taken = left & truth(condition, count)
        found += [_restricted(condition_failures, left), _restricted(value_failures, taken)]
        left &= ~taken
    return _merged([*found, _restricted(otherwise[1], left)])


def _merged(groups: Sequence[Failures]) -> Failures:
    """The failures of all groups; a row that fails twice counts for the first reason."""
    groups = [group for group in groups if group]
    if len(groups) < 2:
        return groups[0] if groups else ()
    merged: dict[str, BoolArray] = {}
    seen = np.zeros_like(groups[0][0][1])
    for group in groups:
        for reason, mask in _restricted(group, ~seen):
            merged[reason] = merged[reason] | mask if reason in merged else mask
            seen = seen | mask
    return tuple(merged.items())


def _restricted(failures: Failures, mask: BoolArray) -> Failures:
    """The failures among the rows of the mask."""
    kept = ((reason, failed & mask) for reason, failed in failures)
    return tuple((reason, failed) for reason, failed in kept if failed.any())


def _any(failures: Failures, count: int) -> BoolArray:
    return reduce(np.logical_or, (mask for _, mask in failures), np.zeros(count, dtype=np.bool_))


def _without_failed(values: Datum, failures: Failures, count: int) -> Datum:
    if not failures:
        return values
    return without(spread(values, count), _any(failures, count))
