"""EXPLAIN COST of a query that bears loss: rows of one share weigh all the same, and go one way."""

from __future__ import annotations

from dataclasses import replace

import pytest

import headrace as hr
from headrace.algebra.nodes import Filter, Shed
from headrace.algebra.properties import walk
from headrace.optimizer.cost.flow import Flow
from headrace.optimizer.cost.growth import Growth
from headrace.optimizer.cost.stateless import passed
from headrace.steps import WHOLE, Step
from inside import core_of


@pytest.mark.parametrize(("share", "alone"), [(None, 1.0), (WHOLE, 1.0), (300_000, 0.0)])
def test_rows_of_a_share_weigh_all_the_same(share: int | None, alone: float) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY q LOSS TOLERANT AS SELECT COUNT(*) AS n FROM s [RANGE 9]")
        (defined,) = core_of(db).definitions.queries.values()
        steps = () if share is None else (Step(5, share),)
        rates = {}
        for node in walk(defined.plan):
            if isinstance(node, Filter) and isinstance(node.input, Shed):
                tuned = replace(node, input=replace(node.input, steps=steps))
                values = (Growth(((1.0, 1.0), (10.0, 1.0))),) * len(node.schema)
                function = getattr(node.predicate, "function", "")
                rates[function] = passed(tuned, [Flow(7.0, 1.0, 1.0, values)], 10.0).rate
        assert rates == {"=": 7 * alone, ">": 7 * (1 - alone)}
