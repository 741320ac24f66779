"""The bounds between streams, as SHOW SKEWS lists them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.catalog.definitions import Definitions
from headrace.engine.shown.status import Status
from headrace.heartbeats.skew import Bound
from headrace.heartbeats.timing import Deviation, Follow
from headrace.runtime.writing.texts import count
from headrace.time import TimeDomain, format_length


def skew_rows(definitions: Definitions, status: Status | None) -> list[tuple[str, ...]]:
    """From which streams, to which, after what wait, and how far behind: a row for each bound.

    Args:
        definitions: the streams.
        status: of a run that goes on or is over, which knows the bounds that are estimated; None if nothing
            has been run.
    """
    followers: dict[Follow, list[str]] = {}
    for name, stream in definitions.inputs.items():
        for follow in stream.stream.timing.follows:
            followers.setdefault(follow, []).append(name)
    rows: list[tuple[str, ...]] = []
    for follow, names in followers.items():
        ends = ", ".join(follow.streams), ", ".join(names)
        domain = definitions.inputs[names[0]].info.domain
        if follow.estimated is not None:
            for wait in follow.waits:
                behind = _estimated(names, follow, wait, domain, status)
                rows.append((*ends, format_length(wait, TimeDomain.TIMESTAMP), behind))
        rows += [(*ends, _wait(bound), _behind(bound, domain)) for bound in follow.bounds]
    return [*rows, *_deviations(definitions)]


def _deviations(definitions: Definitions) -> list[tuple[str, ...]]:
    """From which clock, which streams deviate, and how far to either side."""
    deviating: dict[Deviation, list[str]] = {}
    for name, stream in definitions.inputs.items():
        if (deviation := stream.stream.timing.deviation) is not None:
            deviating.setdefault(deviation, []).append(name)
    at_once = format_length(0, TimeDomain.TIMESTAMP)
    return [
        (
            one.clock or "true time",
            ", ".join(names),
            at_once,
            f"{format_length(one.length, one.domain)} either way",
        )
        for one, names in deviating.items()
    ]


def _wait(bound: Bound) -> str:
    return count(bound.rows, "row") if bound.rows else format_length(bound.wait, TimeDomain.TIMESTAMP)


def _behind(bound: Bound, domain: TimeDomain) -> str:
    return format_length(bound.delta - 1, domain) if bound.delta else "strict"


def _estimated(
    names: Sequence[str], follow: Follow, wait: int, domain: TimeDomain, status: Status | None
) -> str:
    """The bound in force, which is the weakest of the streams that share it."""
    known = [
        skew.behind
        for stream in (status.streams if status is not None else ())
        for skew in stream.skews
        if stream.name in names and skew.wait == wait and {*skew.streams} == {*follow.streams} - {stream.name}
    ]
    found = max((behind for behind in known if behind is not None), default=None)
    return "estimated" if found is None else f"{format_length(found, domain)} (estimated)"
