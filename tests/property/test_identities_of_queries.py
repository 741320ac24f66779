"""A handle shows the answer of its query for ever, whatever other queries get the name that it had."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import headrace as hr
from headrace.lowering.query_id import first_name, id_of, number_of
from how_many import examples

NAMES = ("a", "b")
STREAM = "CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["create", "drop", "pause", "resume"]), st.sampled_from(NAMES)),
        st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("restart")),
    ),
    min_size=6,
    max_size=16,
)


class Known:
    """A query as it should be: what it has answered, under whatever name.

    Args:
        offset: what it adds to each value, which no other query adds.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.paused = False
        self.values: list[int] = []
        self.pending: list[int] = []

    def text(self) -> str:
        return f"SELECT v + {self.offset} AS x FROM s"


class Life:
    """A store and its queries, beside what they should be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.now: dict[str, Known] = {}
        self.made: dict[str, Known] = {}
        self.ever: list[tuple[hr.Query, Known]] = []
        self.pushed = 0
        self.db = self._opened()
        self.db.execute(STREAM)
        self.db.query("SELECT v FROM s", name="always")
        self.db.start()

    def _opened(self) -> hr.Database:
        return hr.connect(runner="inline", storage=self._folder)

    def do(self, what: str, *names: str) -> None:
        match what, names:
            case "create", (name,) if name not in self.now:
                known = Known(1000 * (len(self.made) + 1))
                query = self.db.query(known.text(), name=name)
                assert query.id not in self.made
                self.ever.append((query, known))
                self.now[name] = self.made[query.id] = known
            case "drop", (name,) if name in self.now:
                self.db.drop(name)
                self.now.pop(name).pending = []
            case "rename", (name, other) if name in self.now and other not in self.now:
                self.db.execute(f"ALTER QUERY {name} RENAME TO {other}")
                self.now[other] = self.now.pop(name)
            case "pause", (name,) if name in self.now and not self.now[name].paused:
                self.db.execute(f"ALTER QUERY {name} PAUSE")
                self.now[name].paused, self.now[name].pending = True, []
            case "resume", (name,) if name in self.now and self.now[name].paused:
                self.db.execute(f"ALTER QUERY {name} RESUME")
                self.now[name].paused = False
            case "restart", ():
                self.db.stop()
                self.db.close()
                self.db = self._opened()
                self.db.start()
                self.ever = [(self.db[name], known) for name, known in self.now.items()]
                assert all(self.made[query.id] is known for query, known in self.ever)
            case _:
                pass

    def push(self) -> None:
        """Push a row, which is final with the next one."""
        self.pushed += 1
        self.db.push("s", {"v": self.pushed, "ts": self.pushed})
        for known in self.now.values():
            if not known.paused:
                known.values += known.pending
                known.pending = [self.pushed + known.offset]

    def check(self) -> None:
        for query, known in self.ever:
            assert values(query) == known.values
        for name, known in self.now.items():
            query = self.db[name]
            assert (query.name, values(query)) == (name, known.values)
        running = {one.name for one in self.db.status.queries} - {"always"}
        assert running == {name for name, known in self.now.items() if not known.paused}
        assert {one.name for one in self.db.status.paused} == {
            name for name, known in self.now.items() if known.paused
        }


def values(query: Any) -> list[int]:
    return [row["x"] for row in query.changes().to_pylist()]


@examples(20, 80)
@given(STEPS)
@example(
    [("create", "a"), ("create", "b"), ("drop", "a"), ("rename", "b", "a"), ("create", "b"), ("restart",)]
)
def test_handles_show_their_own_answers(steps: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder) / "store")
        try:
            for step in steps:
                life.do(*step)
                life.push()
                life.check()
            life.db.stop()
            stored = hr.open(Path(folder) / "store")
            assert {query.name: values(query) for query in stored.queries if query.name != "always"} == {
                name: known.values for name, known in life.now.items()
            }
        finally:
            life.db.close()


def test_a_query_that_gets_the_name_of_one_that_was_dropped_is_not_taken_for_it() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY a AS SELECT MIN(v) AS m FROM s [RANGE 3]")
        db.execute("CREATE QUERY b AS SELECT MAX(v) AS m FROM s [RANGE 3]")
        db.start()
        a, b = db["a"], db["b"]
        for ts in range(6):
            db.push("s", {"v": ts % 5, "ts": ts})
        smallest, largest = (query.history().to_pylist() for query in (a, b))
        db.execute("DROP QUERY a; ALTER QUERY b RENAME TO a")
        assert a.history().to_pylist() == smallest
        assert db["a"].history().to_pylist() == b.history().to_pylist() == largest
        with pytest.raises(hr.UserError, match="a was dropped"):
            a.why()


@pytest.mark.parametrize("keep_results", [True, False])
def test_explain_replace_says_what_replace_does(keep_results: bool) -> None:
    counts = "SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k"
    with hr.connect(runner="inline", keep_results=keep_results) as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2")
        db.query(counts, "q")
        db.start()
        for ts in range(12):
            db.push("s", {"k": ts % 3, "v": ts, "ts": ts})
        said = str(db.execute(f"EXPLAIN REPLACE q AS {counts} HAVING COUNT(*) > 3")[0])
        (before,) = (one.state_rows for one in db.status.operators if one.text.startswith("Aggregate"))
        db.execute(f"CREATE OR REPLACE QUERY q AS {counts} HAVING COUNT(*) > 3")
        (after,) = (one.state_rows for one in db.status.operators if one.text.startswith("Aggregate"))
        keeps = after >= before > 0
        assert keeps == keep_results == ("keeps its state: Aggregate" in said)
        assert keeps != ("starts anew: Aggregate" in said)


@pytest.mark.parametrize("name", ["q", "a#b", "#", "q#7", "x y"])
def test_an_identity_says_the_name_that_a_query_was_created_with(name: str) -> None:
    assert (first_name(id_of(name, 12)), number_of(id_of(name, 12))) == (name, 12)


@pytest.mark.parametrize("name", ["q", "a#b", "#", "#7"])
def test_one_of_an_earlier_store_is_its_name(name: str) -> None:
    assert (first_name(name), number_of(name)) == (name, 0)
