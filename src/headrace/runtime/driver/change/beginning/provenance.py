"""Where a query that begins has its state from: one decision, for what is carried out and for EXPLAIN.

What a query needs may be there already: in the operators that it is told to take over, in others that run, or
among the rows that are kept. The ways to it are functions in one order, and the first that is open is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.nodes import Clip, Plan
from headrace.errors import PlanError, UserError
from headrace.lowering.constants import constants_as_data
from headrace.lowering.early import answers_alike, horizon_of
from headrace.lowering.outer_joins import expand
from headrace.runtime.driver.change.beginning.kept_input import KeptInput, kept_input_of
from headrace.runtime.driver.change.beginning.newcomer import Newcomer
from headrace.runtime.driver.change.common_operators import Inheritance, inheritance
from headrace.runtime.driver.change.content.larger_windows import Shift
from headrace.runtime.driver.change.migration.exchange import Begun
from headrace.runtime.driver.change.wanted import AnswerStart
from headrace.runtime.driver.change.warm import TakenOver, adopt
from headrace.runtime.driver.query_record import Adoption
from headrace.time import INFINITY


@dataclass(frozen=True)
class Empty:
    """A query begins with nothing from before.

    Attributes:
        reason: why the plan whose place it takes cannot go on beside it, if it takes one.
    """

    reason: str | None = None


@dataclass(frozen=True)
class Finished:
    """A query goes on after a pause all of whose answer is final; it says nothing more.

    Such are queries over relations alone, which would be read again, and said again.

    Attributes:
        adoption: what it is carried out as.
    """

    adoption: Adoption


Provenance = Empty | Finished | TakenOver | Shift | KeptInput | Begun | Inheritance
"""Where the state of a query that begins comes from."""


def _told_to_begin_empty(one: Newcomer) -> Empty | None:
    return Empty() if one.start is not None and one.start.now else None


def _told_since_when(one: Newcomer) -> KeptInput | None:
    if one.start is None or not one.beside:
        return None
    return kept_input_of(one.present, one.query, one.plan, one.start, one.streams)


def _told_to_take_over(one: Newcomer) -> TakenOver | None:
    if one.warm is None:
        return None
    known, kept = one.present.known, one.present.settings.keep_results
    return adopt(one.query, one.warm, horizon_of(one.plan), known.queries, known.results, kept)


def _finished(one: Newcomer) -> Finished | None:
    if one.paused is None or one.until != INFINITY:
        return None
    nothing: Plan = Clip(Clip(one.plan, end=0), begin=0)
    carried_out = constants_as_data(expand(nothing))[0]
    return Finished(Adoption(one.present.epoch, INFINITY, carried_out))


def _all_in_larger_windows(one: Newcomer) -> Shift | None:
    if one.shift is None:
        return None
    if not one.replaces:
        # Kept rows may say something about the instants of a pause.
        leaves_none_out = one.paused is None or one.begins <= one.until
        whole = leaves_none_out and one.shift.exact <= one.begins < one.exact_anew
        return one.shift if whole else None
    if not one.present.settings.keep_results:
        # What the old one has said of later instants cannot be taken back.
        return None
    # Where windows are as large as before, clips and common operators do the same without a copy.
    return one.shift if one.shift.shortens and one.shift.exact <= one.until else None


def _all_in_kept_rows(one: Newcomer) -> KeptInput | None:
    if one.paused is None and not one.replaces:
        return None
    found = _kept_rows(one, AnswerStart(one.until))
    return None if found is None or found.answers_from > one.until else found


def _beside_the_old_plan(one: Newcomer) -> Begun | None:
    return one.clips if one.replaces and isinstance(one.clips, Begun) else None


def _in_common(one: Newcomer) -> Inheritance | None:
    if not one.replaces or not one.present.settings.keep_results:
        # What the common operators have said cannot be taken back, and is not known any more.
        return None
    waits = one.holds is not None
    return inheritance(one.present.holding(), one.query, one.plan, one.until, waits=waits)


def _as_much_as_is_kept(one: Newcomer) -> KeptInput | None:
    if not one.beside or one.holds is not None:
        return None
    otherwise = min(one.exact_anew, INFINITY if one.shift is None else one.shift.exact)
    if one.paused is not None:
        # It says more if it answers from where kept rows are enough.
        found = _kept_rows(one, AnswerStart(one.until))
        if found is not None and found.exact < max(one.begins, otherwise) and found.exact <= one.begins:
            return found
    if otherwise <= one.begins:
        return None
    found = _kept_rows(one, AnswerStart(one.until if one.replaces else one.begins), at_once=True)
    return None if found is None or found.exact >= otherwise else found


def _as_much_as_larger_windows_hold(one: Newcomer) -> Shift | None:
    return one.shift if one.shift is not None and one.shift.exact < one.exact_anew else None


def _kept_rows(one: Newcomer, start: AnswerStart, *, at_once: bool = False) -> KeptInput | None:
    """The kept rows over which a query may begin that was not told to; None where there are too few."""
    if not one.beside or one.holds is not None or INFINITY in (one.until, one.begins):
        return None
    if one.replaces and answers_alike(one.present.known.queries.plans[one.query], one.plan):
        # Its level alone is another one.
        return None
    try:
        found = kept_input_of(one.present, one.query, one.plan, start, one.streams, at_once=at_once)
    except UserError:
        return None
    return replace(found, asked_for=False, takes_over=one.replaces, goes_on=bool(one.alike))


WAYS: Final[tuple[Callable[[Newcomer], Provenance | None], ...]] = (
    # What the statement says comes first.
    _told_to_begin_empty,
    _told_since_when,
    _told_to_take_over,
    # There is nothing left to say.
    _finished,
    # Exact at once, for a copy of the state.
    _all_in_larger_windows,
    # Exact at once, for reading the rows again.
    _all_in_kept_rows,
    # Exact for all instants, which takes as long as the windows are.
    _beside_the_old_plan,
    # At once, with what the old operators had.
    _in_common,
    # Exact earlier than with nothing: with what reaches further back of the two.
    _as_much_as_is_kept,
    _as_much_as_larger_windows_hold,
)
"""The ways by which a query may get the state with which it begins, the better ones first."""


def provenance_of(one: Newcomer) -> Provenance:
    """Where the state of a query comes from that begins now.

    Args:
        one: the query.

    Raises:
        PlanError: all of the answer is final in whose place its own is to be.
        UserError: rows are missing from an instant on that was asked for, or there is nothing that it could
            take over.
    """
    if one.alike and one.until == INFINITY:
        raise PlanError(
            f"all of the answer of {one.called} is final, so that nothing of it can be replaced",
            hint=f"drop {one.called} first, or choose another name",
        )
    for way in WAYS:
        if (found := way(one)) is not None:
            return found
    return Empty(one.clips.message if one.replaces and isinstance(one.clips, PlanError) else None)
