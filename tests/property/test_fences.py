"""What goes wrong in one query ends it alone: faults in every call that is made for it, beside others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from faults import KINDS, Fault, faulty
from headrace.algebra.nodes import Stateful, Stateless
from headrace.errors import ExecutionError, UserError
from headrace.runtime.driver.endless.retries import ATTEMPTS
from how_many import how_many, some

QUERIES: Final = {
    "filters and expressions": "SELECT k, UPPER(s) || 'x' AS a, CASE WHEN v > 3 THEN v * 2 END AS b, "
    "REGEXP_REPLACE(s, 'a', 'b') AS c, SIZE(ARRAY(v, 1)) AS d FROM g WHERE v > 2 AND s IS NOT NULL",
    "sums and extremes": "SELECT k, SUM(v) AS n, MAX(UPPER(s)) AS m, STDDEV(v) AS d, COUNT(DISTINCT v) AS e, "
    "MEDIAN(v) AS f, STRING_AGG(s, ',') AS h FROM g [RANGE 5] WHERE v <> 4 GROUP BY k",
    "counts within some percent": "SELECT k, COUNT(*) WITHIN 20 PERCENT AS n FROM g [RANGE 5] GROUP BY k",
    "slides": "SELECT k, COUNT(*) AS n, MODE(v) AS m FROM g [RANGE 6 SLIDE 3] WHERE v > 0 GROUP BY k",
    "windows with bounds": "SELECT window_start, k, SUM(v + 1) AS n "
    "FROM TABLE(TUMBLE(TABLE g, DESCRIPTOR(ts), 4)) GROUP BY window_start, window_end, k",
    "what is computed of bounds": "SELECT window_end + 1 AS e, k, SUM(v) AS n "
    "FROM TABLE(HOP(TABLE g, DESCRIPTOR(ts), 2, 4)) GROUP BY window_end + 1, k",
    "joins": "SELECT g.k, g.v, h.w FROM g [RANGE 4] JOIN h [RANGE 4] ON g.k = h.k AND g.v < h.w + 3",
    "joins without equality": "SELECT g.v, h.w FROM g [RANGE 3], h [RANGE 3] WHERE g.v + 2 < h.w",
    "outer joins": "SELECT g.k, g.v, h.w FROM g [RANGE 4] LEFT JOIN h [RANGE 4] ON g.k = h.k AND h.w > 2",
    "relations": "SELECT g.v, r.label FROM g JOIN r ON g.k = r.k WHERE LENGTH(r.label) > 1",
    "semi-joins": "SELECT k, v FROM g [RANGE 4] WHERE NOT EXISTS "
    "(SELECT 1 FROM h [RANGE 6] WHERE h.k = g.k AND h.w > 4)",
    "differences": "SELECT k FROM g [RANGE 4] WHERE v > 1 EXCEPT ALL SELECT k FROM h [RANGE 4]",
    "intersections": "SELECT k FROM g [RANGE 4] WHERE v > 2 INTERSECT SELECT k FROM h [RANGE 4]",
    "unions": "SELECT k + 1 AS k FROM g WHERE v > 3 UNION ALL SELECT w AS k FROM h",
    "duplicates": "SELECT DISTINCT k + 1 AS k, v FROM g [RANGE 5]",
    "top k": "SELECT k, v FROM g [RANGE 5] WHERE v > 0 ORDER BY v DESC, k LIMIT 2",
    "row windows": "SELECT k, SUM(v) AS n FROM g [PARTITION BY k ROWS 2] WHERE v > 1 GROUP BY k",
    "rows of sessions": "SELECT k, window_end FROM TABLE(SESSION(TABLE g PARTITION BY k, DESCRIPTOR(ts), 2))",
    "sessions": "SELECT k, COUNT(*) AS n FROM TABLE(SESSION(TABLE g PARTITION BY k, DESCRIPTOR(ts), 2)) "
    "GROUP BY k, window_start, window_end",
    "series": "SELECT k, SUM(v) AS n FROM GAP_FILL(TABLE g PARTITION BY k, DESCRIPTOR(ts), 2, 8, 'LAST') "
    "[RANGE 4] GROUP BY k",
    "frames": "SELECT k, v, SUM(v + 1) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING) AS n, "
    "LAG(v) OVER (PARTITION BY k ORDER BY ts) AS l FROM g",
    "insertions": "ISTREAM(SELECT k, MIN(v) AS m FROM g [RANGE 4] GROUP BY k)",
    "deletions": "DSTREAM(SELECT k, MIN(v) AS m FROM g [RANGE 4] GROUP BY k)",
    "granules": "SELECT k, SUM(v) AS n FROM (SELECT k, v FROM g) GRANULARITY(2) [RANGE 4] GROUP BY k",
    "samples": "SELECT COUNT(*) AS n FROM (SELECT v FROM g) SAMPLE(60) [RANGE 10]",
    "arrays": "SELECT k, u FROM g, UNNEST(ARRAY(v, v + 1)) AS t (u)",
    "lifetimes": "SELECT v FROM g WINDOW(LIFETIME (ts, 3))",
    "nested": "SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM g [RANGE 5] WHERE v > 1 GROUP BY k)",
    "early": "CONSISTENCY MIDDLE AS SELECT k, SUM(v) AS n FROM g [RANGE 5] WHERE v < 8 GROUP BY k",
    "joins within a limit of memory": "WITHIN MEMORY '50 kB' AS "
    "SELECT g.k, h.w FROM g [RANGE 4] JOIN h [RANGE 4] ON g.k = h.k AND g.v < h.w + 3",
    "differences within a limit of memory": "WITHIN MEMORY '50 kB' AS "
    "SELECT k FROM g [NOW] WHERE v > 1 EXCEPT SELECT k + 1 FROM h [RANGE 4]",
    "values": "LOSS TOLERANT BY v (0: 0.1, 9: 1) AS SELECT k, v FROM g [RANGE 5] WHERE v < 8",
    "draws": "WITHIN MEMORY '1 GB' AS SELECT a.k, b.v FROM g [RANGE 5] a JOIN g [RANGE 5] b ON a.k = b.k",
    "shares": "LOSS TOLERANT AS SELECT k, SUM(v) AS n, COUNT(*) AS c FROM g [RANGE 5] WHERE v < 8 GROUP BY k",
}
"""A query of every kind of operator."""
CLAUSES: Final = ("CONSISTENCY", "LOSS", "WITHIN")
"""With what a text begins that is not a query alone."""

OTHERS: Final = {
    "part": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM g [RANGE 5] GROUP BY k",
    "pairs": "SELECT g.k, g.v, h.w FROM g [RANGE 4] JOIN h [RANGE 4] ON g.k = h.k",
    "nothing": "SELECT k, w FROM h WHERE w > 3",
}
"""Queries that share a part with those above, or nothing but time."""


@dataclass(frozen=True)
class Ran:
    """A run of queries.

    Attributes:
        histories: of those that have not failed.
        failed: the reasons of the others.
    """

    histories: dict[str, pa.Table]
    failed: dict[str, str]


def ran(queries: dict[str, str], fault: Fault) -> Ran:
    """What queries answer over three epochs in which there is a fault."""
    random = np.random.default_rng(3)
    # A fault is found by the calls of one thread.
    with hr.connect(runner="inline", threads=1, epoch_rows=40) as db:
        for name, column in (("g", "v"), ("h", "w")):
            rows = {
                "ts": np.sort(random.integers(0, 40, 60)),
                "k": random.integers(0, 4, 60),
                column: random.integers(0, 9, 60),
                "s": pa.array(["abc", "d", None] * 20),
            }
            db.stream(name, pa.table(rows), timestamp="ts")
        db.relation("r", pa.table({"k": [0, 1, 2], "label": ["ab", "c", "de"]}))
        for name, text in queries.items():
            db.execute(f"CREATE QUERY {name} {text if text.startswith(CLAUSES) else 'AS ' + text}")
        with faulty(fault):
            summary = db.run()
        failed = {name: message for name, message, _ in summary.failed}
        return Ran({name: db[name].history() for name in queries if name not in failed}, failed)


def points(calls: Sequence[str], spread: int) -> list[int]:
    """Calls to fail in: the first and the last one, some between, and the first one of some functions."""
    first: dict[str, int] = {}
    for place, name in enumerate(calls):
        first.setdefault(name, place)
    functions = list(first.values())
    stride = max(1, len(functions) // spread)
    between = range(0, len(calls), max(1, len(calls) // spread))
    return sorted({0, len(calls) - 1, *between, *functions[::stride]})


# A fault may be put into a generator that is only let go of.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow("it runs a query with a fault in many of its calls, one after the other")
@pytest.mark.parametrize("name", some(QUERIES))
@pytest.mark.parametrize("beside", ["alone", "shared"])
def test_a_fault_ends_its_query_alone(name: str, beside: str) -> None:
    victim, others = QUERIES[name], dict(OTHERS)
    if beside == "shared":
        if "STREAM" in victim or victim.startswith(CLAUSES):
            pytest.skip("such a text is no subquery")
        others["whole"], victim = victim, f"SELECT COUNT(*) AS c FROM ({victim})"
    alone = ran(others, Fault("victim"))
    ran({**others, "victim": victim}, Fault("victim"))  # what is made once is made
    everything = Fault("victim")
    with_it = ran({**others, "victim": victim}, everything)
    assert not with_it.failed
    assert with_it.histories.keys() == {*others, "victim"}
    kinds = Counter[str]()
    for place, at in enumerate(points(everything.calls, how_many(5, 30))):
        fault = Fault("victim", at, KINDS[(place + len(name)) % len(KINDS)])
        found = ran({**others, "victim": victim}, fault)
        # What is made once is made; so many calls at the end may be fewer.
        assert fault.raised or at > 0.9 * len(everything.calls)
        kinds[fault.kind.__name__] += 1
        called = everything.calls[at], fault.kind
        assert found.failed.keys() <= {"victim"}, called
        for other in others:
            assert found.histories[other].equals(alone.histories[other]), (other, called)
        if found.failed:
            assert found.failed["victim"].startswith("the operator #"), called
        elif fault.kind is not StopIteration:
            # Who calls it expects that it may raise, and does without.
            assert found.histories["victim"].equals(with_it.histories["victim"]), called
    assert sum(kinds.values()) > how_many(5, 30)


def test_faults_are_put_into_every_kind_of_operator() -> None:
    seen = Counter[str]()
    for victim in QUERIES.values():
        fault = Fault("victim")
        ran({"victim": victim}, fault)
        seen += fault.nodes
    kinds = {kind.__name__ for kind in (*get_args(Stateless), *get_args(Stateful))}
    # These are made by changes of a run, or for many queries together.
    made = {"Clip", "Remember", "Match", "NestedAggregate", "Split", "Rstream", "Finalize", "Coalesce"}
    assert kinds - seen.keys() <= made


@pytest.mark.parametrize("at", [0, 40, 400])
def test_what_goes_wrong_while_a_query_catches_up_is_for_whoever_asked(at: int) -> None:
    with hr.connect(runner="inline", threads=1) as db:
        db.execute("CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL")
        db.execute("CREATE QUERY good AS SELECT k FROM p")
        db.start()
        db.push("p", pa.table({"ts": [1, 2, 3], "k": [1, 2, 3]}))
        late = "CREATE QUERY victim FROM BEGINNING AS SELECT k, SUM(k + 1) AS n FROM p [RANGE 5] GROUP BY k"
        with faulty(Fault("victim", at, KeyError)) as fault, pytest.raises(UserError, match="KeyError"):
            db.execute(late)
        assert fault.raised
        db.push("p", {"ts": 4, "k": 4})
        assert db["good"].history()["k"].to_pylist() == [1, 2, 3]
        db.execute(late)
        assert db["victim"].history()["n"].to_pylist()[:3] == [2, 3, 4]


def test_an_error_of_no_query_ends_the_run_with_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def broken(*_: object) -> None:
        tried.append(1)
        raise KeyError("of no query")

    with hr.connect(runner="inline", threads=1) as db:
        db.stream("g", pa.table({"ts": [1, 2], "k": [1, 2]}), timestamp="ts")
        db.query("SELECT k FROM g", name="q")
        monkeypatch.setattr("headrace.runtime.tasks.stages._take_in_split", broken)
        with pytest.raises(ExecutionError, match=r"epoch 1 failed: KeyError: 'of no query'"):
            db.run()
        assert len(tried) == ATTEMPTS
        monkeypatch.undo()
        db.run()
        assert db["q"].history()["k"].to_pylist() == [1, 2]


def test_a_query_that_has_ended_stays_so_until_it_is_resumed(tmp_path: Path) -> None:
    with hr.connect(runner="inline", threads=1, storage=tmp_path) as db:
        db.execute("CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY good AS SELECT k FROM p; CREATE QUERY victim AS SELECT k + 1 AS k FROM p")
        db.start()
        db.push("p", {"ts": 1, "k": 1})
        db.push("p", {"ts": 2, "k": 2})
        with faulty(Fault("victim", 3, KeyError)):
            db.push("p", {"ts": 2, "k": 2})
        assert "KeyError" in str(db.status.query("victim").failed)
        db.push("p", {"ts": 3, "k": 3})
    with hr.connect(runner="inline", threads=1, storage=tmp_path) as db:
        db.start()
        db.push("p", {"ts": 4, "k": 4})
        assert "KeyError" in str(db.status.query("victim").failed)
        assert db["good"].history()["k"].to_pylist() == [1, 2, 2, 3]
        db.execute("ALTER QUERY victim RESUME")
        db.push("p", {"ts": 5, "k": 5})
        db.push("p", {"ts": 6, "k": 6})
        assert db.status.query("victim").failed is None
        assert db["victim"].history()["k"].to_pylist() == [2, 6]
        assert db["good"].history()["k"].to_pylist() == [1, 2, 2, 3, 4, 5]
        assert [tuple(row.values()) for row in db["victim"].gaps().to_pylist()] == [(2, 4, 5)]
