"""Epochs that fail: which are tried again, and which streams are left out of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.errors import ExecutionError, RunnerLostError, StoreError, WorkerLostError
from headrace.runtime.driver.endless.retries import ATTEMPTS, cause_of, run_epoch
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.intake.streams import Intake
from headrace.runtime.journal.records import Totals


class Fake:
    """A run whose epochs fail as the test says, by the streams they take, or by the queries they answer."""

    def __init__(
        self,
        fails: Callable[[frozenset[str], int], Exception | None],
        kills: Callable[[frozenset[str], int], bool] = lambda *_: False,
        live: tuple[str, ...] = (),
    ) -> None:
        self._fails = fails
        self._kills = kills
        self.reading = SimpleNamespace(queries=SimpleNamespace(live=live))
        self.totals = Totals()
        self.tried: list[frozenset[str]] = []
        self.rehearsed: list[frozenset[str]] = []
        self.ended: dict[str, Reason] = {}
        self.swept = 0

    def step(self, intakes: Mapping[str, Intake], ended: Mapping[str, Reason]) -> None:
        names = frozenset(intakes)
        self.tried.append(names)
        error = self._fails(names, len(self.tried))
        if error is not None:
            raise error
        self._answer(frozenset(self.reading.queries.live) - ended.keys())
        self.ended |= ended
        self.totals = Totals(epochs=self.totals.epochs + 1)

    def rehearse(self, intakes: Mapping[str, Intake], queries: Sequence[str]) -> None:
        self.rehearsed.append(frozenset(queries))
        self._answer(frozenset(queries))

    def _answer(self, queries: frozenset[str]) -> None:
        if self._kills(queries, len(self.tried) + len(self.rehearsed)):
            raise LOST

    def sweep_strays(self) -> None:
        self.swept += 1


LOST = WorkerLostError("a worker died", hint="mend it")
INTAKES = {"a": Intake(1, is_batch=True), "b": Intake(1, is_batch=True), "pushed": Intake(1)}
EVERYTHING = frozenset(INTAKES)


def carry_out(
    fake: Fake, stopping: bool = False, intakes: Mapping[str, Intake] = INTAKES, blamed: Collection[str] = ()
) -> dict[str, Any]:
    return dict(run_epoch(cast(Run, fake), intakes, blamed, lambda: stopping))


def test_an_epoch_that_works_is_run_once() -> None:
    fake = Fake(lambda *_: None)
    assert carry_out(fake) == {}
    assert (fake.tried, fake.swept) == ([EVERYTHING], 0)


def test_a_passing_fault_is_tried_again() -> None:
    fake = Fake(lambda _, attempt: RuntimeError("a worker was killed") if attempt < ATTEMPTS else None)
    assert carry_out(fake) == {}
    assert (fake.tried, fake.swept) == ([EVERYTHING] * ATTEMPTS, 1)


def test_whoever_wants_hears_why_it_is_tried_again() -> None:
    fake = Fake(lambda _, attempt: RuntimeError(f"attempt {attempt}") if attempt < 3 else None)
    heard: list[Exception] = []
    run_epoch(cast(Run, fake), INTAKES, notice=heard.append)
    # What is known of a later attempt is what the first one failed with, which may be another fault.
    assert list(map(str, heard)) == ["attempt 1", "attempt 1"]


@pytest.mark.parametrize("culprit", ["a", "b"])
def test_the_stream_without_which_it_works_is_left_out(culprit: str) -> None:
    error = RuntimeError("bad rows")
    fake = Fake(lambda names, _: error if culprit in names else None)
    assert carry_out(fake) == {culprit: error}
    assert fake.tried[-1] == EVERYTHING - {culprit}
    assert fake.totals.epochs == 1
    assert fake.swept == 1


def test_an_error_that_will_come_again_is_not_tried_again() -> None:
    error = ExecutionError("the column v is gone")
    fake = Fake(lambda names, _: error if "a" in names else None)
    assert carry_out(fake) == {"a": error}
    assert fake.tried == [EVERYTHING, EVERYTHING - {"a"}]


def test_a_stream_that_was_blamed_before_is_left_out_first() -> None:
    fake = Fake(lambda names, _: RuntimeError("bad rows") if "b" in names else None)
    assert carry_out(fake, blamed={"b", "gone"}).keys() == {"b"}
    assert fake.tried == [EVERYTHING, EVERYTHING - {"b"}]


def test_several_culprits_are_left_out_together() -> None:
    fake = Fake(lambda names, _: RuntimeError("bad rows") if names & {"a", "b"} else None)
    assert carry_out(fake).keys() == {"a", "b"}
    assert fake.tried[-1] == {"pushed"}


def test_a_stream_that_is_alone_is_left_out_when_an_epoch_without_it_works() -> None:
    fake = Fake(lambda names, _: RuntimeError("bad rows") if names else None)
    assert carry_out(fake, intakes={"a": INTAKES["a"]}).keys() == {"a"}
    assert fake.tried == [{"a"}] * ATTEMPTS + [frozenset()]


@pytest.mark.parametrize("intakes", [INTAKES, {"pushed": INTAKES["pushed"]}])
def test_what_fails_without_any_stream_ends_the_run_with_the_first_error(intakes: Any) -> None:
    fake = Fake(lambda _, attempt: RuntimeError(f"number {attempt}"))
    with pytest.raises(ExecutionError, match="epoch 1 failed: RuntimeError: number 1"):
        carry_out(fake, intakes=intakes)


@pytest.mark.parametrize("first", [1, 2, ATTEMPTS + 1])
def test_a_fault_of_the_store_ends_the_run_at_once(first: int) -> None:
    fake = Fake(lambda _, attempt: StoreError("the disk is full") if attempt == first else RuntimeError("x"))
    with pytest.raises(StoreError, match="the disk is full"):
        carry_out(fake)
    assert len(fake.tried) == first


def test_what_goes_wrong_after_the_commit_is_not_tried_again() -> None:
    fake = Fake(lambda *_: None)

    def step(*_: object) -> None:
        fake.totals = Totals(epochs=1)
        raise RuntimeError("cannot sweep")

    fake.step = step  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="cannot sweep"):
        carry_out(fake)


@pytest.mark.parametrize("culprits", [{"q3"}, {"q0", "q4"}, {"q1", "q2", "q3"}, {f"q{n}" for n in range(5)}])
def test_the_queries_that_kill_workers_are_found_and_end(culprits: set[str]) -> None:
    live = tuple(f"q{number}" for number in range(5))
    fake = Fake(lambda *_: None, lambda queries, _: bool(queries & culprits), live)
    assert carry_out(fake) == {}
    assert fake.ended == dict.fromkeys(culprits, ("a worker died", "mend it"))
    assert fake.tried == [EVERYTHING] * (ATTEMPTS + 1), "with all streams"
    assert fake.swept == 1


def test_a_worker_that_dies_once_more_while_the_query_is_looked_for_ends_none() -> None:
    """Workers die for some time, whatever they run, as when memory is short."""
    until = ATTEMPTS + 3
    fake = Fake(lambda *_: None, lambda queries, count: bool(queries) and count < until, ("q0", "q1"))
    with pytest.raises(WorkerLostError):
        carry_out(fake, intakes={"pushed": INTAKES["pushed"]})
    assert fake.rehearsed == [frozenset(), {"q0", "q1"}, {"q0"}, {"q1"}]
    assert not fake.ended


def test_a_stream_that_kills_workers_is_left_out_and_no_query_ends() -> None:
    fake = Fake(lambda names, _: LOST if "a" in names else None, lambda *_: True, ("q0", "q1"))
    fake.step = _without_queries(fake)  # type: ignore[method-assign]
    assert carry_out(fake) == {"a": LOST}
    assert (fake.rehearsed, fake.ended) == ([frozenset()], {})


def _without_queries(fake: Fake) -> Callable[..., None]:
    """Steps that fail by their streams alone."""

    def step(intakes: Mapping[str, Intake], ended: Mapping[str, Reason]) -> None:
        fake.tried.append(frozenset(intakes))
        if "a" in intakes:
            raise LOST
        fake.totals = Totals(epochs=1)

    return step


def test_no_query_is_blamed_for_other_errors() -> None:
    fake = Fake(lambda *_: RuntimeError("a fault of ours"), live=("q0",))
    with pytest.raises(ExecutionError, match="a fault of ours"):
        carry_out(fake)
    assert not fake.rehearsed


def test_nothing_is_tried_again_where_there_is_nothing_left_to_run_it() -> None:
    fake = Fake(lambda *_: RunnerLostError("the JVM ended"), live=("q0",))
    with pytest.raises(RunnerLostError):
        carry_out(fake)
    assert (fake.tried, fake.rehearsed) == ([EVERYTHING], [])


def test_a_run_that_stops_looks_no_further() -> None:
    fake = Fake(lambda *_: RuntimeError("bad rows"))
    with pytest.raises(ExecutionError, match="bad rows"):
        carry_out(fake, stopping=True)
    assert fake.tried == [EVERYTHING]


def test_errors_are_told_in_one_line() -> None:
    text = "It:\nTraceback (most recent call last):\n  File 'x.py', line 1\nValueError: 7\n\tat org.x"
    assert cause_of(RuntimeError(text)) == "RuntimeError: ValueError: 7"
    assert cause_of(ExecutionError("it fails", hint="mend it")) == "it fails (hint: mend it)"
    assert cause_of(RuntimeError()) == "RuntimeError: "
