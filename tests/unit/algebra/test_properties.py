"""What is derived from plans."""

from __future__ import annotations

import pytest

from auctions import plan_of
from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.properties import key_of


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        ("SELECT * FROM tick [UNBOUNDED]", False),
        ("SELECT DISTINCT kind FROM tick [UNBOUNDED]", True),
        ("SELECT COUNT(*), SUM(id) FROM tick [UNBOUNDED]", False),
        ("SELECT CORR(id, at), VAR_POP(id), BOOL_OR(id > 1) FROM tick [UNBOUNDED]", False),
        ("SELECT CORR(id, at) OVER (ORDER BY at) FROM tick", False),
        ("SELECT COUNT(*), MIN(id) FROM tick [UNBOUNDED]", True),
        ("SELECT COUNT(DISTINCT id) FROM tick [UNBOUNDED]", True),
        ("SELECT APPROX_COUNT_DISTINCT(id), APPROX_TOP_K(kind, 2) FROM tick [UNBOUNDED]", False),
        ("SELECT APPROX_COUNT_DISTINCT(id) FROM tick [UNBOUNDED] GROUP BY kind", True),
        ("SELECT COUNT(*) FROM tick [UNBOUNDED] GROUP BY kind", True),
        ("SELECT COUNT(*), MIN(id) FROM tick [RANGE 5] WHERE id > 1 EMIT EMPTY", False),
        ("SELECT MIN(id) FROM tick [UNBOUNDED] EMIT EMPTY", True),
        ("SELECT * FROM tick [ROWS 10]", False),
        ("SELECT DISTINCT kind FROM tick [ROWS 10]", False),
        ("SELECT * FROM tick [PARTITION BY kind ROWS 10]", True),
        ("SELECT * FROM tick [UNBOUNDED] a, tick b WHERE a.id = b.id", True),
        ("SELECT * FROM tick [ROWS 10] a, tick b WHERE a.id = b.id", False),
    ],
)
def test_state_that_grows_without_bound(text: str, grows: bool) -> None:
    assert has_unbounded_state(plan_of(text)) is grows


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT COUNT(*) AS n, bidderID FROM Bid GROUP BY bidderID", (1,)),
        ("SELECT COUNT(*) AS n FROM Bid", ()),
        ("SELECT COUNT(*) AS n FROM Bid GROUP BY bidderID", None),
        ("SELECT bidderID, itemID, MAX(bid_price) AS m FROM Bid GROUP BY itemID, bidderID", (0, 1)),
        ("SELECT bidderID, bidderID AS again, COUNT(*) AS n FROM Bid GROUP BY bidderID", (0,)),
        ("SELECT DISTINCT itemID, bidderID FROM Bid", (0, 1)),
        ("SELECT itemID, bidderID FROM Bid", None),
    ],
)
def test_columns_that_say_which_row_it_is(text: str, key: tuple[int, ...] | None) -> None:
    assert key_of(plan_of(text)) == key
