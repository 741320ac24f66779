"""The sinks that there are, as they are listed: those of SQL, and those that a program has attached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.texts import sink_query
from headrace.runtime.delivery.contract import Reached


@dataclass(frozen=True)
class ListedSink:
    """A sink, and how far it is.

    Attributes:
        name: what it is called.
        query: the name of the query whose changes it takes.
        kind: what it is, such as `parquet`; `Python` if a program has attached it.
        place: where it delivers to, without what is secret; empty if a program knows that.
        epoch: the last epoch that it has taken; None while there is no run.
        behind: how many committed epochs it has yet to take; None while there is no run.
        problem: why it does not get on, or None.
    """

    name: str
    query: str
    kind: str
    place: str
    epoch: int | None = None
    behind: int | None = None
    problem: str | None = None


def listed_sinks(definitions: Definitions, reached: Iterable[Reached]) -> tuple[ListedSink, ...]:
    """All sinks: those of SQL in the order in which they were defined, then those of programs.

    Args:
        definitions: all of them.
        reached: how far those of a run are.
    """
    found = {
        (sink.query, sink.name): ListedSink(sink.name, sink.query, sink.kind.value, sink.place)
        for sink in definitions.sinks.values()
    }
    for one in reached:
        known = found.get((one.query, one.name), ListedSink(one.name, one.query, "Python", ""))
        found[one.query, one.name] = replace(known, epoch=one.epoch, behind=one.behind, problem=one.problem)
    waiting = definitions.records.waiting
    lacking = (
        ListedSink(
            name, sink_query(record) or "", "", "", problem=f"it is not there yet: {waiting[record.key]}"
        )
        for name, record in definitions.records.sinks().items()
    )
    return (*found.values(), *lacking)
