"""Epochs that fail: which are tried again, and which streams are left out of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import pytest

from headrace.errors import ExecutionError, StoreError
from headrace.runtime.driver.retries import ATTEMPTS, cause_of, run_epoch
from headrace.runtime.driver.run import Run
from headrace.runtime.intake.streams import Intake
from headrace.runtime.journal.records import Totals


class Fake:
    """A run whose epochs fail as the test says."""

    def __init__(self, fails: Callable[[frozenset[str], int], Exception | None]) -> None:
        self._fails = fails
        self.totals = Totals()
        self.tried: list[frozenset[str]] = []
        self.swept = 0

    def step(self, intakes: Mapping[str, Intake]) -> None:
        names = frozenset(intakes)
        self.tried.append(names)
        error = self._fails(names, len(self.tried))
        if error is not None:
            raise error
        self.totals = Totals(epochs=self.totals.epochs + 1)

    def sweep_strays(self) -> None:
        self.swept += 1


INTAKES = {"a": Intake(1, frame="rows"), "b": Intake(1, frame="rows"), "pushed": Intake(1)}
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
    with pytest.raises(RuntimeError, match="number 1"):
        carry_out(fake, intakes=intakes)


@pytest.mark.parametrize("first", [1, 2, ATTEMPTS + 1])
def test_a_fault_of_the_store_ends_the_run_at_once(first: int) -> None:
    fake = Fake(lambda _, attempt: StoreError("the disk is full") if attempt == first else RuntimeError("x"))
    with pytest.raises(StoreError, match="the disk is full"):
        carry_out(fake)
    assert len(fake.tried) == first


def test_what_goes_wrong_after_the_commit_is_not_tried_again() -> None:
    fake = Fake(lambda *_: None)

    def step(_: object) -> None:
        fake.totals = Totals(epochs=1)
        raise RuntimeError("cannot sweep")

    fake.step = step  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="cannot sweep"):
        carry_out(fake)


def test_a_run_that_stops_looks_no_further() -> None:
    fake = Fake(lambda *_: RuntimeError("bad rows"))
    with pytest.raises(RuntimeError, match="bad rows"):
        carry_out(fake, stopping=True)
    assert fake.tried == [EVERYTHING]


def test_errors_are_told_in_one_line() -> None:
    text = "It:\nTraceback (most recent call last):\n  File 'x.py', line 1\nValueError: 7\n\tat org.x"
    assert cause_of(RuntimeError(text)) == "RuntimeError: ValueError: 7"
    assert cause_of(ExecutionError("it fails", hint="mend it")) == "it fails (hint: mend it)"
    assert cause_of(RuntimeError()) == "RuntimeError: "
