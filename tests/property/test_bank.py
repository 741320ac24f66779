"""Internal consistency: money that is moved between accounts is never lost or made, whenever one looks.

Where a debit and its credit come from one row, the balances add up to 0 at every instant of all that any
query has said after any epoch, final or not. Where they are two streams, they do in every final answer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples
from inside import reader_of

LEVELS = {"strong": "", "middle": "CONSISTENCY MIDDLE", "blocking": "CONSISTENCY (BLOCK 3)"}
BALANCES = "SELECT account, SUM(amount) AS amount FROM booking [RANGE UNBOUNDED] GROUP BY account"
MOVED = "SELECT account, SUM(amount) AS amount FROM booking [RANGE 6] GROUP BY account"
RICH = f"SELECT account, amount FROM ({BALANCES}) WHERE amount > 0"
OWED = f"SELECT account, amount FROM ({BALANCES}) WHERE amount <= 0"
TOTAL = f"SELECT SUM(amount) AS amount FROM ({BALANCES})"
BOTH_SIDES = f"{RICH} UNION ALL {OWED}"
QUERIES = {"balances": BALANCES, "moved": MOVED, "total": TOTAL, "sides": BOTH_SIDES}


TWO_SIDES = (
    "CREATE STREAM booking AS SELECT account, -amount AS amount FROM debit "
    "UNION ALL SELECT account, amount FROM credit"
)


@st.composite
def transfers(draw: st.DrawFn) -> tuple[list[list[dict[str, Any]]], int]:
    """Transfers cut into epochs, out of order by no more than the disorder that they come with."""
    disorder = draw(st.integers(0, 6))
    row = st.tuples(
        st.integers(0, 25),
        st.integers(0, disorder),
        st.sampled_from("abc"),
        st.sampled_from("abc"),
        st.integers(1, 9),
    )
    arrived = sorted(draw(st.lists(row, min_size=1, max_size=8)), key=lambda row: row[0] + row[1])
    rows = [
        {"source": source, "target": target, "amount": amount, "ts": ts}
        for ts, _, source, target, amount in arrived
    ]
    size = draw(st.integers(1, 4))
    return [rows[place : place + size] for place in range(0, len(rows), size)], disorder


def said(query: hr.Query, until: int) -> list[tuple[int, int]]:
    """The sum of the amounts that a query has said to be there at each instant before one."""
    rows = query.changes().to_pylist()
    instants = sorted({row["valid_from"] for row in rows} | {row["valid_to"] for row in rows} - {None})
    return [
        (
            at,
            sum(
                row["change"] * row["amount"]
                for row in rows
                if row["valid_from"] <= at and (row["valid_to"] is None or at < row["valid_to"])
            ),
        )
        for at in instants
        if at < until
    ]


def reach(db: hr.Database, query: hr.Query) -> int:
    """Up to where a query has said its answer (instant): to its heartbeat, or further if it does not wait."""
    reader = reader_of(db, query)
    return max(reader.heartbeat, reader.horizon)


def declare(db: hr.Database, disorder: int) -> None:
    """Debits and credits as two streams."""
    for side in ("debit", "credit"):
        columns = "(account STRING, amount BIGINT, ts BIGINT)"
        db.execute(f"CREATE STREAM {side} {columns} FROM push TIMESTAMP BY ts DISORDER {disorder}")
    db.execute(TWO_SIDES)


def add_queries(db: hr.Database, queries: Collection[str] = QUERIES) -> None:
    for level, clause in LEVELS.items():
        for name in queries:
            db.execute(f"CREATE QUERY {level}_{name} {clause} AS {QUERIES[name]}")


@examples(2, 6)
@given(transfers())
def test_from_one_row_the_sum_is_constant_in_all_that_is_said(
    case: tuple[list[list[dict[str, Any]]], int],
) -> None:
    epochs, disorder = case
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM transfer (source STRING, target STRING, amount BIGINT, ts BIGINT) FROM push "
            f"TIMESTAMP BY ts DISORDER {disorder};"
            "CREATE STREAM booking AS SELECT source AS account, -amount AS amount FROM transfer "
            "UNION ALL SELECT target AS account, amount FROM transfer"
        )
        add_queries(db)
        db.start()
        for rows in epochs:
            db.push("transfer", rows)
            for query in db.queries:
                sums = said(query, reach(db, query))
                assert all(total == 0 for _, total in sums), (query.name, sums)
                event(f"{query.name} has said something: {bool(sums)}")
        db.stop()


@examples(2, 6)
@given(transfers(), st.data())
def test_from_two_streams_the_sum_is_constant_in_every_final_answer(
    case: tuple[list[list[dict[str, Any]]], int], data: st.DataObject
) -> None:
    epochs, disorder = case
    with hr.connect(runner="inline") as db:
        declare(db, disorder)
        add_queries(db, ("balances", "sides"))
        db.start()
        waiting = {
            stream: [
                [{"account": row[side], "amount": row["amount"], "ts": row["ts"]} for row in rows]
                for rows in epochs
            ]
            for stream, side in (("debit", "source"), ("credit", "target"))
        }
        while any(waiting.values()):
            side = data.draw(st.sampled_from([side for side in waiting if waiting[side]]))
            db.push(side, waiting[side].pop(0))
            for query in db.queries:
                assert all(total == 0 for _, total in said(query, query.heartbeat)), query.name
        db.stop()
        for query in db.queries:
            assert all(total == 0 for _, total in said(query, reach(db, query))), query.name


def test_what_is_not_final_can_show_one_side_alone() -> None:
    """So that the tests above have something to find."""
    with hr.connect(runner="inline") as db:
        declare(db, 0)
        add_queries(db, ("balances",))
        db.start()
        db.push("debit", [{"account": "a", "amount": 5, "ts": 1}])
        assert said(db["middle_balances"], reach(db, db["middle_balances"])) == [(1, -5)]
        assert said(db["strong_balances"], reach(db, db["strong_balances"])) == []
        db.push("credit", [{"account": "b", "amount": 5, "ts": 1}])
        db.stop()
        assert {total for _, total in said(db["middle_balances"], reach(db, db["middle_balances"]))} == {0}
