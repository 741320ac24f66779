"""A relation that is refreshed is, for every query, the temporal relation of what was read when."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.time import ALWAYS, INFINITY
from how_many import examples
from inside import execution_of

QUERIES = (
    "SELECT s.k, s.v, r.w FROM s WINDOW(RANGE 3) JOIN r ON r.k = s.k",
    "SELECT s.k, s.v, r.w FROM s LEFT JOIN r ON r.k = s.k",
    "SELECT s.k, r.k AS other, r.w FROM s WINDOW(RANGE 2) FULL JOIN r ON r.k = s.k AND r.w > s.v",
    "SELECT k, v FROM s WINDOW(RANGE 2) WHERE EXISTS (SELECT k FROM r WHERE r.k = s.k)",
    "SELECT k, v FROM s WINDOW(RANGE 2) WHERE k NOT IN (SELECT k FROM r WHERE k IS NOT NULL)",
    "SELECT r.k, COUNT(*) AS n, MAX(r.w) AS m, MIN(s.v) AS l FROM s WINDOW(RANGE 4), r GROUP BY r.k",
    "SELECT k FROM r EXCEPT ALL SELECT k FROM s WINDOW(RANGE 3)",
    "SELECT DISTINCT k FROM (SELECT k FROM r UNION ALL SELECT k FROM s WINDOW(RANGE 1)) AS t",
    "SELECT r.w, MAX(s.v) AS m FROM r JOIN s WINDOW(RANGE UNBOUNDED) ON s.k = r.k GROUP BY r.w",
    "SELECT k, w, n FROM (SELECT r.k, r.w, ROW_NUMBER() OVER (ORDER BY r.w, r.k) AS n FROM r, s) AS t "
    "WHERE n <= 1",
    "SELECT k, w FROM ISTREAM(SELECT r.k, r.w FROM r JOIN s WINDOW(RANGE 2) ON s.k = r.k) AS t",
)
KEYS = st.none() | st.sampled_from(("a", "b", "c"))
CONTENTS = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 2)), max_size=5)
ROWS = st.lists(st.tuples(st.integers(0, 2), KEYS, st.integers(0, 2)), max_size=4)
"""How long after the row before it, key and value."""
LEVELS = ("", "CONSISTENCY MIDDLE", "CONSISTENCY (BLOCK 1)")
SCHEMA = pa.schema([("k", pa.string()), ("w", pa.int64())])


def table(content: list[tuple[str | None, int | None]]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*content, strict=True)] or [[], []], schema=SCHEMA)


@examples(5, 15)
@given(
    st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4, unique=True),
    CONTENTS,
    st.lists(st.tuples(ROWS, CONTENTS), max_size=5),
    st.integers(1, 3),
    st.sampled_from(LEVELS),
)
@example(
    [QUERIES[5], QUERIES[9]], [("a", 2), ("b", 1)], [([(0, "a", 1)], [("a", 1), ("b", 1)])], 1, LEVELS[0]
)
def test_answers_are_those_with_periods(
    texts: list[str],
    first: list[tuple[str | None, int | None]],
    steps: list[tuple[list[tuple[int, str | None, int]], list[tuple[str | None, int | None]]]],
    buckets: int,
    level: str,
) -> None:
    rows: list[tuple[int, str | None, int]] = []
    contents = [(ALWAYS, first)]
    with hr.connect(runner="inline", buckets=buckets, epoch_rows=3) as db:
        db.relation("r", table(first), refresh="on demand")
        db.execute("CREATE STREAM s (ts BIGINT, k STRING, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 2")
        for place, text in enumerate(texts):
            db.execute(f"CREATE QUERY q{place} {level} AS {text}")
        db.start()
        now = 0
        for arriving, content in steps:
            batch = []
            for passed, key, value in arriving:
                now += passed
                batch.append((now, key, value))
            if batch:
                db.push("s", [dict(zip(("ts", "k", "v"), row, strict=True)) for row in batch])
                rows += batch
            found = db.refresh("r", table(content))
            if found.at is not None:
                contents.append((found.at, content))
        db.push("s", [{"ts": now + 3, "k": None, "v": 0}])
        rows.append((now + 3, None, 0))
        db.stop()
        streams = {
            "s": Stream(["ts", "k", "v"], [(row, row[0], row[0] + 1, 1) for row in rows]),
            "r": Stream(
                ["k", "w"],
                [
                    (row, begin, end, 1)
                    for (begin, content), (end, _) in pairwise([*contents, (INFINITY, [])])
                    for row in content
                    if begin < end
                ],
            ),
        }
        for query in db.queries:
            reader = execution_of(db).answers.reader(query)
            assert reader.heartbeat > now
            assert (reader.horizon > reader.heartbeat) is bool(level)
            answer = evaluate(query.plan, streams)
            expected = from_rows(query.plan.schema, [(row, ts, te, 1) for row, ts, te in answer])
            found_elements = reader.elements()
            assert equivalent(found_elements, expected, reader.horizon), (
                query.name,
                contents,
                to_rows(canonical(found_elements)),
                answer,
            )
