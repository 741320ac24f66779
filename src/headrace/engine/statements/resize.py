"""ALTER QUERY ... SET (WINDOW ...), or (GRANULARITY ...): what is within bounds gets another size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import (
    Tuning,
    TuningKind,
    Tunings,
    granules_around,
    nests,
    size_of,
    sizes_in,
    tunings_in,
)
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.shown.status import instant_text
from headrace.engine.statements.running import running_query
from headrace.engine.statements.tunings import still_answering
from headrace.errors import LanguageError, Position
from headrace.language.lengths import check_duration
from headrace.language.statements.catalog import SetWindow
from headrace.runtime.driver.change.wanted import Tune
from headrace.suggestions import did_you_mean
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain

_NEW: Final = "windows that are new begin with the largest size, which MAX says, and granules with FINEST"
_WRITTEN: Final = {
    TuningKind.WINDOW: "WINDOW(RANGE MIN 12 HOURS, MAX 24 HOURS)",
    TuningKind.ROWS: "WINDOW(ROWS MIN 50, MAX 200)",
    TuningKind.GRANULE: "GRANULARITY(COARSEST 2 HOURS, FINEST 10 SECONDS)",
}


def resized(core: Core, statement: SetWindow) -> str:
    """Give windows or granules of a query another size within their bounds, for rows from some instant on.

    Args:
        core: the database.
        statement: which they are, and their size.

    Returns:
        Since when they have it, and which other queries have the same windows.

    Raises:
        LanguageError: there is no such query, it is not running, it has no such window or granule, the size
            is not within the bounds of each, or no further rows come.
    """
    with core.lock:
        query, windows, change = _change(core, statement)
        if change.sizes:
            core.started.tune(change)
        known = core.started.run.reading.queries.tunings
        return "\n".join(_told(core, query, windows, change, known, "is"))


def explain_resized(core: Core, statement: SetWindow) -> str:
    """The effect of another size of windows or granules; nothing is done.

    Args:
        core: the database.
        statement: which they are, and their size.

    Raises:
        LanguageError: as of `resized`.
    """
    query, windows, change = _change(core, statement)
    known = core.started.tunings_after(change)
    return "\n".join(_told(core, query, windows, change, known, "would be"))


def _change(core: Core, statement: SetWindow) -> tuple[Query, list[Tuning], Tune]:
    """A query, those of its windows or granules that are meant, and what is to change of them.

    Raises:
        LanguageError: as of `resized`.
    """
    core.make_waiting()
    query = running_query(core, statement.query, _NEW)
    plan = core.definitions.queries[query.id].plan
    windows = _windows(query, plan, statement)
    if statement.kind is not TuningKind.ROWS:
        check_duration(statement.size, plan.domain, statement.kind.word, statement.place)
    for tuning in windows:
        _check(tuning, statement.size, plan.domain, statement.place)
    known = core.started.run.reading.queries.tunings
    size = statement.size.length
    changed = [tuning for tuning in windows if size_of(tuning, known) != size]
    check_going_on(core, changed, statement.position)
    users = {tuning: [one.id for one in users_of(core, tuning)] for tuning in changed}
    return query, windows, Tune(dict.fromkeys(changed, size), users)


def _windows(query: Query, plan: Plan, statement: SetWindow) -> list[Tuning]:
    """The windows or granules of a query that may change, those of a stream if one is named."""
    kind, stream, all_kinds = statement.kind, statement.stream, sizes_in(plan)
    found = [one for one in all_kinds if one.kind is kind]
    of = f"{kind.noun} whose {'length' if kind is TuningKind.GRANULE else 'size'} may change"
    if not found:
        others = dict.fromkeys(one.kind.noun for one in all_kinds)
        written = f"give it bounds, as in {_WRITTEN[kind]}, with CREATE OR REPLACE QUERY {query.name}"
        hint = f"it has {' and '.join(f'a {noun}' for noun in others)}: write {_forms(all_kinds)}"
        raise LanguageError(
            f"{query.name} has no {of}",
            position=statement.query.position,
            hint=hint if others else written,
        )
    if stream is None:
        return found
    named = [one for one in found if stream.text.lower() in {name.lower() for name in one.streams}]
    if not named:
        names = list(dict.fromkeys(name for one in found for name in one.streams))
        raise LanguageError(
            f"{query.name} has no {of.replace(kind.noun, f'{kind.noun} of {stream.text}')}",
            position=stream.position,
            hint=did_you_mean(stream.text, names) or f"it has one of {', '.join(names)}",
        )
    return named


def _forms(tunings: Iterable[Tuning]) -> str:
    """The ways to write sizes of some kinds."""
    forms = {
        TuningKind.WINDOW: "SET (WINDOW length)",
        TuningKind.ROWS: "SET (WINDOW number ROWS)",
        TuningKind.GRANULE: "SET (GRANULARITY length)",
    }
    return " or ".join(dict.fromkeys(forms[one.kind] for one in tunings))


def _check(tuning: Tuning, size: Duration, domain: TimeDomain, position: Position) -> None:
    """See that a size is within the bounds of a window, and that granules nest."""
    kind, length = tuning.kind, size.length
    bounds = tuning.smallest, tuning.largest
    smallest, largest = (kind.text(one, domain) for one in bounds)
    written = kind.text(length, domain) if kind is TuningKind.ROWS else f"{size}"
    if not tuning.smallest <= length <= tuning.largest:
        nearest = smallest if length < tuning.smallest else largest
        least, most = kind.bounds
        raise LanguageError(
            f"{written} is not from {least} {smallest} to {most} {largest}, within which the {kind.noun} of "
            f"{_of(tuning)} may be",
            position=position,
            hint=f"write {kind.word} {nearest}, or replace the query by one with other bounds",
        )
    if kind is TuningKind.GRANULE and not nests(tuning, length):
        finer, coarser = (kind.text(one, domain) for one in granules_around(tuning, length))
        raise LanguageError(
            f"{written} is no multiple of FINEST {smallest} that divides COARSEST {largest}, as a granule of "
            f"{_of(tuning)} must be",
            position=position,
            hint=f"write GRANULARITY {finer}, or {coarser}",
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


def _told(
    core: Core, query: Query, windows: list[Tuning], change: Tune, known: Tunings, verb: str
) -> Iterable[str]:
    """A line for each window: its size, and the rows for which it is new."""
    domain = query.plan.domain
    for tuning in windows:
        size = tuning.kind.text(size_of(tuning, known), domain)
        what = f"the {tuning.kind.noun} of {_of(tuning)}"
        if tuning not in change.sizes:
            yield f"{what} is {size} already"
            continue
        since = known[tuning].steps[-1].begin
        rows = "all rows" if since == BEGINNING else f"rows from {instant_text(since, domain)} on"
        others = [one.name for one in users_of(core, tuning) if one is not query]
        yield f"{what} {verb} {size} for {rows}" + (
            f"; so it {verb} in {', '.join(others)}, with the same bounds" if others else ""
        )


def sizes_begun_with(core: Core, plan: Plan) -> Iterator[str]:
    """The sizes that others have given to windows and granules which a new query would have too, as lines.

    Args:
        core: the database; a run goes on.
        plan: the query's.
    """
    known = core.started.run.reading.queries.tunings
    for tuning in sizes_in(plan):
        if tuning in known and (users := users_of(core, tuning)):
            size = tuning.kind.text(size_of(tuning, known), plan.domain)
            names = ", ".join(one.name for one in users)
            yield f"its {tuning.kind.noun} of {_of(tuning)} begins with {size}, as in {names}"


def users_of(core: Core, tuning: Tuning) -> list[Query]:
    """The queries that have windows, paused ones included, and those whose plans of before still answer."""
    still = still_answering(core)
    return [
        one.query
        for one in core.definitions.queries.values()
        if any(tuning in tunings_in(plan) for plan in (one.plan, still.get(one.query.id, one.plan)))
    ]


def _of(tuning: Tuning) -> str:
    return " and ".join(tuning.streams)
