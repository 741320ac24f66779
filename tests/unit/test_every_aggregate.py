"""Every built-in aggregate has a record, a definition, operators that keep it, and a line in the docs.

The record must be true: what it says of state and of empty groups is compared with what operators do.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from auctions import plan_of
from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.nodes import Aggregate
from headrace.algebra.properties import walk
from headrace.expressions.aggregates.aggregates import AGGREGATES, is_aggregate
from headrace.expressions.aggregates.functions import FUNCTIONS, SYNONYMS, KeptValues, OrderUse, function_of
from headrace.expressions.tree import AggregateCall
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.reference.aggregates import aggregate
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from worked.tables import equivalent

CALLS = {
    "ARRAY_AGG": "ARRAY_AGG(id)",
    "AUTOCORR": "AUTOCORR(id, 1 ORDER BY at)",
    "AVG": "AVG(id)",
    "BIT_AND": "BIT_AND(id)",
    "BIT_OR": "BIT_OR(id)",
    "BIT_XOR": "BIT_XOR(id)",
    "BOOL_AND": "BOOL_AND(id > 1)",
    "BOOL_OR": "BOOL_OR(id > 1)",
    "CORR": "CORR(id, at)",
    "CORRELATED_PAIRS": "CORRELATED_PAIRS(kind, at, id, 1, NULL, 0.5, 1, 2)",
    "COUNT": "COUNT(kind)",
    "COUNT_IF": "COUNT_IF(id > 1)",
    "COVAR_POP": "COVAR_POP(id, at)",
    "COVAR_SAMP": "COVAR_SAMP(id, at)",
    "EWMA": "EWMA(id, 0.3 ORDER BY at)",
    "EWM_STDDEV": "EWM_STDDEV(price, 0.3 ORDER BY at)",
    "FIRST": "FIRST(kind ORDER BY at)",
    "LAST": "LAST(kind ORDER BY at)",
    "MAX": "MAX(id)",
    "MEDIAN": "MEDIAN(id)",
    "MIN": "MIN(kind)",
    "MODE": "MODE(kind)",
    "PERCENTILE": "PERCENTILE(id, 0.3)",
    "PERCENTILE_DISC": "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY id DESC)",
    "REGR_AVGX": "REGR_AVGX(id, at)",
    "REGR_AVGY": "REGR_AVGY(id, at)",
    "REGR_COUNT": "REGR_COUNT(price, at)",
    "REGR_INTERCEPT": "REGR_INTERCEPT(price, at)",
    "REGR_R2": "REGR_R2(price, at)",
    "REGR_SLOPE": "REGR_SLOPE(price, at)",
    "REGR_SXX": "REGR_SXX(price, at)",
    "REGR_SXY": "REGR_SXY(price, at)",
    "REGR_SYY": "REGR_SYY(price, at)",
    "STDDEV": "STDDEV(id)",
    "STDDEV_POP": "STDDEV_POP(id)",
    "SUM": "SUM(id)",
    "TOP_K": "TOP_K(kind, 2)",
    "VARIANCE": "VARIANCE(price)",
    "VAR_POP": "VAR_POP(id)",
}
ROWS = [(1, "a", 1), (2, "b", 1), (1, None, 2), (5, "a", 4), (2, "a", 4), (9, "b", 9)]
TICK = Stream(
    ("id", "kind", "price", "at"),
    [((id_, kind, Decimal(id_) / 4, at), at, at + 1, 1) for id_, kind, at in ROWS],
)
LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"


def test_the_most_frequent_value_and_the_last_of_a_share() -> None:
    """What follows by hand from the values, so that definition and operators are not wrong together."""
    values = [(3, 1), (1, 1), (3, 2), (None, 1), (1, 2), (6, 5)]
    rows = Stream(("id", "kind", "price", "at"), [((id_, None, None, n), 0, 1, 1) for id_, n in values])
    for text, value in (
        ("MODE(id)", 1),
        ("MODE() WITHIN GROUP (ORDER BY id DESC)", 3),
        ("MODE(id) FILTER (WHERE id > 1)", 3),
        ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY id)", 3),
        ("PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY id)", 1),
        ("PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY id DESC)", 6),
        ("PERCENTILE_DISC(0.6) WITHIN GROUP (ORDER BY id DESC)", 3),
        ("TOP_K(id, 2)", ((1, 2), (3, 2))),
        ("TOP_K(id, 1) FILTER (WHERE id > 3)", ((6, 1),)),
        ("TOP_K(id, 3) FILTER (WHERE id > 6)", ()),
        ("BIT_AND(id) FILTER (WHERE id <> 1)", 2),
        ("BIT_OR(id)", 7),
        ("BIT_XOR(id)", 6),
    ):
        plan = plan_of(f"SELECT {text} AS x FROM tick [NOW]")
        assert [payload for payload, *_ in evaluate(plan, {"tick": rows})] == [(value,)], text
        equivalent(plan, plan, {"tick": rows}, 2)


def node_of(text: str) -> Aggregate:
    """The aggregation of a query."""
    (found,) = [node for node in walk(plan_of(text)) if isinstance(node, Aggregate)]
    return found


def call_of(name: str) -> AggregateCall:
    """A call of an aggregate."""
    ((_, call),) = node_of(f"SELECT {CALLS[name]} FROM tick [RANGE 3]").aggregates
    return call


def test_every_aggregate_has_an_example() -> None:
    assert tuple(CALLS) == tuple(FUNCTIONS) == AGGREGATES
    assert all(map(is_aggregate, (*FUNCTIONS, *SYNONYMS)))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_of_an_aggregate_with_a_record(name: str) -> None:
    record, call = FUNCTIONS[name], call_of(name)
    assert call.function == (record.means or name)
    assert function_of(call).kept is record.kept
    assert (record.place is not None) == (record.kept is KeptValues.ENDS)
    assert bool(call.order) == (record.order is OrderUse.NEEDED or "DESC" in CALLS[name])


@pytest.mark.parametrize("name", CALLS)
def test_operators_keep_the_definition(name: str) -> None:
    for group in ("", " GROUP BY kind"):
        plan = plan_of(f"SELECT {CALLS[name]} AS value FROM tick [RANGE 3]{group}")
        assert evaluate(plan, {"tick": TICK}), "an answer that shows something"
        for cuts in (1, 3):
            equivalent(plan, plan, {"tick": TICK}, cuts)


@pytest.mark.parametrize("name", CALLS)
def test_the_value_of_no_rows(name: str) -> None:
    found = aggregate(call_of(name), [])
    assert found == FUNCTIONS[name].of_nothing
    over = plan_of(
        f"SELECT {CALLS[name]} OVER (ORDER BY at ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) FROM tick"
    )
    equivalent(over, over, {"tick": TICK}, 2)


@pytest.mark.parametrize("name", CALLS)
def test_state_is_what_the_record_says(name: str) -> None:
    node = node_of(f"SELECT {CALLS[name]} FROM tick [RANGE UNBOUNDED]")
    areas = AggregateOperator(node, combined=False, insert_only=True, report=no_report).areas
    keeps_values = any(area.startswith("values") for area in areas)
    assert keeps_values == (not FUNCTIONS[name].kept.is_sum)
    assert has_unbounded_state(node) == keeps_values
    (sums,) = Accumulation.of(node).sums.sums or [None]
    products = 0 if sums is None else sums.products
    assert products == {KeptValues.SQUARES: 1, KeptValues.PRODUCTS: 3}.get(FUNCTIONS[name].kept, 0)


def no_report(*_: object) -> None:
    raise AssertionError("no row fails")


def test_every_aggregate_is_documented() -> None:
    text = LANGUAGE.read_text()
    table = text[text.index("| Aggregates | Result |") :].split("\n\n", 1)[0]
    names = set(re.findall(r"`([A-Z_0-9]+)", table))
    assert names >= FUNCTIONS.keys() | SYNONYMS.keys()
