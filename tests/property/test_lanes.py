"""Queries that are behind others say in the end what they say that are not, whoever has his turn when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
import headrace.runtime.driver.epoch.committed as driver
from answers_at import content_at
from headrace.runtime.driver.kept import rows
from headrace.runtime.driver.lanes import lanes as lanes_module
from headrace.runtime.driver.lanes.measured import Measured
from headrace.runtime.store import segments
from headrace.scheduling.policies import POLICIES, NextTurn, QueuedRows
from how_many import examples
from inside import execution_of
from waiting import wait_for

COLUMNS = "(k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
FAILING = "SELECT k, 6 / v AS x FROM s [RANGE 3]"
"""Of which some rows are dead letters."""
TEXTS = (
    "SELECT k, SUM(v) AS x FROM s [RANGE 7] GROUP BY k",
    "SELECT k, MAX(v) AS x FROM s [RANGE 10 SLIDE 5] GROUP BY k",
    "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT k, SUM(v) AS x FROM s [ROWS 3] GROUP BY k",
    "SELECT s.k, MAX(t.v) AS x FROM s [RANGE 5] JOIN t [RANGE 6] ON s.k = t.k GROUP BY s.k",
    "SELECT k, v AS x FROM s [RANGE 4] EXCEPT SELECT k, v FROM t [RANGE 6]",
    "SELECT s.k, n.v AS x FROM s [RANGE 3] JOIN n ON s.k = n.k",
    "SELECT k, v AS x FROM u",
    FAILING,
    "SELECT k, COUNT(*) AS x FROM s [RANGE MIN 2, MAX 6] GROUP BY k",
)
LEVELS = ("STRONG", "MIDDLE", "WEAK", "(BLOCK 2)", "(BLOCK 2, REMEMBER 3)")
WEIGHTS = ("0", "0.5", "3", "DEFAULT")
PUSHES = st.lists(
    st.tuples(st.sampled_from("sstu"), st.integers(0, 2), st.integers(0, 4), st.integers(-3, 4)),
    min_size=2,
    max_size=9,
)
ACTIONS = (
    "weight", "weight", "weight", "create", "drop", "rename", "restart", "level", "pause", "resume",
    "replace", "tune", "refresh", "heartbeat", "scheduling",
)  # fmt: skip
NUMBERS = st.integers(0, len(TEXTS) - 1)
CHOICES = st.integers(0, len(LEVELS) * len(WEIGHTS) - 1)
"""Of a level, a weight, or whatever else an action has."""
STEPS = st.lists(
    st.tuples(
        PUSHES,
        st.sampled_from(ACTIONS),
        st.integers(0, 2),
        NUMBERS,
        CHOICES,
        st.just(0) | st.integers(1, 14),
    ),
    min_size=2,
    max_size=9,
)
Step = tuple[list[tuple[str, int, int, int]], str, int, int, int, int]


class Killed(BaseException):
    """The end of a process in the middle of a step."""


@contextmanager
def dying(step: int) -> Iterator[None]:
    """Let a process die with its n-th step in writing files, and leave behind what it has written."""
    reached = count(1)

    def reach(_: str) -> None:
        if next(reached) == step:
            raise Killed

    with patch.object(segments, "reach", reach), patch.object(driver, "reach", reach):
        yield


@dataclass
class World:
    """A database to which things are done.

    Attributes:
        folder: where its relation and its store are.
        stored: whether it is stored.
        behind: whether its queries have weights.
        texts: what its queries say.
        threads: how many threads its epochs run on.
        db: the database.
        newest: the largest instant that was pushed, per stream.
        lives: the names of the queries that there are, by place.
        first_names: those of queries that have been renamed, by their later ones.
        made: how many there have been.
        killed: how often the process has died.
    """

    folder: Path
    stored: bool
    behind: bool
    texts: list[str]
    threads: int = 1
    db: hr.Database = field(init=False)
    newest: dict[str, int] = field(default_factory=lambda: dict.fromkeys("stu", -9))
    lives: dict[int, str] = field(default_factory=dict)
    first_names: dict[str, str] = field(default_factory=dict)
    made: int = 0
    killed: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.write(0)
        self.db = self.opened()
        for name in "st":
            self.db.execute(f"CREATE STREAM {name} {COLUMNS} DISORDER 3 DEAD LETTERS KEEP ALL")
        self.db.execute("CREATE RELATION u (op STRING, k BIGINT, v BIGINT, ts BIGINT) KEY (k) "
                        "FROM push CHANGES BY op TIMESTAMP BY ts")  # fmt: skip
        path = self.folder / "n.csv"
        self.db.execute(f"CREATE RELATION n FROM csv OPTIONS (path '{path}') REFRESH ON DEMAND")
        self.db.execute("CREATE QUERY all_of_s AS SELECT k, v AS x FROM s")
        self.db.start()

    def write(self, number: int) -> None:
        """Let the relation have other rows."""
        rows = "".join(f"{k},{k + number}\n" for k in range(3))
        (self.folder / "n.csv").write_text(f"k,v\n{rows}")

    def opened(self) -> hr.Database:
        store = self.folder / "store" if self.stored else None
        return hr.connect(runner="inline", threads=self.threads, storage=store)

    def push(self, rows: Sequence[tuple[str, int, int, int]]) -> None:
        """Push rows, some of them somewhat older than the newest."""
        for stream, k, v, step in rows:
            self.newest[stream] += max(step, 0)
            row: dict[str, Any] = {"k": k, "v": v, "ts": self.newest[stream] + min(step, 0)}
            if stream == "u":
                row = {"op": "D" if v == 0 else "U", **row, "ts": self.newest[stream]}
            try:
                self.db.push(stream, row)
            except hr.UserError as error:
                if "no query" not in str(error):
                    raise

    def do(self, what: str, place: int, text: int, number: int, dies: int) -> None:
        """Do something, while the process may die if that changes no answer."""
        if what != "weight" or not dies or not self.stored or not self.behind:
            self.change(what, place, text, number)
            return
        with dying(dies), suppress(hr.UserError):
            self.change(what, place, text, number)
            live = execution_of(self.db)._live
            assert live is not None
            wait_for(lambda: not live.running or not live.lanes.waits)
        if not self.db.running:
            self.killed += 1
            self.restart()

    def change(self, what: str, place: int, text: int, number: int) -> None:
        """Do something to one of the queries, or to what they read."""
        made = f"CONSISTENCY {LEVELS[number % len(LEVELS)]} AS {self.texts[text % len(self.texts)]}"
        name = self.lives.get(place)
        if what in ("restart", "refresh", "heartbeat", "scheduling"):
            self.change_all(what, place, number)
        elif what == "create" and name is None:
            self.made += 1
            weight = WEIGHTS[number // len(LEVELS)]
            said = f"WEIGHT {weight} " if self.behind and weight != "DEFAULT" else ""
            # What is over a relation alone has no rows to remember.
            with suppress(hr.UserError):
                self.db.execute(f"CREATE QUERY q{self.made} {said}{made}")
                self.lives[place] = f"q{self.made}"
        elif name is not None and what == "rename":
            self.made += 1
            self.lives[place] = f"q{self.made}"
            self.first_names[f"q{self.made}"] = self.first_names.get(name, name)
            self.db.execute(f"ALTER QUERY {name} RENAME TO q{self.made}")
        elif name is not None and what == "drop":
            self.db.execute(f"DROP QUERY {self.lives.pop(place)}")
        elif name is not None and what == "weight" and self.behind:
            self.db.execute(f"ALTER QUERY {name} SET (WEIGHT {WEIGHTS[number % 4]})")
        elif name is not None and what not in ("create", "weight"):
            with suppress(hr.UserError):
                self.db.execute(
                    {
                        "replace": f"CREATE OR REPLACE QUERY {name} AS {self.texts[text % len(self.texts)]}",
                        "pause": f"ALTER QUERY {name} PAUSE",
                        "resume": f"ALTER QUERY {name} RESUME",
                        "level": f"ALTER QUERY {name} SET CONSISTENCY {LEVELS[number % len(LEVELS)]}",
                        "tune": f"ALTER QUERY {name} SET (WINDOW {2 + number % 5})",
                    }[what]
                )

    def change_all(self, what: str, place: int, number: int) -> None:
        """Do something to all queries."""
        if what == "restart":
            self.restart()
        elif what == "scheduling":
            if self.behind:
                self.db.execute(f"SET scheduling = '{list(POLICIES)[number % len(POLICIES)]}'")
        elif what == "refresh":
            self.write(number)
            with suppress(hr.UserError):
                self.db.execute("REFRESH RELATION n")
        else:
            stream = "stu"[place]
            self.newest[stream] += number
            with suppress(hr.UserError):
                self.db.heartbeat(stream, self.newest[stream])

    def restart(self) -> None:
        """Close the database, and open its store."""
        if self.stored:
            with suppress(Killed):
                self.db.close()
            self.db = self.opened()
            self.db.start()

    def letters(self) -> Counter[tuple[Any, ...]]:
        """The dead letters of s: the first name of the query that failed, the row, and the reason."""
        found = Counter[tuple[Any, ...]]()
        for row in self.db.dead_letters("s").to_pylist():
            for name in (row["query"] or "").split(", "):
                known = self.first_names.get(name, name)
                found[known, row["k"], row["v"], row["ts"], row["reason"]] += 1
        return found

    def close(self) -> None:
        """Close what is open by now."""
        self.db.close()

    def drain(self) -> None:
        """Let all queries come to the present."""
        if self.behind:
            for name in self.lives.values():
                if not self.db.served.paused(name):
                    self.db.execute(f"ALTER QUERY {name} SET (WEIGHT 1)")
            live = execution_of(self.db)._live
            assert live is not None
            wait_for(lambda: not live.lanes.waits)


@contextmanager
def unruly(numbers: Sequence[int]) -> Iterator[None]:
    """Let whoever has something to take have his turn by some numbers, with few rows each."""
    drawn = cycle(numbers)

    def chosen(queues: Sequence[QueuedRows], _: float) -> NextTurn | None:
        able = [one for one in queues if one.rows and one.weight]
        return NextTurn(able[next(drawn) % len(able)].name, 1) if able else None

    def few(*_: Any) -> int:
        return 1 + next(drawn) % 3

    with (
        patch.object(lanes_module, "POLICIES", dict.fromkeys(POLICIES, chosen)),
        patch.object(Measured, "fitting", few),
        patch.object(rows, "MOST_FILES", 2),
    ):
        yield


def check_letters(behind: World, front: World) -> None:
    """See that queries fail on the same rows; one that was dropped may have had less of them."""
    found, expected = behind.letters(), front.letters()
    event(f"queries failed on rows: {len({query for query, *_ in expected if query})}")
    lives = {front.first_names.get(name, name) for name in front.lives.values()}
    assert not found - expected
    assert {query for query, *_ in expected - found}.isdisjoint({"", *lives})


@pytest.mark.parametrize("stored", [False, True])
@examples(8, 150)
@given(
    st.lists(NUMBERS, min_size=1, max_size=4),
    st.tuples(*[st.tuples(NUMBERS, CHOICES)] * 3),
    STEPS,
    PUSHES,
    st.none() | st.lists(st.integers(0, 5), min_size=1, max_size=9),
    st.sampled_from([1, 2]),
)
def test_they_say_what_they_would_say_in_front(
    tmp_path_factory: pytest.TempPathFactory,
    stored: bool,
    texts: list[int],
    first: tuple[tuple[int, int], ...],
    steps: list[Step],
    last: list[tuple[str, int, int, int]],
    turns: list[int] | None,
    threads: int,
) -> None:
    folder = tmp_path_factory.mktemp("worlds")
    with ExitStack() as stack:
        asked = [*(TEXTS[text] for text in texts), FAILING]
        worlds = [
            World(folder / name, stored, name == "behind", asked, threads) for name in ("behind", "front")
        ]
        for world in worlds:
            stack.callback(world.close)
        if turns is not None:
            stack.enter_context(unruly(turns))
        for place, (text, number) in enumerate(first):
            for world in worlds:
                world.change("create", place, text, number)
        for pushed, what, place, text, number, dies in steps:
            for world in worlds:
                world.push(pushed)
                world.do(what, place, text, number, dies)
        for world in worlds:
            world.push(last)
            world.drain()
        behind, front = worlds
        event(f"killed {behind.killed}")
        assert behind.lives == front.lives
        check_letters(behind, front)
        for name in behind.lives.values():
            one, other = behind.db[name], front.db[name]
            assert one.heartbeat == other.heartbeat, (
                name,
                one.heartbeat,
                other.heartbeat,
                str(behind.db.execute("SHOW LANES")[0]),
            )
            assert one.gaps().to_pylist() == other.gaps().to_pylist()
            found, expected = (query.changes().to_pylist() for query in (one, other))
            for at in range(-20, min(one.heartbeat, 120)):
                assert content_at(found, ("k", "x"), at) == content_at(expected, ("k", "x"), at), (name, at)
