"""The newest rows of an answer are the end of what it has said, however little of it is read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.runtime.intake import retained
from headrace.runtime.results import newest
from headrace.runtime.results.reader import ResultReader
from how_many import examples

STREAM = "CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3;"
EVENTS = (
    "SELECT v FROM s",
    "ISTREAM(SELECT MAX(v) AS v FROM s [RANGE 4])",
    "DSTREAM(SELECT v FROM s [RANGE 3])",
    "SELECT COUNT(*) AS v FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 5) GROUP BY window_start, window_end",
)
LASTING = ("SELECT MAX(v) AS v FROM s [RANGE 4]", "SELECT v FROM s [RANGE UNBOUNDED]")
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=8, max_size=40)


def events_in(changes: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """The instants and values that changes leave, in order."""
    left: Counter[tuple[int, int]] = Counter()
    for row in changes:
        for at in range(row["valid_from"], row["valid_to"]):
            left[at, row["v"]] += row["change"]
    return sorted(left.elements())


@pytest.fixture(autouse=True)
def few_epochs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short histories are read in parts, too."""
    monkeypatch.setattr(newest, "_FIRST", 1)
    monkeypatch.setattr(newest, "_MORE", 2)


@pytest.mark.parametrize("level", ["STRONG", "MIDDLE", "WEAK"])
@examples(5, 20)
@given(given=ROWS, most=st.integers(0, 12), cut=st.integers(1, 4))
def test_it_is_the_end_of_what_was_said(
    level: str, given: list[tuple[int, int]], most: int, cut: int
) -> None:
    at = 0
    rows = [{"v": v, "ts": (at := at + step) - v % 3} for v, step in given]
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        for number, text in enumerate((*EVENTS, *LASTING)):
            db.execute(f"CREATE QUERY q{number} CONSISTENCY {level} AS {text}")
        db.start()
        for begin in range(0, len(rows), cut):
            db.push("s", rows[begin : begin + cut])
        queries = list(db.queries)
        for query in queries[: len(EVENTS)]:
            assert query.is_events
            every, found = events_in(query.changes().to_pylist()), query.tail(most).to_pylist()
            assert len(found) == min(most, len(every))
            instants = [row["ts"] for row in found]
            assert instants == sorted(instants)
            assert not Counter((row["ts"], row["v"]) for row in found) - Counter(every)
            if level != "WEAK":  # which may speak of any instant in any epoch
                assert instants == [instant for instant, _ in every][len(every) - len(found) :]
        for query in queries[len(EVENTS) :]:
            assert not query.is_events
            if level == "STRONG":
                assert query.tail(most).to_pylist() == query.history().to_pylist()[-most or 1_000 :]


@pytest.mark.parametrize(
    ("level", "pushes", "expected"),
    [
        # An older epoch has said what is newer.
        ("MIDDLE", [[1, 10], [8]], [10]),
        # What is released had been yielded by an older epoch.
        ("STRONG", [[1, 9, 10], [8, 8, 20]], [10]),
    ],
)
def test_what_older_epochs_have_of_the_newest_rows(
    level: str, pushes: list[list[int]], expected: list[int]
) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM} CREATE QUERY q CONSISTENCY {level} AS SELECT v FROM s")
        db.start()
        for rows in pushes:
            db.push("s", [{"v": 0, "ts": ts} for ts in rows])
        assert db["q"].tail(1)["ts"].to_pylist() == expected


def test_of_long_ago_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        query = db.query("SELECT v FROM s")
        db.start()
        for ts in range(60):
            db.push("s", {"v": ts, "ts": ts})
        read: list[int] = []
        release = ResultReader.release

        def counted(self: Any, release_: Any, part: Any) -> Any:
            read.append(part.epoch)
            return release(self, release_, part)

        monkeypatch.setattr(ResultReader, "release", counted)
        assert query.tail(3)["v"].to_pylist() == [53, 54, 55]
        assert min(read) > 40
        with pytest.raises(hr.UserError, match="there are no -1 rows"):
            query.tail(-1)
        assert query.tail(2, as_of=50)["v"].to_pylist() == [44, 45]


def test_the_newest_rows_of_a_stream_are_the_last_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM} ALTER STREAM s RETAIN ALL")
        db.query("SELECT v FROM s")
        db.start()
        for ts in range(7):
            db.push("s", [{"v": 1, "ts": ts}, {"v": 2, "ts": ts}])
        every = db.rows("s")
        read: list[int] = []
        before = retained.read_retained

        def counted(*given: Any) -> pa.Table:
            read.append(1)
            return before(*given)

        monkeypatch.setattr(retained, "read_retained", counted)
        for newest in (0, 1, 3, 14, 20):
            assert db.rows("s", newest) == every.slice(max(0, 14 - newest))
        assert len(read) == 0 + 1 + 2 + 7 + 7
        with pytest.raises(hr.UserError, match="there are no -1 rows"):
            db.rows("s", -1)
