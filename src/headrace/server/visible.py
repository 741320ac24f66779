"""What somebody sees whose key is limited to names, or may not see what others have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.properties import names_read
from headrace.engine import Query
from headrace.engine.catalog.listed_sinks import ListedSink
from headrace.server.access import Caller
from headrace.server.keys import Role

_HIDDEN_REASON: Final = "a query that this key does not include could not use it"
_HIDDEN_PROBLEM: Final = "it fails; a key for all names sees why"
_HIDDEN_FAILURE: Final = "it failed; a key that may see how it is written sees why"
_HIDDEN_END: Final = "the run has ended; a key with the role admin sees why"


def sees_text(query: Query, caller: Caller) -> bool:
    """Whether somebody may see how a query is written, in its plan and its notes.

    An administrator may, and a key for some names which are those of the query and of all that it reads.
    """
    if caller.only is None:
        return caller.sees_texts
    return all(map(caller.sees, names_read(query.plan)))


def check_text(what: str, query: Query, caller: Caller) -> None:
    """Refuse what shows how a query is written.

    Raises:
        RequestError: the key does not allow it.
    """
    if not sees_text(query, caller):
        caller.check_unlimited(f"{what} of {query.name}, which reads what yours does not include,")
        caller.check(Role.ADMIN)


def check_sizes(query: Query, caller: Caller) -> None:
    """Refuse the sizes of a query's windows, which name the streams that it reads.

    Raises:
        RequestError: the key does not include these.
    """
    if not all(map(caller.sees, names_read(query.plan))):
        caller.check_unlimited(f"the sizes of {query.name}, which reads what yours does not include,")


def shown_status(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """A status for JSON without what somebody may not see."""
    if caller.sees_texts:
        return dict(status)
    if caller.only is None:
        return {
            **status,
            "queries": [_without_text(one) for one in status["queries"]],
            "operators": [
                # How long rows hold is how a window is written.
                {**one, "text": kind_of(one["text"]), "lifetime": None}
                for one in status["operators"]
            ],
            "ended": status["ended"] and _HIDDEN_END,
            "managed": None,
            "shedding": None,
        }
    return {
        **status,
        "streams": [shown_stream(one, caller) for one in status["streams"] if caller.sees(one["name"])],
        "queries": [shown_query(one, caller) for one in status["queries"] if caller.sees(one["name"])],
        "operators": [],
        "catching_up": None,
        "paused": [shown_paused(one, caller) for one in status["paused"] if caller.sees(one["name"])],
        "attempt": None,
        "ended": None,
        "managed": None,
        "shedding": None,
        "lanes": list(_shown_lanes(status["lanes"], caller)),
    }


def _shown_lanes(lanes: Sequence[Mapping[str, Any]], caller: Caller) -> Iterator[dict[str, Any]]:
    """The lanes of queries that somebody may see, without others and without what is said of these."""
    for lane in lanes:
        queries = [name for name in lane["queries"] if caller.sees(name)]
        if queries:
            urgent = lane["urgent"] if lane["urgent"] in queries else None
            latency = None if urgent is None else lane["latency"]
            worth = [one for one in lane["worth"] if one["query"] in queries]
            yield {**lane, "queries": queries, "urgent": urgent, "latency": latency, "worth": worth}


def kind_of(text: str) -> str:
    """The kind of an operator, which is the first word of its text; of a source with its name."""
    words = text.split()
    return " ".join(words[: 2 if words[:1] == ["Source"] else 1])


def _without_text(query: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a query without what may show how it is written."""
    return {**query, "failed": query["failed"] and _HIDDEN_FAILURE}


def shown_paused(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The status of a query that is paused without the streams that somebody may not see."""
    return {**status, "keeps": [name for name in status["keeps"] if caller.sees(name)]}


def shown_stream(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The status of a stream without the streams that it is compared with."""
    return dict(status) if caller.only is None else {**status, "skews": []}


def shown_query(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The status of a query without the streams that somebody may not see, and without what names them."""
    if caller.only is None:
        return dict(status) if caller.sees_texts else _without_text(status)
    reads = [name for name in status["reads"] if caller.sees(name)]
    if len(reads) == len(status["reads"]):
        return dict(status)
    held = status["held_by"] if status["held_by"] in reads else None
    windows = [window for window in status["windows"] if {*window["streams"]} <= {*reads}]
    hidden: dict[str, Any] = {"chain": [], "exchanged": None, "memory": None, "values": None}
    return {**_without_text(status), "reads": reads, "held_by": held, "windows": windows, **hidden}


def shown_sink(sink: ListedSink, caller: Caller) -> dict[str, Any]:
    """A sink for JSON; only a key for all names sees where it is, and what is wrong there."""
    found = asdict(sink)
    if caller.only is None:
        return found
    return {**found, "place": "", "problem": sink.problem and _HIDDEN_PROBLEM}


def shown_letter(letter: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """A dead letter; a query that somebody may not see is not named as what could not use the row."""
    query = letter.get("query")
    if query is None or caller.sees(query):
        return dict(letter)
    return {**letter, "query": None, "reason": _HIDDEN_REASON}


def shown_letters(letters: pa.Table, caller: Caller) -> pa.Table:
    """Dead letters as a table, in the same way."""
    if caller.only is None or "query" not in letters.column_names:
        return letters
    names = letters["query"]
    hidden = pc.invert(pc.fill_null(pc.is_in(pc.utf8_lower(names), pa.array(sorted(caller.only))), False))
    hidden = pc.and_(hidden, pc.is_valid(names))
    for name, text in (("query", None), ("reason", _HIDDEN_REASON)):
        place = letters.column_names.index(name)
        masked = pc.if_else(hidden, pa.scalar(text, pa.string()), letters[name])
        letters = letters.set_column(place, letters.field(place), masked)
    return letters
