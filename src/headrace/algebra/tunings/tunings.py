"""The numbers of plans that may change over time: sizes of windows within bounds, and shares of rows kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.algebra.nodes import Plan, TimeWindow, Weighing
from headrace.algebra.properties import sources_of, walk
from headrace.errors import UserError
from headrace.steps import WHOLE, StepFunction, value_at
from headrace.time import INFINITY


class Tuning(NamedTuple):
    """Windows that have one size: all those of the same streams with the same bounds.

    Or queries of which one share of the rows is kept: those of the same streams that bear the same loss. It
    is a number of millionths, from 1 on.

    It does not depend on what is done to the rows below a window, which the optimizer and queries that are
    there besides may change.

    Attributes:
        streams: the names of the streams below, in order.
        smallest: the smallest size (instants).
        largest: the largest (instants), which they have before the first change.
        slide: how far apart the instants are at which they move.
        loss: what queries say that may be lost of their rows; empty for windows.
    """

    streams: tuple[str, ...]
    smallest: int
    largest: int
    slide: int
    loss: str = ""


@dataclass(frozen=True)
class Tuned:
    """The sizes of the windows of a tuning.

    Attributes:
        steps: the sizes after the first, with the instants from which on rows have them.
        queries: the identities of the queries that have such windows, paused ones included.
        why: why they have the last of these sizes, where nobody has asked for it; else empty.
    """

    steps: StepFunction
    queries: tuple[str, ...]
    why: str = ""


Tunings = Mapping[Tuning, Tuned]
"""The windows whose size has changed."""


_Tuned = TimeWindow | Weighing


def tuning_of(node: _Tuned) -> Tuning | None:
    """The tuning that a window or a share belongs to; None where a window's size cannot change."""
    if isinstance(node, Weighing):
        return Tuning(node.streams, 1, WHOLE, 1, node.loss)
    if node.smallest is None:
        return None
    names = sorted({source.name for source in sources_of(node)})
    return Tuning(tuple(names), node.smallest.length, node.size.length, node.slide.length)


def tunings_in(plan: Plan) -> tuple[Tuning, ...]:
    """The tunings of a plan, each once."""
    nodes = (node for node in walk(plan) if isinstance(node, _Tuned))
    return tuple(dict.fromkeys(found for node in nodes if (found := tuning_of(node)) is not None))


def windows_in(plan: Plan) -> tuple[Tuning, ...]:
    """Those of its windows."""
    return tuple(tuning for tuning in tunings_in(plan) if not tuning.loss)


def shares_in(plan: Plan) -> tuple[Tuning, ...]:
    """That of the share of its rows which is kept, if it bears loss."""
    return tuple(tuning for tuning in tunings_in(plan) if tuning.loss)


def tuned(plan: Plan, tunings: Tunings) -> Plan:
    """A node with the numbers that it has had, if one has changed; itself otherwise."""
    if not isinstance(plan, _Tuned) or (tuning := tuning_of(plan)) is None or tuning not in tunings:
        return plan
    return replace(plan, steps=tunings[tuning].steps)


def size_of(tuning: Tuning, tunings: Tunings) -> int:
    """The size that rows have that come from now on (instants)."""
    known = tunings.get(tuning)
    return tuning.largest if known is None else value_at(tuning.largest, known.steps, INFINITY)


def sized(tunings: Tunings, plans: Mapping[str, Plan]) -> dict[Tuning, Tuned]:
    """Those of some tunings that windows of queries have, with these as who has them."""
    found: dict[Tuning, Tuned] = {}
    for name, plan in plans.items():
        for tuning in tunings_in(plan):
            if tuning in tunings:
                users = found[tuning].queries if tuning in found else ()
                found[tuning] = replace(tunings[tuning], queries=(*users, name))
    return found


def followed(
    had: Tunings, plans: Mapping[str, Plan], theirs: Tunings, others: Mapping[str, Plan]
) -> dict[Tuning, Tuned]:
    """The sizes for queries that read rows again as the windows of others had them.

    Args:
        had: the sizes that they have had so far.
        plans: their plans, by identity.
        theirs: the sizes that windows of others have now.
        others: the plans of these.

    Raises:
        UserError: rows that have been read would have others, since the windows were forgotten meanwhile.
    """
    for tuning, tuned in had.items():
        steps = theirs[tuning].steps if tuning in theirs else ()
        # The last step may have got another size, before rows came that have it.
        *before, last = tuned.steps
        same = len(steps) > len(before) and [*steps[: len(before)]] == before
        same = same and steps[len(before)].begin == last.begin
        if not same and (tuning in theirs or any(tuning in tunings_in(plan) for plan in others.values())):
            raise UserError(
                f"windows of {', '.join(tuning.streams)} have begun anew meanwhile, with other sizes",
                hint="write the statement again",
            )
    return sized({**had, **theirs}, plans)


def used(
    known: Tunings, plans: Mapping[str, Plan], others: Iterable[Plan], paused: Iterable[str]
) -> dict[Tuning, Tuned]:
    """The tunings that are still in use after a change of the queries.

    A window has the size that it had for as long as a query that had it goes on. One that comes when all of
    these are gone begins with the largest.

    Args:
        known: the tunings before it.
        plans: the queries from then on, by identity.
        others: what is carried out besides, for some of them.
        paused: the queries that are paused, whose plans are not known.
    """
    if not known:
        return {}
    present: dict[Tuning, list[str]] = {}
    for name, plan in plans.items():
        for tuning in tunings_in(plan):
            present.setdefault(tuning, []).append(name)
    beside = {tuning for plan in others for tuning in tunings_in(plan)}
    waiting = set(paused)
    found = {}
    for tuning, tuned in known.items():
        users = present.get(tuning, [])
        kept = [name for name in tuned.queries if name in waiting and name not in users]
        if kept or tuning in beside or not set(users).isdisjoint(tuned.queries):
            found[tuning] = replace(tuned, queries=(*users, *kept))
    return found
