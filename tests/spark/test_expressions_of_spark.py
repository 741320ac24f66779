"""Random expressions, and functions over awkward arguments, have the values that Spark gives.

Spark answers in ANSI mode, without compiling. It is asked about the rows for which nothing fails here, all at
once, and about each way to fail with a row on its own. Its narrow integers are BIGINT here, so that no more
is compared of integers than their values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from awkward_arguments import EDGES, SHORT, signatures
from headrace.elements import from_rows
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import resolve
from headrace.expressions.render import render
from headrace.expressions.tree import Call, Cast, Column, Expression, walk
from headrace.reference.contents import equal_form
from headrace.schema import BIGINT, DOUBLE, STRING, Field, Schema, quote, sql_type
from how_many import how_many
from property.expression_strategies import KINDS, expressions
from property.strategies import BATTERY, payloads

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]

INT = range(-(2**31), 2**31)
OF_INTS = {
    *("SUBSTRING", "SPLIT_PART", "LOCATE", "SUBSTRING_INDEX", "LEFT", "RIGHT", "REPEAT", "LPAD", "RPAD"),
    *("MAKE_DATE", "SHA2", "DATE_ADD", "DATE_SUB", "ADD_MONTHS"),
}
"""Functions whose integers are INTs in Spark."""
NOT_SPARKS = {"TRUNC"}
"""Functions of numbers that Spark has for dates alone, under that name."""
STRICTER = {"FLOOR", "CEIL"}
"""Functions that fail where Spark gives what BIGINT has instead, as 0 for NaN."""
TOGETHER = 20
"""How many expressions Spark is asked about at once."""


@pytest.fixture(scope="module")
def interpreting(spark: Any) -> Iterator[Any]:
    """The session, which compiles nothing: that would take longer than all the rest."""
    changed = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield spark
    for name in changed:
        spark.conf.unset(name)


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """The same examples in every run."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(example: Any) -> None:
        found.append(example)

    keep()
    return found


def differences(spark: Any, asked: Sequence[Expression], schema: Schema, rows: Sequence[Row]) -> list[Any]:
    """Where Spark gives another value or type, of the rows for which an expression does not fail."""
    batch = from_rows(schema, [(row, 0, 1, 1) for row in rows]).payload
    outcomes = [evaluate(expression, batch) for expression in asked]
    table = pa.Table.from_batches([pa.record_batch(batch.columns, schema=batch.schema)])
    for place, outcome in enumerate(outcomes):
        failed = [reason is not None for reason in outcome.reasons().to_pylist()]
        table = table.append_column(f"failed{place}", pa.array(failed))
    items = [
        f"CASE WHEN failed{place} THEN NULL ELSE {for_spark(expression)} END AS x{place}"
        for place, expression in enumerate(asked)
    ]
    answers = spark.createDataFrame(table).selectExpr(*items).toArrow()
    found: list[Any] = []
    for expression, outcome, answer in zip(asked, outcomes, answers.columns, strict=True):
        text = render(expression)
        if answer.type != expression.type and not pa.types.is_integer(answer.type):
            found.append((text, sql_type(expression.type), sql_type(answer.type)))
        pairs = zip(rows, texts(outcome.values), texts(answer), strict=True)
        found += [(text, row, ours, sparks) for row, ours, sparks in pairs if ours != sparks][:2]
    return found


def texts(values: Any) -> list[str]:
    """The values as texts that are equal where the values are equal in grouping."""
    return [repr(equal_form(one)) for one in values.to_pylist()]


def for_spark(expression: Expression) -> str:
    """The text of an expression; columns with the integers of some functions are narrowed."""
    narrow = isinstance(expression, Call) and bool(names_of(expression) & OF_INTS)
    return render(expression, lambda column: narrowed(column) if narrow else quote(column.name))


def narrowed(column: Column) -> str:
    return f"CAST({quote(column.name)} AS INT)" if column.type == BIGINT else quote(column.name)


def names_of(expression: Expression) -> set[str]:
    return {part.function for part in walk(expression) if isinstance(part, Call)}


SCHEMA = Schema(tuple(Field(f"c{place}", dtype) for place, dtype in enumerate((*KINDS, *KINDS))))


@pytest.mark.parametrize("rough", [False, True], ids=["gentle", "rough"])
def test_random_expressions_have_sparks_values(interpreting: Any, rough: bool) -> None:
    rows = [
        row
        for some in drawn(st.lists(payloads(SCHEMA, pools=BATTERY), min_size=3), how_many(15, 30))
        for row in some
    ]
    asked = [
        one
        for kind in KINDS
        for one in drawn(expressions(SCHEMA, kind, depth=3, rough=rough), how_many(20, 60))
    ]
    # Places in a text may be any BIGINTs here, and a DOUBLE that equals 0 has one text.
    asked = [one for one in dict.fromkeys(asked) if not names_of(one) & OF_INTS and not writes_doubles(one)]
    assert len(rows) > how_many(25, 50)
    assert len(asked) > how_many(100, 300)
    found = []
    for start in range(0, len(asked), TOGETHER):
        found += differences(interpreting, asked[start : start + TOGETHER], SCHEMA, rows)
    assert found == []


def test_functions_have_sparks_values_and_failures(interpreting: Any) -> None:
    named = defaultdict(list)
    for name, types in signatures():
        if name not in NOT_SPARKS and not any(pa.types.is_decimal256(dtype) for dtype in types):
            named[types, name in OF_INTS].append(name)
    found, failures = [], 0
    for (types, of_ints), names in sorted(named.items(), key=repr)[:: how_many(3, 1)]:
        schema = Schema(tuple(Field(f"c{place}", dtype) for place, dtype in enumerate(types)))
        columns = tuple(Column(place, field.name, field.type) for place, field in enumerate(schema))
        edges = EDGES if len(types) < 3 else SHORT
        rows = [row for row in product(*(edges[dtype] for dtype in types)) if not of_ints or all_ints(row)]
        if "LOCATE" in names:
            rows = [row for row in rows if row[-1] is not None]
        asked = [resolve(name, columns) for name in names]
        found += differences(interpreting, asked, schema, rows)
        for expression in asked:
            for row in one_of_each_failure(expression, schema, rows):
                failures += 1
                if not names_of(expression) & STRICTER and not fails(interpreting, expression, schema, row):
                    found.append((render(expression), row, "fails", "is answered"))
    assert failures > how_many(5, 30)
    assert found == []


def writes_doubles(expression: Expression) -> bool:
    casts = (part for part in walk(expression) if isinstance(part, Cast))
    return any((part.argument.type, part.type) == (DOUBLE, STRING) for part in casts)


def all_ints(row: Row) -> bool:
    return all(one in INT for one in row if isinstance(one, int) and not isinstance(one, bool))


def one_of_each_failure(expression: Expression, schema: Schema, rows: Sequence[Row]) -> list[Row]:
    """A row for each reason for which the expression fails."""
    batch = from_rows(schema, [(row, 0, 1, 1) for row in rows]).payload
    reasons = evaluate(expression, batch).reasons().to_pylist()
    return [rows[reasons.index(reason)] for reason in dict.fromkeys(reasons) if reason is not None]


def fails(spark: Any, expression: Expression, schema: Schema, row: Row) -> bool:
    batch = from_rows(schema, [(row, 0, 1, 1)]).payload
    table = pa.Table.from_batches([pa.record_batch(batch.columns, schema=batch.schema)])
    try:
        spark.createDataFrame(table).selectExpr(f"{for_spark(expression)} AS x").toArrow()
    except Exception:
        return True
    return False
