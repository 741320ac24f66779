"""A day in the life: queries come and go over a stream that keeps its rows, are paused, resumed and asked.

Whatever has happened to it, a query answers at the end as its definition, outside the instants that it names
as gaps. The run is killed in between.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import headrace as hr
import headrace.runtime.driver.committed as driver
from headrace.algebra.properties import sources_of
from headrace.errors import UserError
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.time import INFINITY
from headrace.workloads.nexmark import Nexmark, generate

ROWS = 192
DISORDER = 6
STREAM = (
    "CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts "
    f"DISORDER {DISORDER} RETAIN ALL"
)

LONGEST = 60
"""How far back windows look, in instants."""

DEEDS = ("add", "add", "pause", "keep", "resume", "resume", "drop", "set", "ask", "kill")


class Killed(BaseException):
    """What ends a run in the middle of a step, as a kill does."""


class Day:
    """A database on a store that is opened again and again, and what was pushed to it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.chance, self.folder, self.patch = random.Random(7), folder, patch
        spec = Nexmark(events=2 * ROWS, seed=3)
        made = generate(spec, "bid", 0, spec.events, ("auction", "bidder", "price")).to_pylist()
        behind = (self.chance.randrange(DISORDER + 1) for _ in made)
        self.rows = [
            {"auction": row["auction"] % 5, "bidder": row["bidder"] % 7, "price": row["price"] % 100}
            | {"ts": max(2 * place - back, 0)}
            for place, (row, back) in enumerate(zip(made, behind, strict=True))
        ][:ROWS]
        self.events = Counter[str]()
        self.made = 0
        self.db = self.opened()
        self.db.execute(STREAM)
        self.added()
        self.db.start()

    def opened(self) -> hr.Database:
        return hr.connect(runner="inline", storage=self.folder / "store")

    def select(self) -> str:
        least, length = self.chance.randrange(60), self.chance.randrange(3, 20)
        return self.chance.choice(
            [
                f"SELECT auction, bidder FROM bid WHERE price > {least}",
                f"SELECT auction, COUNT(*) AS n FROM bid [RANGE {length}] GROUP BY auction",
                f"SELECT MAX(price) AS top FROM bid [RANGE {length} SLIDE 4]",
                f"SELECT a.bidder FROM bid [RANGE 3] a JOIN bid [RANGE {length}] b ON a.bidder = b.auction",
                f"SELECT SUM(price) AS total FROM bid [ROWS {length}]",
            ]
        )

    def added(self) -> None:
        start = " FROM BEGINNING" if self.made else ""
        self.db.execute(f"CREATE QUERY day_{self.made}{start} AS {self.select()}")
        self.made += 1

    def paused(self) -> list[str]:
        text = str(self.db.execute("SHOW QUERIES")[0])
        return [line.split()[0] for line in text.splitlines() if " paused " in f"{line} "]

    def act(self, place: int) -> None:
        names, paused = [query.name for query in self.db.queries], self.paused()
        going = [name for name in names if name not in paused]
        deed = self.chance.choice(
            ["add", "add", "pause", "keep", "resume", "resume", "drop", "set", "ask", "kill"]
        )
        self.events[deed] += 1
        match deed:
            case "add":
                self.added()
            case "pause" | "keep" if len(going) > 3:
                how = " KEEPING INPUT" if deed == "keep" else ""
                self.db.execute(f"ALTER QUERY {self.chance.choice(going)} PAUSE{how}")
            case "resume" if paused:
                self.db.execute(f"ALTER QUERY {self.chance.choice(paused)} RESUME")
            case "drop" if len(going) > 5:
                self.db.execute(f"DROP QUERY {self.chance.choice(going)}")
            case "set":
                self.db.execute(f"SET epoch_rows = {self.chance.randrange(1, 9)}")
            case "ask":
                self.checked(self.chance.choice(going), place)
            case "kill":
                self.kill(place)

    def kill(self, place: int) -> None:
        """End the run within the epoch that takes a row, before its commit or after it."""
        point = self.chance.choice(["epoch.reported", "change.begun"])

        def cut(name: str) -> None:
            if name == point:
                raise Killed

        with self.patch.context() as patch:
            patch.setattr(driver, "reach", cut)
            if point == "epoch.reported":
                with pytest.raises((UserError, Killed)):
                    self.push(place)
            else:
                with pytest.raises((UserError, Killed)):
                    self.db.execute(f"CREATE QUERY killed FROM BEGINNING AS {self.select()}")
            with pytest.raises(Killed):
                self.db.stop()
        self.db.close()
        self.db = self.opened()
        assert self.db.queries
        assert "killed" not in [query.name for query in self.db.queries]
        self.db.start()

    def push(self, place: int) -> None:
        self.db.push("bid", self.rows[place], producer="day", sequence=place)

    def checked(self, name: str, place: int) -> None:
        """See that a query answers as its definition over the rows so far, outside its gaps."""
        query = self.db[name]
        [source] = {source.name: source for source in sources_of(query.plan)}.values()
        rows = [
            (tuple(row[column] for column in source.schema.names), row["ts"], row["ts"] + 1, 1)
            for row in self.rows[:place]
        ]
        end = min(query.heartbeat, 2 * ROWS + 40)
        # What is resumed answers over the rows since then: it lacks older ones for as long as its window is.
        lacks = [
            (gap["lacks_from"], INFINITY if gap["lacks_to"] is None else gap["lacks_to"] + LONGEST)
            for gap in query.gaps().to_pylist()
        ]
        told = {at for at in range(end) if not any((first or 0) <= at < last for first, last in lacks)}
        expected, found = Counter[object](), Counter[object]()
        for payload, ts, te in evaluate(query.plan, {source.name: Stream(source.schema.names, rows)}):
            expected.update((payload, at) for at in range(ts, min(te, end)) if at in told)
        for row in query.history().to_pylist():
            *values, ts, te = row.values()
            last = end if te is None else min(te, end)
            found.update((tuple(values), at) for at in range(ts, last) if at in told)
        assert found == expected, (name, query.plan)


@pytest.mark.kills
def test_every_query_answers_as_its_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = Day(tmp_path, monkeypatch)
    for place in range(ROWS):
        if place % 6 == 5 or day.made < 4:
            day.act(place)
        day.push(place)
    for name in day.paused():
        day.db.execute(f"ALTER QUERY {name} RESUME")
    day.db.heartbeat("bid", 2 * ROWS + 40)
    for query in day.db.queries:
        day.checked(query.name, ROWS)
    assert len(day.events) >= 7, day.events
    day.db.stop()
    day.db.close()
