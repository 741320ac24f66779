"""The queries of a run as a durable store knows them: a record for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.algebra.arrival import Unit
from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import Memory
from headrace.runtime.journal.forms import Form, packed_form, unpacked_form
from headrace.runtime.journal.gap import Gap, with_gap
from headrace.time import BEGINNING, INFINITY, TimeDomain


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


@dataclass(frozen=True)
class PausedQuery:
    """The record of a query that is not answered until it is resumed.

    Attributes:
        paused: since when, and what is known of it meanwhile.
        gaps: the instants about which it says nothing since it was paused or replaced before.
        sized_from: the first instant that was answered with the windows within bounds that its plan has.
    """

    paused: Paused
    gaps: tuple[Gap, ...] = ()
    sized_from: int = BEGINNING

    @property
    def start(self) -> int:
        """The epoch from which on it has answered."""
        return self.paused.start

    @property
    def all_gaps(self) -> tuple[Gap, ...]:
        """The instants about which it says nothing, those of now included."""
        lacks = not self.paused.keeps and self.paused.heartbeat != INFINITY
        return with_gap(self.gaps, Gap(self.paused.heartbeat, None)) if lacks else self.gaps


@dataclass(frozen=True)
class DescribedQuery:
    """The record of a query that is answered, or has ended early.

    Attributes:
        identity: that of its plan.
        domain: what the instants of its answer count.
        form: what readers have to know of it; None where an earlier Headrace has written it.
        choices: what was decided about how it runs that does not follow from its text, as JSON has it, so
            that a restart decides the same.
        start: the epoch from which on it answers.
        warm: how it began if it took over the state of another one, or was resumed or replaced.
        horizon: up to where it speaks if it does not wait for its heartbeat.
        memories: for how long it remembers its streams if less than they allow; None where an earlier
            Headrace has written it.
        level: the epoch in which it came to its level of consistency if it has had others.
        gaps: the instants about which it says nothing, since it was paused or replaced.
        sized_from: the first instant that is answered with the windows within bounds that its plan has.
        lane: the lane in which it is behind others; None of one that takes rows as they come.
        earlier: another identity by which an earlier Headrace has known it; it is not stored.
    """

    identity: str
    domain: TimeDomain = TimeDomain.INTEGER
    form: Form | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    start: int = 1
    warm: WarmStart | None = None
    horizon: Horizon | None = None
    memories: tuple[Memory, ...] | None = ()
    level: int | None = None
    gaps: tuple[Gap, ...] = ()
    sized_from: int = BEGINNING
    lane: int | None = None
    earlier: str | None = None


def packed_query(one: DescribedQuery | PausedQuery) -> dict[str, Any]:
    """The record of a query as JSON has it; what it does not say is left out."""
    gaps: dict[str, Any] = {"gaps": [asdict(gap) for gap in one.gaps]} if one.gaps else {}
    if one.sized_from != BEGINNING:
        gaps["sized_from"] = one.sized_from
    if isinstance(one, PausedQuery):
        return {"paused": {**vars(one.paused), "form": packed_form(one.paused.form)}, **gaps}
    said: dict[str, Any] = {"identity": one.identity, "domain": one.domain.value, "start": one.start}
    if one.form is not None:
        said["form"] = packed_form(one.form)
    if one.choices:
        said["choices"] = one.choices
    if one.warm is not None:
        said["warm"] = asdict(one.warm)
    if one.horizon is not None:
        said["horizon"] = {**vars(one.horizon), "unit": one.horizon.unit.value}
    said["memories"] = [[known.stream, known.length, known.unit.value] for known in one.memories or ()]
    if one.level is not None:
        said["level"] = one.level
    if one.lane is not None:
        said["lane"] = one.lane
    return {**said, **gaps}


def unpacked_query(content: Mapping[str, Any]) -> DescribedQuery | PausedQuery:
    """The record of a query from its JSON.

    Raises:
        KeyError: a part is missing.
        TypeError: a part has other parts.
        ValueError: there is no such type or time domain.
    """
    gaps = tuple(Gap(**gap) for gap in content.get("gaps", ()))
    sized_from = content.get("sized_from", BEGINNING)
    if (paused := content.get("paused")) is not None:
        other = {"form": unpacked_form(paused["form"]), "keeps": tuple(paused.get("keeps", ()))}
        return PausedQuery(Paused(**{**paused, **other}), gaps, sized_from)
    form, warm, horizon = (content.get(part) for part in ("form", "warm", "horizon"))
    memories = content.get("memories")
    return DescribedQuery(
        identity=content["identity"],
        domain=TimeDomain(content["domain"]),
        form=None if form is None else unpacked_form(form),
        choices=content.get("choices", {}),
        start=content["start"],
        warm=None if warm is None else WarmStart(**warm),
        horizon=None if horizon is None else _horizon(horizon),
        memories=None if memories is None else tuple(_memory(*one) for one in memories),
        level=content.get("level"),
        gaps=gaps,
        sized_from=sized_from,
        lane=content.get("lane"),
    )


def _memory(stream: str, length: int, unit: str) -> Memory:
    return Memory(stream, length, Unit(unit))


def _horizon(content: Mapping[str, Any]) -> Horizon:
    return Horizon(
        tuple(content["streams"]),
        content["block"],
        tuple(content.get("relations", ())),
        Unit(content.get("unit", Unit.TIME.value)),
    )


def records_of_maps(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The records of queries from a description of before, which has a map for each of their parts."""
    parts = {
        "domain": "query_domains", "form": "forms", "choices": "choices", "warm": "warm",
        "horizon": "horizons", "level": "levels", "gaps": "gaps",
    }  # fmt: skip
    known: dict[str, Mapping[str, Any]] = {}
    for query, identity in content["queries"].items():
        said = {part: content[key][query] for part, key in parts.items() if query in content.get(key, {})}
        if content.get("memories") is not None:
            said["memories"] = content["memories"].get(query, ())
        known[query] = {
            "domain": TimeDomain.INTEGER.value,
            **said,
            "identity": identity,
            "start": content["starts"].get(query, 1),
        }
    for query, paused in content.get("paused", {}).items():
        known[query] = {"paused": paused, "gaps": content.get("gaps", {}).get(query, ())}
    return known
