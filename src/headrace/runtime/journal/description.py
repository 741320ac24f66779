"""What a durable store is for: the queries and streams of its run, as its files describe them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any, Final, TypeVar

from headrace.algebra.arrival import Unit
from headrace.algebra.horizon import Horizon
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.memory import Memory
from headrace.algebra.system_streams import system_stream
from headrace.algebra.tunings.tunings import Tunings
from headrace.errors import StoreError
from headrace.lowering.graph import Merge
from headrace.lowering.identity import STATE_FORMAT
from headrace.lowering.query_id import first_name
from headrace.runtime.journal.definition import Definition, packed_definition, unpacked_definition
from headrace.runtime.journal.forms import Form, packed_form, unpacked_form
from headrace.runtime.journal.gap import Gap, with_gap
from headrace.runtime.journal.plans import Packed
from headrace.runtime.journal.sizes import packed_tunings, unpacked_tunings
from headrace.time import INFINITY, TimeDomain

T = TypeVar("T")

_UNSAID: Final = 7
"""The format of the state of a store whose records do not say it."""

_SHOWN: Final = 400
"""So many characters of what a stream is read from are shown at most."""


@dataclass(frozen=True)
class WarmStart:
    """How a query began that took over the state of another one.

    Attributes:
        since: the epoch since which its rows have come.
        answers_from: the heartbeat from which it answers (instant).
    """

    since: int
    answers_from: int


@dataclass(frozen=True)
class Paused:
    """A query that is not answered until it is resumed.

    Attributes:
        identity: that of its plan.
        start: the epoch from which on it has answered.
        since: the epoch that has paused it.
        heartbeat: up to where its answer is final meanwhile (instant).
        form: what readers have to know of it.
        keeps: the streams whose rows are kept meanwhile.
    """

    identity: str
    start: int
    since: int
    heartbeat: int
    form: Form
    keeps: tuple[str, ...] = ()


def gaps_of(query: str, gaps: Mapping[str, tuple[Gap, ...]], paused: Mapping[str, Paused]) -> tuple[Gap, ...]:
    """The instants about which a query says nothing.

    Args:
        query: its name.
        gaps: per query those of pauses that are over, and of replacements.
        paused: the queries that are paused.
    """
    known, now = gaps.get(query, ()), paused.get(query)
    lacks = now is not None and not now.keeps and now.heartbeat != INFINITY
    return with_gap(known, Gap(now.heartbeat, None)) if now is not None and lacks else known


@dataclass(frozen=True)
class Description:
    """The queries and streams of a run; what is known of queries is by their identities.

    Attributes:
        queries: per query the identity of its plan.
        streams: per stream what it is read from, and how it is timed.
        buckets: how many buckets its state is spread over.
        query_domains, stream_domains: what the instants of each count, for whoever looks into the store.
        starts: the epoch from which on a query answers; 1 if it is not named.
        keeps_results: whether results are stored, or only counted.
        forms: what readers have to know of each query; none where an earlier Headrace has written it.
        choices: per query what was decided about how it runs that does not follow from its text, as JSON has
            it, so that a restart decides the same.
        shared: what queries are carried out as that share more than equal plans, as `journal.plans` packs it.
        merges: the operators whose state has become that of older ones.
        exchanges: per query whose plan was exchanged what answers it now, as JSON.
        warm: how those queries began that took over the state of others, or were resumed.
        operators: what operators with state do, by identity, for whoever looks into the store.
        paused: the queries that are not answered until they are resumed.
        catalog: all that is defined, in order; None where an earlier Headrace has written it.
        horizons: up to where those queries speak that do not wait for their heartbeats.
        levels: the epochs in which the queries came to their levels of consistency that have had others.
        gaps: per query that has been paused or replaced the instants about which it says nothing.
        memories: per query that remembers its streams for less than they allow, for how long; None where an
            earlier Headrace has written it.
        earlier: per query another identity by which an earlier Headrace has known it; it is not stored.
        state_format: the format of the operators' state.
        names: what queries are called whose identity does not say it, since they were renamed.
        made: how many queries the store has had; none of them has its identity again.
        tunings: the sizes of windows within bounds that have changed.
    """

    queries: Mapping[str, str]
    streams: Mapping[str, str]
    buckets: int
    query_domains: Mapping[str, TimeDomain] = field(default_factory=dict)
    stream_domains: Mapping[str, TimeDomain] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    keeps_results: bool = True
    forms: Mapping[str, Form] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shared: Packed = field(default_factory=dict)
    merges: tuple[Merge, ...] = ()
    exchanges: Mapping[str, Any] = field(default_factory=dict)
    warm: Mapping[str, WarmStart] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    paused: Mapping[str, Paused] = field(default_factory=dict)
    catalog: tuple[Definition, ...] | None = None
    horizons: Mapping[str, Horizon] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)
    memories: Mapping[str, tuple[Memory, ...]] | None = field(default_factory=dict)
    earlier: Mapping[str, str] = field(default_factory=dict)
    state_format: int = STATE_FORMAT
    names: Mapping[str, str] = field(default_factory=dict)
    made: int = 0
    tunings: Tunings = field(default_factory=dict)

    def name_of(self, query: str) -> str:
        """What a query is called, or was when it was dropped."""
        return self.names.get(query) or first_name(query)

    def id_of(self, name: str) -> str | None:
        """The identity of the query of a name that is answered or paused; None if there is none."""
        known = (*self.queries, *self.paused)
        return next((query for query in known if self.name_of(query).lower() == name.lower()), None)

    def gaps_of(self, query: str) -> tuple[Gap, ...]:
        """The instants about which a query says nothing, the one included in which it is paused."""
        return gaps_of(query, self.gaps, self.paused)

    def domain_of(self, stream: str) -> TimeDomain:
        """What the instants of a stream count; integers where the store does not say it."""
        if stream_of_letters(stream) is not None or system_stream(stream) is not None:
            return TimeDomain.TIMESTAMP
        return self.stream_domains.get(stream, TimeDomain.INTEGER)

    def without(self, left_out: Collection[str]) -> Description:
        """The same without some queries that are given, and of which nothing has been committed."""

        def left(part: Mapping[str, T]) -> dict[str, T]:
            return {name: found for name, found in part.items() if name not in left_out}

        return replace(
            self,
            queries=left(self.queries),
            query_domains=left(self.query_domains),
            forms=left(self.forms),
            choices=left(self.choices),
        )

    def forgetting(self, queries: Collection[str]) -> Description:
        """The same without what is known of how some queries are carried out, whose state cannot be read."""
        kept = {name: identity for name, identity in self.queries.items() if name not in queries}
        if kept:
            return replace(self, queries=kept)
        return replace(self, queries={}, shared={}, merges=(), exchanges={})

    @property
    def readable(self) -> Mapping[str, Form]:
        """What readers have to know of the queries that are answered or paused, as far as it is recorded."""
        return {**self.forms, **{name: one.form for name, one in self.paused.items()}}

    @property
    def answer_domains(self) -> Mapping[str, TimeDomain]:
        """What the instants of the answers count, those of paused queries included."""
        return {**self.query_domains, **{name: one.form.domain for name, one in self.paused.items()}}

    @property
    def to_pause(self) -> frozenset[str]:
        """The queries that are defined and not answered."""
        defined = {one.id for one in self.catalog or () if one.kind == "QUERY"}
        return frozenset(defined - self.queries.keys())


@dataclass(frozen=True)
class Differences:
    """How the queries of a run differ from those of its store.

    Attributes:
        added, dropped: the queries that only the run has, and those that only the store has; a query that is
            paused is one that both have.
        anew: those that both have and this Headrace carries out in another way: their state is of no use.
        names: what those queries are called whose identity does not say it.
    """

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def named(self) -> Differences:
        """The same with names in the place of identities."""

        def named(queries: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(self.names.get(query) or first_name(query) for query in queries)

        return Differences(named(self.added), named(self.dropped), named(self.anew))

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


def packed(description: Description) -> dict[str, Any]:
    """A description as JSON has it."""
    content = asdict(
        replace(description, forms={}, shared={}, paused={}, catalog=None, memories=None, tunings={})
    )
    del content["earlier"], content["tunings"]
    if description.tunings:
        content["tunings"] = packed_tunings(description.tunings)
    content["memories"] = {
        name: [[one.stream, one.length, one.unit.value] for one in memories]
        for name, memories in (description.memories or {}).items()
    }
    content["shared"] = description.shared
    content["forms"] = {name: packed_form(form) for name, form in description.forms.items()}
    content["paused"] = {
        name: {**vars(one), "form": packed_form(one.form)} for name, one in description.paused.items()
    }
    content["horizons"] = {
        name: {**vars(horizon), "unit": horizon.unit.value} for name, horizon in description.horizons.items()
    }
    if description.catalog is not None:
        content["catalog"] = [packed_definition(one) for one in description.catalog]
    for domains in ("query_domains", "stream_domains"):
        content[domains] = {name: domain.value for name, domain in content[domains].items()}
    return content


def unpacked(content: Mapping[str, Any]) -> Description:
    """A description from its JSON.

    Raises:
        KeyError: a part is missing.
        TypeError: a merge or a start has other parts.
        ValueError: there is no such type or time domain.
    """
    catalog = content.get("catalog")
    return Description(
        content["queries"],
        content["streams"],
        content["buckets"],
        _domains(content["query_domains"]),
        _domains(content["stream_domains"]),
        content["starts"],
        content["keeps_results"],
        {name: unpacked_form(form) for name, form in content.get("forms", {}).items()},
        content.get("choices", {}),
        content.get("shared", {}),
        tuple(Merge(**merge) for merge in content.get("merges", ())),
        content.get("exchanges", {}),
        {name: WarmStart(**start) for name, start in content.get("warm", {}).items()},
        content.get("operators", {}),
        {
            name: Paused(**{**one, "form": unpacked_form(one["form"]), "keeps": tuple(one.get("keeps", ()))})
            for name, one in content.get("paused", {}).items()
        },
        None if catalog is None else tuple(map(unpacked_definition, catalog)),
        {
            name: Horizon(
                tuple(horizon["streams"]),
                horizon["block"],
                tuple(horizon.get("relations", ())),
                Unit(horizon.get("unit", Unit.TIME.value)),
            )
            for name, horizon in content.get("horizons", {}).items()
        },
        content.get("levels", {}),
        {name: tuple(Gap(**gap) for gap in gaps) for name, gaps in content.get("gaps", {}).items()},
        _memories(content.get("memories")),
        state_format=content.get("state_format", _UNSAID),
        names=content.get("names", {}),
        made=content.get("made", 0),
        tunings=unpacked_tunings(content.get("tunings", ())),
    )


def _memories(content: Mapping[str, Any] | None) -> dict[str, tuple[Memory, ...]] | None:
    if content is None:
        return None
    return {
        name: tuple(Memory(stream, length, Unit(unit)) for stream, length, unit in memories)
        for name, memories in content.items()
    }


def _domains(content: Mapping[str, str]) -> dict[str, TimeDomain]:
    return {name: TimeDomain(domain) for name, domain in content.items()}


def differences(theirs: Description, ours: Description, folder: str) -> Differences:
    """How a run differs from what its store is for, where it may.

    Args:
        theirs: what the store is for.
        ours: what the run is.
        folder: the store's, for messages.

    Raises:
        StoreError: a query or a stream of the same name is another one, or only one of the two keeps results:
            an answer that lacks some epochs would look like a whole one.
    """
    if theirs.keeps_results != ours.keeps_results:
        how = "keeps results, and this run would not" if theirs.keeps_results else "keeps no results"
        raise StoreError(
            f"the store {folder} {how}",
            hint="start it as before, with or without keep_results=False (--format null), or choose an empty "
            "folder",
        )
    for name in sorted(ours.streams.keys() & theirs.streams.keys()):
        if theirs.streams[name] != ours.streams[name]:
            raise _another_stream(name, theirs.streams[name], ours.streams[name], folder)
    paused = {name: one.identity for name, one in theirs.paused.items()}
    known = {**theirs.queries, **paused}
    others = [
        name
        for name in sorted(ours.queries.keys() & known.keys())
        if known[name] not in (ours.queries[name], ours.earlier.get(name))
    ]
    for name in others:
        if not _is_same_text(name, theirs, ours):
            raise _another_query(ours.name_of(name), theirs, folder)
    return Differences(
        tuple(sorted(ours.queries.keys() - known.keys())),
        tuple(sorted(known.keys() - ours.queries.keys() - ours.to_pause)),
        tuple(others),
        {**theirs.names, **ours.names},
    )


def _is_same_text(query: str, theirs: Description, ours: Description) -> bool:
    """Whether a query means the same in both: its text is the same, and so are those of what it may read."""
    stored, given = (
        {(one.kind, one.id or one.name): one for one in of.catalog or ()} for of in (theirs, ours)
    )
    if ("QUERY", query) not in stored.keys() & given.keys():
        return False
    read = [key for key in stored.keys() & given.keys() if key[0] in ("STREAM", "RELATION")]
    return all(
        (stored[key].text, stored[key].dialect) == (given[key].text, given[key].dialect)
        for key in (("QUERY", query), *read)
    )


def _another_stream(name: str, stored: str, given: str, folder: str) -> StoreError:
    one, other = where_they_differ(stored, given)
    return StoreError(
        f"the store {folder} is for another stream {name} than the one given now: over {one}, not {other}",
        hint="start with the text that made the store, and what ALTER STREAM changed since then, "
        "or give this one another name",
    )


def _another_query(name: str, theirs: Description, folder: str) -> StoreError:
    """Why a query of a store is not the one of the same name that a run has."""
    perhaps = "; if it is that, use the version that wrote it" if theirs.catalog is None else ""
    return StoreError(
        f"the store {folder} is for another query {name} than the one given now",
        hint=f"start with the text that made the store{perhaps}, or give this one another name",
    )


def where_they_differ(one: str, other: str) -> tuple[str, str]:
    """Two texts, of long ones only the part in which they differ."""
    if max(len(one), len(other)) <= _SHOWN:
        return one, other
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    part = slice(max(same - _SHOWN // 4, 0), same + _SHOWN)
    return f"...{one[part]}...", f"...{other[part]}..."


def refuse(found: Differences, theirs: Description, folder: str) -> None:
    """Refuse a run to the end of its input that has queries which its store lacks, or has otherwise.

    What a store with a catalog has is dropped only where that was said; others know what they were given.

    Args:
        found: how it differs from the store.
        theirs: what the store is for.
        folder: the store's.

    Raises:
        StoreError: there is such a difference.
    """
    if found.dropped and theirs.catalog is None:
        raise StoreError(
            f"the store {folder} has a query {theirs.name_of(found.dropped[0])}, which is not given now",
            hint="give it as well, or choose an empty folder",
        )
    if found.anew:
        name = theirs.name_of(found.anew[0])
        raise StoreError(
            f"the store {folder} carries out the query {name} in another way than this Headrace would, and "
            "what was read is not read again",
            hint="use the version that wrote it, with the same functions; or choose an empty folder",
        )
    if found.added:
        name = first_name(found.added[0])
        raise StoreError(
            f"the store {folder} has no query {name}, and what was read is not read again",
            hint="choose an empty folder",
        )
