"""The queries of a database, in order and by name."""

from __future__ import annotations

from typing import SupportsIndex, TypeVar, overload

from headrace.engine.shown.display import html_of_rows
from headrace.engine.views.readable import Readable
from headrace.errors import UserError
from headrace.suggestions import did_you_mean

Q = TypeVar("Q", bound=Readable)


class QueryList(tuple[Q, ...]):
    """Queries in the order in which they were registered; also `queries["totals"]`, whatever the case."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Q: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Q, ...]: ...

    def __getitem__(self, key: SupportsIndex | str | slice) -> Q | tuple[Q, ...]:
        """The query at a place or of a name.

        Raises:
            UserError: no query has that name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((query for query in self if query.name.lower() == key.lower()), None)
        if found is not None:
            return found
        names = [query.name for query in self]
        there_are = f"the queries are {', '.join(names)}" if names else "write a SELECT, or CREATE QUERY"
        raise UserError(f"there is no query {key}", hint=did_you_mean(key, names) or there_are)

    def _repr_html_(self) -> str:
        return html_of_rows(("query", "columns", "answer"), map(Readable.described, self))
