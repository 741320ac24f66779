"""The example on the front page of the package runs, and prints what it says."""

from __future__ import annotations

import doctest

import headrace


def test_the_example_of_the_package_prints_what_it_says() -> None:
    results = doctest.testmod(headrace)
    assert results.attempted
    assert not results.failed
