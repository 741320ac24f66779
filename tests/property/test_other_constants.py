"""A text whose like was compiled before means what it would mean had it been the first."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.engine.planning.compiler import Compiled, Compiler
from headrace.errors import LanguageError, Position
from headrace.language.binding.binder import derive
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.notes import notes_of
from headrace.language.parsing.parser import parse
from headrace.language.parsing.pieces import Piece
from headrace.language.references import streams_named
from headrace.language.statements.statements import CreateQuery, Select
from headrace.optimizer import optimize
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, Field, Schema
from headrace.time import TimeDomain
from how_many import examples

FIELDS = (Field("ts", TIMESTAMP), Field("a", BIGINT), Field("x", DOUBLE), Field("s", STRING))
CATALOG = Catalog().define(StreamInfo("bid", Schema(FIELDS), "ts", TimeDomain.TIMESTAMP))

NUMBERS = ("0", "1", "2", "07", "10", "3000000000", "999999999999999999")
TEXTS = ("''", "'a'", "'%'", "'5'", "'MONTH'", "'2024-01-31'", "'x -- ; \"'")

CONDITIONS = (
    "a = #", "# = a", "MOD(a, #) = #", "a + # > x", "a BETWEEN # AND #", "a IN (#, #)", "# = #", "a > -#",
    "x < #", "x * # = 1.5", "a > # AND a > #", "a = # OR a = #", "NOT a = #", "ROUND(x, #) = #",
    "CAST(a AS DECIMAL(#, #)) = #", "CASE WHEN a = # THEN # ELSE a END = #", "COALESCE(a, #) = #",
    "s = $", "$ = s", "s LIKE $", "s LIKE $ ESCAPE $", "s || $ = $", "a = $", "s = #", "ts > TIMESTAMP $",
    "ts > $", "DATE_TRUNC($, ts) = ts", "s IN ($, $)", "(a, #) IN (SELECT a, # FROM bid)",
    "a = (SELECT MAX(a) FROM bid WHERE a < #)", "a = #L", "# IS NULL", "nothing = #", "s = $ $",
)  # fmt: skip
LISTS = (
    "a, x", "#", "a + # AS b", "COUNT(*) AS n", "SUM(a) AS n", "$ AS t, COUNT(*)", "CAST(a AS DECIMAL(#, #))",
    "ROW_NUMBER() OVER (ORDER BY ts ROWS BETWEEN # PRECEDING AND CURRENT ROW)",
)  # fmt: skip
WINDOWS = ("", " [RANGE # SECONDS]", " WINDOW(RANGE # SECONDS SLIDE # SECONDS)", " [ROWS #]")
GROUPS = ("", "GROUP BY #", "GROUP BY a + #", "GROUP BY a HAVING COUNT(*) > #", "HAVING SUM(a) = #")
ENDS = ("", "LIMIT #", "ORDER BY # LIMIT #", ";", "-- #")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts that differ in constants alone."""
    where = " AND ".join(draw(st.lists(st.sampled_from(CONDITIONS), max_size=3)))
    parts = (
        f"SELECT {draw(st.sampled_from(LISTS))} FROM bid{draw(st.sampled_from(WINDOWS))}",
        f"WHERE {where}" if where else "",
        draw(st.sampled_from(GROUPS)),
        draw(st.sampled_from(ENDS)),
    )
    text = "\n".join(filter(None, parts))
    return draw(filled(text)), draw(filled(text))


@st.composite
def filled(draw: st.DrawFn, text: str) -> str:
    """A text with constants for its marks."""
    for mark, constants in (("#", NUMBERS), ("$", TEXTS)):
        while mark in text:
            text = text.replace(mark, draw(st.sampled_from(constants)), 1)
    return text


Outcome = Compiled | tuple[str, Position | None, str | None]


def outcome(compiler: Compiler, text: str) -> Outcome:
    """What a text means to a compiler, or why it means nothing."""
    try:
        (statement,) = compiler.statements(text)
        asked = statement.query if isinstance(statement, Select | CreateQuery) else statement
        assert isinstance(asked, Piece) or not isinstance(statement, Piece)
        return compiler.compiled(asked, CATALOG)  # type: ignore[arg-type]  # there are only queries here
    except LanguageError as error:
        return error.message, error.position, error.hint


def defined(text: str) -> Outcome:
    """The definition: parsed, bound and optimized."""
    try:
        (statement,) = parse(text)
        assert isinstance(statement, Select | CreateQuery)
        meant = derive("", statement.query, CATALOG)
        optimized = optimize(meant.plan)
        notes = notes_of(statement.query, CATALOG, optimized)
        return Compiled(meant.plan, optimized, streams_named(statement.query), notes, meant.is_stream)
    except LanguageError as error:
        return error.message, error.position, error.hint


@examples(17)
@given(pairs())
@example(("SELECT a FROM bid WHERE 1 = 1", "SELECT a FROM bid WHERE 1 = 2"))
@example(("SELECT a FROM bid WHERE a > -5", "SELECT a FROM bid WHERE a > -6"))
@example(("SELECT a FROM bid WHERE x = 5", "SELECT a FROM bid WHERE x = 6"))
@example(("SELECT a + 1 FROM bid WHERE a = 1", "SELECT a + 2 FROM bid WHERE a = 2"))
def test_other_constants_do_not_change_what_a_text_means(texts: tuple[str, str]) -> None:
    compiler = Compiler()
    for text in (*texts, texts[0]):
        assert outcome(compiler, text) == defined(text)
        assert repr(outcome(compiler, text)) == repr(defined(text))
