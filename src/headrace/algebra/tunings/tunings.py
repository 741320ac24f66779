"""The numbers of plans that may change over time.

They are sizes of windows of time and of rows, and granules, all within bounds; and shares of rows kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar, assert_never, cast

from headrace.algebra.nodes import (
    BoundedRowWindow,
    Draw,
    Granularity,
    LargestWeight,
    LimitedJoin,
    Plan,
    RowWindow,
    SemanticDrop,
    Shed,
    TimeWindow,
    Weighing,
    inputs_of,
    with_inputs,
)
from headrace.algebra.properties import granule_start, sources_of, walk
from headrace.errors import UserError
from headrace.steps import WHOLE, Scale, StepFunction, share_text, value_at
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain, format_length


class TuningKind(StrEnum):
    """A number of a plan that may change over time: what it is of."""

    WINDOW = "window"
    """The size of a window of time (instants)."""
    ROWS = "rows"
    """That of a window of rows (rows)."""
    GRANULE = "granule"
    """The length of a granule (instants)."""
    SHARE = "share"
    """The share of rows that are kept (millionths)."""
    REMEMBERED = "remembered"
    """The share of rows that joins remember (millionths)."""
    UTILITY = "utility"
    """The least utility of the values of rows that are kept (millionths)."""

    @property
    def noun(self) -> str:
        """The words for what a person changes."""
        return {TuningKind.ROWS: "window of rows", TuningKind.GRANULE: "granule"}.get(self, "window")

    @property
    def bounds(self) -> tuple[str, str]:
        """The words of the language for its smallest and its largest value."""
        return ("FINEST", "COARSEST") if self is TuningKind.GRANULE else ("MIN", "MAX")

    @property
    def word(self) -> str:
        """The word of the language before a value, as in SET (WINDOW 5 MINUTES)."""
        return "GRANULARITY" if self is TuningKind.GRANULE else "WINDOW"

    def first(self, smallest: int, largest: int) -> int:
        """The value before the first change, with which an answer says the most.

        Args:
            smallest, largest: its bounds.
        """
        return smallest if self in _RISING else largest

    def text(self, value: int, domain: TimeDomain) -> str:
        """One of its values, as it is written.

        Args:
            value: the value (instants, rows, or millionths).
            domain: what instants count.
        """
        match self:
            case TuningKind.SHARE | TuningKind.REMEMBERED | TuningKind.UTILITY:
                return share_text(value)
            case TuningKind.ROWS:
                return f"{value} ROWS"
            case _:
                return format_length(value, domain)


_RISING: Final = (TuningKind.GRANULE, TuningKind.UTILITY)
"""With the smallest of these an answer says the most."""


class Tuning(NamedTuple):
    """Windows that have one size: all those of the same streams with the same bounds.

    Or granularities that have one granule, of the same streams with the same bounds. Or queries of which one
    share of the rows is kept: those of the same streams that bear the same loss; or remembered, with the same
    plan and the same limit of memory. It is a number of millionths, from 1 on. Or queries that leave out rows
    whose values are worth less than a number of millionths, from 0 on.

    It does not depend on what is done to the rows below a window, which the optimizer and queries that are
    there besides may change.

    Attributes:
        streams: the names of the streams below, in order.
        smallest: the smallest size, or the finest granule (instants, or rows).
        largest: the largest size, or the coarsest granule.
        slide: how far apart the instants are at which they move.
        loss: what queries say that may be lost of their rows; empty for windows.
        kind: what the number is.
        number: which of the rows of such queries are remembered, from 0; 0 for all else.
        of: a digest of their plan; empty for all else.
    """

    streams: tuple[str, ...]
    smallest: int
    largest: int
    slide: int
    loss: str = ""
    kind: TuningKind = TuningKind.WINDOW
    number: int = 0
    of: str = ""

    @property
    def first(self) -> int:
        """The number before the first change, with which an answer says the most."""
        return self.kind.first(self.smallest, self.largest)

    @property
    def least(self) -> int:
        """The number with which the least is kept."""
        return self.largest if self.kind in _RISING else self.smallest


@dataclass(frozen=True)
class Tuned:
    """The sizes of the windows of a tuning.

    Attributes:
        steps: the sizes after the first, with the instants from which on rows have them.
        queries: the identities of the queries that have such windows, paused ones included.
        why: why they have the last of these sizes, where nobody has asked for it; else empty.
        lacks_earlier: whether sizes from before the steps have been forgotten, the first one among them.
        scales: of a share how large rows usually are, by which it is kept of them; see `Shed`.
    """

    steps: StepFunction
    queries: tuple[str, ...]
    why: str = ""
    lacks_earlier: bool = False
    scales: tuple[Scale, ...] = ()


_FEW: Final = 10_000
"""Up to so many times one granule is tried in another one where others are proposed."""

Tunings = Mapping[Tuning, Tuned]
"""The windows whose size has changed."""


_LOST: Final = (TuningKind.SHARE, TuningKind.UTILITY)
"""The kinds of numbers by which rows are left out."""

_Node = TypeVar("_Node", bound=Plan)
TunedNode = TimeWindow | BoundedRowWindow | Granularity | Weighing
"""The nodes of which a number may change."""


MILLIONTHS: Final = (TuningKind.SHARE, TuningKind.REMEMBERED, TuningKind.UTILITY)
"""The kinds of numbers from 0 to 1: they are parts of something, and not sizes."""


def remembering(node: Draw | LimitedJoin, number: int) -> Tuning:
    """The tuning of rows of which joins remember a share.

    Args:
        node: of the query's plan.
        number: which of its rows they are.
    """
    return Tuning(node.streams, 1, WHOLE, 1, node.loss, TuningKind.REMEMBERED, number, node.of)


def tuning_of(node: TunedNode) -> Tuning | None:
    """The tuning that a window, granules or a share belong to; None where nothing of a node can change."""
    match node:
        case Draw(number=number):
            return remembering(node, number)
        case SemanticDrop(streams=streams, loss=loss):
            return Tuning(streams, 0, WHOLE, 1, loss, TuningKind.UTILITY)
        case Weighing(streams=streams, loss=loss):
            return Tuning(streams, 1, WHOLE, 1, loss, TuningKind.SHARE)
        case TimeWindow(smallest=None) | Granularity(coarsest=None):
            return None
    names = tuple(sorted({source.name for source in sources_of(node)}))
    match node:
        case BoundedRowWindow(rows=rows, smallest=least):
            return Tuning(names, least, rows, 1, kind=TuningKind.ROWS)
        case Granularity(granule=finest, longest=coarsest):
            return Tuning(names, finest.length, coarsest.length, 1, kind=TuningKind.GRANULE)
        case TimeWindow(size=size, slide=slide, smallest=Duration(length=shortest)):
            return Tuning(names, shortest, size.length, slide.length)
    return None


def tunings_in(plan: Plan) -> tuple[Tuning, ...]:
    """The tunings of a plan, each once."""
    nodes = (node for node in walk(plan) if isinstance(node, TunedNode))
    return tuple(dict.fromkeys(found for node in nodes if (found := tuning_of(node)) is not None))


def sizes_in(plan: Plan) -> tuple[Tuning, ...]:
    """Those of its windows, of time or of rows, and of its granules."""
    return tuple(tuning for tuning in tunings_in(plan) if tuning.kind not in MILLIONTHS)


def shares_in(plan: Plan) -> tuple[Tuning, ...]:
    """That of the share of its rows which is kept, if it bears loss."""
    return tuple(tuning for tuning in tunings_in(plan) if tuning.kind is TuningKind.SHARE)


def thresholds_in(plan: Plan) -> tuple[Tuning, ...]:
    """That of the least utility of its rows, if it leaves out rows by their values."""
    return tuple(tuning for tuning in tunings_in(plan) if tuning.kind is TuningKind.UTILITY)


def movable_in(plan: Plan) -> tuple[Tuning, ...]:
    """Those of the rows that it may lose: of the share that is kept, or of their least utility."""
    return tuple(tuning for tuning in tunings_in(plan) if tuning.kind in _LOST)


def remembered_in(plan: Plan) -> tuple[Tuning, ...]:
    """Those of the shares of its rows that its joins remember, if it has a limit of memory."""
    return tuple(tuning for tuning in tunings_in(plan) if tuning.kind is TuningKind.REMEMBERED)


def nests(tuning: Tuning, granule: int) -> bool:
    """Whether a granule is a multiple of the finest and divides the coarsest (instants)."""
    return granule > 0 and granule % tuning.smallest == 0 == tuning.largest % granule


def granules_of(tuning: Tuning) -> tuple[int, ...]:
    """The granules that nest, finest first (instants): few times the finest, or few times in the coarsest.

    Args:
        tuning: of granules.
    """
    whole = tuning.largest // tuning.smallest
    few = [times for times in range(1, min(whole, _FEW) + 1) if whole % times == 0]
    return tuple(sorted({size * tuning.smallest for times in few for size in (times, whole // times)}))


def granules_around(tuning: Tuning, granule: int) -> tuple[int, int]:
    """The granules that nest on both sides of one that does not, the finer and the coarser one (instants).

    Args:
        tuning: of granules.
        granule: between their bounds.
    """
    found = granules_of(tuning)
    return max(one for one in found if one < granule), min(one for one in found if one > granule)


def first_instant(tuning: Tuning, steps: StepFunction, unseen: int, value: int) -> int:
    """The first instant at which a number may be another one.

    A granule ends with itself, unless the next one is a multiple: so the rows of later instants begin no
    earlier than those of earlier ones, and what heartbeats promise stays true (thesis, section 21.2.2). It
    holds at the first instant of which nothing is known, too: up to there something may have been said, and
    a coarser granule there would have more said by the change alone.

    Args:
        tuning: says which number it is.
        steps: those that it has had.
        unseen: the first instant of which no row has come and no heartbeat has told.
        value: the other number.
    """
    if tuning.kind is not TuningKind.GRANULE:
        return unseen
    # One that is still to begin may be another one, but begins when it was to.
    since = max((unseen if unseen == BEGINNING else unseen + 1, *(step.begin for step in steps)))
    granule = value_at(tuning.first, steps, since)
    return since if value % granule == 0 else granule_start(since, granule)


def tuned(plan: _Node, tunings: Tunings) -> _Node:
    """A node with the numbers that it has had, if one has changed; itself otherwise."""
    if isinstance(plan, LimitedJoin):
        rows = tuple(
            replace(one, steps=known.steps)
            if (known := tunings.get(remembering(plan, one.number))) is not None
            else one
            for one in plan.remembered
        )
        return plan if rows == plan.remembered else cast(_Node, replace(plan, remembered=rows))
    if not isinstance(plan, TunedNode) or (tuning := tuning_of(plan)) is None or tuning not in tunings:
        return plan
    known = tunings[tuning]
    if isinstance(plan, Shed | LargestWeight):
        return cast(_Node, replace(plan, steps=known.steps, scales=known.scales))
    return cast(_Node, replace(plan, steps=known.steps))


def with_sizes(plan: Plan, size: Callable[[Tuning], int]) -> Plan:
    """A plan whose windows and granules have one size each for ever, in place of bounds; shares stay.

    Args:
        plan: the plan.
        size: says which size (instants, or rows).
    """
    plan = with_inputs(plan, tuple(with_sizes(below, size) for below in inputs_of(plan)))
    if not isinstance(plan, TunedNode) or (tuning := tuning_of(plan)) is None:
        return plan
    match plan:
        case TimeWindow():
            return replace(plan, size=replace(plan.size, length=size(tuning)), smallest=None, steps=())
        case BoundedRowWindow(input=below, keys=keys):
            return RowWindow(below, size(tuning), keys=keys)
        case Granularity(granule=finest):
            return replace(plan, granule=replace(finest, length=size(tuning)), coarsest=None, steps=())
        case Weighing():
            return plan
        case _:
            assert_never(plan)


def size_of(tuning: Tuning, tunings: Tunings) -> int:
    """The number that is to hold from now on: of instants, of rows, or of millionths."""
    known = tunings.get(tuning)
    return tuning.first if known is None else value_at(tuning.first, known.steps, INFINITY)


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
