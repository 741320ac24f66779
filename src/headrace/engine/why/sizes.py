"""The windows and granules of a query that are not as they were defined first: since when, and why."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.tunings.tunings import TuningKind
from headrace.engine.shown.status import Status, instant_text
from headrace.engine.why.finding import Finding
from headrace.language.names import quoted_name
from headrace.runtime.driver.facts.sizes import WindowStatus
from headrace.runtime.driver.facts.status import QueryStatus
from headrace.runtime.driver.settings import Managing
from headrace.time import BEGINNING, INFINITY


def other_sizes(status: Status, query: QueryStatus) -> Iterator[Finding]:
    """Windows that are not as long as they may be, and granules that are not as fine.

    Args:
        status: of the run.
        query: one of its queries.
    """
    for window in query.windows:
        if window.size == window.first:
            continue
        kind = window.kind
        lengths = (window.size, window.smallest, window.largest)
        size, least, most = (kind.text(length, query.domain) for length in lengths)
        since = instant_text(window.since, query.domain)
        rows = "all rows" if window.since == BEGINNING else f"rows from {since} on"
        what = f"the {kind.noun} of {' and '.join(window.streams)} is {size} for {rows}"
        yield Finding(
            f"{what}, where {least} to {most} are allowed: {window.why or 'somebody has asked for it'}",
            _way_back(status, query, window),
        )


def _way_back(status: Status, query: QueryStatus, window: WindowStatus) -> str | None:
    """The way to the size that a window had first; None where no row comes that could have it."""
    if all(status.stream(name).heartbeat == INFINITY for name in window.streams):
        return None
    managed = status.managed
    if window.why and status.running and managed is not None and managed.managing is Managing.ACT:
        more = managed.tightest.value
        return f"with more {more}, or fewer queries or rows, the manager makes it longer again"
    clause = _clause(query, window)
    name = quoted_name(query.name)
    if clause is None:
        new = f"write CREATE OR REPLACE QUERY {name} with other bounds"
        return f"{new}: windows that are new begin with the largest size, and granules with the finest"
    again = "" if status.running else "start the run again and "
    best = "finest" if window.kind is TuningKind.GRANULE else "largest"
    return f"{again}write ALTER QUERY {name} SET ({clause}) for the {best}"


def _clause(query: QueryStatus, window: WindowStatus) -> str | None:
    """The clause of SET that gives a window its first size, and no other one a size that is not its first.

    None where there is no such clause, since another one of the same streams has other bounds.
    """
    kind, size = window.kind, window.kind.text(window.first, query.domain)
    same = [one for one in query.windows if one.kind is kind]
    for name in (*window.streams, None):
        meant = [one for one in same if name is None or name in one.streams]
        if all(one.first == window.first for one in meant):
            return f"{kind.word}{'' if name is None else f' OF {quoted_name(name)}'} {size}"
    return None
