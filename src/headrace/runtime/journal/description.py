"""What a durable store is for: the queries and streams of its run, as its files describe them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, TypeVar

from headrace.algebra.letters import stream_of_letters
from headrace.algebra.system_streams import system_stream
from headrace.algebra.tunings.tunings import Tunings
from headrace.errors import StoreError
from headrace.lowering.graph import Merge
from headrace.lowering.identity import STATE_FORMAT
from headrace.lowering.query_id import first_name
from headrace.runtime.journal.definition import Definition, packed_definition, unpacked_definition
from headrace.runtime.journal.described_query import (
    DescribedQuery,
    Paused,
    PausedQuery,
    packed_query,
    records_of_maps,
    unpacked_query,
)
from headrace.runtime.journal.forms import Form
from headrace.runtime.journal.gap import Gap
from headrace.runtime.journal.plans import Packed
from headrace.runtime.journal.sizes import packed_tunings, unpacked_tunings
from headrace.time import INFINITY, TimeDomain

T = TypeVar("T")

_UNSAID: Final = 7
"""The format of the state of a store whose records do not say it."""

_SHOWN: Final = 400
"""So many characters of what a stream is read from are shown at most."""


@dataclass(frozen=True)
class Description:
    """The queries and streams of a run.

    Attributes:
        queries: what is known of each query that is answered or paused, by identity.
        streams: per stream what it is read from, and how it is timed.
        buckets: how many buckets its state is spread over.
        stream_domains: what the instants of each stream count, for whoever looks into the store.
        keeps_results: whether results are stored, or only counted.
        shared: what queries are carried out as that share more than equal plans, as `journal.plans` packs it.
        merges: the operators whose state has become that of older ones.
        exchanges: per query whose plan was exchanged what answers it now, as JSON.
        operators: what operators with state do, by identity, for whoever looks into the store.
        catalog: all that is defined, in order; None where an earlier Headrace has written it.
        state_format: the format of the operators' state.
        names: what queries are called whose identity does not say it, since they were renamed.
        made: how many queries the store has had; none of them has its identity again.
        tunings: the sizes of windows within bounds that have changed.
    """

    queries: Mapping[str, DescribedQuery | PausedQuery]
    streams: Mapping[str, str]
    buckets: int
    _: KW_ONLY
    stream_domains: Mapping[str, TimeDomain] = field(default_factory=dict)
    keeps_results: bool = True
    shared: Packed = field(default_factory=dict)
    merges: tuple[Merge, ...] = ()
    exchanges: Mapping[str, Any] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    catalog: tuple[Definition, ...] | None = None
    state_format: int = STATE_FORMAT
    names: Mapping[str, str] = field(default_factory=dict)
    made: int = 0
    tunings: Tunings = field(default_factory=dict)

    @cached_property
    def answered(self) -> dict[str, DescribedQuery]:
        """The queries that are answered, or have ended early."""
        return {query: one for query, one in self.queries.items() if isinstance(one, DescribedQuery)}

    @cached_property
    def paused(self) -> dict[str, Paused]:
        """The queries that are not answered until they are resumed."""
        return {query: one.paused for query, one in self.queries.items() if isinstance(one, PausedQuery)}

    def name_of(self, query: str) -> str:
        """What a query is called, or was when it was dropped."""
        return self.names.get(query) or first_name(query)

    def id_of(self, name: str) -> str | None:
        """The identity of the query of a name that is answered or paused; None if there is none."""
        return next((query for query in self.queries if self.name_of(query).lower() == name.lower()), None)

    def start_of(self, query: str) -> int:
        """The epoch from which on a query answers, or has answered."""
        return self.queries[query].start if query in self.queries else 1

    def gaps_of(self, query: str) -> tuple[Gap, ...]:
        """The instants about which a query says nothing, those included in which it is paused."""
        one = self.queries.get(query)
        return one.all_gaps if isinstance(one, PausedQuery) else one.gaps if one is not None else ()

    def sized_from(self, query: str) -> int:
        """The first instant that a query answers with its present windows within bounds; INFINITY if gone."""
        return self.queries[query].sized_from if query in self.queries else INFINITY

    def form_of(self, query: str) -> Form | None:
        """What readers have to know of a query; None where that is not recorded."""
        one = self.queries.get(query)
        return one.paused.form if isinstance(one, PausedQuery) else one.form if one is not None else None

    def domain_of_answer(self, query: str) -> TimeDomain:
        """What the instants of an answer count; integers where the store does not say it."""
        one = self.queries.get(query)
        if isinstance(one, PausedQuery):
            return one.paused.form.domain
        return TimeDomain.INTEGER if one is None else one.domain

    def domain_of(self, stream: str) -> TimeDomain:
        """What the instants of a stream count; integers where the store does not say it."""
        if stream_of_letters(stream) is not None or system_stream(stream) is not None:
            return TimeDomain.TIMESTAMP
        return self.stream_domains.get(stream, TimeDomain.INTEGER)

    def without(self, left_out: Collection[str]) -> Description:
        """The same without some queries that are given, and of which nothing has been committed."""
        return replace(
            self, queries={name: one for name, one in self.queries.items() if name not in left_out}
        )

    def forgetting(self, queries: Collection[str]) -> Description:
        """The same without what is known of how some queries are carried out, whose state cannot be read."""
        kept = {
            query: one
            for query, one in self.queries.items()
            if query not in queries or isinstance(one, PausedQuery)
        }
        if any(isinstance(one, DescribedQuery) for one in kept.values()):
            return replace(self, queries=kept)
        return replace(self, queries=kept, shared={}, merges=(), exchanges={})

    @property
    def to_pause(self) -> frozenset[str]:
        """The queries that are defined and not answered."""
        defined = {one.id for one in self.catalog or () if one.kind == "QUERY"}
        return frozenset(defined - self.answered.keys())


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
    content: dict[str, Any] = {
        "records": {query: packed_query(one) for query, one in description.queries.items()},
        "streams": description.streams,
        "buckets": description.buckets,
        "stream_domains": {name: domain.value for name, domain in description.stream_domains.items()},
        "keeps_results": description.keeps_results,
        "shared": description.shared,
        "merges": [asdict(merge) for merge in description.merges],
        "exchanges": description.exchanges,
        "operators": description.operators,
        "state_format": description.state_format,
        "names": description.names,
        "made": description.made,
    }
    if description.tunings:
        content["tunings"] = packed_tunings(description.tunings)
    if description.catalog is not None:
        content["catalog"] = [packed_definition(one) for one in description.catalog]
    return content


def unpacked(content: Mapping[str, Any]) -> Description:
    """A description from its JSON, which may be that of an earlier Headrace.

    Raises:
        KeyError: a part is missing.
        TypeError: a merge or a start has other parts.
        ValueError: there is no such type or time domain.
    """
    catalog = content.get("catalog")
    records = content["records"] if "records" in content else records_of_maps(content)
    return Description(
        {query: unpacked_query(one) for query, one in records.items()},
        content["streams"],
        content["buckets"],
        stream_domains=_domains(content["stream_domains"]),
        keeps_results=content["keeps_results"],
        shared=content.get("shared", {}),
        merges=tuple(Merge(**merge) for merge in content.get("merges", ())),
        exchanges=content.get("exchanges", {}),
        operators=content.get("operators", {}),
        catalog=None if catalog is None else tuple(map(unpacked_definition, catalog)),
        state_format=content.get("state_format", _UNSAID),
        names=content.get("names", {}),
        made=content.get("made", 0),
        tunings=unpacked_tunings(content.get("tunings", ())),
    )


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
    known = {name: one.identity for name, one in theirs.answered.items()} | paused
    others = [
        name
        for name in sorted(ours.answered.keys() & known.keys())
        if known[name] not in (ours.answered[name].identity, ours.answered[name].earlier)
    ]
    for name in others:
        if not _is_same_text(name, theirs, ours):
            raise _another_query(ours.name_of(name), theirs, folder)
    return Differences(
        tuple(sorted(ours.answered.keys() - known.keys())),
        tuple(sorted(known.keys() - ours.answered.keys() - ours.to_pause)),
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
