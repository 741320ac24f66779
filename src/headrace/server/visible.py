"""What somebody sees whose key is limited to names: nothing that names anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.properties import names_read
from headrace.engine import Query
from headrace.engine.catalog.listed_sinks import ListedSink
from headrace.server.access import Caller

_HIDDEN_REASON: Final = "a query that this key does not include could not use it"
_HIDDEN_PROBLEM: Final = "it fails; a key for all names sees why"
_HIDDEN_FAILURE: Final = "it failed; a key that includes all that it reads sees why"


def sees_inputs(query: Query, caller: Caller) -> bool:
    """Whether somebody may see all that a query reads, which its plan and its notes name."""
    return caller.only is None or all(map(caller.sees, names_read(query.plan)))


def check_inputs(what: str, query: Query, caller: Caller) -> None:
    """Refuse what names the streams and relations that a query reads.

    Raises:
        RequestError: the key does not include all of them.
    """
    if not sees_inputs(query, caller):
        caller.check_unlimited(f"{what} of {query.name}, which reads what yours does not include,")


def shown_status(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """A status for JSON without what somebody may not see."""
    if caller.only is None:
        return dict(status)
    return {
        **status,
        "streams": [shown_stream(one, caller) for one in status["streams"] if caller.sees(one["name"])],
        "queries": [shown_query(one, caller) for one in status["queries"] if caller.sees(one["name"])],
        "operators": [],
        "catching_up": None,
        "paused": [shown_paused(one, caller) for one in status["paused"] if caller.sees(one["name"])],
        "attempt": None,
        "ended": None,
    }


def shown_paused(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The status of a query that is paused without the streams that somebody may not see."""
    return {**status, "keeps": [name for name in status["keeps"] if caller.sees(name)]}


def shown_stream(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The status of a stream without the streams that it is compared with."""
    return dict(status) if caller.only is None else {**status, "skews": []}


def shown_query(status: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The status of a query without the streams that somebody may not see, and without what names them."""
    reads = [name for name in status["reads"] if caller.sees(name)]
    if caller.only is None or len(reads) == len(status["reads"]):
        return dict(status)
    held = status["held_by"] if status["held_by"] in reads else None
    failed = None if status["failed"] is None else _HIDDEN_FAILURE
    return {**status, "reads": reads, "held_by": held, "chain": [], "failed": failed, "exchanged": None}


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
