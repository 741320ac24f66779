"""What EXPLAIN writes, as snapshots of our own output: they show a change, and prove no plan right."""

from __future__ import annotations

from textwrap import dedent

import pytest

from auctions import plan_of
from headrace.algebra.arrival import Unit
from headrace.algebra.explain import describe, explain
from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Early
from headrace.time import INFINITY


def tree(text: str) -> str:
    return dedent(text).strip("\n")


def test_a_tree_with_parameters_and_properties() -> None:
    plan = plan_of(
        """
        SELECT O.sellerID, C.ts AS closed, start_price * 2e0 AS twice
        FROM OpenAuction O WINDOW(RANGE 5 HOURS SLIDE 1 MINUTE), ClosedAuction C
        WHERE O.itemID = C.itemID AND start_price > 10e0
        """
    )
    assert explain(plan) == tree(
        """
        Project sellerID, ts_2 AS closed, start_price * 2.0E0 AS twice  [chronon]
          Filter itemID = itemID_2 AND start_price > 10.0E0  [chronon]
            Join of all pairs  [chronon]
              TimeWindow RANGE 5 HOURS SLIDE 1 MINUTE
                Source OpenAuction (itemID, sellerID, start_price, ts) by ts  [chronon]
              Source ClosedAuction (itemID, buyerID, ts) by ts  [chronon]
        """
    )


def test_corrections_and_joins() -> None:
    plan = plan_of(
        """
        SELECT DISTINCT a.n FROM (SELECT kind, COUNT(*) AS n FROM tick [RANGE 10] GROUP BY kind) a
        JOIN tick [RANGE 5] b ON a.kind = b.kind AND a.n < b.id
        """
    )
    assert explain(plan) == tree(
        """
        Distinct  [corrected]
          Project n  [corrected]
            Join ON kind = kind_2 AND n < id  [corrected]
              Aggregate BY kind: COUNT(*) AS n  [corrected]
                TimeWindow RANGE 10
                  Source tick (id, kind, price, at) by at  [chronon]
              TimeWindow RANGE 5
                Source tick (id, kind, price, at) by at  [chronon]
        """
    )


def test_the_warning_stands_where_state_grows_and_not_above() -> None:
    plan = plan_of(
        "ISTREAM(SELECT a.id FROM tick [RANGE UNBOUNDED] a JOIN tick [RANGE UNBOUNDED] b ON a.id = b.id)"
    )
    assert explain(plan) == tree(
        """
        Istream  [chronon]
          Project id
            Join ON id = id_2  [state grows without bound]
              TimeWindow RANGE UNBOUNDED
                Source tick (id, kind, price, at) by at  [chronon]
              TimeWindow RANGE UNBOUNDED
                Source tick (id, kind, price, at) by at  [chronon]
        """
    )
    assert "grows" not in explain(plan_of("SELECT id FROM tick [RANGE UNBOUNDED]"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SELECT SUM(price) AS s, COUNT(id), kind FROM tick GROUP BY kind, id", "Project s, count, kind"),
        ("SELECT SUM(price), COUNT(id) c FROM tick", "Aggregate: SUM(price) AS sum, COUNT(id) AS c"),
        ("SELECT kind FROM tick GROUP BY kind", "Aggregate BY kind"),
        ("SELECT UPPER(kind) FROM tick GROUP BY 1", "Aggregate BY UPPER(kind) AS upper"),
        ("SELECT id FROM tick UNION ALL SELECT at FROM tick", "Union of 2"),
        ("SELECT id AS `a b` FROM tick", "Project id AS `a b`"),
        ("DSTREAM(tick)", "Dstream"),
        ("RSTREAM(tick)", "Rstream"),
    ],
)
def test_nodes_in_one_line(text: str, line: str) -> None:
    assert describe(plan_of(text)) == line


def test_how_long_an_early_answer_waits() -> None:
    below = plan_of("SELECT id FROM tick")
    said = [
        describe(Early(below, Horizon(("tick",), 5_000_000, unit=unit)))
        for unit in (Unit.ARRIVAL, Unit.ROWS, Unit.TIME)
    ]
    said.append(describe(Early(below, Horizon(("tick",), -INFINITY))))
    assert said == [
        "Early BLOCK 5 SECONDS BY ARRIVAL",
        "Early BLOCK 5000000 ROWS",
        "Early BLOCK 5000000",
        "Early OUTPUT MAXIMAL",
    ]
