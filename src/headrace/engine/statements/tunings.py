"""Windows and granules that may change, shares of rows kept, and what limits of memory and time do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.in_force import known_steps
from headrace.algebra.tunings.tunings import MILLIONTHS, Tuning, TuningKind, Tunings, size_of, tunings_in
from headrace.byte_sizes import format_bytes
from headrace.core_counts import format_cores
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.query.choices import stored_tunings
from headrace.engine.run.core import Core
from headrace.engine.shown.status import Status, instant_text
from headrace.language.statements.catalog import Option
from headrace.runtime.driver.facts.remembered import rows_of
from headrace.runtime.driver.settings import Managing
from headrace.time import TimeDomain


def known_tunings(core: Core) -> Tunings:
    """The sizes that have changed, of the run that goes on or is over; before one those of the store."""
    status = core.known_status
    return stored_tunings(core.settings.storage) if status is None else status.tunings


def still_answering(core: Core) -> dict[str, Plan]:
    """The plans that were replaced and answer until others take over, by the identities of their queries."""
    if core.execution is None:
        return {}
    migrations = core.execution.run.reading.queries.migrations
    return {name: one.old for name, one in migrations.items()}


def tuning_rows(
    definitions: Definitions, tunings: Tunings, still: Mapping[str, Plan]
) -> list[tuple[str, ...]]:
    """The streams of each window, its bounds, its size, since when, and the queries that have it.

    A share has 0 and 1 for bounds, and behind its streams what may be lost, or what is remembered of which
    rows. Of a granule the finest and the coarsest are its bounds, and behind its streams it says that it is
    one.

    Args:
        definitions: the streams and queries.
        tunings: the sizes that have changed.
        still: plans that were replaced and still answer; see `still_answering`.
    """
    users: dict[Tuning, dict[str, None]] = {}
    domains: dict[Tuning, TimeDomain] = {}
    drawn: dict[Tuning, str] = {}
    for known in definitions.queries.values():
        for plan in (known.plan, still.get(known.query.id, known.plan)):
            drawn |= _rows_of_each(plan)
            for tuning in tunings_in(plan):
                users.setdefault(tuning, {})[known.query.name] = None
                domains[tuning] = plan.domain
    rows: list[tuple[str, ...]] = []
    for tuning, names in users.items():
        steps, domain = tunings[tuning].steps if tuning in tunings else (), domains[tuning]
        since = instant_text(steps[-1].begin, domain) if steps else ""
        size = tuning.kind.text(size_of(tuning, tunings), domain)
        rows.append((*_bounds(tuning, domain, drawn[tuning]), size, since, ", ".join(names)))
    return rows


def step_rows(plan: Plan, tunings: Tunings) -> list[tuple[str, ...]]:
    """The sizes that each window of a query has had, oldest first; see `tuning_rows`.

    Args:
        plan: the query's.
        tunings: the sizes that have changed.

    Returns:
        The streams of the window, its bounds, a size, from which instant on it was, until before which one,
        and why, where that is known.
    """
    domain, drawn = plan.domain, _rows_of_each(plan)
    rows: list[tuple[str, ...]] = []
    for tuning in tunings_in(plan):
        tuned = tunings.get(tuning)
        steps = known_steps(tuning, tuned)
        ends = [*(instant_text(step.begin, domain) for step in steps[1:]), ""]
        for number, (step, end) in enumerate(zip(steps, ends, strict=True), 1):
            why = tuned.why if tuned is not None and number == len(steps) else ""
            if number == 1 and tuned is not None and tuned.lacks_earlier:
                why = "; ".join(filter(None, ["sizes from before are forgotten", why]))
            size, since = tuning.kind.text(step.value, domain), instant_text(step.begin, domain)
            rows.append((*_bounds(tuning, domain, drawn[tuning]), size, since, end, why))
    return rows


def _rows_of_each(plan: Plan) -> dict[Tuning, str]:
    """For what may change of a plan the streams of the rows that are remembered; empty for all else."""
    rows = rows_of(plan)
    remembered = TuningKind.REMEMBERED
    return {one: rows[one.number].name if one.kind is remembered else "" for one in tunings_in(plan)}


def _bounds(tuning: Tuning, domain: TimeDomain, rows: str) -> tuple[str, str, str]:
    """The streams of a window, what else it is, and its bounds, as texts.

    Args:
        tuning: the window, granules or share.
        domain: what instants count.
        rows: the streams of the rows that are remembered; empty for all else.
    """
    least, most = (tuning.kind.text(length, domain) for length in (tuning.smallest, tuning.largest))
    if tuning.kind in MILLIONTHS:
        least = "0"
    what = "GRANULARITY" if tuning.kind is TuningKind.GRANULE else tuning.loss
    of = f"of {rows}" if rows else ""
    return " ".join(filter(None, [", ".join(tuning.streams), what, of])), least, most


def manager_rows(status: Status | None, settings: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The findings of the manager: the state, the processor time, and each window that it may change.

    Args:
        status: of a run that goes on or is over; None if nothing has been run.
        settings: how runs go on, as SHOW SETTINGS has it.
    """
    if status is None:
        return []
    managed = status.managed
    if managed is None:
        used = format_bytes(sum(part.state_bytes for part in status.operators))
        return [("state", "", "", used, "", _unmanaged(settings))]
    sizes = managed.least, managed.most, managed.used, managed.expected
    rows = [("state", *map(format_bytes, sizes), managed.text)]
    most = "" if managed.epoch_rows is None else f"an epoch takes {managed.epoch_rows:,} rows at most"
    rows.append(("working set", "", "", format_bytes(managed.working), "", most))
    if (time := managed.time) is not None:
        cores = map(format_cores, (time.least, time.most, time.used, time.expected))
        rows.append(("processor time", *cores, time.text))
    for one in managed.windows:
        window = one.window
        what = f"{window.kind.noun} of {', '.join(window.streams)}"
        rows.append((what, *one.texts, window.why))
    return rows


def _unmanaged(settings: Sequence[tuple[str, ...]]) -> str:
    """Why the manager has found nothing."""
    said = {name: value for name, value, who in settings if who != "default"}
    limits = (Option.MEMORY_LIMIT.value, Option.PROCESSING_LIMIT.value)
    found = [f"{name} is {said[name]}" for name in limits if name in said]
    if not found:
        return "there is no memory_limit and no processing_limit"
    off = said.get(Option.MANAGER.value) == Managing.OFF.value
    return ", ".join(found) + ", and " + ("the manager is off" if off else "nothing has been measured yet")
