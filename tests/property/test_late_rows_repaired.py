"""A query WITH DEAD LETTERS says what one says over a stream that waits long enough for the same rows."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import LanguageError
from how_many import examples

COLUMNS = "(k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
STREAMS = f"""
CREATE STREAM patient {COLUMNS} DISORDER 40;
CREATE STREAM brief {COLUMNS} DISORDER 1 DEAD LETTERS KEEP ALL RETAIN ALL;
CREATE STREAM t {COLUMNS} RETAIN ALL
"""
TEXTS = (
    "SELECT k, v FROM {0} WHERE v > 3",
    "SELECT k, SUM(v) AS x FROM {0} [RANGE 7] GROUP BY k",
    "SELECT SUM(v) AS x FROM {0} [ROWS 3]",
    "SELECT COUNT(*) AS n FROM {0} [RANGE UNBOUNDED]",
    "SELECT {0}.k, t.v FROM {0} [RANGE 4] JOIN t [RANGE 6] ON {0}.k = t.k",
    "SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS x FROM {0}",
)
LEVELS = ("STRONG", "MIDDLE", "(BLOCK 1)")
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(-12, 6)), min_size=2, max_size=12)


@examples(15, 150)
@given(
    st.lists(ROWS, min_size=1, max_size=3),
    ROWS,
    st.sampled_from(TEXTS),
    st.sampled_from(LEVELS),
    st.integers(0, 20),
)
def test_it_says_what_one_says_that_waits(
    before: list[list[tuple[int, int, int]]],
    after: list[tuple[int, int, int]],
    text: str,
    level: str,
    since: int,
) -> None:
    with hr.connect(runner="inline") as db, warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.DeadLetterWarning)
        db.execute(f"{STREAMS}; CREATE QUERY q AS {text.format('patient')}")
        db.execute("CREATE QUERY other AS SELECT k FROM brief; CREATE QUERY t_all AS SELECT k FROM t")
        db.start()
        now = 0
        for rows in before:
            now = push(db, rows, now)
        late = db.dead_letters().num_rows
        clauses = f"CONSISTENCY {level} STARTING AT {since} WITH DEAD LETTERS"
        db.execute(f"CREATE QUERY w {clauses} AS {text.format('brief')}")
        begins = db["w"].warm_start
        now = push(db, [(k, v, max(step, 0)) for k, v, step in after], now)
        db.push("patient", {"k": 9, "v": 0, "ts": now + 100})
        db.push("brief", {"k": 9, "v": 0, "ts": now + 100})
        db.push("t", {"k": 8, "v": 0, "ts": now + 100})
        first = since if begins is None else begins.answers_from
        assert db.dead_letters().num_rows == late
        for at in range(first, now + 30):
            assert rows_at(db["w"], at) == rows_at(db["q"], at), at


def push(db: hr.Database, rows: list[tuple[int, int, int]], now: int) -> int:
    """Push rows to both streams, some of them too old for one of these; the newest instant."""
    for k, v, step in rows:
        ts = max(now + step, 0)
        now = max(now, ts)
        db.push("patient", {"k": k, "v": v, "ts": ts})
        db.push("brief", {"k": k, "v": v, "ts": ts})
        db.push("t", {"k": k, "v": v, "ts": now})
    return now


def rows_at(query: hr.Query, instant: int) -> list[tuple[object, ...]]:
    return sorted(tuple(map(repr, row.values())) for row in query.snapshot(instant).to_pylist())


def test_letters_that_are_not_kept_are_refused() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s {COLUMNS} RETAIN ALL; CREATE QUERY q AS SELECT k FROM s")
        db.start()
        db.push("s", {"k": 1, "v": 1, "ts": 3})
        with pytest.raises(hr.UserError, match="the dead letters of s are not kept"):
            db.execute("CREATE QUERY w FROM BEGINNING WITH DEAD LETTERS AS SELECT k FROM s")
        assert [query.name for query in db.queries] == ["q"]


def test_its_text_comes_again() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s {COLUMNS} DEAD LETTERS KEEP ALL RETAIN ALL")
        text = "CREATE QUERY w FROM -3 WITH DEAD LETTERS AS SELECT k FROM s;"
        db.execute(text)
        assert db.execute("SHOW CREATE QUERY w") == [text]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("CREATE QUERY q FROM BEGINNING WITH LETTERS AS SELECT 1", "DEAD is missing after WITH"),
        ("CREATE QUERY q FROM BEGINNING WITH DEAD ROWS AS SELECT 1", "LETTERS is missing after WITH DEAD"),
        ("CREATE QUERY q STARTING NOW WITH DEAD LETTERS AS SELECT 1", "before 'WITH'"),
    ],
)
def test_what_is_malformed_is_refused(text: str, place: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(LanguageError, match=place):
        db.execute(text)
