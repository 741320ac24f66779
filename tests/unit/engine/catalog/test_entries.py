"""Entries: an immutable mapping, each version of which stays what it was, whatever is made from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.catalog.entries import Entries

KEYS = "abcd"


def test_entries_grow_and_stay_what_they_were() -> None:
    one = Entries[int]().adding("a", 1)
    two, other = one.adding("b", 2), one.adding("c", 3)
    three = two.adding("d", 4)
    assert dict(one) == {"a": 1}
    assert list(two) == ["a", "b"]
    assert dict(other) == {"a": 1, "c": 3}
    assert dict(three.without("a")) == {"b": 2, "d": 4}
    assert "b" not in one
    assert len(three) == 3
    assert two == Entries({"a": 1, "b": 2})


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from(KEYS), st.sampled_from("+=-~")), max_size=40))
def test_every_version_is_the_dictionary_of_its_steps(steps: list[tuple[int, str, str]]) -> None:
    versions: list[tuple[Entries[int], dict[str, int]]] = [(Entries(), {})]
    for number, (back, key, step) in enumerate(steps):
        mapping, model = versions[max(0, len(versions) - 1 - back // 4)]
        match step:
            case "-":
                found = mapping.without(key), {k: v for k, v in model.items() if k != key}
            case "~" if key in model and "x" not in model:
                found = (
                    mapping.renaming(key, "x"),
                    {"x" if known == key else known: value for known, value in model.items()},
                )
            case _ if key in model:
                found = mapping.replacing(key, number), {**model, key: number}
            case _:
                found = mapping.adding(key, number), {**model, key: number}
        if back % 2:
            # What has been looked through hands on what it found.
            assert found[0].whole == found[1]
        versions.append(found)
    for mapping, model in versions:
        assert list(mapping.items()) == list(model.items())
        assert list(mapping) == list(model)
        assert list(mapping.values()) == list(model.values())
        assert len(mapping) == len(model)
        assert {key: mapping.get(key) for key in KEYS} == {key: model.get(key) for key in KEYS}
        assert mapping == Entries(model)


def test_what_is_not_there_is_an_error() -> None:
    mapping = Entries({"a": 1}).without("a")
    assert "a" not in mapping
    with pytest.raises(KeyError):
        mapping["a"]
