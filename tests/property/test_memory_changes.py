"""Queries whose memory of their streams changes while they run.

After every epoch and every change, what a query has said is the definition over the rows that have come and
that the definition of lateness takes, at every instant up to which it speaks. What is final stays.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.arrival import Unit
from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.elements import Batch, from_rows, to_rows
from headrace.history import canonical, clip, equivalent
from headrace.lowering.early import at_horizon
from headrace.lowering.identity import identity
from headrace.lowering.memory import remembering
from headrace.reference.contents import Stream
from headrace.reference.lateness import Remembered, late_for_memory, late_rows
from headrace.reference.operators import evaluate
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
from headrace.time import BEGINNING
from how_many import examples
from inside import reader_of
from property.plan_strategies import Case, cases
from property.strategies import BUCKETS


@dataclass(frozen=True)
class Level:
    """A level of consistency.

    Attributes:
        block: so far behind the newest row the answer is said (instants); None for its heartbeat.
        remember: how long the streams are remembered; None for as long as they allow.
        unit: what that counts, TIME or ROWS.
    """

    block: int | None = None
    remember: int | None = None
    unit: Unit = Unit.TIME


LEVELS: Final = (
    Level(),
    Level(block=0),
    *(Level(None, length) for length in (0, 1, 2)),
    Level(0, 0),
    Level(0, 2),
    Level(None, 2, Unit.ROWS),
    Level(0, 2, Unit.ROWS),
)

ACTIONS: Final = ("go on", "change", "restart", "restart at a level")


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
        self.inputs = case.inputs()
        self.read = tuple(source.name for source in sources_of(case.plan))
        self.level = data.draw(st.sampled_from(LEVELS))
        self.known = {stream.name: stream for stream in case.streams}
        self.epochs: dict[str, list[Remembered]] = {name: [] for name in self.known}
        self.taken = dict.fromkeys(self.known, 0)
        self.final = BEGINNING
        self.journal: Journal | None = None
        self.run = self._start()

    def play(self) -> None:
        """Run to the end of the streams, with up to five changes in between."""
        left = 5
        try:
            while True:
                action = self.data.draw(st.sampled_from(ACTIONS)) if left else "go on"
                left -= action != "go on"
                if action == "change":
                    self.level = self.data.draw(st.sampled_from(LEVELS))
                    self.run.change(Redefine(Wanted(self._plans(), self.inputs, self._description())))
                elif action != "go on" and self.journal is not None:
                    self.journal.close()
                    if action == "restart at a level":
                        self.level = self.data.draw(st.sampled_from(LEVELS))
                    self.run = self._start()
                elif share := self.run.next_share():
                    self.run.step(share)
                    self.run.merge()
                else:
                    return
                self._note()
                self.check()
        finally:
            if self.journal is not None:
                self.journal.close()

    def check(self) -> None:
        """What the query has said is the definition over the rows that it has taken."""
        assert not self.run.reading.queries.failed, self.run.reading.queries.failed
        if not self.run.results:
            return
        streams = self.case.reference_streams()
        left = 0
        for name, stream in self.known.items():
            late = set(late_for_memory(self.epochs[name], stream.disorder))
            left += len(late)
            came = enumerate(stream.elements[: self.taken[name]])
            streams[name] = Stream(stream.schema.names, [one for place, one in came if place not in late])
        event(f"rows are left out: {left > 0}")
        reader = ResultReader("q", form_of(self.case.plan), self.store, self.run.results)
        history = evaluate(self.case.plan, streams)
        expected = from_rows(self.case.plan.schema, [(row, ts, te, 1) for row, ts, te in history])
        said, reach = reader.content(), reader.horizon
        assert equivalent(said, expected, reach), (
            self.epochs,
            to_rows(canonical(clip(said, reach))),
            to_rows(canonical(clip(expected, reach))),
        )
        heartbeat = self.run.results[-1].heartbeats["q"]
        assert self.final <= heartbeat <= reach
        self.final = heartbeat

    def _note(self) -> None:
        """What has come of the streams since the last time."""
        for name, stream in self.known.items():
            now = self.run.point(name).position if name in self.read else 0
            times = [element[1] for element in stream.elements[self.taken[name] : now]]
            self.taken[name] = now
            self.epochs[name].append(
                Remembered(times, self.level.remember, by_rows=self.level.unit is Unit.ROWS)
            )

    def _plans(self) -> dict[str, Plan]:
        plan, level = self.case.plan, self.level
        if level.remember is not None:
            plan = remembering(plan, [Memory(name, level.remember, level.unit) for name in self.read])
        return {"q": at_horizon(plan, None if level.block is None else Horizon(self.read, level.block))}

    def _start(self) -> Run:
        run = Run(InlineRunner(), self.store, self.inputs, self._plans(), self.settings)
        if isinstance(self.store, FolderStore):
            description = self._description()
            self.journal = Journal(self.store, description)
            assert not run.resume(self.journal, description, adapt=True)
        return run

    def _description(self) -> Description:
        queries = {"q": DescribedQuery(identity(self.case.plan))}
        return Description(queries, dict.fromkeys(self.inputs, "a table"), self.settings.buckets or 1)


@examples(2, 18)
@given(st.data(), BUCKETS, st.sampled_from((1, 2, 3)))
def test_memories_of_whole_plans(data: st.DataObject, buckets: int, epoch_rows: int) -> None:
    Script(data, data.draw(cases(max_relations=1)), MemoryStore(), buckets, epoch_rows).play()


@examples(2, 15)
@given(st.data(), BUCKETS, st.sampled_from((1, 3)))
def test_memories_over_restarts(data: st.DataObject, buckets: int, epoch_rows: int) -> None:
    case = data.draw(cases(max_streams=2, max_relations=1))
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(FolderStore(folder, durable=True)) as store,
    ):
        Script(data, case, store, buckets, epoch_rows).play()


COUNTS: Final = "SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k"
TEXTS: Final = {
    "nested": f"SELECT MAX(n) AS most, MIN(n) AS least FROM ({COUNTS})",
    "pairs": "SELECT a.k, b.ts AS ts FROM s [RANGE 3] a JOIN s [RANGE 5] b ON a.k = b.k",
    "last": "SELECT k, ts FROM s [PARTITION BY k ROWS 1]",
    "changed": f"SELECT k, MAX(n) AS most FROM (SELECT ISTREAM(k, n) FROM ({COUNTS})) [RANGE 6] GROUP BY k",
}
WRITTEN: Final = {
    "STRONG": Level(),
    "MIDDLE": Level(0),
    "WEAK": Level(0, 0),
    "(REMEMBER 3)": Level(None, 3),
    "(BLOCK 1, REMEMBER 6)": Level(1, 6),
    "(REMEMBER 3 ROWS)": Level(None, 3, Unit.ROWS),
    "(BLOCK 0, REMEMBER 3 ROWS)": Level(0, 3, Unit.ROWS),
}
DISORDER: Final = 9

steps = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=4)
    | st.sampled_from([*WRITTEN]),
    min_size=4,
    max_size=12,
)
"""Rows that are up to nine instants apart, and levels."""


def once(rows: list[dict[str, object]]) -> dict[str, Batch]:
    """What queries say of rows all of which are taken."""
    schema = pa.schema([("k", pa.string()), ("ts", pa.int64())])
    with hr.connect(runner="inline", buckets=2) as db:
        db.stream("s", pa.Table.from_pylist(rows, schema), timestamp="ts", disorder=1000)
        found = {name: db.query(f"CREATE QUERY {name} AS {text}") for name, text in TEXTS.items()}
        db.run()
        return {name: reader_of(db, query).content() for name, query in found.items()}


@examples(4, 30)
@given(steps, st.sampled_from([*WRITTEN]))
def test_a_query_that_is_altered(steps: list[list[tuple[str, int]] | str], level: str) -> None:
    rows, epochs = list[dict[str, object]](), list[Remembered]()
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute(f"CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER {DISORDER}")
        for name, text in TEXTS.items():
            db.execute(f"CREATE QUERY {name} CONSISTENCY {level} AS {text}")
        db.start()
        for place, step in enumerate(steps):
            if isinstance(step, str):
                level = step
                for name in TEXTS:
                    db.execute(f"ALTER QUERY {name} SET CONSISTENCY {level}")
            else:
                came = [{"k": k, "ts": 3 * place + ts} for k, ts in step]
                rows += came
                db.push("s", came)
            times = [] if isinstance(step, str) else [3 * place + ts for _, ts in step]
            known = WRITTEN[level]
            epochs.append(Remembered(times, known.remember, by_rows=known.unit is Unit.ROWS))
        late = set(late_for_memory(epochs, DISORDER))
        usual = late_rows([int(str(row["ts"])) for row in rows], DISORDER)
        event(f"rows are left out: {len(late) > len(usual)}")
        taken = [row for at, row in enumerate(rows) if at not in late]
        for name, expected in once(taken).items():
            found = reader_of(db, db[name])
            assert equivalent(found.content(), expected, found.horizon), (name, level, taken)
