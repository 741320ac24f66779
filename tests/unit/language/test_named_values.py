"""Values in the place of parameters: constants of their type, whatever they hold."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError
from headrace.language.named_values import ParameterValue, value_of, with_values
from headrace.language.sent_values import received_values, sent_values

_AT = dt.datetime(2024, 5, 1, 9, 0, 0, 1, tzinfo=dt.UTC)
VALUES: list[ParameterValue] = [
    True,
    5,
    -5,
    1.5,
    -0.25,
    float("inf"),
    Decimal("-1.50"),
    "it's",
    "a\\' OR 1 = 1 -- \n\t:x ? `b` \0 ü",
    "",
    dt.date(2024, 2, 29),
    _AT,
]


def _rows() -> pa.Table:
    return pa.table({"ts": pa.array([_AT], pa.timestamp("us", "UTC")), "item": ["pen"], "price": [7]})


@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back_as_it_was_given(value: ParameterValue) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("bid", _rows(), timestamp="ts")
        query = db.query("SELECT :v AS v FROM bid", parameters={"v": value})
        db.run()
        (found,) = query.history()["v"].to_pylist()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("value", [*VALUES, None, dt.timedelta(days=-1, microseconds=1), 2**63 - 1])
def test_a_value_is_sent_as_json(value: ParameterValue) -> None:
    received = received_values(json.loads(json.dumps(sent_values({"v": value}))))
    assert received == {"v": value}
    assert type(received["v"]) is type(value)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([1], "the parameters are not a JSON object"),
        ({"v": [1]}, "the value of :v is none that a parameter has"),
        ({"v": {"decimal": "1", "date": "2024-05-01"}}, "the value of :v is none that a parameter has"),
        ({"v": {"decimal": 1.5}}, "the value of :v is not a decimal"),
        ({"v": {"timestamp": "soon"}}, "the value of :v is not a timestamp"),
        ({"v": {"microseconds": 10**40}}, "the value of :v is not a microseconds"),
    ],
)
def test_other_json_is_refused(sent: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        received_values(sent)


def test_a_value_may_be_next_to_a_sign_or_a_word() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("bid", _rows(), timestamp="ts")
        query = db.query("SELECT price -:v AS x FROM bid ORDER BY x LIMIT:n", parameters={"v": -1, "n": 1})
        db.run()
        assert query.history()["x"].to_pylist() == [8]


def test_lengths_of_windows_and_null() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("bid", _rows(), timestamp="ts")
        values: dict[str, ParameterValue] = {"length": dt.timedelta(minutes=5), "nothing": None}
        query = db.query(
            "SELECT COUNT(*) AS n, :nothing IS NULL AS e FROM bid [RANGE :length]", parameters=values
        )
        db.run()
        (row,) = query.history().to_pylist()
    assert (row["n"], row["e"]) == (1, True)
    assert row["valid_to"] - row["valid_from"] == dt.timedelta(minutes=5)


def test_what_looks_like_a_parameter_is_left_alone() -> None:
    text = "SELECT ':a' AS `:a` /* :a */, x::BIGINT -- :a\n FROM s WHERE x = :a"
    assert with_values(text, {"a": 1}).text == text[:-2] + " 1 "
    assert with_values(text, None).text == text


def test_errors_have_the_places_of_the_text_with_the_parameters() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("bid", _rows(), timestamp="ts")
        for text in ("SELECT :v AS v,\n :v, nope FROM bid", "SELECT :v AS v,\n nope, :v FROM bid"):
            with pytest.raises(LanguageError) as raised:
                db.query(text, parameters={"v": "a rather long text"})
            position = raised.value.position
            assert position is not None
            assert text.split("\n")[position.line - 1][position.column - 1 :].startswith("nope")


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("SELECT :a", {}, "the parameter :a has no value"),
        ("SELECT :lmit", {"limit": 1}, "did you mean limit"),
        ("SELECT 1", {"a": 1}, "there is no parameter :a in the text"),
        ("SELECT :a", {"a": [1]}, "the value of :a is of type list"),
        ("SELECT :a", {"a": dt.datetime(2024, 5, 1)}, "has no time zone"),
        ("SELECT :a", {"a": 2**63}, "beyond BIGINT"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    text: str, values: dict[str, ParameterValue], message: str
) -> None:
    with pytest.raises(LanguageError, match=message):
        with_values(text, values)


def test_values_of_a_command_line() -> None:
    given = ["n=5", "d=-1.50", "t=TRUE", "z=null", "s=pen", "zip=01234", "q='5'", "e=", "x=a=b"]
    assert [value_of(one) for one in given] == [
        ("n", 5),
        ("d", Decimal("-1.50")),
        ("t", True),
        ("z", None),
        ("s", "pen"),
        ("zip", "01234"),
        ("q", "5"),
        ("e", ""),
        ("x", "a=b"),
    ]
    for wrong in ("n", "=5", "a b=1"):
        with pytest.raises(UserError, match="is not a parameter"):
            value_of(wrong)
