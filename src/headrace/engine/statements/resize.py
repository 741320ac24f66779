"""ALTER QUERY ... SET (WINDOW ...): the windows of a query within bounds get another size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import Tuning, size_of, tunings_in, windows_in
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.shown.status import instant_text
from headrace.engine.statements.running import running_query
from headrace.errors import LanguageError, Position
from headrace.language.lengths import check_duration
from headrace.language.statements.catalog import SetWindow
from headrace.language.syntax import Name
from headrace.runtime.driver.change.wanted import Tune
from headrace.suggestions import did_you_mean
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain, format_length

_NEW: Final = "windows that are new begin with the largest size, which MAX says"


def resized(core: Core, statement: SetWindow) -> str:
    """Give windows of a query another size within their bounds, for the rows from some instant on.

    Args:
        core: the database.
        statement: which windows, and their size.

    Returns:
        Since when they have it, and which other queries have the same windows.

    Raises:
        LanguageError: there is no such query, it is not running, it has no such window, the size is not
            within the bounds of each, or no further rows come.
    """
    with core.lock:
        core.make_waiting()
        query = running_query(core, statement.query, _NEW)
        plan = core.definitions.queries[query.id].plan
        windows = _windows(query, plan, statement.stream, statement.query.position)
        domain = plan.domain
        check_duration(statement.size, domain, "WINDOW", statement.place)
        for tuning in windows:
            _check(tuning, statement.size, domain, statement.place)
        known = core.started.run.reading.queries.tunings
        size = statement.size.length
        changed = [tuning for tuning in windows if size_of(tuning, known) != size]
        check_going_on(core, changed, statement.position)
        if changed:
            users = {tuning: [one.id for one in users_of(core, tuning)] for tuning in changed}
            core.started.tune(Tune(dict.fromkeys(changed, size), users))
        return "\n".join(_told(core, query, windows, changed))


def _windows(query: Query, plan: Plan, stream: Name | None, position: Position) -> list[Tuning]:
    """The windows of a query whose size may change, those of a stream if one is named."""
    found = list(windows_in(plan))
    if not found:
        raise LanguageError(
            f"{query.name} has no window whose size may change",
            position=position,
            hint="give its window bounds, as in WINDOW(RANGE MIN 12 HOURS, MAX 24 HOURS), with CREATE OR "
            f"REPLACE QUERY {query.name}",
        )
    if stream is None:
        return found
    named = [one for one in found if stream.text.lower() in {name.lower() for name in one.streams}]
    if not named:
        names = list(dict.fromkeys(name for one in found for name in one.streams))
        raise LanguageError(
            f"{query.name} has no window of {stream.text} whose size may change",
            position=stream.position,
            hint=did_you_mean(stream.text, names) or f"it has one of {', '.join(names)}",
        )
    return named


def _check(tuning: Tuning, size: Duration, domain: TimeDomain, position: Position) -> None:
    """See that a size is within the bounds of a window."""
    if tuning.smallest <= size.length <= tuning.largest:
        return
    smallest, largest = (format_length(one, domain) for one in (tuning.smallest, tuning.largest))
    nearest = smallest if size.length < tuning.smallest else largest
    raise LanguageError(
        f"{size} is not from MIN {smallest} to MAX {largest}, within which the window of "
        f"{_of(tuning)} may be",
        position=position,
        hint=f"write WINDOW {nearest}, or replace the query by one with other bounds",
    )


def check_going_on(core: Core, windows: Iterable[Tuning], position: Position) -> None:
    """See that rows may come that could have another size, or be left out.

    Raises:
        LanguageError: none can.
    """
    run = core.started.run
    for tuning in windows:
        if all(run.point(name).heartbeat == INFINITY for name in tuning.streams):
            raise LanguageError(
                f"{_of(tuning)} has ended, so that no row comes for which it could change",
                position=position,
            )


def _told(core: Core, query: Query, windows: list[Tuning], changed: list[Tuning]) -> Iterable[str]:
    domain = query.plan.domain
    known = core.started.run.reading.queries.tunings
    for tuning in windows:
        size = format_length(size_of(tuning, known), domain)
        if tuning not in changed:
            yield f"the window of {_of(tuning)} is {size} already"
            continue
        since = known[tuning].steps[-1].begin
        rows = "all rows" if since == BEGINNING else f"rows from {instant_text(since, domain)} on"
        others = [one.name for one in users_of(core, tuning) if one is not query]
        yield f"the window of {_of(tuning)} is {size} for {rows}" + (
            f"; so it is in {', '.join(others)}, with the same bounds" if others else ""
        )


def users_of(core: Core, tuning: Tuning) -> list[Query]:
    """The queries that have windows, paused ones included."""
    return [one.query for one in core.definitions.queries.values() if tuning in tunings_in(one.plan)]


def _of(tuning: Tuning) -> str:
    return " and ".join(tuning.streams)
