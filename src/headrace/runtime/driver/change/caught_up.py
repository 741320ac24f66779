"""What a query begins with that was brought from the past to the present beside a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.algebra.tunings.tunings import Tunings
from headrace.runtime.driver.query_record import Adoption
from headrace.runtime.driver.state import EpochOutcome, RunState
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.messages import Manifest, ResultRef, StateKey
from headrace.time import BEGINNING


@dataclass(frozen=True)
class Joining:
    """A query that begins with a state and an answer.

    Attributes:
        query: its name.
        adoption: with which epoch it starts, from which instant on it answers, and what it is carried out as.
        state: what its operators hold, by the identities that they have with that start.
        points: how far its relations were read.
        results: its answer so far.
        dead_letters: where the rows are on which its expressions failed.
        users: for each node that these name, the queries that use it.
        goes_on: whether it takes the place of another one, whose answer goes on in its own.
        tunings: the sizes that its windows within bounds have had.
        exact: from which instant on the answer is that over all rows.
    """

    query: str
    adoption: Adoption
    state: Mapping[StateKey, Manifest]
    points: Mapping[str, StreamPoint]
    results: tuple[ResultRef, ...]
    dead_letters: tuple[ResultRef, ...]
    users: tuple[tuple[str, ...], ...]
    goes_on: bool = False
    tunings: Tunings = field(default_factory=dict)
    exact: int = BEGINNING

    def known_to(self, known: RunState) -> RunState:
        """What a run knows, with what the query begins with."""
        letters = known.totals.dead_letters + sum(ref.rows for ref in self.dead_letters)
        return replace(
            known,
            state={**known.state, **self.state},
            points={**known.points, **self.points},
            totals=replace(known.totals, dead_letters=letters),
        )

    def said_by(self, outcome: EpochOutcome) -> EpochOutcome:
        """A change of the plan with the query's answer so far."""
        commit = outcome.commit
        results = replace(
            commit.results,
            results={**commit.results.results, self.query: self.results},
            dead_letters=self.dead_letters,
            users=dict(enumerate(self.users)) if self.dead_letters else {},
        )
        return replace(outcome, commit=replace(commit, results=results))
