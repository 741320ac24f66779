"""The windows whose size may change, and the shares of rows kept, as SHOW TUNINGS lists them."""

from __future__ import annotations

from headrace.algebra.tunings.tunings import Tuning, Tunings, size_of, tunings_in
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.shown.status import instant_text
from headrace.steps import share_text
from headrace.time import TimeDomain, format_length


def tuning_rows(definitions: Definitions, tunings: Tunings) -> list[tuple[str, ...]]:
    """The streams of each window, its bounds, its size, since when, and the queries that have it.

    A share has 0 and 1 for bounds, and what may be lost behind its streams.

    Args:
        definitions: the streams and queries.
        tunings: the sizes that have changed, of a run that goes on or is over; none if nothing has been run.
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
        if tuning.loss:
            texts = ["0", "1", share_text(lengths[-1])]
        else:
            texts = [format_length(length, domain) for length in lengths]
        of = " ".join(filter(None, [", ".join(tuning.streams), tuning.loss]))
        rows.append((of, *texts, since, ", ".join(names)))
    return rows
