"""The values by which it is measured what a Bloom filter misses: exact, and a function of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.kinds import BloomKind
from headrace.algebra.nodes import BloomFilter, Source
from headrace.kernels.rows.sampling import folded
from headrace.kernels.rows.watched import FACTS, NONE_KNOWN, PLACES, watch
from headrace.operators.windows.watched_values import WatchedRows, WatchedValues
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY, Duration, ManualClock, TimeDomain
from how_many import examples
from inside import run_of

SOURCE = Source("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts", TimeDomain.INTEGER)
BLOCKS = 3


class One(NamedTuple):
    """A row: its block, its instant, its value, and whether it enters, and else is looked up."""

    block: int
    instant: int
    value: int
    enters: bool


@st.composite
def histories(draw: st.DrawFn) -> list[One]:
    """Rows of few and of many values, each once at an instant on each side."""
    most = draw(st.sampled_from((3, 20, 60, 400)))
    found = set[One]()
    instant = draw(st.sampled_from((0, -50)))
    at_random = draw(st.randoms(use_true_random=False))
    for _ in range(draw(st.integers(1, 120))):
        instant += at_random.choice((0, 0, 1, 1, 2, 9))
        for _ in range(at_random.choice((1, 3, 12))):
            value = at_random.randrange(most)
            found.add(One(value % BLOCKS, instant, value, at_random.random() < 0.6))
    return sorted(found)


def node_of(kind: BloomKind, size: int) -> BloomFilter:
    return BloomFilter(SOURCE, Duration(size), kind, BLOCKS, "WITHIN MEMORY '10 kB'")


def rows_of(rows: Sequence[One], kind: BloomKind) -> WatchedRows:
    blocks, instants, values = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3).T
    enters = np.array([row.enters for row in rows], dtype=np.bool_)
    every = np.ones(len(rows), dtype=np.bool_)
    sides = (~enters, enters) if kind is BloomKind.EXCEPT else (every, every)
    # Half of what there is to say is said.
    said = np.where(values % 2 == 0, 1, 0).astype(np.int64)
    hashes = values * np.int64(7919) + 1
    blocks, instants = map(np.ascontiguousarray, (blocks, instants))
    return WatchedRows(blocks, instants, *sides, hashes, said)


def sampled(
    history: Sequence[One], kind: BloomKind, size: int, cuts: Sequence[int], since: int = BEGINNING
) -> tuple[np.ndarray, list[bytes]]:
    """The rate that is measured, and the state that is left, of rows in parts that end before instants."""
    node = node_of(kind, size)
    packed: list[bytes] = []
    total = np.zeros(2)
    for first, last in zip((BEGINNING, *cuts), (*cuts, INFINITY), strict=True):
        part = [row for row in history if first <= row.instant < last]
        if kind is not BloomKind.EXCEPT:
            part = sorted({row._replace(enters=True) for row in part})
        known = WatchedValues.of(node, packed or [None] * BLOCKS, np.full(BLOCKS, since))
        if part:
            total += known.missed(rows_of(part, kind))
        packed = known.packed()
    return total, packed


def exact(history: Sequence[One], kind: BloomKind, size: int) -> tuple[float, float]:
    """The number of values to be said, and of those that are missed, by all rows."""
    due = lost = 0.0
    for row in {row if kind is BloomKind.EXCEPT else row._replace(enters=True) for row in history}:
        if kind is BloomKind.EXCEPT and row.enters:
            continue
        before = [
            one.instant + size
            for one in history
            if one.value == row.value
            and (one.enters or kind is not BloomKind.EXCEPT)
            and (one.instant < row.instant or (kind is BloomKind.EXCEPT and one.instant == row.instant))
        ]
        own = max(before, default=BEGINNING)
        said = row.value % 2 == 0
        if kind is BloomKind.DISTINCT:
            new = (row.instant + size - max(own, row.instant)) / size
            due, lost = due + new, lost + new - said / size
        elif own <= row.instant:
            due, lost = due + 1, lost + (not said)
    return due, lost


@examples(60, 600)
@given(histories(), st.sampled_from(BloomKind), st.sampled_from((1, 6, 30)))
def test_where_all_values_have_a_place_all_is_measured(
    history: list[One], kind: BloomKind, size: int
) -> None:
    few = [row._replace(value=row.value % (BLOCKS * PLACES // 2)) for row in history]
    few = sorted({row._replace(block=row.value % BLOCKS) for row in few})
    total, _ = sampled(few, kind, size, ())
    assert total == pytest.approx(exact(few, kind, size))


@examples(60, 600)
@given(histories(), st.sampled_from(BloomKind), st.sampled_from((1, 6, 30)), st.data())
def test_it_does_not_depend_on_cuts_or_on_the_order_of_an_instant(
    history: list[One], kind: BloomKind, size: int, data: st.DataObject
) -> None:
    total, packed = sampled(history, kind, size, ())
    cuts = sorted(data.draw(st.sets(st.integers(-50, 200), max_size=4)))
    again, others = sampled(history, kind, size, cuts)
    assert again == pytest.approx(total)
    assert [sorted(np.frombuffer(one, dtype=np.int64)) for one in packed] == [
        sorted(np.frombuffer(one, dtype=np.int64)) for one in others
    ]
    backwards = sorted(history, key=lambda row: (row.block, row.instant, -row.value))
    node = node_of(BloomKind.EXCEPT, size)
    forth, back = (
        WatchedValues.of(node, [None] * BLOCKS, np.full(BLOCKS, BEGINNING)).missed(
            rows_of(rows, BloomKind.EXCEPT)
        )
        for rows in (sorted(history), backwards)
    )
    assert forth == pytest.approx(back)


@examples(100, 1000)
@given(histories(), st.booleans(), st.sampled_from((1, 6, 30)))
def test_of_what_is_known_the_end_is_that_of_its_rows(history: list[One], after: bool, size: int) -> None:
    rows = rows_of(history, BloomKind.EXCEPT)
    facts = np.tile(np.array([0, 0, 0, BEGINNING]), BLOCKS)
    places = [np.zeros(BLOCKS * PLACES, dtype=np.int64) for _ in range(2)]
    until, hashes = rows.instants + size, folded(rows.hashes, np.zeros(len(history), dtype=np.int64))
    own, weights = watch(
        *(rows.blocks, rows.instants, until, rows.enters.view(np.uint8), hashes, int(after), size),
        *(*places, facts),
    )
    for row, found, weight in zip(history, own.tolist(), weights.tolist(), strict=True):
        before = [
            one.instant + size
            for one in history
            if one.value == row.value
            and one.enters
            and one.instant < row.instant + after
            and one.instant + size > row.instant
        ]
        assert weight == 0 or found == max(before, default=BEGINNING), (row, facts)


@examples(60, 600)
@given(histories(), st.sampled_from(BloomKind), st.sampled_from((6, 30)))
def test_nothing_is_measured_of_values_that_may_be_there_unknown(
    history: list[One], kind: BloomKind, size: int
) -> None:
    first = history[0].instant
    early, _ = sampled([row for row in history if row.instant < first + size], kind, size, (), first + size)
    assert not early.any()
    # What was there unknown has ended by then; so all is known as if it had been from the first.
    few = [row._replace(value=row.value % (BLOCKS * PLACES // 2)) for row in history]
    few = sorted({row._replace(block=row.value % BLOCKS) for row in few})
    whole, _ = sampled(few, kind, size, (), first + size)
    before, _ = sampled([row for row in few if row.instant < first + size], kind, size, ())
    everything, _ = sampled(few, kind, size, ())
    assert whole == pytest.approx(everything - before)


def test_of_many_values_some_are_kept_which_stand_for_the_others() -> None:
    values = np.random.default_rng(3).permutation(20_000)
    history = [One(0, at, int(value), True) for at, value in enumerate(values)]
    total, packed = sampled(history, BloomKind.NEW, 1000, ())
    known = np.frombuffer(packed[0], dtype=np.int64)
    assert known[0] <= PLACES
    assert 5 <= known[2] <= NONE_KNOWN
    assert len(known) == FACTS + 2 * known[0]
    # All are new, and half of them are said. Of a window some of its places are in use.
    assert total[0] == pytest.approx(20_000, rel=0.35)
    assert total[1] / total[0] == pytest.approx(0.5, abs=0.2)


def test_more_values_are_taken_in_again_when_fewer_are_there() -> None:
    many = [One(0, 0, value, True) for value in range(1000)]
    few = [One(0, at, at % 2, True) for at in range(1, 200)]
    _, packed = sampled([*many, *few], BloomKind.NEW, 10, ())
    known = np.frombuffer(packed[0], dtype=np.int64)
    assert known[1] == known[2] == 0
    assert known[0] == 2


STREAMS = """
CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5;
CREATE STREAM r (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5
"""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT k FROM s [RANGE 500]",
        "ISTREAM(SELECT DISTINCT k FROM s [RANGE 500])",
        "SELECT k FROM s [NOW] EXCEPT SELECT k FROM r [RANGE 500]",
    ],
)
def test_a_run_measures_the_same_however_its_rows_are_cut(text: str) -> None:
    at_random = np.random.default_rng(4)
    rows = [
        {"k": int(at_random.integers(900)), "ts": at - int(at_random.integers(0, 5))} for at in range(9, 1500)
    ]
    found = []
    for buckets, size in ((1, 1500), (2, 70), (3, 211)):
        with hr.connect(runner="inline", threads=1, buckets=buckets, clock=ManualClock()) as db:
            db.execute(f"{STREAMS}; CREATE QUERY q WITHIN MEMORY '10 kB' AS {text}")
            db.execute("CREATE QUERY reading AS SELECT k FROM s UNION ALL SELECT k FROM r")
            db.start()
            for begin in range(0, len(rows), size):
                part = rows[begin : begin + size]
                db.push("s", part)
                db.push("r", [row | {"k": row["k"] + 300} for row in part])
            memory = db.status.query("q").memory
            assert memory is not None
            assert memory.used <= memory.limit
            (tally,) = run_of(db).reading.statistics.tallies.values()
            found.append(tally)
    assert found[0][0] > 50
    assert found[1:] == [pytest.approx(found[0]), pytest.approx(found[0])]
