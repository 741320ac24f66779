"""The number of examples of a property, and of cases that are alike: few in `make test`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import pytest
from hypothesis import settings

Value = TypeVar("Value")
Test = TypeVar("Test", bound=Callable[..., Any])

PROFILE: Final = os.environ.get("HEADRACE_HYPOTHESIS", "ci")
_SOAKED: Final = 50


def how_many(few: Value, many: Value) -> Value:
    """The first in `make test`, the second in `make runs`; of numbers, in the build, an eighth of the way."""
    if PROFILE == "build" and isinstance(few, int) and isinstance(many, int):
        return few + (many - few) // 8  # type: ignore[return-value]
    return few if PROFILE == "ci" else many


def some(cases: Iterable[Value], every: int = 3) -> list[Value]:
    """Every third of cases that are alike in `make test`, every second in the build, all in `make runs`."""
    return list(cases)[:: how_many(every, 1)]


def examples(few: int, many: int = 36, **others: Any) -> Callable[[Test], Test]:
    """Marks a property that takes long, or that runs whole queries.

    Args:
        few: how many examples it has in `make test`. Choose it so that the test finds what you break.
        many: how many it has in `make runs`; in `make soak` fifty times as many.
        others: further settings of Hypothesis.
    """

    def marked(test: Test) -> Test:
        found: Test = pytest.mark.runs(
            settings(max_examples=how_many(few, many) * (_SOAKED if PROFILE == "soak" else 1), **others)(test)
        )
        return found

    return marked
