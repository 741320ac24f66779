"""Sessions that go on: what is kept of them, where that is announced, and that the answers are the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

S = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 4"
SESSION = "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 10)"
BY = "GROUP BY k, window_start, window_end"
LONGEST = SESSION.replace("10)", "10, MAX => 30)")

FLAT = [
    f"SELECT k, window_start, COUNT(*) AS n FROM {SESSION} {BY}",
    f"SELECT k, AVG(v) AS a, MIN(v) AS least, MAX(v) AS most, MAX(ts) AS newest FROM {SESSION} {BY}",
    f"SELECT k, FIRST(v ORDER BY ts) AS f, LAST(v ORDER BY ts) AS l FROM {SESSION} WHERE v > 300 {BY}",
    "SELECT STDDEV(v) AS d FROM SESSION(TABLE s, DESCRIPTOR(ts), 10) GROUP BY window_start, window_end",
    f"SELECT k, MEDIAN(v) AS m FROM {LONGEST} {BY}",
    f"SELECT v, k FROM {LONGEST}",
    f"SELECT k, v, COUNT(*) AS n FROM {LONGEST} {BY}, v",
]
GROWING = [
    f"SELECT k, MEDIAN(v) AS m FROM {SESSION} {BY}",
    f"SELECT k, COUNT(DISTINCT v) AS n FROM {SESSION} {BY}",
    f"SELECT k, v FROM {SESSION}",
    f"SELECT k, v, COUNT(*) AS n FROM {SESSION} {BY}, v",
    f"SELECT k, SUM(ts - window_start) AS n FROM {SESSION} {BY}",
]
BOUNDING = "a longest length in SESSION, MAX => ..., bounds it"


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"k": k, "v": (ts * 37 + k) % 1009, "ts": ts} for ts in range(first, last) for k in range(3)]


def kept(text: str) -> list[int]:
    """The rows of state after 120 and after 240 instants, at each of which a row of each key comes."""
    found = []
    with hr.connect(runner="inline") as db:
        db.execute(S)
        db.query(text)
        db.start()
        for ts in range(0, 240, 8):
            db.push("s", rows(ts, ts + 8))
            if ts in (112, 232):
                found.append(sum(part.state_rows for part in db.status.operators))
    return found


@pytest.mark.parametrize("text", FLAT)
def test_what_is_kept_of_a_session_that_never_ends_does_not_grow(text: str) -> None:
    earlier, later = kept(text)
    assert later <= 1.5 * earlier + 30


@pytest.mark.parametrize("text", GROWING)
def test_what_grows_with_a_session_that_never_ends(text: str) -> None:
    earlier, later = kept(text)
    assert later > 1.5 * earlier + 30


def announced(text: str) -> tuple[bool, bool, bool]:
    """Whether EXPLAIN, SHOW QUERIES and the run say that state grows, the first two with what bounds it."""
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts; "
            f"CREATE QUERY q AS {text}"
        )
        explained = [str(db.execute(f"EXPLAIN {stage} {text}")[0]) for stage in ("OPTIMIZED", "PHYSICAL")]
        shown = str(db.execute("SHOW QUERIES")[0])
        db.start()
        summary = db.stop()
    return all(BOUNDING in part for part in explained), BOUNDING in shown, summary.growing == ("q",)


@pytest.mark.parametrize("text", [*FLAT, *GROWING])
def test_a_session_is_announced_as_growing_where_it_is(text: str) -> None:
    assert announced(text) == ((text in GROWING,) * 3)


def pushes(seed: int) -> list[list[dict[str, Any]]]:
    """Rows up to 4 instants late, in batches."""
    chance = random.Random(seed)
    found, ts = list[dict[str, Any]](), 0
    for _ in range(60):
        ts += chance.choice((0, 1, 1, 2, 4, 13))
        late = max(ts - chance.randrange(5), 0)
        found.append({"k": chance.randrange(3), "v": chance.randrange(1000), "ts": late})
    cuts = sorted(chance.sample(range(1, 60), 10))
    return [found[a:b] for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]


def answers(text: str, batches: list[list[dict[str, Any]]], level: str, storage: Path | None) -> Any:
    """The final rows of a query over all batches, with a restart in the middle where there is storage."""
    db = hr.connect(runner="inline", storage=storage)
    db.execute(f"{S}; CREATE QUERY q CONSISTENCY {level} AS {text}")
    db.start()
    for place, batch in enumerate(batches):
        if storage is not None and place == len(batches) // 2:
            db.close()
            db = hr.connect(runner="inline", storage=storage)
            db.start()
        db.push("s", batch)
    found = db["q"].history().to_pylist()
    db.close()
    heartbeat = max(row["ts"] for batch in batches for row in batch) - 4
    final = (row for row in found if row["valid_from"] < heartbeat)
    until = ({**row, "valid_to": min(row["valid_to"], heartbeat)} for row in final)
    return sorted(str({name: row[name] for name in sorted(row) if name != "middle"}) for row in until)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("text", [FLAT[1], FLAT[2], FLAT[3], FLAT[1].replace("10)", "10, 25)")])
def test_answers_do_not_depend_on_cuts_levels_or_restarts(text: str, seed: int, tmp_path: Path) -> None:
    batches = pushes(seed)
    # MEDIAN keeps the rows.
    calls, _, rest = text.partition(" FROM ")
    by_rows = f"{calls}, MEDIAN(v) AS middle FROM {rest}"
    expected = answers(by_rows, batches, "STRONG", None)
    assert len(expected) > 3
    for level, storage in (("STRONG", None), ("MIDDLE", tmp_path / "store")):
        assert answers(text, batches, level, storage) == expected
    assert answers(text, [[row] for batch in batches for row in batch], "MIDDLE", None) == expected
