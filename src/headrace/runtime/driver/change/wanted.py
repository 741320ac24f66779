"""What a run may be asked to be from an epoch on: one frozen value for each kind of change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import Tuning
from headrace.lowering.lower import Holds
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.change.pause import KnownQuery
from headrace.runtime.driver.change.warm import Derivation
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import Streams
from headrace.runtime.journal.description import Description
from headrace.time import BEGINNING


@dataclass(frozen=True)
class AnswerStart:
    """Since when a query that is added is to answer.

    Attributes:
        at: from that instant on; BEGINNING for all that is kept.
        back: so long before its streams' heartbeat (instants), instead of an instant; or None.
        now: from the streams' heartbeats on, over the rows that come from then on alone.
        letters: whether it has the rows as well that came too late for the streams, as far as they are kept.
    """

    at: int = BEGINNING
    back: int | None = None
    now: bool = False
    letters: bool = False


Starts = Mapping[str, AnswerStart | None]
"""Since when queries answer that begin or go on; None from now on, with what is there from before."""


@dataclass(frozen=True)
class Wanted:
    """What a run is to answer from a change on, all of it.

    Attributes:
        plans: all queries, optimized.
        streams: all streams by name; how far others have been read is forgotten.
        description: the same for a store; as it was if None.
        holds: which operators of a query wait for others.
        to_pause: the queries that are not answered until they are among the plans again.
        names: of the queries that have been renamed, by identity; as before if None.
    """

    plans: Mapping[str, Plan]
    streams: Streams
    description: Description | None = None
    holds: Mapping[str, Holds] = field(default_factory=dict)
    to_pause: Collection[str] = ()
    names: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Redefine:
    """Queries come and go, are paused and resumed, or go on at other levels of consistency.

    Which of that happens to which query follows from what the run answers now. One that is new or resumed
    answers from its streams' present heartbeats on, over the rows that arrive from now on.

    Attributes:
        wanted: what the run is from then on.
        warm: the new queries that take over the state of others, and how each follows from their answers.
        known: what is known of queries that may be paused; of those that are answered if None.
        keeping: of queries that are paused, the streams whose rows are kept meanwhile.
        starts: since when those queries are to answer that begin with it, of which that was said.
    """

    wanted: Wanted
    warm: Mapping[str, Derivation] = field(default_factory=dict)
    known: Mapping[str, KnownQuery] | None = None
    keeping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    starts: Starts = field(default_factory=dict)


@dataclass(frozen=True)
class Replace:
    """Another plan answers under the name of a query.

    Attributes:
        wanted: what the run is from then on; no other query is new or gone.
        name: the query's.
        goes_on: whether the answer so far goes on in that of the other plan, which has the same columns.
    """

    wanted: Wanted
    name: str
    goes_on: bool = True


@dataclass(frozen=True)
class JoinRun:
    """A query that was brought to the present beside the run is answered by it from then on.

    Attributes:
        wanted: what the run is from then on; no other query is new.
        found: what the query begins with.
    """

    wanted: Wanted
    found: Joining


@dataclass(frozen=True)
class Rename:
    """A query gets another name.

    Attributes:
        query: the query.
        name: its other name.
        description: what the run is from then on; as it was if None.
    """

    query: str
    name: str
    description: Description | None = None


@dataclass(frozen=True)
class Tune:
    """Windows get another size within their bounds.

    Attributes:
        sizes: by what says which size windows have (instants).
        queries: the identities of those that have the windows, paused ones included, whose plans a run does
            not know.
        why: why they get it, of those for which nobody has asked for it.
        means: of shares how large the rows were that came, on average, by the names of their sizes.
    """

    sizes: Mapping[Tuning, int]
    queries: Mapping[Tuning, Sequence[str]]
    why: Mapping[Tuning, str] = field(default_factory=dict)
    means: Mapping[Tuning, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Queries are put behind the others, in a lane of their own, or come back.

    Attributes:
        queries: their identities; all that are in the lanes of those that come back.
        behind: whether they are put behind; those that come back are where their streams are.
    """

    queries: tuple[str, ...]
    behind: bool


@dataclass(frozen=True)
class Settle:
    """Input is cut, and results are kept, in another way from the next epoch on.

    Attributes:
        settings: how; of them what a run can change: not its clock, nor over what state is spread.
        max_dead_letters: how many dead letters there may be; any number if None.
    """

    settings: RunSettings
    max_dead_letters: int | None


PlanChange = Redefine | Replace | JoinRun | Rename | Tune | Placement
"""Changes of what a run answers; each is an epoch of its own, without input."""

RunChange = PlanChange | Settle
"""All that can be changed of a run between two epochs."""
