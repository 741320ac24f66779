"""SET and SHOW: how texts are read, how runs go on, and what there is."""

from __future__ import annotations

import math
from typing import Final

from sqlglot.tokens import TokenType

from headrace.byte_sizes import bytes_of
from headrace.errors import Position
from headrace.language.defaults import INITIAL, Defaults
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.quoted_names import DIALECT
from headrace.language.statements.catalog import Option, SetOption
from headrace.language.statements.statements import SetDialect, Show, Shown
from headrace.language.syntax import Name
from headrace.scheduling.policies import POLICIES
from headrace.suggestions import did_you_mean
from headrace.time import INFINITY

_FOREIGN: Final = {
    **dict.fromkeys(("TABLES", "SOURCES"), "write SHOW STREAMS, or SHOW RELATIONS"),
    **dict.fromkeys(("VIEWS", "MATERIALIZED", "JOBS"), "write SHOW QUERIES"),
    "COLUMNS": "write DESCRIBE name",
}
"""What other systems show, and what to write instead."""

OPTIONS: Final = ("dialect", *(option.value for option in Option))
"""The options of SET."""
WAYS: Final = ("advise", "act", "off")
"""The values of `manager` and of `shedder`."""
_RUN: Final = "options of a stream go into its OPTIONS (...), all others of a run onto the command line"

_SYNONYMS: Final = {
    **dict.fromkeys(("batch_size", "batch_rows", "max_batch_size", "epoch_size"), Option.EPOCH_ROWS),
    **dict.fromkeys(("batch_bytes", "max_bytes_per_trigger"), Option.EPOCH_BYTES),
    **dict.fromkeys(("retention", "keep_epochs", "history_epochs", "retain_results"), Option.RETAIN_EPOCHS),
    **dict.fromkeys(("max_errors", "max_rejected", "error_limit"), Option.MAX_DEAD_LETTERS),
    **dict.fromkeys(("reoptimize", "adaptive"), Option.REOPTIMIZE_EVERY),
    **dict.fromkeys(("timeout", "statement_timeout", "query_timeout"), Option.EPOCH_TIMEOUT),
    **dict.fromkeys(("max_memory", "memory", "memory_budget"), Option.MEMORY_LIMIT),
    **dict.fromkeys(("cpu_limit", "max_cpu", "cores", "cpu", "max_cores"), Option.PROCESSING_LIMIT),
    **dict.fromkeys(("max_latency", "latency", "max_lag", "lag_bound"), Option.LATENCY_BOUND),
    **dict.fromkeys(("shedding", "load_shedding"), Option.SHEDDER),
    **dict.fromkeys(("scheduler", "scheduling_policy", "priority_policy"), Option.SCHEDULING),
}
"""What other systems call it."""

_FIXED: Final = {
    "buckets": "a store keeps the number that it was made with",
    "storage": "give it to connect, or --storage on the command line",
    "runner": "give it to connect, or --runner on the command line",
    "master": "give it to connect, or --master on the command line",
    "keep_results": "an answer that lacks some epochs would look like a whole one: give it to connect",
    "policy": "give it to connect, to execute or to query",
}
"""What does not change while a database is open, with the reason or another way."""


def parse_set(cursor: Cursor, position: Position) -> SetDialect | SetOption:
    """Read what follows SET: `dialect = 'cql'`, `memory_limit = '2 GB'`, or a number: `epoch_rows = 1000`.

    Raises:
        LanguageError: there is no such option, or it has no such value.
    """
    place = cursor.index
    name = cursor.name("the name of an option").text
    option = next((option for option in Option if option.value == name.lower()), None)
    if option is None and name.lower() != "dialect":
        cursor.index = place
        if (reason := _FIXED.get(name.lower())) is not None:
            raise cursor.error(f"{name} cannot be set while a database is open", reason)
        other = _SYNONYMS.get(name.lower())
        meant = did_you_mean(name, OPTIONS) if other is None else f"it is called {other.value} here"
        raise cursor.error(
            f"there is no option {name}", meant or f"the options are {', '.join(OPTIONS)}; {_RUN}"
        )
    cursor.expect("=", f"after SET {name}")
    match option:
        case None:
            return _dialect(cursor, position)
        case Option.MEMORY_LIMIT:
            return _size(cursor, position)
        case Option.PROCESSING_LIMIT:
            return _cores(cursor, position)
        case Option.SCHEDULING:
            return _scheduling(cursor, position)
        case Option.MANAGER | Option.SHEDDER:
            return _deed(cursor, option, position)
        case Option.LATENCY_BOUND:
            return _latency(cursor, position)
        case _:
            return _number(cursor, option, position)


def _dialect(cursor: Cursor, position: Position) -> SetDialect:
    known = {defaults.value: defaults for defaults in Defaults} | {DIALECT: INITIAL}
    cursor.offer(*(f"'{name}'" for name in known))
    token = cursor.peek()
    written = "write SET dialect = 'sql', 'pipes', 'cql' or 'ansi'"
    if token is None:
        raise cursor.error(f"a dialect is missing, before {cursor.shown()}", written)
    text = str(token.text).lower()
    if text not in known:
        raise cursor.error(f"there is no dialect {cursor.shown()}", did_you_mean(text, known) or written)
    cursor.index += 1
    return SetDialect(known[text], position, text == DIALECT)


def _size(cursor: Cursor, position: Position) -> SetOption:
    """Read a size of memory: `'2 GB'`, or a number of bytes."""
    if cursor.accept("DEFAULT"):
        return SetOption(Option.MEMORY_LIMIT, None, position)
    token = cursor.peek()
    text = "" if token is None else str(token.text)
    is_number = token is not None and token.token_type == TokenType.NUMBER and text.isdigit()
    size = (int(text) or None) if is_number else bytes_of(text)
    if token is None or size is None:
        raise cursor.error(
            f"{cursor.shown()} is not a size of memory",
            "write SET memory_limit = '2 GB', with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB; or = DEFAULT",
        )
    cursor.index += 1
    return SetOption(Option.MEMORY_LIMIT, size, position)


def _cores(cursor: Cursor, position: Position) -> SetOption:
    """Read a number of cores: `1.5`."""
    if cursor.accept("DEFAULT"):
        return SetOption(Option.PROCESSING_LIMIT, None, position)
    token = cursor.peek()
    is_number = token is not None and token.token_type == TokenType.NUMBER
    number = float(token.text) if token is not None and is_number else 0.0
    if not 0 < number < math.inf:
        raise cursor.error(
            f"processing_limit is a number of cores above 0, not {cursor.shown()}",
            "write SET processing_limit = 1.5, or = DEFAULT",
        )
    cursor.index += 1
    return SetOption(Option.PROCESSING_LIMIT, number, position)


def _deed(cursor: Cursor, option: Option, position: Position) -> SetOption:
    """Read what is done about limits of memory and time, or about a bound of latency."""
    if cursor.accept("DEFAULT"):
        return SetOption(option, None, position)
    cursor.offer(*(f"'{way}'" for way in WAYS))
    token = cursor.peek()
    text = "" if token is None else str(token.text).lower()
    if text not in WAYS:
        written = f"write SET {option.value} = 'advise', 'act' or 'off', or = DEFAULT"
        raise cursor.error(
            f"the {option.value} cannot be {cursor.shown()}", did_you_mean(text, WAYS) or written
        )
    cursor.index += 1
    return SetOption(option, text, position)


def _scheduling(cursor: Cursor, position: Position) -> SetOption:
    """Read the policy by which queries that are behind take turns."""
    if cursor.accept("DEFAULT"):
        return SetOption(Option.SCHEDULING, None, position)
    cursor.offer(*(f"'{name}'" for name in POLICIES))
    token = cursor.peek()
    text = "" if token is None else str(token.text).lower()
    if text not in POLICIES:
        names = ", ".join(f"'{name}'" for name in POLICIES)
        written = f"write SET scheduling = one of {names}, or = DEFAULT"
        raise cursor.error(f"there is no policy {cursor.shown()}", did_you_mean(text, POLICIES) or written)
    cursor.index += 1
    return SetOption(Option.SCHEDULING, text, position)


def _latency(cursor: Cursor, position: Position) -> SetOption:
    """Read for how long rows may wait: `'2 SECONDS'`."""
    if cursor.accept("DEFAULT"):
        return SetOption(Option.LATENCY_BOUND, None, position)
    place, written = cursor.index, "write SET latency_bound = '2 SECONDS', or = DEFAULT"
    found = parse_duration_at(cursor, "how long rows may wait")
    if found.unit is None or not 0 < found.length < INFINITY:
        cursor.index = place
        raise cursor.error(f"{cursor.shown()} is not for how long rows may wait", written)
    return SetOption(Option.LATENCY_BOUND, found.length, position)


def _number(cursor: Cursor, option: Option, position: Position) -> SetOption:
    """Read the value of an option of runs."""
    if cursor.accept("DEFAULT"):
        return SetOption(option, None, position)
    token = cursor.peek()
    least = 0 if option is Option.MAX_DEAD_LETTERS else 1
    is_whole = token is not None and token.token_type == TokenType.NUMBER and str(token.text).isdigit()
    if token is None or not is_whole or int(token.text) < least:
        raise cursor.error(
            f"{option.value} is a whole number of at least {least}, not {cursor.shown()}",
            f"write SET {option.value} = 1000, or SET {option.value} = DEFAULT",
        )
    cursor.index += 1
    return SetOption(option, int(token.text), position)


def parse_show(cursor: Cursor, position: Position) -> Show:
    """Read what follows SHOW.

    Raises:
        LanguageError: it is nothing that can be shown.
    """
    for shown in Shown:
        if cursor.accept(shown.value):
            return Show(shown, position, _query_of(cursor, shown))
    known = [shown.value for shown in Shown]
    word = cursor.word()
    hint = _FOREIGN.get(word) or did_you_mean(word, known) or f"write SHOW {', SHOW '.join(known)}"
    raise cursor.error(f"SHOW does not know {cursor.shown()}", hint)


def _query_of(cursor: Cursor, shown: Shown) -> Name | None:
    """Read `FOR query` after SHOW TUNINGS; None where it does not come next.

    Raises:
        LanguageError: it is written in another way.
    """
    if shown is not Shown.TUNINGS:
        return None
    if cursor.at("OF") or cursor.at("IN"):
        raise cursor.error(f"FOR is missing, before {cursor.shown()}", "write SHOW TUNINGS FOR name")
    if not cursor.accept("FOR"):
        return None
    cursor.accept("QUERY")
    return cursor.name("the query's name")
