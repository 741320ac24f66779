"""The queries that a run answers between two changes of its plan, and what follows from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from headrace.algebra.arrival import Past
from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.endings import Endings
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import Clip, Plan, RefreshedRelation, Relation, Source
from headrace.algebra.properties import is_stateless, relations_of, sources_of
from headrace.algebra.tunings.in_force import sized_windows
from headrace.algebra.tunings.tunings import Tunings, used
from headrace.lowering.behind import declared_name, plan_behind, tunings_behind
from headrace.lowering.explain import operator_text
from headrace.lowering.graph import Graph, Merge, needed_merges
from headrace.lowering.lower import Holds, lower
from headrace.lowering.node import Node
from headrace.lowering.query_id import first_name
from headrace.lowering.sharing.new_queries import shared_by
from headrace.lowering.sharing.weighing import Look
from headrace.optimizer.migration import Migration
from headrace.runtime.driver.query_record import (
    Adoption,
    AnsweredQuery,
    QueryRecord,
    Reason,
    begun_query,
)
from headrace.runtime.journal.described_query import Paused, PausedQuery, WarmStart
from headrace.runtime.journal.exchanges import (
    PlanExchange,
    packed_exchanges,
)
from headrace.runtime.journal.gap import Gap
from headrace.runtime.journal.plans import Packed, packed_plans
from headrace.runtime.results.answer_sizes import AnswerSizes
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import INFINITY

_TITLE_CHARACTERS: Final = 200
_sized: Final = ByObject(sized_windows, REMEMBERED)
"""So much of what an operator does is stored for people."""


@dataclass(frozen=True)
class QuerySet:
    """The queries of a run; what is known of each is one record, by its identity.

    Attributes:
        records: those that are answered, the failed ones included, in order; and those that are paused.
        merges: the operators whose state has become that of older ones.
        names: what those queries are called whose identity does not say it, since they were renamed.
        tunings: the sizes of windows within bounds that have changed.
    """

    records: Mapping[str, QueryRecord] = field(default_factory=dict)
    merges: tuple[Merge, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    tunings: Tunings = field(default_factory=dict)

    @classmethod
    def alone(cls, plan: Plan) -> QuerySet:
        """One query by itself, without a name."""
        return cls({"": AnsweredQuery(plan)})

    @classmethod
    def begun(
        cls,
        plans: Mapping[str, Plan],
        look: Look,
        holds: Mapping[str, Holds] = MappingProxyType({}),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> QuerySet:
        """The queries that a run begins with.

        Args:
            plans: optimized plans by query.
            look: says what is expected of operators.
            holds: which of the queries' operators wait for others.
            names: of those that have been renamed.
        """
        shared = shared_by(plans, look, holds)
        records = {
            name: AnsweredQuery(plan, shared=shared.get(name), holds=holds.get(name))
            for name, plan in plans.items()
        }
        return cls(records, names=dict(names))

    def changed(
        self,
        plans: Mapping[str, Plan],
        epoch: int,
        look: Look,
        adoptions: Mapping[str, Adoption] = MappingProxyType({}),
        holds: Mapping[str, Holds] = MappingProxyType({}),
        paused: Mapping[str, Paused] = MappingProxyType({}),
        levels: Mapping[str, Plan] = MappingProxyType({}),
        replaced: Collection[str] = (),
    ) -> QuerySet:
        """The set after a change of the plan: what is new starts, what is missing is gone, the rest goes on.

        Args:
            plans: all queries from now on.
            epoch: the epoch of the change, at which new queries start.
            look: says what is expected of operators.
            adoptions: what some of the new queries, and of those replaced, take over.
            holds: which of their operators wait for others.
            paused: the queries that are not answered from now on, until they are resumed.
            levels: what those are carried out as that go on at another level of consistency.
            replaced: the queries whose plans are others from now on, while their answers go on; they start
                anew if they take over nothing.
        """
        begin = self.beginning(plans, holds, levels, replaced)
        cold = {name: plans[name] for name in begin if name not in adoptions}
        shared = shared_by(cold, look, holds, self.shared)
        records: dict[str, QueryRecord] = {}
        for name, plan in plans.items():
            known = self.records.get(name)
            if isinstance(known, AnsweredQuery) and name not in begin:
                record = known.at_level(plan, levels[name], epoch) if name in levels else known
            else:
                goes_on = name in replaced or isinstance(known, PausedQuery)
                record = begun_query(plan, epoch, known if goes_on else None, adoptions.get(name))
                if record.shared is None and name in shared:
                    record = replace(record, shared=shared[name])
            if record.plan is not plan or record.holds != holds.get(name):
                record = replace(record, plan=plan, holds=holds.get(name))
            records[name] = record
        for name, one in paused.items():
            before = self.records.get(name)
            records[name] = (
                PausedQuery(one) if before is None else PausedQuery(one, before.gaps, before.sized_from)
            )
        found = replace(self, records=records)
        found = found.with_tunings(used(self.tunings, plans, found.carried_out.values(), paused))
        if not self.merges:
            return found
        return replace(found, merges=needed_merges(self.merges, map(found.state_start_of, plans)))

    def beginning(
        self,
        plans: Mapping[str, Plan],
        holds: Mapping[str, Holds],
        levels: Collection[str] = (),
        replaced: Collection[str] = (),
    ) -> dict[str, None]:
        """The queries whose operators begin with a change, in order.

        Most plans are the objects that run already.

        Args:
            plans: all queries from then on.
            holds: which of their operators wait for others.
            levels: those that go on at another level of consistency.
            replaced: those whose plans are others, while their answers go on.
        """
        before, some = self.plans, bool(self.holds or holds)

        def goes_on(name: str, plan: Plan) -> bool:
            known = before.get(name)
            if known is not plan and known != plan:
                return False
            return name not in replaced and not (some and self.holds.get(name) != holds.get(name))

        return {name: None for name, plan in plans.items() if name not in levels and not goes_on(name, plan)}

    def with_records(self, records: Mapping[str, QueryRecord]) -> QuerySet:
        """The set with other records of some queries; itself without any."""
        return replace(self, records={**self.records, **records}) if records else self

    def having(self, query: str, **facts: Any) -> QuerySet:
        """The set with other facts of a query; what is not named stays."""
        return self.with_records({query: replace(self.records[query], **facts)})

    def merged(self, merges: Collection[Merge]) -> QuerySet:
        """The set when further operators go on as older ones; itself without any."""
        if not merges:
            return self
        into = {(merge.shape, merge.start): merge.into for merge in merges}
        before = (
            replace(merge, into=into.get((merge.shape, merge.into), merge.into)) for merge in self.merges
        )
        return replace(self, merges=(*before, *merges))

    def replacing(self, other: Mapping[str, Plan | Migration]) -> QuerySet:
        """The set with other plans for some queries, which answer the same and go on."""
        return self.with_records(
            {name: replace(self.answered[name], replaced=plan) for name, plan in other.items()}
        )

    def called(self, names: Mapping[str, str] | None) -> QuerySet:
        """The set with these names for the queries that have been renamed; itself if None."""
        return self if names is None else replace(self, names=names)

    def with_tunings(self, tunings: Tunings) -> QuerySet:
        """The set with these sizes of windows within bounds; itself where it has no others."""
        return self if tunings == self.tunings else replace(self, tunings=tunings)

    def name_of(self, query: str) -> str:
        """What a query is called, or was when it was dropped."""
        return self.names.get(query) or first_name(query)

    def with_failures(self, failed: Mapping[str, Reason]) -> QuerySet:
        """The set when further queries have failed; itself when none has."""
        answered = self.answered
        return self.with_records(
            {
                name: replace(answered[name], failed=reason)
                for name, reason in failed.items()
                if name in answered and answered[name].failed != reason
            }
        )

    def start_of(self, name: str) -> int:
        """The epoch from which on a query answers."""
        return self.records[name].start if name in self.records else 1

    def state_start_of(self, name: str) -> int:
        """The epoch since which a query's operators have seen their input, or have had state of their own."""
        record = self.records.get(name)
        return record.state_start if isinstance(record, AnsweredQuery) else self.start_of(name)

    def began_in(self, name: str, epoch: int) -> bool:
        """Whether a query's operators have begun to see their input with an epoch."""
        return self.answered[name].level is None and self.state_start_of(name) == epoch

    def gaps_of(self, name: str) -> tuple[Gap, ...]:
        """The instants about which a query says nothing, since it was paused."""
        record = self.records.get(name)
        return record.all_gaps if isinstance(record, PausedQuery) else () if record is None else record.gaps

    def sizes_of(self, name: str) -> AnswerSizes:
        """The sizes that the windows within bounds of a query have had; none of one that is gone."""
        match self.records.get(name):
            case None:
                return AnswerSizes(since=INFINITY)
            case AnsweredQuery(plan=plan, sized_from=since):
                return AnswerSizes(self.tunings, _sized(plan), since)
            case PausedQuery(paused=paused, sized_from=since):
                return AnswerSizes(self.tunings, paused.form.sizes, since)

    @cached_property
    def answered(self) -> dict[str, AnsweredQuery]:
        """The records of the queries that are answered, or have failed."""
        return {name: one for name, one in self.records.items() if isinstance(one, AnsweredQuery)}

    @cached_property
    def paused(self) -> dict[str, Paused]:
        """The queries that are not answered until they are resumed."""
        return {name: one.paused for name, one in self.records.items() if isinstance(one, PausedQuery)}

    @cached_property
    def gaps(self) -> dict[str, tuple[Gap, ...]]:
        """Per query that has been paused or replaced the instants about which it says nothing."""
        return {name: one.gaps for name, one in self.records.items() if one.gaps}

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The optimized plans of all that are answered, those included that have failed."""
        return {name: one.plan for name, one in self.answered.items()}

    @cached_property
    def failed(self) -> dict[str, Reason]:
        """The queries that have ended early, with the reason."""
        return {name: one.failed for name, one in self.answered.items() if one.failed is not None}

    @cached_property
    def shared(self) -> dict[str, Plan]:
        """The plans that queries began as to share more with others, or to take over their state."""
        return {name: one.shared for name, one in self.answered.items() if one.shared is not None}

    @cached_property
    def warm(self) -> dict[str, WarmStart]:
        """The beginnings of those queries that took over the state of others, were resumed or replaced."""
        return {name: one.warm for name, one in self.answered.items() if one.warm is not None}

    @cached_property
    def holds(self) -> dict[str, Holds]:
        """Which operators of queries wait for others, of those that have such."""
        return {name: one.holds for name, one in self.answered.items() if one.holds is not None}

    @cached_property
    def exchanged(self) -> dict[str, PlanExchange]:
        """The last exchange of those plans that were found to do less."""
        return {name: one.exchanged for name, one in self.answered.items() if one.exchanged is not None}

    @property
    def growing(self) -> tuple[str, ...]:
        """The queries whose state grows for as long as they run."""
        return tuple(name for name, plan in self.live.items() if has_unbounded_state(plan))

    @cached_property
    def live(self) -> dict[str, Plan]:
        """The queries that have not failed."""
        if not self.failed:
            return dict(self.plans)
        return {name: plan for name, plan in self.plans.items() if name not in self.failed}

    @cached_property
    def carried_out(self) -> dict[str, Plan]:
        """What queries are carried out as whose own plan alone does not say it."""
        found = {name: one.carried_out for name, one in self.answered.items()}
        return {name: plan for name, plan in found.items() if plan is not None}

    @cached_property
    def migrations(self) -> dict[str, Migration]:
        """The exchanges of plans that go on, of queries that have not failed."""
        return {
            name: one.replaced
            for name, one in self.answered.items()
            if isinstance(one.replaced, Migration) and one.failed is None
        }

    def ended_migrations(
        self, heartbeats: Mapping[str, int], newest: Mapping[str, int], pasts: Mapping[str, Past]
    ) -> dict[str, Migration]:
        """The exchanges whose old plan has said all that it will, and the new one all below its instant.

        Where windows hop, one of the plans may be further than the other over the same rows.

        Args:
            heartbeats: of the inputs (instants).
            newest: their largest timestamps (instants).
            pasts: what streams had brought before, as far as queries look back to that.
        """
        if not self.migrations:
            return {}
        after, outputs = self.graph.heartbeats(heartbeats, newest, pasts), dict(self.graph.outputs)

        def has_passed(node: Node, at: int) -> bool:
            below = after[node.inputs[0].producer]
            return not (isinstance(node.plan, Clip) and at in (node.plan.begin, node.plan.end)) or below >= at

        return {
            name: migration
            for name, migration in self.migrations.items()
            if all(
                has_passed(self.graph.nodes[number], migration.at)
                for number in self.graph.below(self.graph.node_of(outputs[name]))
                if self.graph.nodes[number].inputs
            )
        }

    @cached_property
    def graph(self) -> Graph:
        """The graph that answers the queries that have not failed."""
        starts = {name: self.answered[name].state_start for name in self.live}
        graph = lower(self.reading, starts, self.carried_out_reading, self.merges, self.holds)
        return graph.tuned(tunings_behind(self.tunings, self.lanes))

    @cached_property
    def lanes(self) -> dict[int, tuple[str, ...]]:
        """The lanes in which queries are behind others, each with these queries."""
        found: dict[int, tuple[str, ...]] = {}
        for name in self.live:
            if (lane := self.answered[name].lane) is not None:
                found[lane] = (*found.get(lane, ()), name)
        return found

    @cached_property
    def reading(self) -> dict[str, Plan]:
        """The plans of the queries that have not failed, over what they read: in a lane that is kept rows."""
        return self._placed(self.live) if self.lanes else self.live

    @cached_property
    def carried_out_reading(self) -> dict[str, Plan]:
        """The same as `carried_out`, over what queries read."""
        return self._placed(self.carried_out) if self.lanes else self.carried_out

    def _placed(self, plans: Mapping[str, Plan]) -> dict[str, Plan]:
        return {name: plan_behind(plan, self.answered[name].lane) for name, plan in plans.items()}

    @cached_property
    def packed(self) -> Packed:
        """What queries are carried out as to share more, as a store keeps it."""
        return packed_plans(self.shared)

    @cached_property
    def packed_exchanges(self) -> dict[str, Any]:
        """What has come to answer queries, as a store keeps it."""
        replaced = {name: one.replaced for name, one in self.answered.items() if one.replaced is not None}
        return packed_exchanges(replaced, self.exchanged)

    @cached_property
    def inputs(self) -> dict[str, str]:
        """What is read, with the name of the stream or the relation: a relation is read once per start."""
        leaves = [(node.reads, node.plan) for node in self.graph.nodes]
        found = {
            reads: declared_name(plan.name)
            for reads, plan in leaves
            if reads is not None and isinstance(plan, Source | Relation)
        }
        # Who reads dead letters of a stream lets it be read: only then are rows of it set apart.
        origins = filter(None, map(stream_of_letters, found))
        return {**found, **{name: name for name in (*origins, *self.keeps, *self.read_behind)}}

    @property
    def keeps(self) -> frozenset[str]:
        """The streams whose rows are kept for queries that are paused."""
        return frozenset(name for one in self.paused.values() for name in one.keeps)

    @cached_property
    def read_behind(self) -> frozenset[str]:
        """The streams whose rows are kept until all lanes have taken them."""
        plans = (self.live[name] for names in self.lanes.values() for name in names)
        return frozenset(source.name for plan in plans for source in sources_of(plan))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What each node of the graph does, for people: as long as the constants of all its queries."""
        return tuple(operator_text(node.plan) for node in self.graph.nodes)

    @cached_property
    def titles(self) -> dict[str, str]:
        """What each operator with state does, by identity, in a line."""
        nodes = (
            node
            for node in self.graph.nodes
            if not (is_stateless(node.plan) or isinstance(node.plan, Source | Relation))
        )
        return {node.identity: operator_text(node.plan)[:_TITLE_CHARACTERS] for node in nodes}

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Per input the columns that some node reads, and those that say when rows are valid."""
        wanted: dict[str, dict[str, None]] = {}
        for node in self.graph.nodes:
            match node.plan:
                case Source(schema=schema, timestamp=timestamp):
                    names = (*schema.names, timestamp)
                case Relation(schema=schema, period_columns=period):
                    names = (*schema.names, *period)
                case _:
                    continue
            assert node.reads is not None
            wanted.setdefault(node.reads, {}).update(dict.fromkeys(names))
            if (origin := stream_of_letters(node.reads)) is not None:
                wanted.setdefault(origin, {})
        for name in (*self.keeps, *self.read_behind):
            wanted.setdefault(name, {})
        return {name: tuple(sorted(columns)) for name, columns in wanted.items()}

    @cached_property
    def refreshed(self) -> tuple[str, ...]:
        """The readings of relations that are refreshed."""
        leaves = (node.reads for node in self.graph.nodes if isinstance(node.plan, RefreshedRelation))
        return tuple(dict.fromkeys(name for name in leaves if name is not None))

    @cached_property
    def meetings(self) -> tuple[frozenset[str], ...]:
        """Per query the inputs with a time that it reads: streams, and relations that are refreshed.

        Of one that is behind these are the streams themselves, whose heartbeats move as if it was not. What
        it reads of them comes after those of all queries if it reads such a relation, which follows that.
        """
        # Thousands of queries may have their answers of one operator, and so what it reads.
        of_one = {number: name for name, number in self.graph.answers}
        known = {number: self._met(name, number) for number, name in of_one.items()}
        behind = (self._met_behind(name, number) for number, name in of_one.items())
        return (*(known[number] for _, number in self.graph.answers), *filter(None, behind))

    @cached_property
    def endings(self) -> tuple[tuple[frozenset[str], Endings], ...]:
        """The inputs with a time of each query with windows or sessions that end, and what rows wait for."""
        found = (
            (met, Endings.of(self.live[name]))
            for met, (name, _) in zip(self.meetings, self.graph.answers, strict=False)
        )
        return tuple(dict.fromkeys((met, endings) for met, endings in found if endings.wait))

    def _met(self, name: str, output: int) -> frozenset[str]:
        """The inputs with a time of a query whose answer is that of a node."""
        met = frozenset(source.name for source in sources_of(self.live[name]))
        return met if self.answered[name].lane is not None else met | self._refreshed(name, output)

    def _met_behind(self, name: str, output: int) -> frozenset[str]:
        """The same by the names by which a query reads them that is behind, if it reads such relations."""
        found = frozenset[str]() if self.answered[name].lane is None else self._refreshed(name, output)
        return found and found.union(source.name for source in sources_of(self.reading[name]))

    def _refreshed(self, name: str, output: int) -> frozenset[str]:
        if not any(isinstance(leaf, RefreshedRelation) for leaf in relations_of(self.live[name])):
            return frozenset()
        below = (self.graph.nodes[number] for number in self.graph.below(output))
        return frozenset(one.reads for one in below if isinstance(one.plan, RefreshedRelation) and one.reads)

    def state_of(self, state: Mapping[StateKey, Manifest]) -> dict[StateKey, Manifest]:
        """The part of some state that belongs to operators of these queries."""
        kept = {node.identity for node in self.graph.nodes}
        return {key: value for key, value in state.items() if key[0] in kept}
