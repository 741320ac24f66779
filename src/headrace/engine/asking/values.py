"""Parameters of a question: `:name`, for which DuckDB is given the value."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Final

from headrace.engine.asking.references import words_of
from headrace.errors import LanguageError
from headrace.language.named_values import ParameterValue, check_value
from headrace.suggestions import did_you_mean

_DIGITS: Final = 38


def with_placeholders(text: str, values: Mapping[str, ParameterValue]) -> str:
    """The question with DuckDB's placeholders in the place of its parameters, each at its place.

    What only looks like a parameter, such as the end of a slice, is left alone where there is no value of
    that name.

    Args:
        text: the question.
        values: the values by name.

    Raises:
        LanguageError: a value has no parameter, or is of no type of ours.
    """
    for name, value in values.items():
        check_value(name, value)
        if isinstance(value, Decimal):
            _check_decimal(name, value)
    used, before = set[str](), None
    for colon, word in pairwise(words_of(text)):
        is_cast = before is not None and before.text == ":" and before.end == colon.start
        if colon.text == ":" and not is_cast and word.start == colon.end and word.text in values:
            used.add(word.text)
            text = f"{text[: colon.start]}${text[word.start :]}"
        before = colon
    for name in values:
        if name not in used:
            hint = did_you_mean(name, used) or "leave its value out"
            raise LanguageError(f"there is no parameter :{name} in the question", hint=hint)
    return text


def _check_decimal(name: str, value: Decimal) -> None:
    """See that DuckDB has a DECIMAL for a value; it would take another one for a DOUBLE, and round it.

    Raises:
        LanguageError: it has none.
    """
    digits = value.as_tuple()
    exponent = digits.exponent
    if not isinstance(exponent, int):
        raise LanguageError(f"the value of :{name} is {value}, and no DECIMAL is", hint="give it as a float")
    whole, scale = max(len(digits.digits) + exponent, 1), max(-exponent, 0)
    if whole + scale > _DIGITS:
        hint = "round it, or give it as a float"
        raise LanguageError(
            f"the value of :{name} has more than the {_DIGITS} digits of a DECIMAL", hint=hint
        )
