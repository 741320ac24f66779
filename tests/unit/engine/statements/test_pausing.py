"""Queries over relations that pause and go on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

import headrace as hr

ROOMS = pa.table({"id": [1, 2], "room": ["hall", "roof"]})


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        db.relation("sensor", ROOMS, key="id")
        db.execute("CREATE STREAM reading (ts BIGINT, id BIGINT) FROM push TIMESTAMP BY ts")
        yield db


def pushed(db: hr.Database, *ids: tuple[int, int]) -> None:
    db.push("reading", [{"ts": ts, "id": key} for ts, key in ids])


def test_a_relation_that_is_read_again_is_not_there_twice(db: hr.Database) -> None:
    rooms = db.query("SELECT id, room FROM sensor", "rooms")
    db.query("SELECT id FROM reading [RANGE 2]", "ids")
    db.start()
    pushed(db, (1, 1))
    before = rooms.history()
    said = db.execute("ALTER QUERY rooms PAUSE; ALTER QUERY rooms RESUME")
    assert [re.sub(r"epoch \d+", "epoch n", str(text)) for text in said] == [
        "rooms is paused; all of its answer is final",
        "rooms is resumed, over the rows since epoch n; it lacks no instant",
    ]
    pushed(db, (2, 1))
    assert before.num_rows == 2
    assert rooms.history().equals(before)


def test_a_join_goes_on_from_the_heartbeat_of_its_stream(db: hr.Database) -> None:
    named = db.query("SELECT r.ts AS t, s.room FROM reading r JOIN sensor s ON s.id = r.id", "named")
    db.query("SELECT id FROM reading [RANGE 2]", "ids")
    db.start()
    pushed(db, (1, 1), (5, 2))
    db.execute("ALTER QUERY named PAUSE")
    pushed(db, (7, 1))
    (said,) = db.execute("ALTER QUERY named RESUME")
    assert str(said).endswith(
        "it says nothing about the instants from 5 to before 7; "
        "it is exact from 8 on, since rows from before are missing"
    )
    pushed(db, (8, 1), (9, 2), (10, 2))
    assert named.history().to_pydict() == {
        "t": [1, 8, 9],
        "room": ["hall", "hall", "roof"],
        "valid_from": [1, 8, 9],
        "valid_to": [2, 9, 10],
    }


@pytest.mark.parametrize("frame", ["RANGE 4", "NOW", "RANGE 6 SLIDE 3"])
def test_the_reply_names_the_first_exact_instant(db: hr.Database, frame: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM reading [{frame}]"
    # At another level, so that its window does not fill that of the other one.
    both = (*db.execute(f"CREATE QUERY q AS {text}; CREATE QUERY known CONSISTENCY MIDDLE AS {text}"),)
    db.start()
    pushed(db, (1, 1), (5, 2), (6, 2))
    (_, said) = db.execute("ALTER QUERY q PAUSE; ALTER QUERY q RESUME")
    exact = int(re.search(r"it is exact from (\d+) on", str(said))[1])  # type: ignore[index]
    pushed(db, *((ts, 1) for ts in range(7, 20)))
    found, known = ([query.snapshot(at)["n"].to_pylist() for at in range(6, 19)] for query in both)
    assert found[exact - 6 :] == known[exact - 6 :]
    assert found[exact - 7] != known[exact - 7]


@pytest.mark.parametrize(("far", "lacks"), [(19, None), (60, 6)])
def test_rows_that_are_kept_fill_it(db: hr.Database, far: int, lacks: int | None) -> None:
    """As long as the stream has kept the rows of the pause, and those before it that windows need."""
    db.execute("ALTER STREAM reading RETAIN 20")
    both = [db.query("SELECT COUNT(*) AS n FROM reading [RANGE 4]", name) for name in ("q", "known")]
    db.start()
    pushed(db, (1, 1), (5, 2), (6, 2))
    (said,) = db.execute("ALTER QUERY q PAUSE")
    assert str(said) == "q is paused; its answer ends before 6"
    for ts in range(7, far):
        pushed(db, (ts, 1))
    (said,) = db.execute("ALTER QUERY q RESUME")
    pushed(db, (far, 1), (far + 9, 2))
    assert ("it lacks no instant" in str(said)) == (lacks is None)
    found, known = ([query.snapshot(at)["n"].to_pylist() for at in range(far + 9)] for query in both)
    assert (found == known) == (lacks is None)
    assert [gap["lacks_from"] for gap in both[0].gaps().to_pylist()] == ([] if lacks is None else [lacks])
