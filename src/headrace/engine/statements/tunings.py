"""The windows and granules that may change, the shares of rows kept, and what a limit of memory does."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.tunings.tunings import Tuning, TuningKind, Tunings, size_of, tunings_in
from headrace.byte_sizes import format_bytes
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.query.choices import stored_tunings
from headrace.engine.run.core import Core
from headrace.engine.shown.status import Status, instant_text
from headrace.language.statements.catalog import Option
from headrace.runtime.driver.settings import Managing
from headrace.time import TimeDomain


def known_tunings(core: Core) -> Tunings:
    """The sizes that have changed, of the run that goes on or is over; before one those of the store."""
    status = core.known_status
    return stored_tunings(core.settings.storage) if status is None else status.tunings


def tuning_rows(definitions: Definitions, tunings: Tunings) -> list[tuple[str, ...]]:
    """The streams of each window, its bounds, its size, since when, and the queries that have it.

    A share has 0 and 1 for bounds, and what may be lost behind its streams. Of a granule the finest and the
    coarsest are its bounds, and behind its streams it says that it is one.

    Args:
        definitions: the streams and queries.
        tunings: the sizes that have changed.
    """
    users: dict[Tuning, list[str]] = {}
    domains: dict[Tuning, TimeDomain] = {}
    for known in definitions.queries.values():
        for tuning in tunings_in(known.plan):
            users.setdefault(tuning, []).append(known.query.name)
            domains[tuning] = known.plan.domain
    rows = []
    for tuning, names in users.items():
        steps, domain = tunings[tuning].steps if tuning in tunings else (), domains[tuning]
        lengths = (tuning.smallest, tuning.largest, size_of(tuning, tunings))
        since = instant_text(steps[-1].begin, domain) if steps else ""
        texts = [tuning.kind.text(length, domain) for length in lengths]
        if tuning.kind is TuningKind.SHARE:
            texts[0] = "0"
        what = "GRANULARITY" if tuning.kind is TuningKind.GRANULE else tuning.loss
        of = " ".join(filter(None, [", ".join(tuning.streams), what]))
        rows.append((of, *texts, since, ", ".join(names)))
    return rows


def manager_rows(status: Status | None, settings: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The findings of the manager of memory: first the state, then each of the windows that it may change.

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
    for one in managed.windows:
        window = one.window
        what = f"{window.kind.noun} of {', '.join(window.streams)}"
        rows.append((what, *one.texts, window.why))
    return rows


def _unmanaged(settings: Sequence[tuple[str, ...]]) -> str:
    """Why the manager of memory has found nothing."""
    said = {
        name: value for name, value, who in settings if (name, who) != (Option.MEMORY_LIMIT.value, "default")
    }
    limit = said.get(Option.MEMORY_LIMIT.value)
    if limit is None:
        return "there is no memory_limit"
    off = said.get(Option.MANAGER.value) == Managing.OFF.value
    return f"memory_limit is {limit}, and " + (
        "the manager is off" if off else "nothing has been measured yet"
    )
