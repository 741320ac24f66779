"""Names and texts as SQL has them."""

from __future__ import annotations

import re
from typing import Final

from headrace.language.dialect import RESERVED, Headrace

_WORDS: Final = RESERVED | set(Headrace.Tokenizer.KEYWORDS)


def quoted_name(text: str) -> str:
    """A name, in backticks where it would be read as something else."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) and text.upper() not in _WORDS
    return text if plain else f"`{text.replace('`', '``')}`"


def quoted_text(text: str) -> str:
    """A text as a constant."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
