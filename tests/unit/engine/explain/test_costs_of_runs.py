"""EXPLAIN COST of streams that never end: by what a run has seen, beside what it measures later."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.algebra.nodes import Join
from headrace.algebra.properties import names_read, walk
from headrace.errors import LanguageError
from headrace.runtime.driver.facts.seen_rows import SeenRun
from inside import core_of, run_of

STREAMS = """
    CREATE STREAM shown (ad BIGINT, page STRING, ts BIGINT) FROM push TIMESTAMP BY ts{0};
    CREATE STREAM clicked (ad BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts{0}
"""
AT_FIRST = {
    # What runs when EXPLAIN COST is asked.
    "joins": "SELECT s.page, c.ad FROM shown [RANGE 300] s JOIN clicked [RANGE 300] c ON s.ad = c.ad",
    "groups": "SELECT ad, page, COUNT(*) AS n FROM shown [RANGE 300] GROUP BY ad, page",
    "clicked groups": "SELECT DISTINCT ad FROM clicked [RANGE 300]",
}
LATER = {
    "a group": "SELECT ad, COUNT(*) AS n FROM shown [RANGE 500] GROUP BY ad",
    "two columns": "SELECT ad, page, COUNT(*) AS n FROM shown [RANGE 200] GROUP BY ad, page",
    "distinct": "SELECT DISTINCT page FROM shown [RANGE 400]",
    "a join": "SELECT s.page FROM shown [RANGE 200] s JOIN clicked [RANGE 100] c ON s.ad = c.ad",
    "groups of a join": "SELECT s.page, COUNT(*) AS n FROM shown [RANGE 200] s JOIN clicked [RANGE 100] c "
    "ON s.ad = c.ad GROUP BY s.page",
}
FACTOR = 2.0


def rows(stream: str, begin: int, end: int, seed: int) -> list[dict[str, Any]]:
    """Six rows of `shown` for each instant on average, and two of `clicked`."""
    random, each = Random(seed), {"shown": 6, "clicked": 2}[stream]
    instants = sorted(random.randrange(begin, end) for _ in range((end - begin) * each))
    ads = (min(random.randrange(200), random.randrange(200)) for _ in instants)
    made = (
        {"ad": ad, "page": f"page{random.randrange(30)}", "ts": ts}
        for ad, ts in zip(ads, instants, strict=True)
    )
    return [row if stream == "shown" else {"ad": row["ad"], "ts": row["ts"]} for row in made]


@contextmanager
def running(queries: list[str], option: str = "") -> Iterator[hr.Database]:
    """A database with queries that have had rows of 1,000 instants."""
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute(STREAMS.format(option))
        for number, query in enumerate(queries):
            db.execute(f"CREATE QUERY first{number} AS {query}")
        db.start()
        push(db, 0, 1_000)
        yield db


def push(db: hr.Database, begin: int, end: int) -> None:
    read = {part.name for part in db.status.streams}
    for at in range(begin, end, 100):
        for seed, stream in enumerate(("shown", "clicked")):
            if stream in read:
                db.push(stream, rows(stream, at, at + 100, seed + at))


def explained(db: hr.Database, query: str) -> tuple[float, float, float, str]:
    """The rows of the result per instant, the rows and bytes of state, and the text."""
    text = str(db.execute(f"EXPLAIN COST {query}")[0])
    rates = re.findall(r"^ +([\d.,e+-]+) rows per instant", text, re.MULTILINE)
    kept = re.search(r"^keeps about ([\d,]+) rows? in all, some ([\d.]+) (B|kB|MB)$", text, re.MULTILINE)
    assert kept is not None, text
    size = float(kept[2]) * {"B": 1, "kB": 1e3, "MB": 1e6}[kept[3]]
    return float(rates[-1].replace(",", "")), float(kept[1].replace(",", "")), size, text


def measured(db: hr.Database, query: str) -> tuple[float, float, float]:
    """The same of a query that is added and runs alone on its rows, from when its windows are full."""
    db.execute(f"CREATE QUERY later AS {query}")
    push(db, 1_000, 1_600)
    before = result(db).rows_out
    sizes = []
    for begin in range(1_600, 2_200, 100):
        push(db, begin, begin + 100)
        graph = db.status.graph
        own = graph.below(graph.node_of(dict(graph.outputs)[db["later"].id]))
        found = [part for part in db.status.operators if part.number in own]
        sizes.append((sum(part.state_rows for part in found), sum(part.state_bytes for part in found)))
    kept, size = (sum(column) / len(sizes) for column in zip(*sizes, strict=True))
    return (result(db).rows_out - before) / 600, kept, size


def result(db: hr.Database) -> Any:
    graph = db.status.graph
    return db.status.operators[graph.node_of(dict(graph.outputs)[db["later"].id])]


FROM: Mapping[str, tuple[list[str], str, str]] = {
    "joins": ([AT_FIRST["joins"]], "", r"shown: by [\d,]+ rows that a join keeps"),
    "groups": (
        [AT_FIRST["groups"], AT_FIRST["clicked groups"]],
        "",
        r"shown: by 6,000 rows that were counted; values of .* in the groups that are kept",
    ),
    "kept rows": (
        [AT_FIRST["clicked groups"], AT_FIRST["groups"]],
        " RETAIN 500",
        r"shown: by [\d,]+ rows that are kept",
    ),
}


@pytest.mark.parametrize("query", LATER)
@pytest.mark.parametrize("origin", FROM)
def test_what_is_expected_is_measured_within_a_factor(origin: str, query: str) -> None:
    queries, option, told = FROM[origin]
    with running(queries, option) as db:
        *expected, text = explained(db, LATER[query])
        found = measured(db, LATER[query])
    assert re.search(told, text), text
    ratios = [one / other for one, other in zip(expected, found, strict=True)]
    if query == "distinct":
        # It says of each value in every epoch for how long it stays at least.
        ratios = ratios[1:]
    print(origin, query, [f"{one:.4g}" for one in (*expected, *found)], [f"{one:.2f}" for one in ratios])
    assert all(1 / FACTOR < ratio < FACTOR for ratio in ratios), (ratios, text)


def test_rows_of_a_window_whose_size_has_changed_count_when_all_have_the_new_one() -> None:
    query = """SELECT s.page FROM shown WINDOW(RANGE MIN 100, MAX 300) s JOIN clicked [RANGE 300] c
        ON s.ad = c.ad"""
    with running([query]) as db:
        db.execute("ALTER QUERY first0 SET (WINDOW 100)")
        for until, told in ((1_100, "6,600 rows that were counted"), (1_500, "rows that a join keeps")):
            push(db, until - (100 if until == 1_100 else 400), until)
            rate, _, _, text = explained(db, "SELECT page FROM shown [NOW]")
            assert told in text
            assert rate == pytest.approx(6, rel=0.1)


def test_where_no_values_are_known_the_text_says_so_and_expects_at_least_what_there_is() -> None:
    with running(["SELECT COUNT(*) AS n FROM shown [RANGE 300]"]) as db:
        _, rows, _, text = explained(db, LATER["distinct"])
        found = measured(db, LATER["distinct"])
    assert "shown: by 6,000 rows that were counted; those of page taken to be all different" in text
    assert rows > found[1]


@pytest.mark.parametrize("first", AT_FIRST)
@pytest.mark.parametrize("option", ["", " RETAIN 500"])
@pytest.mark.parametrize("limit", ["", "SET memory_limit = '100 MB'"])
def test_a_column_that_was_added_is_null_in_kept_rows_before_a_query_reads_it_and_after(
    limit: str, option: str, first: str
) -> None:
    stream = "clicked" if first == "clicked groups" else "shown"
    query = f"SELECT DISTINCT ad, added + 1 AS a FROM {stream} [RANGE 300] WHERE added IS NULL OR added > 0"
    others = r"rows that were counted; .*\badded\b.* taken to be all different"
    told = rf"^{stream}: by [\d,]+ {'rows that are kept for RETAIN' if option else others}$"
    with running([AT_FIRST[first]], option) as db:
        db.execute(f"{limit}; ALTER STREAM {stream} ADD COLUMN added BIGINT")
        *before, text = explained(db, query)
        assert re.search(told, text, re.MULTILINE), text
        explaining = str(db.execute(f"EXPLAIN CREATE QUERY q AS {query}"))
        assert ("of state are expected" in explaining) is bool(limit)
        db.execute(f"CREATE QUERY q AS {query}")
        *after, text = explained(db, query)
    if option:
        assert re.search(told, text, re.MULTILINE), text
        # The operators of the run say how many bytes they keep for a row.
        assert after[:2] == before[:2]


def test_without_rows_the_way_to_them_is_told() -> None:
    query = "EXPLAIN COST SELECT ad FROM shown [RANGE 300]"
    with hr.connect(runner="inline", buckets=2) as db:
        db.execute(STREAMS.format(""))
        with pytest.raises(LanguageError, match=r"1:1: .*shown never ends.*start the database with a query"):
            db.execute(query)
        db.execute(f"CREATE QUERY q AS {AT_FIRST['groups']}")
        db.start()
        with pytest.raises(LanguageError, match=r"1:1: .*shown never ends.*ask again when rows have come"):
            db.execute(query)
        push(db, 0, 100)
        assert "6 rows per instant" in str(db.execute(query)[0])


THREE = """
    CREATE STREAM big (x BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts{0};
    CREATE STREAM mid (x BIGINT, y BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts{0};
    CREATE STREAM few (y BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts{0}
"""
JOINED = """SELECT big.x, few.y FROM big [RANGE {0}], mid [RANGE {0}], few [RANGE {0}]
    WHERE big.x = mid.x AND mid.y = few.y"""


def join_order(db: hr.Database, query: str) -> list[tuple[str, ...]]:
    """The streams below each join of a query that runs, the topmost first."""
    plan = run_of(db).reading.queries.plans[db[query].id]
    return [names_read(node) for node in walk(plan) if isinstance(node, Join)]


def push_three(db: hr.Database, begin: int) -> None:
    for at in range(begin, begin + 200, 50):
        db.push("big", [{"x": n % 5, "ts": n // 8} for n in range(at * 8, (at + 50) * 8)])
        db.push("mid", [{"x": ts % 5, "y": ts % 40, "ts": ts} for ts in range(at, at + 50)])
        db.push("few", [{"y": ts % 40, "ts": ts} for ts in range(at, at + 50, 10)])


def three(option: str = "", counted: str = "") -> hr.Database:
    db = hr.connect(runner="inline", buckets=2, keep_results=False)
    db.execute(THREE.format(option))
    db.execute(f"CREATE QUERY first AS {counted or JOINED.format(60)}")
    db.start()
    return db


COUNTED = """SELECT COUNT(*) AS n FROM
    (SELECT x FROM big UNION ALL SELECT x + y AS x FROM mid UNION ALL SELECT y AS x FROM few) [RANGE 60]"""


@pytest.mark.parametrize(
    ("option", "counted"),
    [("", ""), (" RETAIN 100", COUNTED), ("", COUNTED)],
    ids=["held", "kept", "counted"],
)
def test_a_query_that_comes_later_is_joined_in_the_order_that_the_rows_suggest(
    option: str, counted: str
) -> None:
    with three(option, counted) as db:
        text = JOINED.format(50)
        # What was decided before there were rows is decided anew.
        assert "big JOIN" not in str(db.execute(f"EXPLAIN {text}")[0])
        push_three(db, 0)
        db.execute(f"CREATE QUERY later AS {text}")
        if not counted:
            assert join_order(db, "first") == [("big", "mid", "few"), ("big", "mid")]
        later = [sorted(names) for names in join_order(db, "later")]
        assert later[1] == ["few", "mid"]


def test_a_text_is_compiled_in_the_order_that_it_has_while_an_epoch_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.engine.run.core._PATIENCE", 0.01)
    with three() as db:
        push_three(db, 0)
        begun, ends = threading.Event(), threading.Event()

        def epoch(*_: object) -> SeenRun:
            begun.set()
            assert ends.wait(60)
            return SeenRun({}, 1.0)

        with monkeypatch.context() as patched:
            patched.setattr("headrace.runtime.driver.endless.live.seen_rows", epoch)
            other = threading.Thread(target=lambda: core_of(db).look({"big": {"x": pa.int64()}}, 1))
            other.start()
            assert begun.wait(60)
            try:
                text = str(db.execute(f"EXPLAIN {JOINED.format(40)}")[0])
            finally:
                ends.set()
                other.join()
        assert "order_joins" not in text
        assert "order_joins" in str(
            db.execute(f"EXPLAIN {JOINED.format(41)}".replace("big.x, few.y", "few.y"))[0]
        )
