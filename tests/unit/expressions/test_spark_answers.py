"""Constant expressions with the answers that Spark 4.3 gave for them, in ANSI mode.

`spark_answers.txt` has `expression --> answer` per line, the answer as a Python literal (of DECIMALs, DATEs
and TIMESTAMPs their text) or FAILS. Both the evaluation over columns and the reference must give it; the test
that is marked `spark` asks Spark again.
"""

from __future__ import annotations

import ast
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.algebra.nodes import Project
from headrace.elements import empty_columns
from headrace.expressions import coercion
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.tree import Expression
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.reference.scalars import RowError, value
from headrace.schema import BIGINT, Field, Schema
from headrace.time import TimeDomain
from how_many import how_many

FAILS = object()
CATALOG = Catalog().define(StreamInfo("s", Schema((Field("ts", BIGINT),)), "ts", TimeDomain.INTEGER))
LINES = (Path(__file__).parent / "spark_answers.txt").read_text().splitlines()
ANSWERS = [tuple(line.split(" --> ")) for line in LINES]


@pytest.fixture(autouse=True)
def constants_fail_where_they_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant that cannot be cast is refused when it is bound, before what is tested here is asked."""
    monkeypatch.setattr(coercion, "failure_of", lambda cast: None)


def expression_of(text: str) -> Expression:
    statement = parse_one(f"SELECT {text} AS x FROM s")
    assert isinstance(statement, Select)
    plan = bind(statement.query, CATALOG)
    assert isinstance(plan, Project)
    return plan.items[0][1]


def agrees(found: Any, answer: str) -> bool:
    if found is FAILS or answer == "FAILS":
        return found is FAILS and answer == "FAILS"
    match found:
        case Decimal():
            return bool(found == Decimal(ast.literal_eval(answer)))
        case datetime():
            return bool(str(found.astimezone(UTC).replace(tzinfo=None)) == ast.literal_eval(answer))
        case date():
            return bool(str(found) == ast.literal_eval(answer))
        case float() if answer in ("nan", "inf", "-inf"):
            return repr(found) == answer
        case float():
            return math.isclose(found, ast.literal_eval(answer), rel_tol=1e-15)
        case _:
            return bool(found == ast.literal_eval(answer))


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_evaluation_answers_as_spark(text: str, answer: str) -> None:
    outcome = evaluate(expression_of(text), empty_columns(3))
    failed = outcome.failed is not None and outcome.failed.all()
    found = FAILS if failed else outcome.values.to_pylist()[2]
    assert agrees(found, answer), found


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_reference_answers_as_spark(text: str, answer: str) -> None:
    try:
        found = value(expression_of(text), ())
    except RowError:
        found = FAILS
    assert agrees(found, answer), found


@pytest.mark.spark
def test_spark_answers_as_recorded(spark: Any) -> None:
    # What is recorded changes only with Spark itself: a part of it in `make test`, all of it in the build.
    asked = ANSWERS[:: how_many(4, 1)]
    computed = [(text, answer) for text, answer in asked if answer != "FAILS"]
    for start in range(0, len(computed), 100):
        some = computed[start : start + 100]
        for (text, answer), found in zip(some, ask(spark, [text for text, _ in some]), strict=True):
            assert agrees(found, answer), text
    for text, answer in asked:
        assert answer != "FAILS" or agrees(fails(spark, text), answer), text


def ask(spark: Any, texts: list[str]) -> list[Any]:
    """What Spark computes, TIMESTAMPs by their texts, since Python sees them in the machine's time zone."""
    frame = spark.sql("SELECT " + ", ".join(f"{text} AS x{place}" for place, text in enumerate(texts)))
    columns = [f"CAST({name} AS STRING)" if dtype == "timestamp" else name for name, dtype in frame.dtypes]
    row = frame.selectExpr(*columns).collect()[0]
    moments = (
        dtype == "timestamp" and value is not None
        for value, (_, dtype) in zip(row, frame.dtypes, strict=True)
    )
    return [
        datetime.fromisoformat(value + "Z") if is_moment else value
        for value, is_moment in zip(row, moments, strict=True)
    ]


def fails(spark: Any, text: str) -> Any:
    try:
        return spark.sql(f"SELECT {text} AS x").collect()[0].x
    except Exception:
        return FAILS
