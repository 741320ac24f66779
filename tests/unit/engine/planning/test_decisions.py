"""Rules that are applied where they pay in time, and take, yield and keep fewer rows then."""

from __future__ import annotations

from statistics import mean

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.query.choices import decisions_in

BIDS = pa.table(
    {
        "ts": range(2_000),
        "item": [place * 7 % 5 for place in range(2_000)],
        "price": [place * 31 % 1_009 for place in range(2_000)],
        "bidder": [place * 13 % 3 for place in range(2_000)],
    }
)
ITEMS = pa.table({"ts": range(0, 2_000, 10), "item": [place % 5 for place in range(200)]})


def work(query: str) -> tuple[float, tuple[str, ...], pa.Table]:
    """The rows that all operators took and yielded, and kept on average; what was decided; the answer."""
    kept: list[int] = []
    with hr.connect(runner="inline", epoch_rows=500) as db:
        db.stream("bid", BIDS, timestamp="ts")
        db.stream("item", ITEMS, timestamp="ts")
        found = db.query(query)
        db.run(lambda _: kept.append(sum(part.state_rows for part in db.status.operators)))
        taken = sum(part.rows_in + part.rows_out for part in db.status.operators if part.inputs)
        return taken + mean(kept), decisions_in(found.choices).rules, found.history()


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (
            "SELECT b.item, MAX(b.price) AS m FROM bid [RANGE 500] b JOIN item [RANGE 100] i "
            "ON b.item = i.item GROUP BY b.item",
            "aggregate_before_join",
        ),
        (
            "SELECT DISTINCT b.bidder FROM bid [RANGE 500] b JOIN item [RANGE 100] i ON b.item = i.item",
            "distinct_before_join",
        ),
        (  # Two more operators that compare rows take longer than what they spare the one above.
            "SELECT DISTINCT * FROM "
            "(SELECT bidder FROM bid [RANGE 500] UNION ALL SELECT item FROM item [RANGE 100])",
            None,
        ),
        (
            "SELECT DISTINCT * FROM "
            "(SELECT DISTINCT price FROM bid [RANGE 500] UNION ALL SELECT item FROM item [RANGE 100])",
            "distinct_once",
        ),
        (  # Every bid changes a count, so that groups change as often as rows come.
            "SELECT b.price, COUNT(b.bidder) AS n FROM bid [RANGE 5] b JOIN item [NOW] i ON b.item = i.item "
            "GROUP BY b.price",
            None,
        ),
        (
            "SELECT DISTINCT b.price FROM bid [RANGE 5] b JOIN item [NOW] i ON b.item = i.item",
            None,
        ),
    ],
)
def test_a_rule_is_chosen_where_operators_take_less_time(
    query: str, rule: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost, chosen, answer = work(query)
    assert chosen == ((rule,) if rule else ())
    monkeypatch.setattr("headrace.engine.run.core.decided", lambda *_: None)
    before, _, expected = work(query)
    assert answer.equals(expected)
    print(cost, before)
    assert cost < 0.8 * before if rule else cost == before
