"""Something that keeps a query from output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something that keeps a query from output, or explains it.

    Attributes:
        message: what it is.
        hint: what would help, or None.
    """

    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"
