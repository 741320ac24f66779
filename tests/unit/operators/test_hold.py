"""Operators that take nothing beyond a limit."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace.algebra.nodes import Join, Source, column
from headrace.elements import Batch, decode_rows, encode_rows, from_rows, to_rows
from headrace.operators.contract import OperatorProgress
from headrace.operators.hold import HoldingOperator
from headrace.operators.join import JoinOperator
from headrace.operators.state.held import Held
from headrace.operators.state.runs import RunPart, RunRef, SortedRun, stored_run
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import TimeDomain

SCHEMA = Schema((Field("x", STRING),))
LEFT, RIGHT = (Source(name, SCHEMA, "ts", TimeDomain.INTEGER) for name in ("l", "r"))
JOIN = Join(LEFT, RIGHT, ((column(LEFT, 0), column(RIGHT, 0)),), None, ("x", "y"))


def elements(*rows: tuple[str, int, int, int]) -> Batch:
    return from_rows(SCHEMA, [((x,), ts, te, w) for x, ts, te, w in rows])


def stored(runs: Sequence[SortedRun]) -> list[SortedRun]:
    """The runs as another worker loads them."""
    found = []
    for run in runs:
        data = encode_rows(run.batch)
        ref = run.ref or RunRef(RunPart("s", 0, data.size, 0), run.rows, run.first, run.last, run.reach)
        found.append(stored_run(ref, lambda _, data=data: decode_rows(data)))  # type: ignore[misc]
    return found


def test_what_is_beyond_the_limit_waits_for_it() -> None:
    """The example of the docstring: both heartbeats are at 20 all the time."""

    def operator(limit: int) -> HoldingOperator:
        return HoldingOperator(JoinOperator(JOIN, lambda *_: None), 2, limit)

    first = operator(5)
    first.process(0, elements(("a", 3, 14, 1), ("b", 7, 14, 1)))
    first.process(1, elements(("a", 2, 9, 1), ("b", 4, 9, 1)))
    assert to_rows(first.advance(OperatorProgress((0, 0), (5, 5)))) == [(("a", "a"), 3, 9, 1)]
    assert len(first.areas["waiting 0"]) == 1
    assert len(first.areas["waiting 1"]) == 0
    second = operator(10)
    for name, area in first.areas.items():
        second.areas[name].runs = stored(area.runs)
    assert to_rows(second.advance(OperatorProgress((5, 5), (10, 10)))) == [(("b", "b"), 7, 9, 1)]
    assert len(second.areas["waiting 0"]) == 0


def test_a_run_is_written_again_when_most_of_it_is_gone() -> None:
    held = Held()
    held.keep([elements(*((str(at), at, at + 1, 1) for at in (4, 1, 3, 0, 2)))])
    held.runs = stored(held.runs)
    ref = held.runs[0].ref
    assert [row[1] for batch in held.release(2) for row in to_rows(batch)] == [0, 1]
    (left,) = held.runs
    assert ref is not None
    assert left.ref is not None
    assert (left.ref.part, left.rows, left.first, left.last) == (ref.part, 3, 2, 4)
    held.runs = stored(held.runs)
    assert [row[1] for batch in held.release(3) for row in to_rows(batch)] == [2]
    assert [(run.ref, run.rows) for run in held.runs] == [(None, 2)]
    assert held.release(3) == []
    assert [row[1] for batch in held.release(9) for row in to_rows(batch)] == [3, 4]
    assert held.runs == []


def test_small_runs_are_put_together() -> None:
    """Also of rows without columns, and of sums with different limbs."""
    bare, limbs = Held(), Held()
    for at in range(4):
        bare.keep([from_rows(Schema(()), [((), at, at + 1, 1)])])
        names = Schema((Field("n", BIGINT), *([Field("__x0", BIGINT)] if at % 2 else [])))
        limbs.keep([from_rows(names, [((at,) * len(names), 9 - at, 10, 1)])])
    assert [run.rows for run in bare.runs] == [run.rows for run in limbs.runs] == [4]
    assert [row[1] for batch in bare.release(9) for row in to_rows(batch)] == [0, 1, 2, 3]
    (released,) = limbs.release(9)
    assert released.payload == pa.RecordBatch.from_pydict({"n": [3, 2, 1], "__x0": [3, 0, 1]})
