"""Notes on queries: which there are, where, and that what their hints propose runs and is what was meant."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import headrace as hr
from auctions import CATALOG, plan_of, query_of
from headrace.language.notes import notes_of
from headrace.optimizer import optimize

MEET = "only rows of the same microsecond meet"
TOGETHER = "only rows of the same microsecond are aggregated together"
COMPARED = "only rows of the same microsecond are compared"

CASES = [
    ("SELECT COUNT(*) AS n FROM Bid", f"27: Bid has no window: {TOGETHER}"),
    ("SELECT itemID FROM Bid GROUP BY itemID", f"20: Bid has no window: {TOGETHER}"),
    (
        "SELECT date_trunc('HOUR', ts) AS h, COUNT(*) AS n FROM Bid GROUP BY date_trunc('HOUR', ts)",
        f"56: Bid has no window: {TOGETHER}",
    ),
    (
        "SELECT id, SUM(price) AS s FROM tick GROUP BY id",
        "33: tick has no window: " + TOGETHER.replace("microsecond", "instant"),
    ),
    ("SELECT MAX(bid_price) FROM (SELECT * FROM Bid WHERE itemID = 3)", f"43: Bid has no window: {TOGETHER}"),
    ("WITH x AS (SELECT * FROM Bid) SELECT MAX(bid_price) FROM x", f"58: x has no window: {TOGETHER}"),
    (
        "SELECT itemID FROM Bid WHERE 1 < (SELECT COUNT(*) FROM OpenAuction)",
        f"56: OpenAuction has no window: {TOGETHER}",
    ),
    ("SELECT * FROM Bid, OpenAuction", f"20: Bid and OpenAuction have no window: {MEET}"),
    ("SELECT * FROM Bid A, Bid B WHERE A.itemID = B.itemID", f"22: Bid has no window: {MEET}"),
    (
        "SELECT COUNT(*) FROM Bid JOIN OpenAuction USING (itemID)",
        f"31: Bid and OpenAuction have no window: {MEET}",
    ),
    (
        "SELECT * FROM Bid WHERE itemID IN (SELECT itemID FROM OpenAuction)",
        f"55: Bid and OpenAuction have no window: {MEET}",
    ),
    ('SELECT "itemID" FROM Bid', '8: "itemID" is a text, not the column itemID'),
    ("SELECT * FROM Bid LIMIT 2", "15: Bid has no window: LIMIT 2 is of the rows of each microsecond"),
    ("SELECT DISTINCT itemID FROM Bid", f"29: Bid has no window: {COMPARED}"),
    (
        "SELECT itemID FROM Bid EXCEPT SELECT itemID FROM ClosedAuction",
        f"50: Bid and ClosedAuction have no window: {COMPARED}",
    ),
]


def lines(text: str) -> list[str]:
    notes = notes_of(query_of(text), CATALOG, optimize(plan_of(text)))
    return [f"{note.position.column}: {note.message}" for note in notes]


@pytest.mark.parametrize(("text", "note"), CASES, ids=[text for text, _ in CASES])
def test_a_stream_without_a_window_is_noted(text: str, note: str) -> None:
    assert lines(text) == [note]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM Bid WHERE itemID = 1",
        "SELECT * FROM Bid [RANGE 5 MINUTES], OpenAuction WHERE Bid.itemID = OpenAuction.itemID",
        "SELECT * FROM Bid JOIN OpenAuction ON Bid.itemID = OpenAuction.itemID AND Bid.ts = OpenAuction.ts",
        "SELECT * FROM Bid JOIN OpenAuction USING (ts)",
        "SELECT itemID FROM Bid UNION ALL SELECT itemID FROM OpenAuction",
        "SELECT * FROM Bid [ROWS 2] LIMIT 2",
        "SELECT COUNT(*) AS n FROM Bid [NOW]",
        "SELECT COUNT(*) AS n FROM Bid GRANULARITY(1 MINUTE)",
        "SELECT ts, COUNT(*) AS n FROM Bid GROUP BY ts",
        "SELECT t, COUNT(*) AS n FROM (SELECT ts AS t FROM Bid) GROUP BY t",
        "SELECT COUNT(*) AS n FROM TUMBLE(TABLE Bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES)",
        "SELECT COUNT(*) OVER (PARTITION BY itemID ORDER BY ts) AS n FROM Bid",
        "SELECT * FROM Bid WHERE itemID IN (SELECT itemID FROM OpenAuction [RANGE 1 HOUR])",
        "SELECT COUNT(*) FROM ClosedAuction C, Bid [RANGE 1 HOUR] B WHERE C.itemID = B.itemID",
        "SELECT COUNT(*) FROM ClosedAuction C JOIN Bid [RANGE 1 HOUR] B ON C.itemID = B.itemID",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM Bid) [RANGE 1 HOUR]",
    ],
)
def test_what_is_meant_is_not_noted(text: str) -> None:
    assert lines(text) == []


def test_in_the_dialect_cql_streams_have_windows() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("bid", pa.table({"ts": [1], "price": [2]}), timestamp="ts")
        db.execute("SET dialect = 'cql'")
        assert db.query("SELECT COUNT(*) AS n FROM bid").notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM bid",
        "SELECT item, price, buyer FROM bid JOIN sold USING (item)",
        "SELECT item FROM bid LIMIT 1",
        "SELECT DISTINCT item FROM bid",
        "SELECT item FROM bid EXCEPT SELECT item FROM sold",
    ],
)
def test_what_a_hint_proposes_runs_and_has_no_note(text: str) -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("bid", pa.table({"ts": [1, 3], "item": [7, 7], "price": [10, 12]}), timestamp="ts")
        db.stream("sold", pa.table({"ts": [4], "item": [7], "buyer": ["eva"]}), timestamp="ts")
        (note,) = db.query(text, name="noted").notes
        for number, part in enumerate(note.hint.split(" or ")):
            better = text
            for stream, window in re.findall(r"(\w+) (WINDOW\(RANGE \w+\))", part):
                better = re.sub(f"(FROM|JOIN) {stream}", f"\\g<0> {window}", better)
            assert better != text
            assert db.query(better, name=f"better_{number}").notes == ()
        db.run()
        noted, *rest = (query.history().to_pylist() for query in db.queries)
        assert all(noted != better for better in rest)


def test_a_text_like_an_earlier_one_has_its_notes_at_its_own_places() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("bid", pa.table({"ts": [1], "price": [2]}), timestamp="ts")
        texts = [f"SELECT COUNT(*) AS n FROM\n{' ' * size}bid WHERE price > {size}" for size in range(4)]
        places = [note.position for text in texts for note in db.query(text).notes]
    assert [(place.line, place.column) for place in places] == [(2, 1), (2, 2), (2, 3), (2, 4)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT Bid.itemID FROM Bid ASOF JOIN OpenAuction O ON Bid.itemID = O.itemID AND Bid.ts >= O.ts",
        "SELECT a.itemID FROM Bid a JOIN OpenAuction b ON a.itemID = b.itemID "
        "WHERE a.ts > NOW() - INTERVAL '5' MINUTE AND b.ts > NOW() - INTERVAL '5' MINUTE",
    ],
)
def test_what_has_windows_by_its_conditions_has_no_note(text: str) -> None:
    assert lines(text) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT item, COUNT(*) AS n FROM bid GROUP BY item", ["bid"]),
        ("SELECT DISTINCT item FROM (SELECT * FROM bid WHERE price > 1)", ["bid"]),
        ("SELECT bid.item FROM bid JOIN sold USING (item)", ["bid", "sold"]),
        ("SELECT bid.item FROM bid JOIN sold ON bid.item = sold.item AND sold.ts >= bid.ts", ["bid"]),
        ("SELECT bid.item FROM bid JOIN sold ON bid.item = sold.item AND ABS(sold.ts - bid.ts) < 3", []),
        ("SELECT item FROM bid WHERE item NOT IN (SELECT item FROM sold WINDOW(RANGE 5))", ["bid"]),
        ("SELECT item FROM bid GROUP BY ts, item", []),
        ("SELECT COUNT(*) AS n FROM bid WINDOW(RANGE UNBOUNDED)", []),
        ("SELECT item FROM bid WINDOW(RANGE UNBOUNDED) GROUP BY item", []),
        ("SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), 5) "
         "GROUP BY window_start, window_end)", []),
        ("SELECT * FROM bid", []),
    ],
)  # fmt: skip
def test_a_stream_of_which_ever_more_is_remembered_is_named(text: str, named: list[str]) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("bid", pa.table({"ts": [1, 3], "item": [7, 7], "price": [10, 12]}), timestamp="ts")
        db.stream("sold", pa.table({"ts": [4], "item": [7], "buyer": ["eva"]}), timestamp="ts")
        notes = db.query(text).notes
        grows = "has no window: what is remembered of it grows for as long as the query runs"
        assert [note.message for note in notes] == [f"{name} {grows}" for name in named]
        better = text
        for note in notes:
            stream, window = re.findall(r"(\w+) (WINDOW\(RANGE \w+\))", note.hint)[0]
            better = re.sub(rf"(FROM|JOIN) {stream}\b", f"\\g<0> {window}", better)
        assert db.query(better).notes == ()
