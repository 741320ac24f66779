"""The multiples of a granule: what may stand over GRANULARITY, as granules, windows and slides."""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

from headrace.algebra.nodes import Dstream, Granularity, Istream, Plan, inputs_of
from headrace.errors import LanguageError, Position
from headrace.language.lengths import check_duration
from headrace.time import INFINITY, MAX_INSTANT, MICROSECONDS, Duration, TimeDomain, make_duration


def granules_of(plan: Plan) -> tuple[Duration, ...]:
    """The granules at whose common multiples alone the plan's content is exact, each once, as they are met.

    What is below a GRANULARITY has a finer granule, and ISTREAM and DSTREAM make events of what they see.
    """
    found: list[Duration] = []
    seen = set[int]()
    ahead = [plan]
    while ahead:
        node = ahead.pop()
        if id(node) in seen or isinstance(node, Istream | Dstream):
            continue
        seen.add(id(node))
        if isinstance(node, Granularity):
            found.append(node.longest)
        else:
            ahead.extend(reversed(inputs_of(node)))
    return tuple(dict.fromkeys(found))


def check_granules(
    coarsest: Duration | None, finest: Duration, domain: TimeDomain, position: Position
) -> None:
    """See that a granule is one, and that its coarsest is a multiple, so that those between them nest.

    Args:
        coarsest, finest: the bounds of a granularity; without the first it has one granule.
        domain: what instants count.
        position: where they are written.

    Raises:
        LanguageError: one has another unit or no length, or the coarsest is finer, or no multiple.
    """
    check_duration(finest, domain, "GRANULARITY", position)
    if coarsest is not None:
        check_duration(coarsest, domain, "COARSEST", position)
    if finest.length < 1 or (coarsest is not None and coarsest.length < 1):
        raise LanguageError(
            "GRANULARITY takes a length of at least 1",
            position=position,
            hint=_without_nothing(coarsest, finest),
        )
    if coarsest is None:
        return
    if coarsest.length < finest.length:
        wider = _multiple(finest, (coarsest,))
        written = f"GRANULARITY(COARSEST {wider}, FINEST {coarsest})"
        raise LanguageError(
            f"COARSEST {coarsest} is finer than FINEST {finest}",
            position=position,
            hint="write the coarsest granule first" if wider is None else f"write {written}",
        )
    if coarsest.length % finest.length:
        wider = _multiple(coarsest, (finest,))
        written = f"GRANULARITY(COARSEST {wider}, FINEST {finest})"
        raise LanguageError(
            f"COARSEST {coarsest} is no multiple of FINEST {finest}",
            position=position,
            hint="write a finest granule that divides it" if wider is None else f"write {written}",
        )


def _without_nothing(coarsest: Duration | None, finest: Duration) -> str:
    """The way on for bounds of which one is no length."""
    if coarsest is not None and coarsest.length > 0:
        return f"write GRANULARITY(COARSEST {coarsest}, FINEST {make_duration(1, coarsest.unit)})"
    if coarsest is not None and finest.length > 0:
        return f"write GRANULARITY({finest})"
    return "leave GRANULARITY out: each instant has its own content then"


def refuse_other_granule(granule: Duration, plan: Plan, position: Position) -> None:
    """Refuse a granularity over another one of which it is no multiple (thesis, 20.1 and 20.5).

    Args:
        granule: the outer one.
        plan: what it is applied to.
        position: where it is written.

    Raises:
        LanguageError: some of its instants are not among those at which the plan is exact.
    """
    below = granules_of(plan)
    other = _not_divided(granule, below)
    if other is None:
        return
    applied = f"GRANULARITY({granule}) is applied to GRANULARITY({other}), "
    if granule.length < other.length:
        raise LanguageError(
            f"{applied}which is coarser",
            position=position,
            hint="leave the outer one out, or make the inner one as fine",
        )
    wider = _multiple(granule, below)
    instead = "leave it out" if wider is None else f"write GRANULARITY({wider}), or leave it out"
    raise LanguageError(f"{applied}of which it is no multiple", position=position, hint=instead)


def refuse_between_granules(
    length: Duration, plan: Plan, show: Callable[[Duration], str], position: Position
) -> None:
    """Refuse a window that begins or ends between the instants of a granularity below it (thesis, 20.5).

    Args:
        length: its length, its slide or the like; UNBOUNDED and 0 are multiples of all.
        plan: what the window is over.
        show: writes the clause that says the length.
        position: where it is written.

    Raises:
        LanguageError: the length is not a multiple of one of the granules.
    """
    below = granules_of(plan)
    other = None if length.length == INFINITY else _not_divided(length, below)
    if other is None:
        return
    wider, finer = _multiple(length, below), "make the inner granule finer"
    raise LanguageError(
        f"{show(length)} is over GRANULARITY({other}), of which it is no multiple",
        position=position,
        hint=finer if wider is None else f"write {show(wider)}, or {finer}",
    )


def _not_divided(length: Duration, granules: tuple[Duration, ...]) -> Duration | None:
    """The first granule that does not divide a length."""
    return next((granule for granule in granules if length.length % granule.length), None)


def _multiple(length: Duration, granules: tuple[Duration, ...]) -> Duration | None:
    """The smallest common multiple of granules that is longer, in the coarsest unit of them all that fits."""
    whole = lcm(*(granule.length for granule in granules))
    found = -(-length.length // whole) * whole
    if found > MAX_INSTANT:
        return None
    units = [part.unit for part in (length, *granules) if part.unit is not None]
    fitting = [unit for unit in units if found % MICROSECONDS[unit] == 0]
    last = "MICROSECOND" if units else None
    return Duration(found, max(fitting, key=MICROSECONDS.__getitem__, default=last))
