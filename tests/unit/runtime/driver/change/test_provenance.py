"""Where the state of a query that begins comes from, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

import headrace as hr
from headrace.algebra.nodes import Plan
from headrace.errors import PlanError, UserError
from headrace.runtime.driver.change.beginning.boundary import Boundary, beginning_of, boundary_of
from headrace.runtime.driver.change.beginning.kept_input import KeptInput
from headrace.runtime.driver.change.beginning.newcomer import Newcomer
from headrace.runtime.driver.change.beginning.provenance import Empty, Finished, provenance_of
from headrace.runtime.driver.change.common_operators import Inheritance
from headrace.runtime.driver.change.content.larger_windows import Shift
from headrace.runtime.driver.change.migration.exchange import Begun
from headrace.runtime.driver.change.wanted import AnswerStart
from headrace.time import BEGINNING, INFINITY
from inside import core_of, run_of

STREAM: Final = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2"
ONE: Final = "SELECT 1 AS a"
SUM: Final = "SELECT k, SUM(v) AS x FROM s [RANGE {}] GROUP BY k"
MOST: Final = "SELECT k, MAX(v) AS x FROM s [RANGE {}] GROUP BY k"
ALL: Final = "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k"


@contextmanager
def running(query: str, retain: str = "", keep_results: bool = True) -> Iterator[hr.Database]:
    """A database with a query `q` over a stream of which rows have come."""
    with hr.connect(runner="inline", keep_results=keep_results) as db:
        db.execute(f"{STREAM} {retain}; CREATE QUERY q AS {query}; CREATE QUERY reads AS SELECT v FROM s")
        db.start()
        for ts in range(20):
            db.push("s", {"k": ts % 2, "v": ts, "ts": ts})
        yield db


def newcomer(db: hr.Database, text: str, query: str = "new", **facts: Any) -> Newcomer:
    """A query that is to begin; in the place of `q` if it is said whether it is alike."""
    known = core_of(db).definitions
    name = known.query_named("q", None).id if query == "q" or facts.get("alike") is not None else query
    streams = known.streams
    return Newcomer(run_of(db).present, name, planned(text), streams, **{"beside": True, **facts})


def planned(text: str) -> Plan:
    """The plan of a query over the stream, optimized."""
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {text}")
        (plan,) = core_of(db).definitions.plans.values()
        return plan


WAYS: Final[tuple[tuple[str, str, str, dict[str, Any], type], ...]] = (
    # The text that runs, how much is kept, the text that begins, what is known of it, and the way.
    (MOST.format(5), "", "SELECT v FROM s", {}, Empty),
    (MOST.format(5), "", MOST.format(5), {}, Empty),
    (MOST.format(5), "RETAIN ALL", MOST.format(5), {}, KeptInput),
    (MOST.format(5), "RETAIN 3", MOST.format(5), {}, KeptInput),
    (MOST.format(5), "RETAIN ALL", MOST.format(5), {"beside": False}, Empty),
    (MOST.format(5), "RETAIN ALL", MOST.format(5), {"start": AnswerStart(now=True)}, Empty),
    (MOST.format(5), "RETAIN ALL", MOST.format(5), {"start": AnswerStart()}, KeptInput),
    (MOST.format(5), "RETAIN ALL", MOST.format(5), {"holds": {}}, Empty),
    (SUM.format(9), "", SUM.format(5), {}, Shift),
    (SUM.format(9), "RETAIN ALL", SUM.format(5), {}, Shift),
    (SUM.format(9), "", SUM.format(5), {"by_itself": False}, Empty),
    (SUM.format(9), "", SUM.format(5), {"alike": True}, Shift),
    (SUM.format(5), "", SUM.format(9), {"alike": True}, Begun),
    (SUM.format(5), "RETAIN ALL", SUM.format(9), {"alike": True}, KeptInput),
    (SUM.format(5), "RETAIN 3", SUM.format(9), {"alike": True}, Begun),
    (SUM.format(5), "RETAIN 3", MOST.format(9), {"alike": False}, KeptInput),
    (SUM.format(5), "", MOST.format(9), {"alike": False}, Empty),
    (ALL, "", f"{ALL} HAVING COUNT(*) > 2", {"alike": True}, Inheritance),
    (ALL, "RETAIN ALL", f"{ALL} HAVING COUNT(*) > 2", {"alike": True}, KeptInput),
)


@pytest.mark.parametrize(("before", "retain", "text", "facts", "way"), WAYS)
def test_the_first_way_that_is_open_is_taken(
    before: str, retain: str, text: str, facts: dict[str, Any], way: type
) -> None:
    with running(before, retain) as db:
        one = newcomer(db, text, **facts)
        found = provenance_of(one)
        assert type(found) is way
        boundary = boundary_of(one, found)
        assert boundary.until <= boundary.at
        assert beginning_of(one).boundary == boundary


def test_a_boundary_names_the_end_of_the_old_answer_and_the_beginning_of_the_new_one() -> None:
    with running(SUM.format(5)) as db:
        one = newcomer(db, MOST.format(9), alike=False)
        assert boundary_of(one, provenance_of(one)) == Boundary(BEGINNING, 17, 19 + 9)
        one = newcomer(db, SUM.format(9), alike=True)
        assert boundary_of(one, provenance_of(one)) == Boundary(28, 28, 28)
        one = newcomer(db, MOST.format(4))
        assert boundary_of(one, provenance_of(one)) == Boundary(BEGINNING, 17, 19 + 4)


def test_a_query_that_is_resumed_takes_what_leaves_the_shortest_gap() -> None:
    for retain, way, since in (("RETAIN ALL", KeptInput, 17), ("RETAIN 12", KeptInput, 30), ("", Empty, 37)):
        with running(MOST.format(5), retain) as db:
            db.execute("ALTER QUERY q PAUSE")
            for ts in range(20, 40):
                db.push("s", {"k": ts % 2, "v": ts, "ts": ts})
            one = newcomer(db, MOST.format(5), query="q")
            found = provenance_of(one)
            assert type(found) is way
            boundary = boundary_of(one, found)
            assert boundary.until == 17
            assert since - 1 <= boundary.at <= since + 1, retain


def test_a_query_without_anything_left_to_say_says_nothing_when_it_is_resumed() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY reads AS SELECT v FROM s")
        db.execute(f"CREATE QUERY q AS {ONE}")
        db.start()
        db.push("s", {"k": 1, "v": 1, "ts": 1})
        db.execute("ALTER QUERY q PAUSE")
        one = newcomer(db, ONE, query="q")
        found = provenance_of(one)
        assert isinstance(found, Finished)
        assert boundary_of(one, found).at == INFINITY


def test_without_results_nothing_that_was_said_can_be_taken_back() -> None:
    with running(ALL, keep_results=False) as db:
        one = newcomer(db, f"{ALL} HAVING COUNT(*) > 2", alike=True, beside=False)
        assert isinstance(provenance_of(one), Empty)


def test_what_was_asked_for_and_is_not_there_is_refused() -> None:
    with running(MOST.format(5)) as db, pytest.raises(UserError, match="cannot answer from the past"):
        provenance_of(newcomer(db, MOST.format(5), start=AnswerStart(3)))


def test_a_final_answer_has_no_heir() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAM}; CREATE QUERY q AS {ONE}")
        db.execute("CREATE QUERY reads AS SELECT v FROM s")
        db.start()
        db.push("s", {"k": 1, "v": 1, "ts": 1})
        with pytest.raises(PlanError, match="all of the answer of q is final"):
            provenance_of(newcomer(db, "SELECT 2 AS a", alike=True))
