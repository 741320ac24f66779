"""Definitions that are cheap: texts like earlier ones, and mappings that grow."""

from __future__ import annotations

import pytest

from headrace import connect
from headrace.engine.planning.compiler import Compiler
from headrace.errors import LanguageError
from headrace.language.binding.binder import derive
from headrace.language.catalog import Catalog, DerivedStream
from headrace.language.dialect import RESERVED, Headrace
from headrace.language.parsing.parser import parse
from headrace.language.parsing.pieces import Piece, pieces_of
from headrace.language.statements.statements import CreateQuery
from headrace.language.syntax import QuerySyntax

STREAM = "CREATE STREAM bid (ts TIMESTAMP, a BIGINT, s STRING) FROM push TIMESTAMP BY ts;"


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The queries that are bound."""
    queries: list[object] = []

    def noted(name: str, query: QuerySyntax, catalog: Catalog) -> DerivedStream:
        queries.append(query)
        return derive(name, query, catalog)

    monkeypatch.setattr("headrace.engine.planning.compiler.derive", noted)
    return queries


def test_alike_queries_are_bound_once(bound: list[object]) -> None:
    with connect(runner="inline") as db:
        db.execute(STREAM)
        for value in range(5):
            db.query(f"SELECT COUNT(*) AS n FROM bid [RANGE 10 SECONDS] WHERE a = {value} AND s = 's{value}'")
        assert len(bound) == 1
        assert "s4" in db.queries[4].explain("logical")
        assert "a = 4" in db.queries[4].explain("logical")


def test_alike_queries_of_a_script_are_bound_once(bound: list[object]) -> None:
    script = "\n".join(f"CREATE QUERY q{n} AS SELECT a FROM bid WHERE a > {n}; -- {n}" for n in range(5))
    with connect(runner="inline") as db:
        db.execute(STREAM + script)
        assert [query.name for query in db.queries] == ["q0", "q1", "q2", "q3", "q4"]
    assert len(bound) == 1


def test_a_constant_that_decides_the_plan_is_part_of_the_shape(bound: list[object]) -> None:
    with connect(runner="inline") as db:
        db.execute(STREAM)
        plans = [db.query(f"SELECT a FROM bid WHERE 1 = {n}").explain("optimized") for n in (1, 2, 1)]
    assert plans[0] == plans[2] != plans[1]
    assert len(bound) == 2


def test_a_stream_that_is_new_is_seen(bound: list[object]) -> None:
    with connect(runner="inline") as db:
        db.execute(STREAM + "SELECT a FROM bid WHERE a > 1; DROP QUERY query_1; DROP STREAM bid")
        db.execute(STREAM.replace("a BIGINT", "a DOUBLE"))
        assert "a > 2.0E0" in db.query("SELECT a FROM bid WHERE a > 2").explain("logical")


@pytest.mark.parametrize(
    "script",
    [
        "SELECT a FROM bid; SELECT a FROM; SELECT 'x FROM bid",
        "SELECT a FROM bid;\n  CREATE QUERY q AS SELECT a FROM bid WHERE a = ;SELECT a FROM",
        "SELECT a FROM bid WHERE a = 1; SELECT a FROM bid WHERE a = 2 3",
        "SELECT a FROM bid -- ;\n; CREATE QUERY select AS SELECT a FROM bid",
        "CREATE QUERY q AS\nSELECT a FROM bid LIMIT 0x",
    ],
)
def test_errors_of_scripts_are_those_of_the_parser(script: str) -> None:
    with pytest.raises(LanguageError) as expected:
        parse(script)
    with pytest.raises(LanguageError) as found:
        Compiler().statements(script)
    assert str(found.value) == str(expected.value)
    assert found.value.position == expected.value.position


def test_the_error_of_a_name_that_is_taken_has_a_place() -> None:
    query = "CREATE QUERY {} AS SELECT a FROM bid WHERE a = {}"
    script = f"{query.format('q', 1)};\n\n  {query.format('Q', 2)}"
    with connect(runner="inline") as db:
        db.execute(STREAM)
        with pytest.raises(LanguageError, match="there is a query Q already") as error:
            db.execute(script)
    assert error.value.position is not None
    assert (error.value.position.line, error.value.position.column) == (3, 3)


def test_every_word_is_a_name_where_the_parser_takes_it_for_one() -> None:
    words = {
        word for keyword in Headrace.Tokenizer.KEYWORDS for word in keyword.split() if word.isidentifier()
    }
    for word in sorted(words - RESERVED):
        text = f"CREATE QUERY {word} AS SELECT a FROM bid"
        (piece,), (statement,) = pieces_of(text) or [], parse(text)
        assert isinstance(piece, Piece)
        assert isinstance(statement, CreateQuery)
        assert piece.name == statement.name.text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT `a` FROM bid",
        'SELECT "a" FROM bid',
        "SELECT 'it''s'",
        "SELECT r'a'",
        "SELECT 'a\\'b'",
        "/* */ SELECT a",
    ],
)
def test_a_text_that_is_hard_to_cut_is_left_to_the_parser(text: str) -> None:
    assert pieces_of(text) is None
