"""A query that is added and answers over rows from before it: `CREATE QUERY q STARTING AT ... AS`.

Rows that were kept run through operators of its own, in epochs that others do not see, with the heartbeats
that their streams had. Then these hold what those of a query would hold that was there from the beginning,
and what they have yielded is its answer so far. A change of the plan lets both count, and the query goes on
with the rows that come: none is missing, and none comes twice, since the change lies between two epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.properties import relations_of
from headrace.errors import UserError
from headrace.lowering.constants import constants_as_data
from headrace.lowering.early import at_horizon, horizon_of
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.lowering.memory import is_strong, memories_of, remembering
from headrace.lowering.node import reading_of
from headrace.lowering.outer_joins import expand
from headrace.runtime.driver.change.beginning.kept_input import KeptInput, files_left
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.wanted import Redefine, Wanted
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.kept.letters import all_columns
from headrace.runtime.driver.kept.replay import source_of
from headrace.runtime.driver.query_record import Adoption
from headrace.runtime.intake.retained import RetainedSource
from headrace.runtime.intake.streams import Intake
from headrace.runtime.tasks.messages import RetainedFile
from headrace.time import BEGINNING

MOST_ROWS: Final = 500_000
"""About how many rows an epoch over the past takes, for which others wait."""


@dataclass(frozen=True)
class CatchingUp:
    """How far a query is that is being brought from the past to the present.

    Attributes:
        query: what it is called.
        rows: how many of the rows that are kept it has taken.
        left: how many there are besides, by now.
    """

    query: str
    rows: int
    left: int


class CatchUp:
    """A query that is brought from the past to the present.

    Args:
        run: the run that it is to join, between two epochs.
        name: the query.
        rows: the rows that are kept over which it is.

    Attributes:
        progress: how far it is.

    Raises:
        UserError: a file of a relation that it reads has changed.
    """

    def __init__(self, run: Run, name: str, rows: KeptInput) -> None:
        self._run = run
        self._name = name
        self._rows = rows
        self._called = run.reading.queries.name_of(name)
        self._output = 0
        self._taken = dict.fromkeys(rows.streams, 0)
        self._late = rows.late
        self._inner = run.beside(name, rows.clipped, rows.read)
        self.progress = CatchingUp(self._called, 0, rows.left)

    def step(self) -> bool:
        """Run an epoch over some of the rows that were kept; whether there were any left.

        Raises:
            UserError: the query fails on them.
            StoreError: they cannot be read.
        """
        if self._inner.reads_relations:
            self._advance(self._inner.next_share())
            return True
        if self._late:
            self._take_late_rows()
            return True
        chosen = self._next_files()
        if not chosen:
            return False
        intakes, rows = {}, 0
        for name, files in chosen.items():
            stream = self._rows.streams[name]
            # Rows that no answer needs may be ones on which an expression fails.
            since = BEGINNING if stream.changes is not None else self._rows.needed[name]
            source = RetainedSource(
                self._run.store, tuple(files), all_columns(stream), stream.timestamp, since
            )
            place = self._inner.point(name).position + 1
            intakes[name] = Intake(place, source, 0, source.size, promise=files[-1].heartbeat)
            self._taken[name] = files[-1].last
            rows += source.size
        self._advance(intakes)
        left = sum(file.rows for _, _, file in self._left())
        self.progress = CatchingUp(self._called, self.progress.rows + rows, left)
        return True

    def finish(self) -> Joining:
        """Bring the query to the streams' present heartbeats; what it begins with.

        Raises:
            UserError: the query fails.
        """
        self._advance(
            {
                name: Intake(self._inner.point(name).position, promise=self._run.point(name).heartbeat)
                for name in self._rows.streams
                if self._run.point(name).heartbeat > BEGINNING
            }
        )
        self._come_to_level()
        reading, epoch = self._inner.reading, self._run.totals.epochs + 1
        queries = reading.queries
        known = queries.carried_out.get(self._name)
        carried_out = constants_as_data(expand(queries.plans[self._name]))[0] if known is None else known
        later = _alone(self._name, self._rows.plan, carried_out, epoch)
        renamed = {
            old.identity: new.identity for old, new in zip(queries.graph.nodes, later.nodes, strict=True)
        }
        self._output = dict(later.outputs)[self._name]
        found = self._inner.results
        return Joining(
            self._name,
            Adoption(epoch, self._rows.answers_from, carried_out),
            {(renamed[identity], bucket): held for (identity, bucket), held in reading.state.items()},
            {
                reading_of(relation.name, epoch): reading.points[relation.name]
                for relation in relations_of(self._rows.plan)
            },
            tuple(
                replace(ref, node=self._output) for part in found for ref in part.results.get(self._name, ())
            ),
            tuple(ref for part in found for ref in part.dead_letters),
            tuple(queries.graph.users),
            tunings=queries.tunings,
            exact=self._rows.exact,
        )

    def _come_to_level(self) -> None:
        """Let the query speak as early, and remember as much, as it is to.

        Raises:
            UserError: an expression fails for a row that would be said early.
        """
        if is_strong(self._rows.plan):
            return
        remembered = remembering(self._rows.clipped, memories_of(self._rows.plan).values())
        plan = at_horizon(remembered, horizon_of(self._rows.plan))
        self._inner.stand_as(self._run)
        self._inner.change(Redefine(Wanted({self._name: plan}, self._rows.read)))

    def discard(self) -> None:
        """Remove what was written for a query that does not join."""
        self._inner.discard()

    def _take_late_rows(self) -> None:
        """Run an epoch over the rows that came too late; they are first, and so in time here."""
        late, self._late = self._late, {}
        keeper = self._run.present.letter_keeper
        sources = {
            name: source_of(rows, name, self._rows.streams[name], keeper) for name, rows in late.items()
        }
        try:
            self._advance(
                {
                    name: Intake(self._inner.point(name).position + 1, source, 0, source.size)
                    for name, source in sources.items()
                }
            )
        finally:
            self._run.kept.sweep({file.part.segment for source in sources.values() for file in source.files})
        taken = sum(source.size for source in sources.values())
        self.progress = replace(
            self.progress, rows=self.progress.rows + taken, left=self.progress.left - taken
        )

    def _advance(self, intakes: Mapping[str, Intake]) -> None:
        self._inner.follow_sizes(self._run)
        self._inner.step(intakes)
        for reason, hint in self._inner.reading.queries.failed.values():
            without = "STARTING NOW leaves out the rows from before"
            hint = hint if self._rows.asked_for else f"{hint}; {without}" if hint else without
            raise UserError(f"{self._called} fails on rows that were kept: {reason}", hint=hint)

    def _left(self) -> list[tuple[int, str, RetainedFile]]:
        """The files that have yet to be taken, in the order of the epochs, each with its stream."""
        return files_left(self._rows.streams, self._rows.needed, self._run.point, self._taken)

    def _next_files(self) -> Mapping[str, Sequence[RetainedFile]]:
        """The files that come next, per stream: those of the oldest epochs, and enough for an epoch.

        All that an epoch took are chosen, or none: their heartbeat is that after the last of its rows.
        """
        chosen: dict[str, list[RetainedFile]] = {}
        rows = 0
        for _, same in groupby(self._left(), lambda one: one[0]):
            files = [(name, file) for _, name, file in same]
            rows += sum(file.rows for _, file in files)
            if chosen and rows > MOST_ROWS:
                break
            for name, file in files:
                chosen.setdefault(name, []).append(file)
        return chosen


def _alone(name: str, plan: Plan, carried_out: Plan, start: int) -> Graph:
    """The graph of a query that starts with an epoch."""
    return lower({name: plan}, {name: start}, {name: carried_out})
