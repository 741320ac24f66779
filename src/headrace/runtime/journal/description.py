"""What a durable store is for: the queries and streams of its run, as its files describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

from headrace.errors import StoreError
from headrace.lowering.graph import Merge
from headrace.runtime.journal.forms import Form, packed_form, unpacked_form
from headrace.runtime.journal.plans import Packed
from headrace.time import TimeDomain

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
class Description:
    """The queries and streams of a run.

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
        warm: how those queries began that took over the state of others.
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


@dataclass(frozen=True)
class Differences:
    """How the queries of a run differ from those of its store.

    Attributes:
        added, dropped: the queries that only the run has, and those that only the store has.
    """

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


def packed(description: Description) -> dict[str, Any]:
    """A description as JSON has it."""
    content = asdict(replace(description, forms={}, shared={}))
    content["shared"] = description.shared
    content["forms"] = {name: packed_form(form) for name, form in description.forms.items()}
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
    for what, mine, its in (
        ("query", ours.queries, theirs.queries),
        ("stream", ours.streams, theirs.streams),
    ):
        for name in sorted(mine.keys() & its.keys()):
            if mine[name] != its[name]:
                # A query's identity is a digest, which means nothing to people.
                details, altered = "", ""
                if what == "stream":
                    one, other = _where_they_differ(its[name], mine[name])
                    details = f": over {one}, not {other}"
                    altered = ", and what ALTER STREAM changed since then"
                raise StoreError(
                    f"the store {folder} is for another {what} {name} than the one given now{details}",
                    hint=f"start with the text that made the store{altered}, or give this one another name",
                )
    return Differences(
        tuple(sorted(ours.queries.keys() - theirs.queries.keys())),
        tuple(sorted(theirs.queries.keys() - ours.queries.keys())),
    )


def _where_they_differ(one: str, other: str) -> tuple[str, str]:
    """Two texts, of long ones only the part in which they differ."""
    if max(len(one), len(other)) <= _SHOWN:
        return one, other
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    part = slice(max(same - _SHOWN // 4, 0), same + _SHOWN)
    return f"...{one[part]}...", f"...{other[part]}..."


def refuse(found: Differences, folder: str) -> None:
    """Refuse a run to the end of its input that has other queries than its store.

    Raises:
        StoreError: there is a difference.
    """
    if found.dropped:
        raise StoreError(
            f"the store {folder} has a query {found.dropped[0]}, which is not given now",
            hint="give it as well, or choose an empty folder",
        )
    if found.added:
        raise StoreError(
            f"the store {folder} has no query {found.added[0]}, and what was read is not read again",
            hint="choose an empty folder",
        )
