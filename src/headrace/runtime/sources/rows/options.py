"""Reading the OPTIONS of a source; every option is text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.errors import SourceError, UserError
from headrace.suggestions import did_you_mean
from headrace.time import parse_duration

MISSING: Final = ("error", "some", "null")
"""Whether declared columns may be missing: none in the first file, some anywhere, or all."""

_MILLISECOND: Final = 1_000
_SECOND: Final = 1_000_000


def check_known(form: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuse options that the format does not have.

    Raises:
        SourceError: an option is unknown.
    """
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) or f"its options are {', '.join(known)}"
            raise SourceError(f"the format {form} has no option {name}", hint=hint)


def renamed(options: Mapping[str, str], synonyms: Mapping[str, str]) -> dict[str, str]:
    """Options under our names, where some have another one elsewhere.

    Args:
        options: the options by name in lower case.
        synonyms: from the other name to ours.

    Raises:
        SourceError: one is given under both names.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        ours = synonyms.get(name, name)
        if ours in found:
            both = next(other for other, one in synonyms.items() if one == ours)
            raise SourceError(
                f"the option {ours} is given twice, also as {both}", hint="leave out one of them"
            )
        found[ours] = value
    return found


def missing_of(options: Mapping[str, str], default: str = "error") -> str:
    """The option `missing`, one of `MISSING`.

    Raises:
        SourceError: it is none of them.
    """
    missing = options.get("missing", default)
    if missing not in MISSING:
        raise SourceError(f"the option missing is '{missing}'", hint="it must be 'error', 'some' or 'null'")
    return missing


def required(options: Mapping[str, str], name: str) -> str:
    """The text of an option that must be given.

    Raises:
        SourceError: it is not given.
    """
    if name not in options:
        raise SourceError(f"the option {name} is missing", hint=f"write OPTIONS ({name} '...')")
    return options[name]


def flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    """An option that is true or false.

    Raises:
        SourceError: it is neither.
    """
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise SourceError(f"the option {name} is '{options[name]}'", hint="it must be 'true' or 'false'")
    return text == "true"


def whole(options: Mapping[str, str], name: str, default: int | None) -> int:
    """An option that is a whole number; without a default it must be given.

    Raises:
        SourceError: it is missing or no whole number.
    """
    text = options.get(name, "") if default is not None else required(options, name)
    if name not in options and default is not None:
        return default
    try:
        return int(text)
    except ValueError:
        raise SourceError(
            f"the option {name} is '{text}'", hint="it must be a whole number, such as 1000000"
        ) from None


def seconds(options: Mapping[str, str], name: str, default: str) -> float:
    """An option that is a length of time, of a millisecond at least.

    Raises:
        SourceError: it is not a length of time.
    """
    text = options.get(name, default)
    try:
        duration = parse_duration(text)
    except UserError as error:
        raise SourceError(f"the option {name}: {error.message}", hint=error.hint) from None
    if duration.unit is None or duration.length < _MILLISECOND:
        raise SourceError(f"the option {name} is '{text}'", hint="write a length of time, such as '1 second'")
    return duration.length / _SECOND
