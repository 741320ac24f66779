"""Properties of whole runs: a few examples in `make test`, three times as many in `make runs`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])

TIMES: Final = {"runs": 3, "soak": 50}.get(os.environ.get("HEADRACE_HYPOTHESIS", "ci"), 1)
"""How many times the examples of `make test` there are."""


def whole_runs(examples: int) -> Callable[[Test], Test]:
    """Marks a property of whole runs, which has so many examples in `make test`."""

    def marked(test: Test) -> Test:
        found: Test = pytest.mark.runs(settings(max_examples=TIMES * examples)(test))
        return found

    return marked
