"""When a plan is exchanged by itself: if others are much better again and again, and ever less often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Join, Plan, Source, TimeWindow, column
from headrace.heartbeats.timing import Timing
from headrace.history import equivalent
from headrace.lowering.identity import identity
from headrace.runtime.driver.change.migration.adaptation import GAIN, LOOKS, Patience
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedStream
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.journal import Journal
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import FolderStore, MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import BIGINT, Field, Schema
from headrace.time import MICROSECONDS, Duration, ManualClock, TimeDomain
from support import TableSource

Look = tuple[str, float]
"""Which order was found to be the best, and how many times fewer rows it takes."""


def exchanges(looks: Iterable[Look], patience: Patience | None = None) -> list[int]:
    """At which of some looks a plan is exchanged."""
    found, known = [], patience or Patience()
    for number, (order, gain) in enumerate(looks, 1):
        known = known.after((order,) if order else (), gain)
        if known.is_over:
            found.append(number)
            known = known.after_exchange()
    return found


def test_one_that_is_much_better_several_times_in_a_row() -> None:
    assert exchanges([("ab", 5.0)] * LOOKS) == [LOOKS]


def test_looks_that_find_nothing_begin_anew() -> None:
    once = [("ab", 5.0)] * (LOOKS - 1)
    assert exchanges([*once, ("", 1.0), *once]) == []
    assert exchanges([*once, ("ab", GAIN - 0.1), *once]) == []
    assert exchanges([*once, ("ba", 5.0), *once, ("ba", 5.0)]) == []


def test_around_the_break_even_nothing_is_exchanged() -> None:
    assert exchanges([("ab", 1.9), ("", 1.0)] * 50) == []


def test_each_exchange_doubles_the_patience() -> None:
    # By turns each is much better for ten looks: the third exchange would take twelve in a row.
    flips = [("ab", 5.0)] * 10 + [("ba", 5.0)] * 10
    assert exchanges([*flips[:10], *flips[10:]] * 20) == [3, 9]


@given(st.lists(st.tuples(st.sampled_from(["", "ab", "ba", "ca"]), st.floats(1, 10)), max_size=200))
def test_no_rows_make_a_plan_oscillate(looks: list[Look]) -> None:
    """The n-th exchange comes after LOOKS * (2 ** n - 1) looks at the earliest."""
    for number, look in enumerate(exchanges(looks), 1):
        assert look >= LOOKS * (2**number - 1)


EVERY = 60
LENGTH = 40
"""Of a part, whose rows an epoch takes (instants)."""

Part = tuple[int, int]
"""Every which row of b meets rows of a, and of c."""

AB, BC = (9, 1), (1, 9)
"""Few pairs of a and b; few of b and c."""

EVEN = ((2, 5), (5, 2))


def table(name: str, parts: Sequence[Part]) -> pa.Table:
    """A stream whose keys are 0 where they meet some, and otherwise differ from all others."""
    found = []
    for place, (ks, ms) in enumerate(parts):
        for at in range(place * LENGTH, (place + 1) * LENGTH):
            k, m = (0 if at % every == 0 else ord(name) * 10_000 + at for every in (ks, ms))
            found.append((k, m, at))
    return pa.table(dict(zip(("k", "m", "ts"), map(list, zip(*found, strict=True)), strict=True)))


def planned() -> Plan:
    """a joined with b by k, and that with c by m."""
    schema = Schema((Field("k", BIGINT), Field("m", BIGINT)))
    a, b, c = (TimeWindow(Source(name, schema, "ts", TimeDomain.INTEGER), Duration(50)) for name in "abc")
    ab = Join(a, b, ((column(a, 0), column(b, 0)),), None, ("ak", "am", "bk", "bm"))
    return Join(ab, c, ((column(ab, 3), column(c, 1)),), None, ("ak", "am", "bk", "bm", "ck", "cm"))


Exchanged = list[tuple[int, str]]
"""Which part was read last when each exchange of q began, and the new order."""


def ran(
    parts: Sequence[Part], every: float | None = EVERY, names: str = "q", seconds: int = EVERY
) -> tuple[Exchanged, ResultReader]:
    """The exchanges of a query q, and its answer."""
    clock, store = ManualClock(10**6), MemoryStore()
    streams = {name: BoundedStream(TableSource(table(name, parts)), "ts", Timing(0)) for name in "abc"}
    settings = RunSettings(3 * LENGTH, buckets=1, clock=clock, reoptimize_every=every)
    run = Run(InlineRunner(), store, streams, dict.fromkeys(names, planned()), settings)
    found: Exchanged = []
    part = 0
    while share := run.next_share():
        part += 1
        run.step(share)
        run.end_exchanges()
        if run.follow():
            (order,) = run.reading.queries.exchanged["q"].after
            found.append((part, order))
        clock.advance(seconds * MICROSECONDS["SECOND"])
    assert part == len(parts)
    return found, ResultReader("q", form_of(planned()), store, run.results)


def test_rows_that_change_their_ways_lead_to_one_exchange() -> None:
    found, answer = ran([AB] * 6 + [BC] * 12)
    assert [order for _, order in found] == ["(a JOIN (b JOIN c))"]
    assert found[0][0] in range(9, 12), "three looks after the windows have seen the new rows"
    _, expected = ran([AB] * 6 + [BC] * 12, every=None)
    assert equivalent(answer.elements(), expected.elements())


@pytest.mark.parametrize("parts", [[EVEN[0], EVEN[1]] * 12, [AB, BC] * 12])
def test_rows_that_go_to_and_fro_lead_to_none(parts: list[Part]) -> None:
    assert ran(parts)[0] == []


def test_rows_that_change_their_ways_again_and_again_lead_to_ever_fewer() -> None:
    found, _ = ran(([AB] * 8 + [BC] * 8) * 3)
    assert len(found) == 2


def test_looks_are_as_far_apart_as_was_asked() -> None:
    found = [ran([BC] * 12, seconds=seconds)[0] for seconds in (EVERY, EVERY // 2)]
    assert [exchanged[0][0] for exchanged in found] == [4, 7]


def test_queries_that_share_their_joins_keep_them() -> None:
    assert ran([BC] * 12, names="qr")[0] == []


def test_a_new_process_remembers_how_often_a_plan_was_exchanged(tmp_path: Path) -> None:
    # Three looks exchange the plan first. Then it takes six in a row, and only five would.
    parts = [AB] * 6 + [BC] * 6 + [AB] * 6
    streams = {name: BoundedStream(TableSource(table(name, parts)), "ts", Timing(0)) for name in "abc"}
    clock = ManualClock(10**6)
    settings = RunSettings(3 * LENGTH, buckets=1, clock=clock, reoptimize_every=EVERY)
    description = Description({"q": DescribedQuery(identity(planned()))}, dict.fromkeys("abc", "a table"), 1)

    def go_on(count: int) -> int:
        """How many exchanges begin while so many parts are read by a process of their own."""
        exchanges = 0
        with (
            closing(FolderStore(str(tmp_path), durable=True)) as store,
            closing(Journal(store, description)) as journal,
        ):
            run = Run(InlineRunner(), store, streams, {"q": planned()}, settings)
            run.resume(journal, description)
            for _ in range(count):
                run.step(run.next_share())
                run.end_exchanges()
                exchanges += run.follow()
                clock.advance(EVERY * MICROSECONDS["SECOND"])
        return exchanges

    assert [go_on(12), go_on(6)] == [1, 0]
