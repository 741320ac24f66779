"""Options of Spark's formats whose values are not kept, nor shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_WORDS: Final = r"password|passwd|secret|token|credential|jaas|private|access\.?key"
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
"""What is in the name of an option whose value is secret."""

_WITHIN: Final = re.compile(
    rf"[?;&,][\w.]*(?:{_WORDS})[\w.]*=([^;&,]+)|//[^/@:]*:([^/@]+)@|:[^/:@]+/([^/@]+)@", re.IGNORECASE
)
"""Secrets within a value, such as the address of a database: `?password=...`, `//user:...@`, `:user/...@`."""


def secret_option(options: Iterable[tuple[str, str]]) -> str | None:
    """The name of the first option whose value is secret, or has something secret in it; None if none has."""
    return next((name for name, value in options if _SECRET.search(name) or _WITHIN.search(value)), None)


def open_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options without what is secret."""
    return {name: hidden(value, options) for name, value in options.items() if not _SECRET.search(name)}


def hidden(text: str, options: Mapping[str, str]) -> str:
    """A text with stars in the place of all that is secret in some options."""
    secrets = {value for name, value in options.items() if _SECRET.search(name)}
    for value in options.values():
        secrets |= {part for found in _WITHIN.findall(value) for part in found if part}
    # The longest first: one may be a part of another.
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
