"""Inputs that are away when a store is opened: queries go on with their state, and read on later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.database import Database
from headrace.errors import StoreError
from headrace.runtime.outside.patience import patient
from toxic_peers import ToxicSite, toxic_site
from waiting import wait_for

OTHER: Final = """
CREATE STREAM other (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY o AS SELECT v FROM other [RANGE UNBOUNDED];
"""
JOINED: Final = "CREATE QUERY q AS SELECT other.v, r.w FROM other [RANGE UNBOUNDED], r WHERE other.v = r.k"
LISTED: Final = "CREATE QUERY q AS SELECT v FROM s [RANGE UNBOUNDED]"


pytestmark = pytest.mark.filterwarnings("ignore::headrace.errors.HeadraceWarning")


@pytest.fixture
def site() -> Iterator[ToxicSite]:
    with toxic_site(b"k,w\n1,10\n2,20\n") as site:
        yield site


def pushed(db: Database, *rows: tuple[int, int]) -> None:
    db.push("other", [{"ts": ts, "v": v} for ts, v in rows])


def said(db: Database, query: str) -> list[tuple[object, ...]]:
    """The rows that have come into the answer."""
    return sorted(tuple(row.values())[1:-3] for row in db[query].changes().to_pylist() if row["change"] > 0)


def read(db: Database) -> dict[str, int]:
    """How many rows have been read of each input."""
    return {stream.name: stream.rows for stream in db.status.streams}


@dataclass(frozen=True)
class Kind:
    """An input of two rows, and a query over it."""

    text: str
    query: str
    body: bytes = b"k,w\n1,10\n2,20\n"
    more: bytes = b""


KINDS: Final = {
    "a relation": Kind(
        "CREATE RELATION r (k BIGINT, w BIGINT) KEY (k) FROM csv OPTIONS (path '{url}/r.csv')", JOINED
    ),
    "one without columns": Kind("CREATE RELATION r KEY (k) FROM csv OPTIONS (path '{url}/r.csv')", JOINED),
    "one that is refreshed": Kind(
        "CREATE RELATION r (k BIGINT, w BIGINT) FROM csv OPTIONS (path '{url}/r.csv') REFRESH ON DEMAND",
        JOINED,
    ),
    "changes": Kind(
        "CREATE RELATION r (op STRING, k BIGINT, w BIGINT, ts BIGINT) KEY (k) FROM csv "
        "OPTIONS (path '{url}/r.csv') CHANGES BY op TIMESTAMP BY ts",
        JOINED,
        b"op,k,w,ts\ni,1,10,0\ni,2,20,0\n",
    ),
    "a stream": Kind(
        "CREATE STREAM s FROM csv OPTIONS (path '{url}/s.csv') TIMESTAMP BY ts", LISTED, b"ts,v\n1,1\n2,2\n"
    ),
    "one whose different values are counted": Kind(
        "CREATE STREAM s FROM csv OPTIONS (path '{url}/s.csv') TIMESTAMP BY ts",
        "CREATE QUERY q AS SELECT v, COUNT(DISTINCT ts) AS n FROM s [RANGE 5 SLIDE 5] GROUP BY v",
        b"ts,v\n1,1\n2,2\n",
    ),
    "one with a computed column": Kind(
        "CREATE STREAM s (t BIGINT, v BIGINT) FROM csv OPTIONS (path '{url}/s.csv') TIMESTAMP BY t + 1 AS ts",
        LISTED,
        b"t,v\n1,1\n2,2\n",
    ),
    "an address": Kind(
        "CREATE STREAM s (ts BIGINT, v BIGINT) FROM http OPTIONS (url '{url}', poll '20 ms') TIMESTAMP BY ts",
        LISTED,
        b'[{"ts": 1, "v": 1}, {"ts": 2, "v": 2}]',
        b'[{"ts": 3, "v": 3}]',
    ),
}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_queries_go_on_without_what_they_have_read(
    kind: str, again: bool, site: ToxicSite, tmp_path: Path
) -> None:
    """Whether the store is opened alone, or with the text that made it."""
    one = KINDS[kind]
    site.body = one.body
    text = OTHER + one.text.format(url=site.url) + ";" + one.query
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(text)
        db.start()
        pushed(db, (1, 1))
        wait_for(lambda: 2 in {read(db).get("r"), read(db).get("s")})
        db.stop()
    for number, mood in enumerate(("reset", "missing", "silent")):
        site.mood = mood
        with hr.connect(runner="inline", storage=tmp_path) as db:
            if again:
                db.execute(text)
            db.start()
            pushed(db, (2 + number, 2))
            assert len(said(db, "o")) == 1 + number
            assert {query.name for query in db.queries} == {"o", "q"}
            if kind == "an address":
                wait_for(lambda: "s" in db.problems)
            db.stop()
    site.mood, site.body = "well", one.more or one.body
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.start()
        pushed(db, (9, 2))
        if one.more:
            wait_for(lambda: read(db)["s"] == 3)
        if one.query is JOINED:
            assert len(db["q"].latest()) == 4
        else:
            assert read(db)["s"] == (3 if one.more else 2)
        db.execute("CREATE QUERY later AS " + one.query.partition(" AS ")[2])
        db.stop()


@pytest.mark.parametrize("change", ["", "another"])
def test_a_file_that_was_read_in_part_is_read_on_later(change: str, tmp_path: Path) -> None:
    """The others run meanwhile; one that is another then is refused."""
    file, store = tmp_path / "s.csv", tmp_path / "store"
    lines = "".join(f"{number},{number}\n" for number in range(3_000))
    file.write_text("ts,v\n" + lines)
    text = (
        OTHER
        + f"CREATE STREAM s (ts BIGINT, v BIGINT) FROM csv OPTIONS (path '{file}', max_rows_per_epoch 20) "
        f"TIMESTAMP BY ts; {LISTED}"
    )
    with hr.connect(runner="inline", storage=store) as db:
        db.execute(text)
        db.start()
        wait_for(lambda: read(db)["s"] > 0)
        db.stop()
        assert read(db)["s"] < 3_000
    file.rename(tmp_path / "away")
    with patient(pause=0.01, longest=0.05), hr.connect(runner="inline", storage=store) as db:
        db.start()
        for number in range(3):
            pushed(db, (number, number))
        assert "no such file" in db.problems["s"]
        assert len(said(db, "o")) == 2
        if change:
            file.write_text("ts,v\n7,7\n")
            wait_for(lambda: not db.running)
            with pytest.raises(StoreError, match="the input of s has changed"):
                db.stop()
        else:
            (tmp_path / "away").rename(file)
            wait_for(lambda: read(db)["s"] == 3_000)
            assert dict(db.problems) == {}
            db.stop()


def test_a_stream_that_has_to_be_handed_over_is_read_on_where_it_was(tmp_path: Path) -> None:
    """Without it its query is paused; nothing of it is read twice when it is there again."""
    rows = pa.table({"ts": [1, 2, 3], "v": [1, 2, 3]})
    for handed_over in (True, False, True):
        with hr.connect(runner="inline", storage=tmp_path) as db:
            if handed_over:
                db.stream("s", rows, timestamp="ts")
            if not db.queries:
                db.execute(OTHER + LISTED)
            db.start()
            pushed(db, (read(db)["other"] + 1, 1))
            if handed_over:
                wait_for(lambda: read(db)["s"] == 3)
            db.stop()
