"""The meaning of GAP_FILL: series at the multiples of a step."""

from __future__ import annotations

from headrace.algebra.kinds import Filling
from headrace.algebra.nodes import GapFill, Plan
from headrace.algebra.properties import timestamp_columns
from headrace.errors import LanguageError
from headrace.language.binding.ages import exact_ages
from headrace.language.binding.granules import refuse_between_granules
from headrace.language.binding.scalars.context import located
from headrace.language.binding.scope import Scope
from headrace.language.binding.windows import chronons
from headrace.language.lengths import check_duration
from headrace.language.syntax import WindowFunction
from headrace.schema import DOUBLE, quote, sql_type
from headrace.time import Duration


def gaps_filled(function: WindowFunction, plan: Plan, scope: Scope) -> Plan:
    """The series of a table at the multiples of a step.

    Args:
        function: what is written.
        plan: the table.
        scope: its columns.

    Raises:
        LanguageError: the rows last, the step does not divide the longest gap, a length does not fit the
            timestamp, no column holds that, or values that are to be on lines are no DOUBLEs.
    """
    for length, position in function.durations.values():
        check_duration(length, plan.domain, "INTERVAL", position)
        refuse_between_granules(length, plan, str, position)
    _check_lengths(function)
    rows = chronons(plan, function.position)
    keys = tuple(scope.column(None, name) for name in function.keys)
    time = _time(function, plan, scope)
    for key, name in zip(keys, function.keys, strict=True):
        if key.index == time:
            raise LanguageError(
                f"{name.text} is the time of the rows, and tells no series apart",
                position=name.position,
                hint="name the columns that say whose values they are, as in PARTITION BY device, "
                f"DESCRIPTOR({name.text})",
            )
    (step, _), (longest, _) = (function.durations[label] for label in ("STEP", "WITHIN"))
    with located(function.position):
        filled = GapFill(rows, step, longest, Filling.NULL, keys, time)
    if function.filling is None:
        return GapFill(rows, step, longest, Filling.LAST, keys, time)
    filling, position = function.filling
    if filling is Filling.LINEAR:
        _check_numbers(filled, function)
    with located(position):
        return GapFill(rows, step, longest, filling, keys, time)


def _check_lengths(function: WindowFunction) -> None:
    (step, at_step), (longest, at) = (function.durations[label] for label in ("STEP", "WITHIN"))
    if step.length < 1:
        raise LanguageError(f"a step of {step} is too short", position=at_step, hint="write a longer one")
    if longest.length % step.length or longest.length < step.length:
        fewer = max(longest.length // step.length, 1) * step.length
        fitting = Duration(fewer, step.unit)
        raise LanguageError(
            f"the step, {step}, does not divide the longest gap, {longest}",
            position=at,
            hint=f"the step comes first, then how long a series goes on without a row: such as {fitting}",
        )
    if longest.length // step.length > GapFill.most:
        raise LanguageError(
            f"gaps of {longest} have more than {GapFill.most:,} steps of {step}",
            position=at,
            hint="write a longer step, or a shorter gap",
        )


def _time(function: WindowFunction, plan: Plan, scope: Scope) -> int:
    """The place of the column that holds the instants of the rows, or the ends of their windows."""
    known, ages = timestamp_columns(plan), exact_ages(plan) if plan.is_chronon else {}
    fitting = known | {place for place, age in ages.items() if age in (0, -1)}
    if function.time is None:
        if len(known) == 1:
            return next(iter(known))
        raise LanguageError(
            "GAP_FILL needs the column by which the rows are timed",
            position=function.position,
            hint=_written(plan, fitting),
        )
    place = scope.column(None, function.time).index
    if place not in fitting:
        raise LanguageError(
            f"{function.time.text} is not the column by which these rows are timed",
            position=function.time.position,
            hint=_written(plan, fitting),
        )
    return place


def _written(plan: Plan, fitting: frozenset[int]) -> str:
    names = [f"DESCRIPTOR({quote(plan.schema[place].name)})" for place in sorted(fitting)]
    if names:
        return f"write {' or '.join(names)}"
    return "list the timestamp, or window_end, in the subquery in FROM"


def _check_numbers(plan: GapFill, function: WindowFunction) -> None:
    """Refuse columns that have no values on a line."""
    for place in plan.filled:
        name, dtype = plan.schema[place].name, plan.schema[place].type
        if dtype != DOUBLE:
            assert function.filling is not None
            raise LanguageError(
                f"LINEAR takes DOUBLEs, and {quote(name)} is {sql_type(dtype)}",
                position=function.filling[1],
                hint=f"list CAST({quote(name)} AS DOUBLE) in a subquery, add {quote(name)} to PARTITION BY, "
                "or leave it out",
            )
