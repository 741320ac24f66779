"""Queries that a statement asks something of that only a running one can do."""

from __future__ import annotations

from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.errors import LanguageError, Position
from headrace.language.syntax import Name


def running_query(core: Core, name: Name, why: str) -> Query:
    """The query of a name.

    Args:
        core: the database.
        name: the query's.
        why: what a query that does not run needs no such statement for, as the hint says it.

    Raises:
        LanguageError: there is none, or it does not run, or has failed.
    """
    query = core.definitions.answered_query(name.text, name.position)
    if core.execution is None or not core.running or core.has_failed(query):
        raise LanguageError(
            f"{query.name} is not running", position=name.position, hint=f"call start() first; {why}"
        )
    return query


def check_going_on(core: Core, query: Query, position: Position) -> None:
    """See that a query has not failed.

    Args:
        core: the database.
        query: one of its queries.
        position: where it is named.

    Raises:
        LanguageError: it has.
    """
    if core.has_failed(query):
        name = query.name
        raise LanguageError(
            f"the query {name} has failed",
            position=position,
            hint=f"try it again with ALTER QUERY {name} RESUME, or drop it: DROP QUERY {name}",
        )
