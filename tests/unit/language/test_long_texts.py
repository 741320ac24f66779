"""What a long text costs on its way to a graph: the work grows with the text, and not faster.

Work is counted, not timed: calls of functions, those of C among them. From n to 2n and from 2n to 4n it must
grow alike, as n and 2n more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from headrace.algebra.explain import explain
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.lowering.explain import explain_graph
from headrace.lowering.lower import lower
from headrace.optimizer import optimize
from headrace.schema import BIGINT, TIMESTAMP, Field, Schema
from headrace.time import TimeDomain

N = 30
"""The length of the shortest list; shared caches are filled by then."""

COLUMNS = Schema((Field("ts", TIMESTAMP), Field("a", BIGINT), Field("b", BIGINT)))
CATALOG = Catalog().define(StreamInfo("bids", COLUMNS, "ts", TimeDomain.TIMESTAMP))


def _listed(part: str, count: int, between: str = ", ") -> str:
    return between.join(part.replace("#", str(number)) for number in range(count))


TEXTS: dict[str, Callable[[int], str]] = {
    "IN over numbers": lambda n: f"SELECT a FROM bids WHERE b IN ({_listed('#', n)})",
    "IN over texts": lambda n: "SELECT a FROM bids WHERE CAST(b AS STRING) IN (" + _listed("'#'", n) + ")",
    "IN over expressions": lambda n: f"SELECT a FROM bids WHERE b IN ({_listed('a + #', n)})",
    "UNION ALL": lambda n: _listed("SELECT b FROM bids WHERE b = #", n, " UNION ALL "),
    "UNION ALL of groups": lambda n: _listed(
        "SELECT a, COUNT(*) AS c FROM bids [RANGE 1 SECOND] WHERE b > # GROUP BY a", n, " UNION ALL "
    ),
    "CASE": lambda n: f"SELECT CASE {_listed('WHEN b = # THEN a - #', n, ' ')} END AS c FROM bids",
    "a function": lambda n: f"SELECT COALESCE({_listed('a + #', n)}) AS c FROM bids",
    "columns": lambda n: f"SELECT {_listed('a + # AS c#', n)} FROM bids",
    "columns of one name": lambda n: f"SELECT {_listed('a', n)} FROM bids",
    "aggregates": lambda n: f"SELECT {_listed('COUNT(*) FILTER (WHERE b = #) AS c#', n)} FROM bids",
    "keys": lambda n: f"SELECT {_listed('a + # AS c#', n)} FROM bids GROUP BY {_listed('a + #', n)}",
    "keys left out": lambda n: f"SELECT COUNT(*) AS n FROM bids GROUP BY {_listed('a + #', n)}",
    "sort keys": lambda n: f"SELECT a FROM bids ORDER BY {_listed('b + #', n)}",
    "OVER": lambda n: f"SELECT {_listed('SUM(a + #) OVER (ORDER BY ts) AS c#', n)} FROM bids",
    "WITH": lambda n: f"WITH {_listed('w# AS (SELECT a + # AS x FROM bids)', n)} SELECT x FROM w0",
}


def _way(text: str) -> None:
    """From a text to its graph, and to what EXPLAIN shows of it."""
    statement = parse_one(text)
    assert isinstance(statement, Select)
    plan = bind(statement.query, CATALOG)
    optimized = optimize(plan)
    explain(plan)
    explain(optimized)
    explain_graph(lower({"q": optimized}))


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called, those of C among them."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return count


def _is_linear(work: Callable[[int], Callable[[], object]]) -> bool:
    few, more, most = (_calls(work(N * times)) for times in (1, 2, 4))
    return most - more < 2.1 * (more - few)


@pytest.mark.parametrize("kind", TEXTS)
def test_work_grows_with_the_text(kind: str) -> None:
    text = TEXTS[kind]
    _way(text(N))
    assert _is_linear(lambda count: partial(_way, text(count)))


def test_columns_of_wide_streams_are_found_by_name() -> None:
    """What a stream's columns are called is text, too."""

    def binding(width: int) -> Callable[[], object]:
        schema = Schema((Field("ts", TIMESTAMP), *(Field(f"c{number}", BIGINT) for number in range(width))))
        catalog = Catalog().define(StreamInfo("wide", schema, "ts", TimeDomain.TIMESTAMP))
        statement = parse_one(f"SELECT {_listed('c# + 1 AS d#', width)} FROM wide")
        assert isinstance(statement, Select)
        return partial(bind, statement.query, catalog)

    assert _is_linear(binding)
