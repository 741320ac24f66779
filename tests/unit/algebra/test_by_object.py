"""What a function says of objects is asked once for each of the last new ones."""

from __future__ import annotations

from headrace.algebra.by_object import ByObject


def test_a_function_is_asked_once_for_an_object_until_others_have_come() -> None:
    asked: list[str] = []

    def length(value: tuple[str, ...]) -> int:
        asked.append(value[0])
        return len(value)

    known = ByObject(length, 2)
    one, same, three = ("a", "b"), tuple("ab"), ("c", "d", "e")
    assert [known(one), known(one), known(same), known(one)] == [2, 2, 2, 2]
    assert asked == ["a", "a"]
    assert [known(three), known(one), known(same)] == [3, 2, 2]
    # The oldest one was forgotten each time.
    assert asked == ["a", "a", "c", "a", "a"]
