"""Rules that are applied where they pay in time, and take, yield and keep fewer rows then."""

from __future__ import annotations

from statistics import mean

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.query.choices import decisions_in
from headrace.optimizer.simplify.distinct_before_groups import distinct_before_groups

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


VALUES = pa.table(
    {
        "ts": range(4_000),
        "few": [place % 3 for place in range(4_000)],
        "many": [place * 7 % 100 for place in range(4_000)],
        "hot": [place % 100 if place % 2 else 0 for place in range(4_000)],
        "same": [place % 2 for place in range(4_000)],
        "own": range(4_000),
    }
)


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("SELECT few, COUNT(DISTINCT own) AS n FROM s [RANGE 100 SLIDE 100] GROUP BY few", True),
        ("SELECT hot, COUNT(DISTINCT own) AS n FROM s [RANGE 100 SLIDE 50] GROUP BY hot", True),
        ("SELECT many, COUNT(DISTINCT own) AS n FROM s [RANGE 100 SLIDE 100] GROUP BY many", False),
        ("SELECT few, COUNT(DISTINCT same) AS n FROM s [RANGE 100 SLIDE 100] GROUP BY few", False),
        # Rows that come and go one by one are not added up: as many travel twice.
        ("SELECT few, COUNT(DISTINCT own) AS n FROM s [RANGE 100] GROUP BY few", False),
    ],
)
def test_values_of_few_groups_are_spread(query: str, chosen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.engine.planning.few_groups._LONG", 100)
    answers = []
    for rules in ((distinct_before_groups.__name__,) if chosen else (), ()):
        with hr.connect(runner="inline", epoch_rows=500, buckets=2) as db:
            db.stream("s", VALUES, timestamp="ts")
            found = db.query(query)
            assert decisions_in(found.choices).rules == rules
            db.run()
            answers.append(found.history())
        monkeypatch.setattr("headrace.engine.run.core.decided", lambda *_: None)
    assert answers[0].equals(answers[1])


def test_of_few_rows_none_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    monkeypatch.setattr("headrace.engine.planning.decisions.sampled", lambda *asked: looks.append(asked))
    query = "SELECT few, COUNT(DISTINCT own) AS n FROM s [RANGE 100 SLIDE 100] GROUP BY few"
    with hr.connect(runner="inline") as db:
        db.stream("s", VALUES, timestamp="ts")
        assert not db.query(query).choices
    assert not looks


def test_values_of_what_never_ends_are_not_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.engine.planning.few_groups._LONG", 1)
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (few BIGINT, own BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL")
        db.query("SELECT few FROM s")
        db.start()
        db.push("s", VALUES.select(["few", "own", "ts"]).to_pylist())
        query = "SELECT few, COUNT(DISTINCT own) AS n FROM s [RANGE 100 SLIDE 100] GROUP BY few"
        assert not db.query(query).choices
