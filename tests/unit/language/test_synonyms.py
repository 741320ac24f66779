"""What is proposed for a function of another system is there, and can be written so."""

from __future__ import annotations

from itertools import product

import pytest

from auctions import define, error_of
from headrace.errors import LanguageError
from headrace.expressions.aggregates import aggregates
from headrace.expressions.functions import functions
from headrace.language.catalog import Catalog
from headrace.language.synonyms import CALLS, REWRITES, UNLIKE, WINDOWS

_STREAM = """CREATE STREAM s (ts TIMESTAMP, t STRING, x BIGINT, p BOOLEAN, a ARRAY<STRING>,
    m STRUCT<a: BIGINT>) FROM csv OPTIONS (path 's.csv') TIMESTAMP BY ts;"""
_ARGUMENTS = ("t", "x", "ts", "a", "p", "m", "'$.a'", "0.5", "2", "'hour'")


def _runs(text: str) -> bool:
    try:
        define(_STREAM + text, Catalog())
    except LanguageError:
        return False
    return True


def _proposed(name: str, arguments: str) -> str | None:
    """The text with what the hint proposes in the place of the call; None for a call of something else."""
    message, _, _, hint = error_of(f"{_STREAM}SELECT {name}({arguments}) FROM s")
    if hint is None or message != f"there is no function {name}":
        return None
    written = hint.removeprefix("write ")
    return (
        f"SELECT item {written}"
        if written.startswith("FROM")
        else f"SELECT {written} FROM s [RANGE 5 MINUTES]"
    )


@pytest.mark.parametrize("name", REWRITES)
def test_what_is_proposed_can_be_written(name: str) -> None:
    least = 3 if name == "SWITCH" else 2
    wanted = max((place + 1 for place in range(3) if f"{{{place}}}" in REWRITES[name]), default=least)
    tried = (_proposed(name, ", ".join(some)) for some in product(_ARGUMENTS, repeat=wanted))
    assert any(text is not None and _runs(text) for text in tried)


def test_none_of_them_is_there() -> None:
    ours = {*functions.FUNCTIONS, *aggregates.AGGREGATES, *aggregates.COMPOSED}
    assert not ours & (set(REWRITES) | set(WINDOWS) | UNLIKE)
    assert not set(REWRITES) & (set(CALLS) | UNLIKE)


@pytest.mark.parametrize("name", sorted(UNLIKE))
def test_names_that_mean_something_else_are_not_guessed(name: str) -> None:
    hint = error_of(f"{_STREAM}SELECT {name}(t) FROM s")[3]
    assert hint == f"define it in Python, db.function('{name}', ...); SHOW FUNCTIONS lists all others"


def test_a_name_of_the_user_comes_first() -> None:
    assert error_of(f"{_STREAM}SELECT EXPLODE(a) FROM s")[3] == "write FROM s, UNNEST(a) AS t (item)"
    assert error_of(f"{_STREAM}SELECT TIME_BUCKET(ts) FROM s")[3] == (
        "put the window after the stream in FROM: s WINDOW(RANGE 10 MINUTES)"
    )
