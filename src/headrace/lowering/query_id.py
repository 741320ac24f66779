"""The identity of a query: it never changes, and no other query of its store ever has it.

The name of a query is one of its properties, which ALTER QUERY ... RENAME changes. All that is kept of a
query from epoch to epoch, in memory and in a store, is kept under its identity: the name that it was created
with, and a number that counts the queries of the store. A query of a store that an earlier Headrace has
written has its name for an identity.
"""

from __future__ import annotations

from typing import Final

_MARK: Final = "#"


def id_of(name: str, number: int) -> str:
    """The identity of a query.

    Args:
        name: the name that it is created with.
        number: how many queries its store has had with it.
    """
    return f"{name}{_MARK}{number}"


def number_of(identity: str) -> int:
    """How many queries a store had had with a query; 0 where its identity does not say it."""
    return int(identity.rpartition(_MARK)[2]) if _is_numbered(identity) else 0


def first_name(identity: str) -> str:
    """The name that a query was created with."""
    return identity.rpartition(_MARK)[0] if _is_numbered(identity) else identity


def _is_numbered(identity: str) -> bool:
    name, _, number = identity.rpartition(_MARK)
    return bool(name) and number.isdecimal()
