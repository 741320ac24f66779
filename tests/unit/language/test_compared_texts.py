"""A note on columns of texts that are compared with numbers."""

from __future__ import annotations

import pytest

import headrace as hr


@pytest.fixture(scope="module")
def db() -> hr.Database:
    made = hr.connect(runner="inline")
    made.execute(
        "CREATE STREAM s (ts BIGINT, item STRING, n BIGINT) FROM push TIMESTAMP BY ts;"
        "CREATE STREAM other (ts BIGINT, item BIGINT) FROM push TIMESTAMP BY ts"
    )
    return made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM s WHERE item = 10",
        "SELECT n FROM s WHERE 10 < s.item",
        "SELECT n FROM s WHERE n > 1 AND NOT item IN (10, 11)",
        "SELECT n FROM s WHERE item BETWEEN 10 AND 12",
        "SELECT n FROM s [RANGE 3] GROUP BY n HAVING COUNT(*) FILTER (WHERE item = 10) > 0",
        "SELECT CASE WHEN item >= 10 THEN 1 ELSE 0 END AS large FROM s",
        "SELECT n FROM s WHERE n IN (SELECT n FROM s WHERE s.item <> 10)",
    ],
)
def test_a_comparison_with_a_number_is_noted(db: hr.Database, text: str) -> None:
    try:
        [note] = [one for one in db.query(text).notes if "STRING" in one.message]
    except hr.HeadraceError as error:
        pytest.fail(str(error))
    assert note.message == "item is a STRING: rows in which it is no number cannot take part"
    assert note.hint == "write '10' to compare texts"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM s WHERE item = '10'",
        "SELECT n FROM s WHERE n = 10",
        "SELECT n FROM s WHERE CAST(item AS BIGINT) = 10",
        "SELECT item FROM (SELECT CAST(item AS BIGINT) AS item FROM s) t WHERE item = 10",
        "SELECT n FROM s, other WHERE other.item = 10 AND s.ts = other.ts",
    ],
)
def test_what_is_meant_is_not_noted(db: hr.Database, text: str) -> None:
    assert not [one for one in db.query(text).notes if "STRING" in one.message]


def test_texts_that_differ_in_a_constant_have_notes_of_their_own(db: hr.Database) -> None:
    hints = [db.query(f"SELECT n + 1 AS m FROM s WHERE item = {number}").notes[0].hint for number in (7, 8)]
    assert hints == ["write '7' to compare texts", "write '8' to compare texts"]
