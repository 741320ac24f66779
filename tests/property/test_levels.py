"""Queries that go on at other levels of consistency, while others are at each of these from the beginning.

After every epoch, and after every change of the level, the query has said what a query has that has always
been at its level, and nothing beyond its horizon.
"""

from __future__ import annotations

import tempfile
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.arrival import Unit
from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.elements import to_rows
from headrace.errors import PlanError
from headrace.history import canonical, clip, equivalent
from headrace.lowering.early import at_horizon
from headrace.lowering.identity import identity
from headrace.operators.state.netting import netted
from headrace.runtime.driver.change.wanted import Redefine, Wanted
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.journal import Journal
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import FolderStore, MemoryStore, Store
from headrace.runtime.tasks.inline import InlineRunner
from headrace.time import INFINITY
from how_many import examples
from inside import reader_of
from property.plan_strategies import FORMS, Case, cases
from property.strategies import BUCKETS

MAXIMAL = -INFINITY
"""The block of a query that says all that it knows."""
Level = tuple[int, Unit] | None
"""A block and its unit; None for STRONG."""
LEVELS: tuple[Level, ...] = (
    None,
    *((block, Unit.TIME) for block in (MAXIMAL, -3, 0, 2, 5)),
    *((1, Unit.ROWS), (4, Unit.ROWS)),
)


class Script:
    """A run with a query whose level Hypothesis changes between any two epochs.

    Args:
        data: what it decides.
        case: the query's plan and its streams.
        store: a durable one is left and opened again.
        buckets: how many buckets state is spread over.
        epoch_rows: about how many rows an epoch takes.
    """

    def __init__(self, data: st.DataObject, case: Case, store: Store, buckets: int, epoch_rows: int) -> None:
        self.data, self.case, self.store = data, case, store
        self.settings = RunSettings(epoch_rows, buckets=buckets)
        self.streams = case.inputs()
        self.read = tuple(source.name for source in sources_of(case.plan))
        self.level = data.draw(st.sampled_from(LEVELS))
        self.journal: Journal | None = None
        self.run = self._start()

    def play(self) -> None:
        """Run to the end of the streams, with up to six actions in between."""
        left = 6
        try:
            while True:
                actions = ("go on", "level", "level", "restart", "restart at a level", "exchange")
                action = self.data.draw(st.sampled_from(actions)) if left else "go on"
                left -= action != "go on"
                if action == "level":
                    self._change()
                elif action == "exchange":
                    with suppress(PlanError):
                        self.run.exchange("q", self.data.draw(FORMS)(self.case.plan))
                elif action != "go on" and self.journal is not None:
                    self.journal.close()
                    if action != "restart" and "q" not in self.run.reading.queries.migrations:
                        self.level = self.data.draw(st.sampled_from(LEVELS))
                    self.run = self._start()
                elif share := self.run.next_share():
                    self.run.step(share)
                    self.run.merge()
                    self.run.end_exchanges()
                else:
                    return
                self.check()
        finally:
            if self.journal is not None:
                self.journal.close()

    def check(self) -> None:
        """The query has said what its twin has that has always been at its level."""
        assert not self.run.reading.queries.failed, self.run.reading.queries.failed
        found, expected = self._reader("q"), self._reader(_twin(self.level))
        reach = found.horizon
        assert reach == expected.horizon
        said = found.content()
        assert not len(netted(said.filter(said.ts >= reach)))
        assert equivalent(said, expected.content(), reach), (
            to_rows(canonical(clip(said, reach))),
            to_rows(canonical(clip(expected.content(), reach))),
        )

    def _reader(self, name: str) -> ResultReader:
        return ResultReader(name, form_of(self.case.plan), self.store, self.run.results)

    def _change(self) -> None:
        self.run.end_exchanges()
        if "q" not in self.run.reading.queries.migrations:
            self.level = self.data.draw(st.sampled_from(LEVELS))
            self.run.change(Redefine(Wanted(self._plans(), self.streams, self._description())))

    def _plans(self) -> dict[str, Plan]:
        return {"q": self._at(self.level)} | {_twin(level): self._at(level) for level in LEVELS}

    def _at(self, level: Level) -> Plan:
        return at_horizon(
            self.case.plan, None if level is None else Horizon(self.read, level[0], unit=level[1])
        )

    def _start(self) -> Run:
        run = Run(InlineRunner(), self.store, self.streams, self._plans(), self.settings)
        if isinstance(self.store, FolderStore):
            description = self._description()
            self.journal = Journal(self.store, description)
            assert not run.resume(self.journal, description, adapt=True)
        return run

    def _description(self) -> Description:
        queries = dict.fromkeys(self._plans(), DescribedQuery(identity(self.case.plan)))
        return Description(queries, dict.fromkeys(self.streams, "a table"), self.settings.buckets or 1)


def _twin(level: Level) -> str:
    return f"always at {level}"


@examples(6, 34)
@given(st.data(), BUCKETS, st.sampled_from((1, 2, 3)))
def test_a_query_goes_on_at_another_level(data: st.DataObject, buckets: int, epoch_rows: int) -> None:
    Script(data, data.draw(cases(max_relations=1)), MemoryStore(), buckets, epoch_rows).play()


@examples(2, 15)
@given(st.data(), BUCKETS, st.sampled_from((1, 3)))
def test_levels_over_restarts(data: st.DataObject, buckets: int, epoch_rows: int) -> None:
    case = data.draw(cases(max_streams=2, max_relations=1))
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(FolderStore(folder, durable=True)) as store,
    ):
        Script(data, case, store, buckets, epoch_rows).play()


_CHANGED = "(SELECT ISTREAM(k, COUNT(*) AS n) FROM s [RANGE 4] GROUP BY k)"
_NUMBERED = "(SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM s)"
FORGETFUL = (
    f"SELECT k, MAX(n) AS most, MIN(n) AS least FROM {_CHANGED} [RANGE 6] GROUP BY k",
    f"SELECT k, MAX(n) AS most FROM {_NUMBERED} [RANGE 5] GROUP BY k",
    f"SELECT k, n FROM {_CHANGED} [RANGE 6] ORDER BY n DESC LIMIT 1",
    f"SELECT DISTINCT k, n FROM {_CHANGED} [RANGE UNBOUNDED]",
)
"""Over what is final all of these forget what can never matter again."""
WRITTEN = ("STRONG", "MIDDLE", "(BLOCK 3)", "(BLOCK 2 ROWS)")


@pytest.mark.parametrize("text", FORGETFUL)
@examples(2, 15)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=4),
            st.sampled_from((None, *WRITTEN)),
        ),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from(WRITTEN),
)
def test_state_in_another_form(
    text: str, batches: list[tuple[list[tuple[str, int]], str | None]], level: str
) -> None:
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute("CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 8")
        twins = {
            written: db.execute(f"CREATE QUERY q{place} CONSISTENCY {written} AS {text}")[0]
            for place, written in enumerate(WRITTEN)
        }
        (query,) = db.execute(f"CREATE QUERY q CONSISTENCY {level} AS {text}")
        db.start()
        for place, (rows, other) in enumerate(batches):
            db.push("s", [{"k": k, "ts": 4 * place + ts} for k, ts in rows])
            if other is not None:
                db.execute(f"ALTER QUERY q SET CONSISTENCY {other}")
            level = other or level
            found, expected = reader_of(db, query), reader_of(db, twins[level])
            assert found.horizon == expected.horizon
            assert equivalent(found.content(), expected.content(), found.horizon), place
