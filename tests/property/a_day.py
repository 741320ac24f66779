"""A database on a store that is opened again and again, and what a test knows of the queries in it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import sources_of
from headrace.errors import UserError
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.time import INFINITY
from headrace.workloads.nexmark import Nexmark, generate

DISORDER: Final = 6
STREAM: Final = (
    "CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts "
    f"DISORDER {DISORDER} RETAIN {{}}"
)
MOST: Final = 14
"""So many queries there are at once."""

Row = dict[str, int]


class Killed(BaseException):
    """What ends a run in the middle of a step, as a kill does."""


@dataclass(frozen=True)
class Kill:
    """Where a run is to end.

    Attributes:
        point: the step.
        time: at which time that it is reached.
        counts: whether what was to be done is done then.
    """

    point: str
    time: int
    counts: bool


KILLS: Final = (
    Kill("epoch.reported", 1, False),
    Kill("epoch.reported", 2, False),
    Kill("change.begun", 1, False),
    Kill("change.done", 1, True),
)


@dataclass(frozen=True)
class Defined:
    """A definition of a query.

    Attributes:
        since: the instant from which on it holds.
        plan: its plan.
        continues: whether the answer before goes on in this one.
        exact: from which instant on it is exact, if that is later.
    """

    since: int
    plan: Plan
    continues: bool = True
    exact: int = 0


class Day:
    """What happens to the queries over one stream.

    Args:
        folder: where the store is to be.
        patch: with what runs are killed.
        seed: what happens is a function of it.
        rows: how many the stream has.
        retain: which of them it keeps.
    """

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, seed: int, rows: int, retain: str = "ALL"
    ) -> None:
        self.keeps_all = retain == "ALL"
        self.chance, self.folder, self.patch = random.Random(seed), folder, patch
        self.rows = self._rows(rows)
        self.pushed = 0
        self.deeds = Counter[str]()
        self.defined: dict[str, list[Defined]] = {}
        self.paused: set[str] = set()
        self.made = 0
        self.db = self._opened()
        self.db.execute(STREAM.format(retain))
        self.add()
        self.db.start()

    def _rows(self, wanted: int) -> list[Row]:
        """The stream: most rows are in disorder, and one of ten is late."""
        spec = Nexmark(events=2 * wanted, seed=3)
        made = generate(spec, "bid", 0, spec.events, ("auction", "bidder", "price")).to_pylist()[:wanted]
        return [
            {"auction": row["auction"] % 5, "bidder": row["bidder"] % 7, "price": row["price"] % 100}
            | {"ts": max(2 * place - self.chance.randrange(DISORDER + 1) - 20 * (place % 10 == 9), 0)}
            for place, row in enumerate(made)
        ]

    def _opened(self) -> hr.Database:
        return hr.connect(runner="inline", storage=self.folder / "store")

    @property
    def accepted(self) -> list[Row]:
        """The rows that have come in time."""
        newest, found = 0, []
        for row in self.rows[: self.pushed]:
            if row["ts"] >= newest - DISORDER:
                found.append(row)
            newest = max(newest, row["ts"])
        return found

    def select(self) -> str:
        """Some query."""
        least, length = self.chance.randrange(60), self.chance.randrange(3, 20)
        return self.chance.choice(
            [
                f"SELECT auction, bidder FROM bid WHERE price > {least}",
                f"SELECT auction, COUNT(*) AS n FROM bid [RANGE {length}] GROUP BY auction",
                f"SELECT MAX(price) AS top FROM bid [RANGE {length} SLIDE 4]",
                f"SELECT MIN(price) AS top FROM bid [RANGE {length}] WHERE bidder > {least % 7}",
                f"SELECT a.bidder FROM bid [RANGE 3] a JOIN bid [RANGE {length}] b ON a.bidder = b.auction",
                f"SELECT SUM(price) AS total FROM bid [ROWS {length}]",
                f"SELECT DISTINCT bidder FROM bid [RANGE {length}] WHERE price > {least}",
            ]
        )

    @property
    def names(self) -> list[str]:
        """All queries."""
        return list(self.defined)

    @property
    def going(self) -> list[str]:
        """The queries that are answered."""
        return [name for name in self.defined if name not in self.paused]

    def push(self, rows: int) -> None:
        """Send the next rows."""
        batch = self.rows[self.pushed : self.pushed + rows]
        if batch:
            self.db.push("bid", batch, producer="day", sequence=self.pushed)
            self.pushed += len(batch)

    def add(self) -> None:
        """Another query, over all rows; the oldest of too many goes."""
        name, start = f"day_{self.made}", " FROM BEGINNING" if self.made else ""
        self.made += 1
        try:
            self.db.execute(f"CREATE QUERY {name}{start} AS {self.select()}")
        except UserError as error:
            # Some windows of rows are not full yet since the oldest row that is kept.
            if self.keeps_all or "that are no longer kept" not in str(error):
                raise
            return
        self._note_added(name)

    def _note_added(self, name: str) -> None:
        start = self.db[name].warm_start
        self.defined[name] = [Defined(0 if start is None else start.answers_from, self.db[name].plan)]

    def drop(self) -> None:
        """Check a query, and drop it."""
        name = self.chance.choice(self.names)
        self.check(name)
        self.db.execute(f"DROP QUERY {name}")
        self.paused.discard(name)
        del self.defined[name]

    def replace(self) -> None:
        """Another query under a name: what EXPLAIN REPLACE has said holds."""
        name, select = self.chance.choice(self.going), self.select()
        said = str(self.db.execute(f"EXPLAIN REPLACE {name} AS {select}")[0])
        if "nothing changes" in said:
            return
        self.db.execute(f"CREATE OR REPLACE QUERY {name} AS {select}")
        self._note_replaced(name, said)

    def _note_replaced(self, name: str, said: str) -> None:
        since = re.search("the new answer holds from ([0-9]+) on", said)
        exact = re.search("it is exact from ([0-9]+) on", said)
        found = Defined(
            int(since[1]) if since else 0,
            self.db[name].plan,
            "other columns" not in said,
            int(exact[1]) if exact else INFINITY if "it will lack rows" in said else 0,
        )
        self.defined[name].append(found)

    def rename(self) -> None:
        """Another name for a query."""
        name = self.chance.choice(self.names)
        to = f"{name}_" if len(name) < 12 else f"again_{self.deeds['rename']}"
        self.db.execute(f"ALTER QUERY {name} RENAME TO {to}")
        self._note_renamed(name, to)

    def _note_renamed(self, name: str, to: str) -> None:
        self.defined[to] = self.defined.pop(name)
        if name in self.paused:
            self.paused = self.paused - {name} | {to}

    def pause(self, how: str = "") -> None:
        """Pause a query."""
        name = self.chance.choice(self.going)
        try:
            self.db.execute(f"ALTER QUERY {name} PAUSE{how}")
        except UserError as error:
            if self.keeps_all or "cannot keep its input" not in str(error):
                raise
            return
        self._note_paused(name)

    def _note_paused(self, name: str) -> None:
        """What a query is replaced by goes on alone, also if it had not taken over yet."""
        self.paused.add(name)
        last = self.defined[name][-1]
        if len(self.defined[name]) > 1:
            self.defined[name][-1] = replace(last, since=min(last.since, self.db[name].heartbeat))

    def resume(self) -> None:
        """Resume a query."""
        name = self.chance.choice(sorted(self.paused))
        self.db.execute(f"ALTER QUERY {name} RESUME")
        self.paused.discard(name)

    def ask(self) -> None:
        """Ask DuckDB about a history, and about the rows."""
        name = self.chance.choice(self.names)
        self.check(name)
        history = self.db[name].history().to_pylist()
        asked = self.db.ask(f"SELECT * FROM HISTORY OF {name}").to_pylist()
        assert Counter(map(repr, asked)) == Counter(map(repr, history))
        if not self.keeps_all:
            return
        counted = (
            "SELECT (SELECT COUNT(*) FROM ROWS OF bid) AS n, (SELECT COUNT(*) FROM DEAD LETTERS) AS late"
        )
        kept = len(self.accepted)
        assert self.db.ask(counted).to_pylist() == [{"n": kept, "late": self.pushed - kept}]

    def cut(self, size: int) -> None:
        """Let epochs have so many rows."""
        self.db.execute(f"SET epoch_rows = {size}")

    def kill(self) -> None:
        """End the run within something that is being done; it is done or it is not."""
        kill = self.chance.choice(KILLS)
        left = [kill.time]

        def end(name: str) -> None:
            left[0] -= name == kill.point
            if not left[0]:
                raise Killed

        deed, note = self.chance.choice((self._killed_push, self._killed_add, self._killed_replacement,
                                         self._killed_renaming, self._killed_pause))()  # fmt: skip
        with self.patch.context() as patch:
            patch.setattr(driver, "reach", end)
            try:
                deed()
                done = True
            except (UserError, Killed):
                # Where rows are missing it may be refused.
                done = kill.counts and left[0] <= 0
            with suppress(Killed):
                self.db.stop()
        killed = left[0] <= 0
        assert done or killed or not self.keeps_all
        self.db.close()
        self.db = self._opened()
        self.deeds[f"kill {kill.point}"] += killed
        self.db.start()
        note(done)
        assert sorted(query.name for query in self.db.queries) == sorted(self.names)

    def check(self, name: str) -> None:
        """See that a query answers as its definitions over the rows so far."""
        query, definitions = self.db[name], self.defined[name]
        end = min(query.heartbeat, 2 * len(self.rows) + 40)
        gaps = query.gaps().to_pylist()
        if self.keeps_all:
            # What was paused lacks nothing once it is resumed.
            assert [gap["lacks_to"] for gap in gaps] in ([], [None])
        lacks = {
            at for gap in gaps for at in range(gap["lacks_from"] or 0, min(gap["exact_from"] or end, end))
        }
        for one, after in zip(definitions, [*(other.since for other in definitions[1:]), end], strict=True):
            lacks.update(range(max(one.since, 0), min(one.exact, after, end)))
        expected, found = Counter[object](), Counter[object]()
        for place, one in enumerate(definitions):
            later = definitions[place + 1 :]
            last = min([end, *(other.since for other in later)])
            if all(other.continues for other in later):
                expected.update(self._expected(one.plan, range(one.since, last), lacks))
        for row in query.history().to_pylist():
            *values, ts, te = row.values()
            last = end if te is None else min(te, end)
            found.update((tuple(values), at) for at in range(ts, last) if at not in lacks)
        assert found == expected, (name, definitions, found - expected, expected - found)

    def _expected(self, plan: Plan, instants: range, lacks: set[int]) -> Counter[object]:
        [source] = {source.name: source for source in sources_of(plan)}.values()
        rows = [
            (tuple(row[column] for column in source.schema.names), row["ts"], row["ts"] + 1, 1)
            for row in self.accepted
        ]
        found = Counter[object]()
        for payload, ts, te in evaluate(plan, {source.name: Stream(source.schema.names, rows)}):
            inside = range(max(ts, instants.start), min(te, instants.stop))
            found.update((payload, at) for at in inside if at not in lacks)
        return found

    # What a run is killed in: what is done, and what is known afterwards.

    def _killed_push(self) -> tuple[Callable[[], object], Callable[[bool], None]]:
        batch, sequence = self.rows[self.pushed : self.pushed + 2], self.pushed
        if not batch:
            return self._killed_add()

        def note(done: bool) -> None:
            # A producer that does not know sends its rows again; they count once.
            if not done:
                self.db.push("bid", batch, producer="day", sequence=sequence)
            self.pushed += len(batch)

        return lambda: self.db.push("bid", batch, producer="day", sequence=sequence), note

    def _killed_add(self) -> tuple[Callable[[], object], Callable[[bool], None]]:
        name, select = f"day_{self.made}", self.select()

        def note(done: bool) -> None:
            if done:
                self._note_added(name)
                self.made += 1

        return lambda: self.db.execute(f"CREATE QUERY {name} FROM BEGINNING AS {select}"), note

    def _killed_replacement(self) -> tuple[Callable[[], object], Callable[[bool], None]]:
        name, select = self.chance.choice(self.going), self.select()
        said = str(self.db.execute(f"EXPLAIN REPLACE {name} AS {select}")[0])

        def note(done: bool) -> None:
            if done and "nothing changes" not in said:
                self._note_replaced(name, said)
            assert self.db[name].plan == self.defined[name][-1].plan

        return lambda: self.db.execute(f"CREATE OR REPLACE QUERY {name} AS {select}"), note

    def _killed_renaming(self) -> tuple[Callable[[], object], Callable[[bool], None]]:
        name = self.chance.choice(self.names)
        to = f"renamed_{self.pushed}_{self.made}"

        def note(done: bool) -> None:
            if done:
                self._note_renamed(name, to)

        return lambda: self.db.execute(f"ALTER QUERY {name} RENAME TO {to}"), note

    def _killed_pause(self) -> tuple[Callable[[], object], Callable[[bool], None]]:
        name, resumes = self.chance.choice(self.names), False
        resumes = name in self.paused

        def note(done: bool) -> None:
            if done and resumes:
                self.paused.discard(name)
            elif done:
                self._note_paused(name)

        return lambda: self.db.execute(f"ALTER QUERY {name} {'RESUME' if resumes else 'PAUSE'}"), note
