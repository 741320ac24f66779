"""Statements about sinks: where the changes of a query's answer go."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import Position
from headrace.language.syntax import Name


@dataclass(frozen=True)
class CreateSink:
    """`CREATE SINK name FOR query TO kind [OPTIONS (...)]`: a query's changes go somewhere from then on.

    Attributes:
        name: the sink's.
        query: the name of the query.
        kind: what the sink is, such as `parquet`; one of `headrace.runtime.delivery.kinds`.
        options: pairs of an option's name in lower case and its value as text, or the name of a secret.
        position: where the statement starts.
    """

    name: Name
    query: Name
    kind: Name
    options: tuple[tuple[str, str], ...]
    position: Position


@dataclass(frozen=True)
class DropSink:
    """`DROP SINK name`: the changes of its query go there no longer.

    Attributes:
        name: the sink's.
        position: where the statement starts.
    """

    name: Name
    position: Position
