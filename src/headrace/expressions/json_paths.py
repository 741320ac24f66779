"""Paths into JSON texts: `$.name`, `$['name']` and `$[0]`, one after the other, and what they lead to."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from headrace.errors import LanguageError

_STEP: Final = re.compile(r"\.([^.\[\]'\"*\s]+)|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[(\d+)\]")


class NumberText(float):
    """A number of a JSON text with the text itself, which is what is handed out."""

    text: str

    def __new__(cls, text: str) -> NumberText:
        """A number by its text."""
        found = super().__new__(cls, "nan")
        found.text = text
        return found


_DECODER: Final = json.JSONDecoder(parse_float=NumberText, parse_int=NumberText)
_BLANKS: Final = " \t\n\r"
"""The characters that may be before a value."""


def steps_of(path: str) -> tuple[str | int, ...]:
    """The names and places that a path goes through.

    Raises:
        LanguageError: it is not a path.
    """
    steps: list[str | int] = []
    place = 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            break
        names = [group for group in found.groups()[:3] if group is not None]
        steps.append(names[0] if names else int(found[4]))
        place = found.end()
    if not path.startswith("$") or place < len(path):
        raise LanguageError(
            f"'{path}' is not a valid path into JSON",
            hint="write names and places, as in '$.items[0].name' or '$[\\'odd name\\']'; there is no *",
        )
    return tuple(steps)


def follow(text: str, steps: tuple[str | int, ...]) -> str | None:
    """The value at a path in a JSON text, as a text: strings without quotes; None if it is not there.

    What follows the first value is not looked at, as in Spark.
    """
    try:
        found: Any = _DECODER.raw_decode(text.lstrip(_BLANKS))[0]
    except (ValueError, RecursionError):
        return None
    for step in steps:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and step < len(found) else None
    return None if found is None else found if isinstance(found, str) else written(found)


def written(value: object) -> str:
    """A value that was read as compact JSON again, numbers as they were."""
    match value:
        case NumberText():
            return value.text
        case dict():
            return (
                "{"
                + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{written(v)}" for k, v in value.items())
                + "}"
            )
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
