"""The relation that a query without FROM reads: one row without columns, which is always valid."""

from __future__ import annotations

from typing import Final

from headrace.algebra.system_streams import PREFIX
from headrace.schema import Schema

ONE_ROW: Final = f"{PREFIX}.one_row"
"""What it is called in the catalog; no stream of a user's has such a name."""

SCHEMA: Final = Schema(())
"""Its columns."""
