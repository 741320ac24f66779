"""A query that takes the place of another one at once, since the rows that it needs are kept.

It is brought from the past to the present beside the run, as one that is added with STARTING AT the instant
up to which the answer of the other one is final. Then it answers from the instant on up to which that is by
now: below it the old answer holds, which is never taken back. What the old one has said of later instants is
taken back, and what the new one says of them is said, by the change with which it joins.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import UserError
from headrace.lowering.early import said_from_on
from headrace.runtime.driver.beside.starting_at import CatchUp
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.content.answer import begins_with, reader_of, said_instead
from headrace.runtime.results.carried import held_from
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import INFINITY


class Refill(CatchUp):
    """A query that is brought to the present to take the place of the one that has its name."""

    def finish(self) -> Joining:
        """Bring the query to the streams' present heartbeats; what it begins with.

        Raises:
            UserError: the query fails, or all of the other answer has become final meanwhile.
        """
        if self._name not in self._run.reading.queries.live:
            raise UserError(f"{self._called} has failed meanwhile", hint="replace it again")
        until = self._run.present.final_until(self._name)
        if until == INFINITY:
            raise UserError(f"all of the answer of {self._called} is final, so that nothing can be replaced")
        found = super().finish()
        plan, reach = found.adoption.plan, self._reach
        if reach < until:
            plan = said_from_on(plan, until)
        adoption = replace(found.adoption, answers_from=until, plan=plan)
        return replace(found, adoption=adoption, results=self._said(until, reach), goes_on=self._rows.goes_on)

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
        if self._rows.goes_on:
            refs = said_instead(name, new, until, reach, before, run.results, writer, self._output)
        else:
            refs = tuple(begins_with(new, self._output, writer))
        writer.close()
        return refs
