"""Options of Spark's formats whose values are not kept, nor shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from headrace.errors import HeadraceError, SourceError
from headrace.language.statements.secret import SecretName

_WORDS: Final = (
    r"password|passwd|secret|token|credential|jaas|private|access\.?key|api[-_.]?key|authorization"
)
_SECRET: Final = re.compile(rf"{_WORDS}|^header\..*(?:key|auth|cookie|session|signature)", re.IGNORECASE)
"""What is in the name of an option whose value is secret."""

_WITHIN: Final = re.compile(
    rf"[?;&,][\w.-]*(?:{_WORDS}|signature)[\w.-]*=([^;&,#]+)|[?&](?:key|sig|auth)=([^;&,#]+)"
    r"|//[^/@:]*:([^/@]+)@|:[^/:@]+/([^/@]+)@|^https?://([^/@:]+)@",
    re.IGNORECASE,
)
"""Secrets within a value, such as an address: `?password=...`, `?sig=...`, `//user:...@`, `:user/...@`."""


_SHORTEST: Final = 4
"""Characters that a secret has at least."""


def secret_option(options: Iterable[tuple[str, str]]) -> str | None:
    """The name of the first option whose value is secret, or has something secret in it; None if none has."""
    written = ((name, value) for name, value in options if not isinstance(value, SecretName))
    return next((name for name, value in written if _SECRET.search(name) or _WITHIN.search(value)), None)


class _Revealed(str):
    """The value of a secret that was named; it is hidden whatever its option is called."""

    __slots__ = ()


VARIABLE: Final = "HEADRACE_SECRET_"
"""How the names of the environment's variables begin that hold secrets."""
FOLDER: Final = "HEADRACE_SECRETS"
"""The variable with the folder whose files hold secrets."""


def revealed(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the values of secrets in the places of their names.

    Raises:
        SourceError: there is no such secret.
    """
    return {
        name: _value_of(value) if isinstance(value, SecretName) else value for name, value in options.items()
    }


def _value_of(secret: SecretName) -> str:
    variable = f"{VARIABLE}{secret.upper()}"
    if (value := os.environ.get(variable)) is not None:
        return _Revealed(value)
    folder = os.environ.get(FOLDER)
    if folder is not None:
        try:
            return _Revealed((Path(folder) / secret).read_text(encoding="utf-8").rstrip("\r\n"))
        except (OSError, UnicodeDecodeError):
            pass
    raise SourceError(
        f"there is no secret {secret!s}",
        hint=f"set the variable {variable}, or write the file {secret!s} into the folder of {FOLDER}",
    )


def _is_secret(name: str, value: str) -> bool:
    return isinstance(value, _Revealed | SecretName) or _SECRET.search(name) is not None


def open_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options without what is secret."""
    return {name: hidden(value, options) for name, value in options.items() if not _is_secret(name, value)}


def conceal(error: HeadraceError, options: Mapping[str, str]) -> None:
    """Put stars into an error in the place of all that is secret in some options."""
    error.message = hidden(error.message, options)
    error.hint = None if error.hint is None else hidden(error.hint, options)


def hidden(text: str, options: Mapping[str, str]) -> str:
    """A text with stars in the place of all that is secret in some options."""
    known = {name: value for name, value in options.items() if not isinstance(value, SecretName)}
    secrets = {str(value) for name, value in known.items() if _is_secret(name, value)}
    for value in known.values():
        secrets |= {part for found in _WITHIN.findall(value) for part in found if part}
    # The longest first: one may be a part of another. What is that short is a part of many words.
    for secret in sorted((one for one in secrets if len(one) >= _SHORTEST), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
