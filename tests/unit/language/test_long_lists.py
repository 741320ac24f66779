"""Lists of so many literals that they are read, held and looked up together mean what short ones mean."""

from __future__ import annotations

import re
import sys
from datetime import date, timedelta
from types import FrameType

import pyarrow as pa
import pytest

from auctions import CATALOG, define, error_of, query_of
from headrace.algebra.nodes import Filter, Plan, Project
from headrace.algebra.properties import walk
from headrace.engine.planning.compiler import Compiler
from headrace.errors import LanguageError
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.tree import LONG, Call, Column, Expression, Literal, Literals
from headrace.expressions.tree import walk as parts
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog
from headrace.language.named_values import with_values
from headrace.language.notes import notes_of
from headrace.language.parsing.parser import parse
from headrace.language.parsing.pieces import Piece
from headrace.language.printer import to_sql
from headrace.language.quoted_names import with_backticks
from headrace.lowering.identity import identity
from headrace.optimizer import optimize
from headrace.reference.scalars import value
from headrace.schema import BIGINT, BOOLEAN

STREAM = """
CREATE STREAM s (i BIGINT, d DOUBLE, m DECIMAL(10, 2), t STRING, b BOOLEAN, day DATE, at TIMESTAMP)
    FROM csv OPTIONS (path 's') TIMESTAMP BY at"""
STREAMS, _ = define(STREAM, CATALOG)
TIMES = LONG + 1
"""A list repeated so often is long."""
MOST_CALLS = 30
"""So many functions are called for each literal."""

LISTS = {
    "BIGINTs": ("i", "1, 2, -3, 007"),
    "the ends of BIGINT": ("i", "-9223372036854775808, 9223372036854775807"),
    "NULL among BIGINTs": ("i", "1, NULL, 3"),
    "NULLs": ("i", "NULL, null"),
    "DECIMALs for a BIGINT": ("i", "1, 2.5, 3.00, -0.1"),
    "DOUBLEs for a BIGINT": ("i", "1, 2.5, 3E0, 1e-1, 2E+5"),
    "texts for a BIGINT": ("i", "'1', '-3', 2"),
    "DECIMALs after a text": ("t", "1, 1.5"),
    "BIGINTs after a text": ("t", "1.5, 1"),
    "BIGINTs for a DOUBLE": ("d", "1, 2, 0"),
    "a NaN": ("d", "1, 'NaN', -0.0"),
    "DECIMALs": ("m", "1.50, 2.25, 3.1, 400.0"),
    "all numbers for a DECIMAL": ("m", "1.50, 2, 3.125, NULL"),
    "long DECIMALs": ("m", "12345678901234567890123456789.5, 0.00000000000000000001"),
    "texts": ("t", "'a', 'it, (x) -- y', '', 'A'"),
    "BOOLEANs": ("b", "TRUE, false, NULL"),
    "a BOOLEAN": ("b", "TRUE"),
    "DATEs": ("day", "DATE '2024-01-01', date'2024-01-02'"),
    "DATEs and TIMESTAMPs": ("day", "DATE '2024-01-01', TIMESTAMP '2024-01-02 00:00:00'"),
    "TIMESTAMPs with offsets": ("at", "TIMESTAMP '2024-01-01 02:00:00+02:00', TIMESTAMP'2024-01-02'"),
    "texts for a DATE": ("day", "'2024-01-01', '2024-01-03'"),
    "a constant": ("5", "1, 5"),
    "a NULL": ("NULL", "1, 5"),
    "an expression": ("COALESCE(i, 2)", "1, 2"),
}


def condition_of(plan: Plan) -> Expression:
    """The condition after WHERE."""
    return next(node.predicate for node in walk(plan) if isinstance(node, Filter))


def planned(text: str, catalog: Catalog = STREAMS) -> Plan:
    return bind(query_of(text), catalog)


def written(listed: str, tested: str = "i") -> str:
    return f"SELECT i FROM s WHERE {tested} IN ({listed})"


def repeated(listed: str, between: str = ", ") -> str:
    return between.join([listed] * TIMES)


def _rows() -> pa.RecordBatch:
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(4)]
    columns = {
        "i": pa.array([1, 2, -3, None, 7, -(2**63), 2**63 - 1, 3], pa.int64()),
        "d": pa.array([1.0, float("nan"), -0.0, 0.0, None, 2.5, float("inf"), 3.0]),
        "m": pa.array(["1.50", "2.00", "3.10", None, "3.13", "400.00", "0.00", "2.25"]).cast(
            pa.decimal128(10, 2)
        ),
        "t": pa.array(["a", "1", "1.5", None, "", "A", "it, (x) -- y", "2"]),
        "b": pa.array([True, False, None] * 2 + [True, True]),
        "day": pa.array([*days, None, *days[:3]], pa.date32()),
        "at": pa.array([*days, None, *days[:3]]).cast(pa.timestamp("us", "UTC")),
    }
    return pa.RecordBatch.from_pydict(columns)


ROWS = _rows()


def answers(condition: Expression) -> list[object]:
    found = evaluate(condition, ROWS)
    assert found.failed is None
    return list(found.values.to_pylist())


@pytest.mark.parametrize("kind", [kind for kind in LISTS if not kind.endswith("after a text")])
def test_long_lists_mean_what_short_ones_mean(kind: str) -> None:
    tested, listed = LISTS[kind]
    short = condition_of(planned(written(listed, tested)))
    long = condition_of(planned(written(repeated(listed), tested)))
    assert isinstance(short, Call)
    assert isinstance(long, Call)
    held = long.arguments[1]
    assert isinstance(held, Literals)
    assert (long.arguments[0], *dict.fromkeys(held.each)) == (
        short.arguments[0],
        *dict.fromkeys(short.arguments[1:]),
    )
    assert answers(long) == answers(short)
    rows = list(zip(*(column.to_pylist() for column in ROWS.columns), strict=True))
    assert [value(long, row) for row in rows] == answers(long)


@pytest.mark.parametrize("kind", LISTS)
def test_they_mean_what_they_do_where_each_literal_is_a_token(kind: str) -> None:
    tested, listed = LISTS[kind]
    text = written(repeated(listed), tested)
    try:
        expected = planned(text.replace(",", ", /* apart */", 1))
    except LanguageError as error:
        with pytest.raises(LanguageError, match=error.message[:20]):
            planned(text)
    else:
        assert planned(text) == expected


@pytest.mark.parametrize("kind", [kind for kind in LISTS if not kind.endswith("after a text")])
def test_text_to_plan_to_text_is_the_identity(kind: str) -> None:
    tested, listed = LISTS[kind]
    plan = planned(written(repeated(listed), tested))
    printed = to_sql(plan)
    assert planned(printed) == plan
    assert to_sql(planned(printed)) == printed
    optimized = optimize(plan)
    assert optimize(planned(to_sql(optimized))) == optimized


def test_from_one_length_on_they_are_held_together() -> None:
    few, many = (
        condition_of(planned(written(", ".join(map(str, range(count)))))) for count in (LONG, LONG + 1)
    )
    assert isinstance(few, Call)
    assert isinstance(many, Call)
    assert few.arguments[1:] == tuple(Literal(number, pa.int64()) for number in range(LONG))
    assert many.arguments[1:] == (Literals(tuple(range(LONG + 1)), pa.int64()),)
    mixed = condition_of(planned(written(repeated("1, i"))))
    assert isinstance(mixed, Call)
    assert len(mixed.arguments) == 2 * TIMES + 1


def test_an_empty_list_has_no_value() -> None:
    """As where the constants of many queries are not there yet."""
    assert True not in answers(Call("IN", (Column(0, "i", BIGINT),), BOOLEAN))


LONG_LIST = repeated("1")

FAULTS = (
    *("99999999999999999999", "-99999999999999999999", "1e999", "1E", "1..5", "0x1F", "1_0", "1 2", "10L"),
    *("DATE '2024-13-01'", "TIMESTAMP 'x'", "DATE", "INTERVAL '1' DAY", "x'41'", "r'a'", "TRUE", "nosuch"),
    *("'abc'", "'it''s'", "'it\\'s'", '"1"', "'open", "NULL NULL", "- 'a'", "", ",", "(", ")", "/* open"),
    *("SELECT", "(SELECT i FROM nosuch)", "COUNT(*)", ";", "?", ":name", "# 1", "‘a’"),
)
AFTER = (
    *("", "AND nosuch = 1", "AND (i = 1", "AN i = 1", ") AND i = 1", "GROUP HAVING i", "WHERE i = 1", "[0]"),
    *("= TRUE", ".x", "+ 1", "AND i IN ()", "AND i IN (1, 'x')", "AND 'open", "/* open", "; SELECT nosuch"),
    *("AND POSITION('a' IN (LIST)) = 1", "AND f IN (LIST)", "AND IN (LIST)", "AND s.IN (LIST)", "(LIST)"),
)


def _found(text: str) -> object:
    """What a text is: a plan, or an error, with as many literals in it as a short list has."""
    try:
        return {type(part) for part in parts(condition_of(planned(text)))} - {Literal, Literals}
    except LanguageError as error:
        return re.sub("STRUCT<[^>]*>", "STRUCT", str(error).replace(LONG_LIST, "1, 1"))


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_are_those_of_short_lists(fault: str) -> None:
    long, short = (written(f"{some},\n{fault},\n1") for some in (LONG_LIST, "1, 1"))
    assert _found(long) == _found(short)


@pytest.mark.parametrize("after", AFTER)
def test_errors_elsewhere_are_those_beside_short_lists(after: str) -> None:
    short, long = (
        f"{written(some)}\n{after.replace('LIST', some)}\nAND TRUE" for some in ("1, 1", LONG_LIST)
    )
    assert _found(long) == _found(short)


def test_errors_point_at_the_literal() -> None:
    lines = ",\n".join(["1, 2", "3,   99999999999999999999", "4"])
    text = f"SELECT i\nFROM s\nWHERE i IN ({LONG_LIST}, {lines}, {repeated('5')})"
    message, line, column, _ = error_of(text, STREAMS)
    assert (message, line, column) == ("the number 99999999999999999999 is beyond BIGINT", 4, 6)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT 'i IN ({LONG_LIST})' AS x FROM s",
        f"SELECT i FROM s -- i IN ({LONG_LIST})\nWHERE i IN ({LONG_LIST})",
        f"SELECT i /* i IN ({LONG_LIST}) */ FROM s WHERE i = 1",
        f"SELECT i AS `i IN ({LONG_LIST})` FROM s WHERE i IN ({LONG_LIST})",
        f"SELECT 'i IN ({LONG_LIST}, ' AS x, ' , 2)' AS y FROM s",
    ],
)
def test_what_looks_like_one_is_let_alone(text: str) -> None:
    assert to_sql(planned(text)) == to_sql(planned(text.replace(LONG_LIST, "1"))).replace(
        "IN (1", f"IN ({LONG_LIST}"
    )


def test_values_and_quoted_names_are_put_in_beside_lists() -> None:
    text = f"SELECT i FROM s WHERE i IN ({LONG_LIST}) AND i > :least"
    assert with_values(text, {"least": 5}).text == text.replace(":least", " 5 ")
    apart = f"SELECT 'i IN ({LONG_LIST}, ', :least, ' , 2)' AS x FROM s"
    assert with_values(apart, {"least": 5}).text == apart.replace(":least", " 5 ")
    assert with_backticks(text.replace("> :least", '= "i"'), True) == text.replace("> :least", "= `i`")


def test_they_are_written_alike_whatever_blanks_they_have() -> None:
    one, other = repeated("1, 2"), repeated("1, 2", " ,\n\t")
    text = f"SELECT i IN ({one}) AS x, COUNT(*) AS n FROM s [NOW] GROUP BY ROLLUP (i IN ({other}))"
    assert planned(text) == planned(text.replace(other, one))


def test_several_lists_in_one_text() -> None:
    lists = [repeated("1"), repeated("'a'"), repeated("DATE '2024-01-01'")]
    text = f"SELECT i NOT IN ({lists[0]}) AS x FROM s WHERE t IN ({lists[1]}) AND day in\n( {lists[2]} )"
    found = [part for part in parts(condition_of(planned(text))) if isinstance(part, Literals)]
    assert [part.values[0] for part in found] == ["a", date(2024, 1, 1)]
    statements = parse(f"{text}; {text}")
    assert len(statements) == 2


def test_a_note_names_the_first_number_that_a_text_is_compared_with() -> None:
    text = written(repeated("'a', -1, 2"), "t")
    notes = notes_of(query_of(text), STREAMS, planned(written("1")))
    assert [note.hint for note in notes] == ["write '2' to compare texts"]


def test_identities_do_not_depend_on_how_constants_are_held() -> None:
    for kind, (tested, listed) in LISTS.items():
        if kind.endswith("after a text"):
            continue
        plan = planned(written(repeated(listed), tested))
        assert isinstance(plan, Project)
        assert isinstance(plan.input, Filter)
        condition = plan.input.predicate
        assert isinstance(condition, Call)
        held = condition.arguments[1]
        assert isinstance(held, Literals)
        apart = Call("IN", (condition.arguments[0], *held.each), condition.type)
        assert identity(plan.input) == identity(Filter(plan.input.input, apart))


def compiled(text: str, compiler: Compiler | None = None) -> Plan:
    """The plan of a text as the engine makes it."""
    compiler = compiler or Compiler()
    (asked,) = compiler.statements(text)
    assert isinstance(asked, Piece)
    return compiler.compiled(asked, STREAMS).plan


def test_texts_with_other_values_have_other_plans() -> None:
    compiler = Compiler()
    for listed in (repeated("1"), repeated("2"), repeated("'1'"), repeated("1"), repeated("1, 2")):
        for least in ("3", "4"):
            text = f"{written(listed)} AND i > {least}"
            assert compiled(text, compiler) == planned(text)


def test_a_literal_costs_little_on_its_way_to_a_plan() -> None:
    """Calls of functions, those of C among them: some ten for each literal of a long list."""

    def calls(count: int) -> int:
        text, found = written(", ".join(map(str, range(count)))), 0

        def note(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        previous = sys.getprofile()
        sys.setprofile(note)
        try:
            compiled(text)
        finally:
            sys.setprofile(previous)
        return found

    calls(500)
    assert calls(1_500) - calls(500) < MOST_CALLS * 1_000
