"""Plans that a store keeps are what they were."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from headrace.algebra.changes import Changes, content_of
from headrace.algebra.nodes import LiveRow, Plan, Project, Relation, RelationIndex, Source
from headrace.algebra.properties import walk
from headrace.expressions.tree import Literal
from headrace.expressions.user import UserFunction
from headrace.lowering.constants import constants_as_data
from headrace.lowering.outer_joins import expand
from headrace.optimizer import optimize
from headrace.runtime.journal.plans import packed_plans, unpacked_plans, users_in
from headrace.schema import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, UNKNOWN, Field, Schema
from headrace.time import TimeDomain
from property.plan_strategies import Case, cases
from property.relatives import relatives


def stored(plans: dict[str, Plan], known: list[Plan]) -> dict[str, Plan]:
    return unpacked_plans(json.loads(json.dumps(packed_plans(plans))), users_in(known))


@given(st.data(), cases(max_relations=1))
@settings(max_examples=20)
def test_plans_survive_a_store(data: st.DataObject, case: Case) -> None:
    asked = {"q": case.plan, "r": data.draw(relatives(case.plan))}
    plans = {name: constants_as_data(expand(plan))[0] for name, plan in asked.items()}
    assert stored(plans, []) == plans


@pytest.mark.parametrize(
    "literal",
    [
        *(Literal(value, DOUBLE) for value in (0.1, -0.0, float("inf"), float("nan"))),
        *(Literal(value, BIGINT) for value in (-(2**63), None)),
        Literal('a "b" ä', STRING),
        Literal(Decimal("1.20"), pa.decimal128(5, 2)),
        Literal(date(2020, 2, 29), DATE),
        Literal(datetime(2020, 2, 29, 1, 2, 3, 4, UTC), TIMESTAMP),
        Literal(None, UNKNOWN),
    ],
)
def test_constants_survive_a_store(literal: Literal) -> None:
    with headrace.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1]}), timestamp="ts")
        below = db.query("SELECT * FROM s").plan
    plan = Project(below, (("x", literal),))
    (found,) = stored({"q": plan}, []).values()
    assert found == plan
    assert repr(found) == repr(plan)


def test_what_plans_have_in_common_is_stored_once() -> None:
    with headrace.connect(runner="inline") as db:
        db.stream("s", pa.table({"v": [1], "ts": [1]}), timestamp="ts")
        plan = db.query("SELECT v + 1 AS w FROM s WHERE v > 0").plan
    many = packed_plans({f"q{number}": plan for number in range(9)})
    assert len(many["nodes"]) == len(list(walk(plan)))


def test_a_function_is_the_one_that_the_query_calls_now() -> None:
    with headrace.connect(runner="inline") as db:
        db.stream("s", pa.table({"v": [1], "ts": [1]}), timestamp="ts")
        db.function("twice", lambda v: pc.multiply(v, 2), arguments=["BIGINT"], returns="BIGINT")
        plan = db.query("SELECT twice(v) AS w FROM s").plan
    (user,) = users_in([plan]).values()
    assert isinstance(user, UserFunction)
    (found,) = stored({"q": plan}, [plan]).values()
    assert users_in([found])["twice", user.version] is user


def test_the_content_of_changes_survives_a_store() -> None:
    columns = (Field("op", STRING), Field("k", BIGINT), Field("ts", BIGINT))
    endless = Source("r", Schema(columns), "ts", TimeDomain.INTEGER)
    read_first = Relation("r", Schema(columns), TimeDomain.INTEGER, ("ts", None))
    plans = [optimize(content_of(leaf, Changes("op", ("k",)))) for leaf in (endless, read_first)]
    kinds = [{type(part) for part in walk(plan)} for plan in plans]
    assert RelationIndex in kinds[0]
    assert LiveRow in kinds[1]
    for plan in plans:
        assert stored({"q": plan}, []) == {"q": plan}
