"""A change of the plan on its way: what there is before it, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from headrace.lowering.adoption import Adopted
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.content.merge import Merging
from headrace.runtime.driver.change.wanted import Wanted
from headrace.runtime.driver.kept.letters import LetterKeeper
from headrace.runtime.driver.query_record import Adoption
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.driver.state import Holding, RunState
from headrace.runtime.intake.streams import Streams
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import Manifest, ResultRef, StateKey
from headrace.time import BEGINNING


@dataclass(frozen=True, eq=False)
class Present:
    """A run between two epochs.

    Attributes:
        known: what it knows.
        declared: all streams, by name.
        store: where segments are.
        token: sets the names of its files apart from those of other runs.
        settings: how it cuts its input, and what it keeps.
        merging: looks for operators whose states have become equal.
    """

    known: RunState
    declared: Streams
    store: Store
    token: str
    settings: RunSettings
    merging: Merging

    @property
    def epoch(self) -> int:
        """The number of the next epoch, which a change of the plan would be."""
        return self.known.totals.epochs + 1

    @property
    def prefix(self) -> str:
        """What the names of the files begin with that the change writes."""
        return f"e{self.epoch}-{self.token}"

    def holding(
        self, queries: QuerySet | None = None, given: Mapping[StateKey, Manifest] = MappingProxyType({})
    ) -> Holding:
        """Some queries, those that run if None, and the state, with what is given besides."""
        known = self.known
        state = {**known.state, **given} if given else known.state
        return Holding(queries or known.queries, known.points, state, known.buckets, self.store)

    @property
    def letter_keeper(self) -> LetterKeeper:
        """Writes dead letters for the next epoch."""
        clock = max(self.settings.clock.now(), self.known.clock)
        return LetterKeeper(self.store, self.token, self.epoch, clock)

    def point(self, name: str) -> StreamPoint:
        """How far an input has been read."""
        return self.known.points.get(name, StreamPoint(0))

    def final_until(self, query: str) -> int:
        """Up to where the answer of a query is final (instant); BEGINNING where it has said nothing yet."""
        results = self.known.results
        return results[-1].heartbeats.get(query, BEGINNING) if results else BEGINNING

    def turn(self, queries: QuerySet) -> Turn:
        """A change to other queries over the same streams."""
        return Turn(queries, self.declared, self.known.description)

    def turn_to(self, wanted: Wanted, queries: QuerySet) -> Turn:
        """A change to what is wanted."""
        return Turn(queries, wanted.streams, wanted.description or self.known.description)

    def joined(self, wanted: Wanted, name: str, adoption: Adoption, *, goes_on: bool) -> QuerySet:
        """The queries with one that begins with state.

        Args:
            wanted: what the run is from then on; no other query is new.
            name: the query's.
            adoption: what it begins with.
            goes_on: whether the answer of another one goes on in its own.
        """
        known = self.known.queries
        paused = {query: one for query, one in known.paused.items() if query not in wanted.plans}
        return known.changed(
            wanted.plans,
            self.epoch,
            self.settings.look,
            {name: adoption},
            wanted.holds,
            paused,
            replaced=[name] if goes_on else (),
        ).called(wanted.names)


@dataclass(frozen=True, eq=False)
class Turn:
    """What a change of the plan comes to, before it is committed.

    Attributes:
        queries: those that are answered from then on.
        streams: all streams from then on, by name.
        description: what the run is from then on.
        adopted: the operators that go on with the state of others.
        begins: what some queries begin with.
        given: what operators hold besides.
        ended: what takes back the answers of those that are paused, as far as they are not final.
        joining: the query that was brought to the present, or None.
        points: how far inputs have been read, of those for which the change says so.
    """

    queries: QuerySet
    streams: Streams
    description: Description
    adopted: Adopted = field(default_factory=dict)
    begins: Mapping[str, tuple[ResultRef, ...]] = field(default_factory=dict)
    given: Mapping[StateKey, Manifest] = field(default_factory=dict)
    ended: Mapping[str, tuple[ResultRef, ...]] = field(default_factory=dict)
    joining: Joining | None = None
    points: Mapping[str, StreamPoint] = field(default_factory=dict)
