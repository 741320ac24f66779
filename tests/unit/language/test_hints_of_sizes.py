"""ALTER QUERY ... SET with a size as it is written in a query: the hint says it as the statement has it."""

from __future__ import annotations

import re

import pytest

from headrace.algebra.tunings.tunings import TuningKind
from headrace.errors import LanguageError
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.catalog import SetWindow

OF = ["", "OF s ", "OF `two words` "]
SIZES = {
    "ROWS 3": (TuningKind.ROWS, 3),
    "(ROWS 3)": (TuningKind.ROWS, 3),
    "(3 ROWS)": (TuningKind.ROWS, 3),
    "= 3 ROWS": (TuningKind.ROWS, 3),
    "RANGE 3": (TuningKind.WINDOW, 3),
    "(RANGE 3 SECONDS)": (TuningKind.WINDOW, 3_000_000),
    "= 3 MINUTES": (TuningKind.WINDOW, 180_000_000),
    "(3)": (TuningKind.WINDOW, 3),
}


def hint_of(text: str) -> str:
    with pytest.raises(LanguageError) as found:
        parse_one(text)
    assert found.value.position is not None
    return found.value.hint or ""


@pytest.mark.parametrize("opening", ["SET ({})", "SET {}"])
@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("size", SIZES)
def test_a_size_as_in_a_query_is_refused_with_the_right_one(size: str, of: str, opening: str) -> None:
    kind, length = SIZES[size]
    texts = [f"WINDOW {of}{size}"]
    if kind is TuningKind.WINDOW:
        texts.append(f"GRANULARITY {of}{size}")
    if not of and re.match("ROWS|RANGE", size):
        texts.append(size)
    for text in texts:
        written = hint_of(f"ALTER QUERY q {opening.format(text)}").removeprefix("write ")
        found = parse_one(f"ALTER QUERY q {opening.format(written)}")
        assert isinstance(found, SetWindow)
        assert found.size.length == length
        assert found.kind is (TuningKind.GRANULE if text.startswith("GRANULARITY") else kind)
        assert (None if found.stream is None else found.stream.text) == (of[3:].strip(" `") or None)


@pytest.mark.parametrize("text", ["SIZE 3", "GRANULARITY ROWS 3", "GRANULARITY (3 ROWS)", "WINDOW ROWS", ""])
def test_where_no_size_is_meant_the_forms_are_shown(text: str) -> None:
    written = re.findall(r"SET \(.*?\)", hint_of(f"ALTER QUERY q SET ({text}"))
    assert len(written) == 7
    for one in written:
        parse_one(f"ALTER QUERY q {one}")
