"""Whatever becomes of queries while they run, outside their gaps they say what all rows that came say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
from headrace.runtime.driver.beside.starting_at import CatchUp
from headrace.runtime.store import segments
from how_many import examples

COLUMNS = "(k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
TEXTS = (
    "SELECT k, SUM(v) AS x FROM s [RANGE 7] GROUP BY k",
    "SELECT k, COUNT(*) AS x FROM s [RANGE 4] GROUP BY k",
    "SELECT k, MAX(v) AS x FROM s [RANGE 10 SLIDE 5] GROUP BY k",
    "SELECT k, MAX(v) AS x FROM GAP_FILL(TABLE s PARTITION BY k, DESCRIPTOR(ts), 2, 6, 'LAST') [RANGE 3] "
    "GROUP BY k",
    "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k HAVING COUNT(*) > 2",
    "SELECT k, SUM(v) AS x FROM s [ROWS 3] GROUP BY k",
    "SELECT s.k, MAX(t.v) AS x FROM s [RANGE 5] JOIN t [RANGE 6] ON s.k = t.k GROUP BY s.k",
    "SELECT k, v AS x FROM s [RANGE 4] EXCEPT SELECT k, v FROM t [RANGE 6]",
    "SELECT 1 AS k, COUNT(*) AS x FROM TUMBLE(s, 5) WHERE k = 1 GROUP BY window_start, window_end",
    "SELECT 2 AS k, COUNT(*) AS x FROM TUMBLE(s, 5) WHERE k = 2 GROUP BY window_start, window_end",
)
LEVELS = ("STRONG", "MIDDLE", "(BLOCK 2)")
PUSHES = st.lists(
    st.tuples(st.sampled_from("sst"), st.integers(0, 2), st.integers(0, 9), st.integers(-1, 4)),
    min_size=1,
    max_size=6,
)
STEPS = st.lists(
    st.tuples(
        PUSHES,
        st.sampled_from(
            [
                "create",
                "drop",
                "replace",
                "rename",
                "pause",
                "pause",
                "keep",
                "resume",
                "resume",
                "level",
                "restart",
            ]
        ),
        st.integers(0, 1),
        st.integers(0, len(TEXTS) - 1),
        st.integers(0, 2),
        st.just(0) | st.integers(1, 14),
    ),
    min_size=2,
    max_size=8,
)
NUMBERS = st.integers(0, len(TEXTS) - 1)
RETAINED = st.sampled_from(["", "RETAIN 6", "RETAIN ALL"])
Rows = list[tuple[str, int, int, int]]
Step = tuple[Rows, str, int, int, int, int]
"""Rows that are pushed, a change of one of the queries, its text and level if it gets others, and with which
of its steps in writing files the process dies; with none for 0."""


class Killed(BaseException):
    """The end of a process in the middle of a step."""


@contextmanager
def dying(step: int) -> Iterator[None]:
    """Let a process die with its n-th step in writing files, and leave behind what it has written."""
    reached = count(1)

    def reach(_: str) -> None:
        if next(reached) == step:
            raise Killed

    with (
        patch.object(segments, "reach", reach),
        patch.object(driver, "reach", reach),
        patch.object(CatchUp, "discard", lambda _: None),
    ):
        yield


@dataclass
class Life:
    """A query as it has been told to be.

    Attributes:
        name: what it is called now.
        begins: from which instant on it answers.
        texts: from which instant on it does so as which text.
        paused: whether it is paused.
    """

    name: str
    begins: int
    texts: list[tuple[int, str]]
    paused: bool = False

    def text_at(self, instant: int) -> str:
        """The text that an instant is answered by."""
        return [text for since, text in self.texts if since <= instant][-1]


@dataclass
class World:
    """A database with two streams and at most two queries.

    Attributes:
        db: the database.
        retained: what its streams keep.
        storage: where it is stored, or None.
        rows: all that was pushed, by stream.
        lives: the queries, by place.
        made: how many there have been.
        killed: how often the process has died.
    """

    db: hr.Database
    storage: Path | None
    rows: dict[str, list[dict[str, int]]] = field(default_factory=lambda: {"s": [], "t": []})
    lives: dict[int, Life] = field(default_factory=dict)
    made: int = 0
    killed: int = 0

    def push(self, rows: Rows) -> None:
        """Push rows, some of them somewhat older than the newest."""
        for stream, k, v, step in rows:
            newest = max((row["ts"] for row in self.rows[stream]), default=0)
            row = {"k": k, "v": v, "ts": max(newest + step, 0)}
            self.rows[stream].append(row)
            self.db.push(stream, row)

    def change_or_die(self, what: str, place: int, text: int, level: int, dies: int) -> None:
        """Change one of the queries; if the process dies meanwhile another one goes on with its store."""
        if not dies or self.storage is None or what == "restart":
            self.change(what, place, text, level)
            return
        before, made = {at: replace(life, texts=[*life.texts]) for at, life in self.lives.items()}, self.made
        try:
            with dying(dies):
                self.change(what, place, text, level)
        except hr.UserError as error:
            if "Killed" not in str(error):
                raise
        else:
            return
        self.killed += 1
        self.restart()
        if not self.has_changed(what, place, text, before.get(place)):
            self.lives, self.made = before, made

    def has_changed(self, what: str, place: int, text: int, before: Life | None) -> bool:
        """Whether a change counts during which the process died; it is noted if so."""
        if what == "create":
            name = f"q{self.made}"
            if done := name in {query.name for query in self.db.queries}:
                self.lives[place] = Life(name, self.db[name].heartbeat, [(-1, TEXTS[text])])
            return done
        life = self.lives.get(place)
        if life is None or before is None:
            return False
        called = {query.name for query in self.db.queries}
        if what == "drop":
            if done := life.name not in called:
                del self.lives[place]
            return done
        if what == "rename":
            return life.name in called
        is_paused = self.db.served.paused(before.name)
        if what == "resume":
            life.paused = is_paused
            return True
        if what in ("pause", "keep"):
            if is_paused and not before.paused:
                self.paused(life)
            return is_paused
        return TEXTS[text] in str(self.db.execute(f"SHOW CREATE QUERY {life.name}")[0])

    def change(self, what: str, place: int, text: int, level: int) -> None:
        """Change one of the queries, if it is there and can be changed so."""
        life = self.lives.get(place)
        made = f"CONSISTENCY {LEVELS[level]} AS {TEXTS[text]}"
        match what, life:
            case "restart", _:
                self.restart()
            case "create", None:
                self.made += 1
                (query,) = self.db.execute(f"CREATE QUERY q{self.made} {made}")
                self.lives[place] = Life(query.name, query.heartbeat, [(-1, TEXTS[text])])
            case "replace", Life(paused=False):
                if life.texts[-1][1] != TEXTS[text]:
                    told = str(self.db.execute(f"EXPLAIN CREATE OR REPLACE QUERY {life.name} {made}")[0])
                    found = re.search(r"the old answer holds below (-?\d+)", told)
                    if "subscriptions to it end" in told:
                        life.begins, life.texts = self.db[life.name].heartbeat, []
                    life.texts.append((int(found[1]) if found else -1, TEXTS[text]))
                self.db.execute(f"CREATE OR REPLACE QUERY {life.name} {made}")
            case "rename", Life():
                self.made += 1
                before, life.name = life.name, f"q{self.made}"
                self.db.execute(f"ALTER QUERY {before} RENAME TO {life.name}")
            case "pause" | "keep", Life(paused=False):
                self.pause(life, " KEEPING INPUT" if what == "keep" else "")
            case "resume", Life(paused=True):
                self.db.execute(f"ALTER QUERY {life.name} RESUME")
                life.paused = False
            case "level", Life(paused=False):
                self.db.execute(f"ALTER QUERY {life.name} SET CONSISTENCY {LEVELS[level]}")
            case "drop", Life():
                self.db.execute(f"DROP QUERY {life.name}")
                del self.lives[place]
            case _:
                pass

    def pause(self, life: Life, keeping: str) -> None:
        """Pause a query, unless rows are missing for it to keep its input."""
        try:
            self.db.execute(f"ALTER QUERY {life.name} PAUSE{keeping}")
        except hr.UserError as error:
            if "cannot keep its input" not in str(error):
                raise
        else:
            self.paused(life)

    def paused(self, life: Life) -> None:
        """Note that a query is paused."""
        life.paused = True
        # What was to take over later does so when it goes on.
        since, last = life.texts[-1]
        life.texts[-1] = min(since, self.db[life.name].heartbeat), last

    def restart(self) -> None:
        """Close the database, and open its store."""
        if self.storage is not None:
            with suppress(Killed):
                self.db.close()
            self.db = hr.connect(runner="inline", storage=self.storage)
            self.db.start()


@pytest.mark.parametrize("stored", [False, True])
@examples(8, 120)
@given(RETAINED, RETAINED, st.tuples(NUMBERS, NUMBERS), STEPS, PUSHES)
def test_outside_its_gaps_a_query_says_what_its_rows_say(
    tmp_path_factory: pytest.TempPathFactory,
    stored: bool,
    s: str,
    t: str,
    first: tuple[int, int],
    steps: list[Step],
    last: Rows,
) -> None:
    storage = tmp_path_factory.mktemp("store") if stored else None
    world = World(hr.connect(runner="inline", storage=storage), storage)
    try:
        for stream, retained in (("s", f"DISORDER 3 {s}"), ("t", f"DISORDER 1 {t}")):
            world.db.execute(f"CREATE STREAM {stream} {COLUMNS} {retained}")
        world.db.execute("CREATE QUERY s_all AS SELECT k FROM s; CREATE QUERY t_all AS SELECT k FROM t")
        world.db.start()
        world.push([("s", 0, 0, 0), ("t", 0, 0, 0)])
        for place, text in enumerate(first):
            world.change("create", place, text, place)
        for rows, what, place, text, level, dies in steps:
            world.push(rows)
            world.change_or_die(what, place, text, level, dies)
        event(f"killed {world.killed}")
        world.push(last)
        for life in world.lives.values():
            compare(world, life, s == t == "RETAIN ALL")
    finally:
        world.db.close()


def compare(world: World, life: Life, kept: bool) -> None:
    """See that a query says outside its gaps what its texts say over all rows that have come."""
    query = world.db[life.name]
    gaps = query.gaps().to_pylist()
    histories = {text: reference(world, text) for _, text in life.texts}
    assert not kept or not gaps or life.paused
    for at in range(max(life.begins, 0), query.heartbeat):
        if not any(lacks(gap, at) for gap in gaps):
            assert rows_at(query.history().to_pylist(), at) == rows_at(histories[life.text_at(at)], at), (
                at, life, gaps,
            )  # fmt: skip


def lacks(gap: dict[str, int | None], instant: int) -> bool:
    """Whether a gap says that an answer lacks something of an instant."""
    begin, exact = gap["lacks_from"], gap["exact_from"]
    return (begin is None or begin <= instant) and (exact is None or instant < exact)


def reference(world: World, text: str) -> list[dict[str, int]]:
    """The history of a query over all rows that have come, with nothing else beside it."""
    with hr.connect(runner="inline") as db:
        for stream, rows in world.rows.items():
            table = pa.Table.from_pylist(sorted(rows, key=lambda row: row["ts"]))
            db.stream(stream, table, timestamp="ts")
        query = db.query(text)
        db.run()
        found: list[dict[str, int]] = query.history().to_pylist()
        return found


def rows_at(history: list[dict[str, int]], instant: int) -> list[tuple[int, int]]:
    return sorted(held(history, instant))


def held(history: list[dict[str, int]], instant: int) -> Iterator[tuple[int, int]]:
    for row in history:
        end = row["valid_to"]
        if row["valid_from"] <= instant and (end is None or instant < end):
            yield row["k"], row["x"]
