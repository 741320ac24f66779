"""A query that takes the place of another one at once, since the rows that it needs are kept.

It is brought from the past to the present beside the run, as one that is added with STARTING AT the instant
up to which the answer of the other one is final. Then it answers from the instant on up to which that is by
now: below it the old answer holds, which is never taken back. What the old one has said of later instants is
taken back, and what the new one says of them is said, by the change with which it joins.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import is_stateful, walk
from headrace.errors import UserError
from headrace.lowering.early import alone, answers_alike, said_from_on
from headrace.runtime.driver.beside.starting_at import AnswerStart, CatchUp
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.content.answer import begins_with, reader_of, said_instead
from headrace.runtime.driver.change.content.larger_windows import shift_of
from headrace.runtime.driver.change.replace import Replacement
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.intake.streams import Streams
from headrace.runtime.results.carried import held_from
from headrace.runtime.results.instants import form_of
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import BEGINNING, INFINITY


class Refill(CatchUp):
    """A query that is brought to the present to take the place of the one that has its name.

    Args:
        run: the run that answers the other one.
        name: the query.
        plan: its plan, optimized.
        streams: what is declared, by name.

    Raises:
        UserError: rows are missing that its answer depends on.
    """

    def __init__(self, run: Run, name: str, plan: Plan, streams: Streams) -> None:
        until = _until(run, name)
        self._goes_on = form_of(plan).is_like(form_of(run.reading.queries.plans[name]))
        super().__init__(run, name, plan, AnswerStart(until), streams)
        if self.answers_from > until:
            raise UserError(
                f"{self._called} would not be exact from the instant on up to which the answer is final"
            )

    def finish(self) -> Joining:
        """Bring the query to the streams' present heartbeats; what it begins with.

        Raises:
            UserError: the query fails, or all of the other answer has become final meanwhile.
        """
        if self._name not in self._run.reading.queries.live:
            raise UserError(f"{self._called} has failed meanwhile", hint="replace it again")
        until = _until(self._run, self._name)
        if until == INFINITY:
            raise UserError(f"all of the answer of {self._called} is final, so that nothing can be replaced")
        found = super().finish()
        plan, reach = found.adoption.plan, self._reach
        if reach < until:
            plan = said_from_on(plan, until)
        adoption = replace(found.adoption, answers_from=until, plan=plan)
        return replace(found, adoption=adoption, results=self._said(until, reach), goes_on=self._goes_on)

    @property
    def _reach(self) -> int:
        """Up to where the new query speaks (instant)."""
        return self._inner.results[-1].reach(self._name)

    def _said(self, until: int, reach: int) -> tuple[ResultRef, ...]:
        """What the answer begins with: what the new query says, less what the old one has said.

        Args:
            until: from which instant on.
            reach: up to where the new query speaks (instant).
        """
        run, name, inner = self._run, self._name, self._inner
        before = run.present.holding()
        new = held_from(reader_of(name, inner.present.holding(), inner.results).yielded(), until)
        writer = SegmentWriter(run.store, f"results/{run.present.prefix}-refilled")
        refs: tuple[ResultRef, ...]
        if self._goes_on:
            refs = said_instead(name, new, until, reach, before, run.results, writer, self._output)
        else:
            refs = tuple(begins_with(new, self._output, writer))
        writer.close()
        return refs


def refilled(name: str, plan: Plan, run: Run) -> Replacement:
    """What would become of a query that another one takes the place of at once.

    Args:
        name: the query's.
        plan: the plan of the other one, optimized.
        run: the run that answers it.
    """
    until = _until(run, name)
    anew = tuple(part for part in walk(alone(plan)[0]) if is_stateful(part))
    return Replacement(until, until, (), anew, filled=True)


def _until(run: Run, name: str) -> int:
    """Up to where the answer of a query is final (instant)."""
    return run.results[-1].heartbeats[name] if run.results else BEGINNING


def refill_of(run: Run, name: str, plan: Plan, streams: Streams, *, waits: bool) -> Refill | None:
    """What brings a query to the present that is to take the place of another one at once.

    Args:
        run: the run that answers the other one.
        name: the query's.
        plan: its plan, optimized.
        streams: what is declared, by name.
        waits: whether some of its operators are to wait for others.

    Returns:
        None where the answer would not be exact from the next instant on, or need not be made anew.
    """
    known = run.reading.queries.live.get(name)
    if known is None or waits:
        return None
    until = _until(run, name)
    if answers_alike(known, plan) or until == INFINITY:
        return None
    shift = shift_of(run.present.holding(), plan, waits=waits)
    if shift is not None and shift.shortens and shift.exact <= until:
        # What runs holds all that it needs.
        return None
    try:
        return Refill(run, name, plan, streams)
    except UserError:
        return None
