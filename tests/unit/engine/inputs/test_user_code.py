"""Functions and aggregates that users write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headrace
from headrace.expressions.user import version_of
from headrace.language.printer import to_sql


class Latest:
    """The longest text; of equally long ones the last in the alphabet."""

    def initialize(self) -> str | None:
        return None

    def accumulate(self, state: str | None, text: str) -> str:
        return max(state or "", text, key=lambda one: (len(one), one))

    def evaluate(self, state: str | None) -> str | None:
        return state


@pytest.fixture
def db() -> Iterator[headrace.Database]:
    with headrace.connect(runner="inline") as database:
        table = pa.table({"ts": [1, 2, 3, 4], "v": [10, 0, None, 4], "k": ["a", "bcd", "ef", None]})
        database.stream("r", table, timestamp="ts")
        yield database


def inverse(values: pa.Array) -> pa.Array:
    return pc.divide_checked(pa.scalar(100), values)


def test_a_function_and_the_rows_it_fails_on(db: headrace.Database) -> None:
    db.function("inverse", inverse, arguments=["BIGINT"], returns="BIGINT")
    query = db.query("SELECT v, INVERSE(v) + 1 AS i FROM r WHERE inverse(COALESCE(v, 1)) > 0")
    db.run()
    assert query.history().select(["v", "i"]).to_pylist() == [
        {"v": 10, "i": 11},
        {"v": None, "i": None},
        {"v": 4, "i": 26},
    ]
    letters = db.dead_letters().to_pylist()
    assert [(letter["query"], letter["reason"]) for letter in letters] == [
        ("query_1", "inverse raised ArrowInvalid: divide by zero")
    ]


def test_one_bad_row_among_many_costs_few_calls(db: headrace.Database) -> None:
    calls = []

    @db.function("picky", arguments=[pa.int32()], returns="DOUBLE")
    def picky(values: pa.Array) -> list[float]:
        calls.append(len(values))
        return [1 / value for value in values.to_pylist()]

    table = pa.table({"ts": list(range(1000)), "v": [1] * 777 + [0] + [2] * 222})
    db.stream("many", table, timestamp="ts")
    query = db.query("SELECT picky(v) AS p FROM many")
    db.run()
    assert [tuple(row.values()) for row in query.history().to_pylist()] == [(1.0, 0, 777), (0.5, 778, 1000)]
    assert len(db.dead_letters()) == 1
    assert len(calls) < 30


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda values: values[:1], "odd raised ValueError: 0 values for 1 rows"),
        (lambda values: ["x"] * len(values), "odd gave a value that is not a BIGINT: 'x'"),
        (lambda values: [2.9] * len(values), "odd gave a value that is not a BIGINT: 2.9"),
        (lambda values: np.full(len(values), 2.9), "odd raised ArrowInvalid: Float value 2.9"),
        (lambda values: pa.array(["x"] * len(values)), "odd raised ArrowInvalid: Failed to parse string"),
        (lambda values: None, "odd raised TypeError"),
    ],
)
def test_a_function_that_gives_something_else(
    db: headrace.Database, body: Callable[[Any], Any], reason: str
) -> None:
    def wrapped(values: pa.Array) -> Any:
        return body(values[1:] if "0 values" in reason else values)

    db.function("odd", wrapped, arguments=["BIGINT"], returns="BIGINT")
    query = db.query("SELECT odd(v) AS o FROM r")
    db.run()
    assert len(query.history()) == 0
    letters = db.dead_letters().to_pylist()
    assert len(letters) == 4
    assert all(letter["reason"].startswith(reason) for letter in letters)


def test_an_aggregate_that_raises_ends_its_query_alone(db: headrace.Database) -> None:
    class Broken(Latest):
        def evaluate(self, state: str | None) -> str | None:
            assert state is not None, "where there is no row nothing is evaluated"
            raise RuntimeError(f"no {state}")

    db.aggregate("longest", Latest, arguments=["STRING"], returns="STRING")
    db.aggregate("broken", Broken, arguments=["STRING"], returns="STRING")
    good = db.query("SELECT longest(k) AS k, COUNT(*) AS n FROM r [RANGE 10]", name="good")
    db.query("SELECT broken(k) FROM r [RANGE 10]", name="bad")
    summary = db.run()
    assert [(name, message) for name, message, _ in summary.failed] == [
        ("bad", "broken raised RuntimeError: no a")
    ]
    assert good.snapshot(at=4).to_pylist() == [{"k": "bcd", "n": 4}]


def test_an_aggregate_where_there_is_nothing(db: headrace.Database) -> None:
    class Texts(Latest):
        def evaluate(self, state: str | None) -> str:
            return "nothing" if state is None else state

    db.aggregate("longest", Texts, arguments=["STRING"], returns="STRING")
    text = "SELECT longest(k) AS k, longest(k) FILTER (WHERE v > 0) AS high, COUNT(*) AS n FROM r [RANGE 2]"
    query = db.query(f"{text} WHERE ts > 1 EMIT EMPTY")
    db.run()
    nothing = ("nothing", "nothing")
    assert [tuple(row.values()) for row in query.history().to_pylist()] == [
        (*nothing, 0, 1, 2),
        ("bcd", "nothing", 1, 2, 3),
        ("bcd", "nothing", 2, 3, 4),
        ("ef", "nothing", 2, 4, 5),
        (*nothing, 1, 5, 6),
        (*nothing, 0, 6, None),
    ]


def test_an_aggregate_of_a_wrong_type_ends_its_query(db: headrace.Database) -> None:
    db.aggregate("longest", Latest, arguments=["STRING"], returns="BIGINT")
    db.query("SELECT longest(k) FROM r [RANGE 10]")
    assert db.run().failed[0][1] == "longest gave a value that is not a BIGINT: 'a'"


def test_an_aggregate_gives_no_fraction_for_a_whole_number(db: headrace.Database) -> None:
    class Half(Latest):
        def evaluate(self, state: Any) -> Any:
            return len(state or "") / 2

    db.aggregate("half", Half, arguments=["STRING"], returns="BIGINT")
    whole = db.query("SELECT half(k) AS h FROM r [RANGE 10] WHERE k = 'ef'")
    db.query("SELECT half(k) FROM r [RANGE 10]", name="broken")
    assert [failed[:2] for failed in db.run().failed] == [
        ("broken", "half gave a value that is not a BIGINT: 0.5")
    ]
    assert whole.snapshot(at=3).to_pylist() == [{"h": 1}]


def test_plans_with_functions_come_back_from_text(db: headrace.Database) -> None:
    db.function("Inverse", inverse, arguments=["BIGINT"], returns="BIGINT")
    db.aggregate("longest", Latest, arguments=["STRING"], returns="STRING")
    text = """SELECT n, Inverse(n) AS i FROM (SELECT longest(k) FILTER (WHERE v > 0) AS t, COUNT(*) AS n
        FROM r [RANGE 5] GROUP BY INVERSE(v)) JOIN r USING (n)""".replace(" JOIN r USING (n)", "")
    plan = db.query(text).plan
    assert db.query(to_sql(plan)).plan == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT invers(v) FROM r", "1:8: there is no function invers (hint: did you mean inverse?)"),
        ("SELECT longes(k) FROM r", "1:8: there is no function longes (hint: did you mean longest?)"),
        ("SELECT inverse(k) FROM r", "1:8: inverse takes BIGINT, not STRING (hint: CAST the argument"),
        ("SELECT inverse() FROM r", "1:8: inverse takes 1 argument, not 0 (hint: write inverse(BIGINT))"),
        ("SELECT longest(*) FROM r", "1:8: longest takes arguments (hint: write longest(STRING))"),
        ("SELECT longest(DISTINCT k) FROM r", "1:8: longest does not take DISTINCT"),
        ("SELECT longest(k ORDER BY v) FROM r", "1:8: longest does not take ORDER BY"),
        ("SELECT v FROM r WHERE longest(k) = 'a'", "1:23: longest cannot be used in WHERE"),
        ("SELECT inverse(v) FILTER (WHERE v > 1) FROM r", "1:8: FILTER is allowed only after an aggregate"),
    ],
)
def test_wrong_calls(db: headrace.Database, text: str, message: str) -> None:
    db.function("inverse", inverse, arguments=["BIGINT"], returns="BIGINT")
    db.aggregate("longest", Latest, arguments=["STRING"], returns="STRING")
    with pytest.raises(headrace.UserError) as caught:
        db.query(text)
    assert str(caught.value).lower().startswith(message.lower())


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda db: db.function("upper", len, arguments=["STRING"], returns="BIGINT"), "UPPER is built in"),
        (lambda db: db.aggregate("Median", Latest, arguments=["STRING"], returns="BIGINT"), "is built in"),
        (lambda db: db.function("a b", len, arguments=["STRING"], returns="BIGINT"), "cannot be called"),
        (lambda db: db.function("select", len, arguments=["STRING"], returns="BIGINT"), "cannot be called"),
        (
            lambda db: db.function("f", 5, arguments=["STRING"], returns="BIGINT"),
            "body of f cannot be called",
        ),
        (lambda db: db.function("f", len, arguments=[], returns="BIGINT"), "needs a list of argument types"),
        (lambda db: db.function("f", len, arguments="BIGINT", returns="BIGINT"), "needs a list"),
        (lambda db: db.function("f", len, arguments=["INTERVAL"], returns="BIGINT"), "no type INTERVAL"),
        (
            lambda db: db.function("f", len, arguments=["BIGINT"], returns=pa.duration("s")),
            "the type duration",
        ),
        (
            lambda db: db.aggregate("f", object, arguments=["BIGINT"], returns="BIGINT"),
            "no method initialize",
        ),
    ],
)
def test_wrong_definitions(
    db: headrace.Database, define: Callable[[headrace.Database], None], message: str
) -> None:
    with pytest.raises(headrace.UserError, match=message):
        define(db)


def test_a_name_is_defined_once(db: headrace.Database) -> None:
    db.function("f", inverse, arguments=["BIGINT"], returns="BIGINT")
    db.function("f", inverse, arguments=["BIGINT"], returns="BIGINT")
    with pytest.raises(headrace.UserError, match="there is a function F already"):
        db.function("F", pc.abs, arguments=["BIGINT"], returns="BIGINT")


FACTOR = 2


def scaled(values: pa.Array) -> pa.Array:
    return pc.multiply(values, FACTOR)


def test_versions_tell_code_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(number: int) -> Callable[[int], int]:
        return lambda value: value + number

    assert version_of(made(1)) == version_of(made(1)) != version_of(made(2))
    assert version_of(lambda value: value + 1) != version_of(lambda value: value - 1)
    before = version_of(scaled)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert version_of(scaled) != before, "what the code refers to counts as well"

    class Other(Latest):
        def evaluate(self, state: str | None) -> str | None:
            return None

    assert version_of(Latest) != version_of(Other)


def test_the_version_is_part_of_the_plan(db: headrace.Database) -> None:
    db.function("one", inverse, arguments=["BIGINT"], returns="BIGINT", version="7")
    assert "version='7'" in repr(db.query("SELECT one(v) FROM r").plan)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SUM(scaled(x)) AS n FROM s [RANGE 5]", [4_498_500, 44_985_000]),
        ("COUNT(DISTINCT scaled(x) % 10) AS n FROM s [RANGE 5]", [10, 1]),
        ("COUNT(*) AS n FROM s [RANGE 5] GROUP BY scaled(x) > 9999", [3000, 2000]),
        ("COUNT(*) AS n FROM s [RANGE 5] WHERE scaled(x) > 500", [2499, 2949]),
        ("COUNT(*) AS n FROM s [RANGE 5] WHERE x < 900 AND scaled(x) > 500", [399, 849]),
        ("MAX(x) AS n FROM s [RANGE 5] WHERE scaled(x) < 500", [499, 49]),
    ],
)
def test_a_function_of_one_database_is_not_called_in_another(select: str, expected: list[int]) -> None:
    """Of the same name and version, whatever either closes over."""
    found = []
    for factor in (1, 10):
        with headrace.connect(runner="inline") as db:
            db.function(
                "scaled",
                lambda x, factor=factor: pc.multiply(x, factor),
                arguments=["BIGINT"],
                returns="BIGINT",
                version="1",
            )
            db.stream("s", pa.table({"x": range(3000), "ts": [1] * 3000}), timestamp="ts")
            query = db.query(f"SELECT {select}")
            db.run()
            found.append(max(query.snapshot(1).column("n").to_pylist()))
    # Of the third one the larger of two groups: all 3,000 rows in the first database.
    assert found == expected
