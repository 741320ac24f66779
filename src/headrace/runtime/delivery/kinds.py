"""The kinds of sinks that SQL can make: what each is made of, and where it delivers to.

A further kind is a member of `SinkKind`, what it takes in `options_of`, and how it is made in `sink_of`; the
type checker finds the places. Its promise and its options go into the table of docs/sinks.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never
from urllib.parse import urlsplit

from headrace.errors import UserError
from headrace.runtime.delivery.contract import Retry, Sink
from headrace.runtime.delivery.files import FileSink
from headrace.runtime.delivery.table import TableSink
from headrace.runtime.delivery.topic import TopicSink
from headrace.runtime.delivery.webhook import TIMEOUT, WebhookSink
from headrace.runtime.outside.databases import database_at
from headrace.suggestions import did_you_mean


class SinkKind(StrEnum):
    """What follows TO in CREATE SINK."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    KAFKA = "kafka"
    WEBHOOK = "webhook"
    TABLE = "table"


FOLDERS: Final = frozenset((SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV, SinkKind.ARROW))
"""The kinds that write files into a folder of this machine, their option `path`."""

COMMON: Final = ("from_epoch", "attempts", "pause", "longest")
"""The options of all kinds: the first epoch that is delivered, and those of `Retry`."""


@dataclass(frozen=True)
class Options:
    """The options of a kind.

    Attributes:
        needed: those that must be given.
        others: those that may be.
        passed: the pattern of the names that are passed on to a library as they are; none if None.
        secret: those that are secret, whatever they are called.
    """

    needed: tuple[str, ...]
    others: tuple[str, ...] = ()
    passed: re.Pattern[str] | None = None
    secret: tuple[str, ...] = ()


def kind_of(name: str) -> SinkKind:
    """The kind of a name, whatever its case.

    Raises:
        UserError: there is no such kind.
    """
    known = [kind.value for kind in SinkKind]
    if name.lower() not in known:
        hint = did_you_mean(name.lower(), known) or f"the kinds are {', '.join(known)}"
        raise UserError(f"there are no sinks TO {name}", hint=hint)
    return SinkKind(name.lower())


def options_of(kind: SinkKind) -> Options:
    """The options that a kind takes, besides those of all kinds."""
    match kind:
        case SinkKind.PARQUET | SinkKind.JSON | SinkKind.CSV | SinkKind.ARROW:
            return Options(("path",))
        case SinkKind.KAFKA:
            others = ("key", "form", "format", "schema_registry")
            return Options(("topic", "brokers"), others, re.compile(r"[a-z]+(\.[a-z0-9]+)+"))
        case SinkKind.WEBHOOK:
            return Options(("url",), ("authorization", "timeout"), secret=("authorization",))
        case SinkKind.TABLE:
            return Options(
                ("url", "table"), ("key", "form", "user", "password", "driver"), secret=("password",)
            )
        case _:
            assert_never(kind)


def check_options(kind: SinkKind, options: Mapping[str, str]) -> None:
    """See that a kind has the options that it needs, and no others.

    Args:
        kind: the kind.
        options: by their names in lower case.

    Raises:
        UserError: one is missing, or not known.
    """
    taken = options_of(kind)
    for name in taken.needed:
        if name not in options:
            needed = ", ".join(f"{one} '...'" for one in taken.needed)
            raise UserError(
                f"a sink TO {kind} needs the option {name}", hint=f"write TO {kind} OPTIONS ({needed})"
            )
    known = (*taken.needed, *taken.others, *COMMON)
    for name in options:
        passed = taken.passed is not None and taken.passed.fullmatch(name)
        if name not in known and not passed:
            hint = did_you_mean(name, known) or f"its options are {', '.join(known)}"
            raise UserError(f"a sink TO {kind} has no option {name}", hint=hint)


def sink_of(kind: SinkKind, options: Mapping[str, str]) -> Sink:
    """A sink.

    Args:
        kind: the kind.
        options: those that `check_options` has let pass; secrets as their values.

    Raises:
        UserError: an option makes no sense, or a package is missing.
    """
    match kind:
        case SinkKind.PARQUET | SinkKind.CSV | SinkKind.ARROW:
            return FileSink(options["path"], kind.value)
        case SinkKind.JSON:
            return FileSink(options["path"], "jsonl")
        case SinkKind.KAFKA:
            further = {name: value for name, value in options.items() if "." in name}
            return TopicSink(
                *(options["topic"], options["brokers"], _columns(options.get("key", "")), further),
                *(options.get("form", "changes"), options.get("format", "json")),
                options.get("schema_registry"),
            )
        case SinkKind.WEBHOOK:
            timeout = _seconds("timeout", options.get("timeout"), TIMEOUT)
            return WebhookSink(options["url"], options.get("authorization"), timeout)
        case SinkKind.TABLE:
            access = (options.get(name) for name in ("user", "password", "driver"))
            database = database_at(options["url"], *access)
            key = _columns(options["key"]) if "key" in options else None
            return TableSink(database.connect, options["table"], key, database.marker, options.get("form"))
        case _:
            assert_never(kind)


def place_of(kind: SinkKind, options: Mapping[str, str]) -> str:
    """Where a sink delivers to, for people; a secret by its name alone.

    Args:
        kind: the kind.
        options: as they are written.
    """
    match kind:
        case SinkKind.PARQUET | SinkKind.JSON | SinkKind.CSV | SinkKind.ARROW:
            return options["path"]
        case SinkKind.KAFKA:
            return f"{options['topic']} at {options['brokers']}"
        case SinkKind.WEBHOOK:
            return _address(options["url"])
        case SinkKind.TABLE:
            return f"{options['table']} at {options['url']}"
        case _:
            assert_never(kind)


def _address(url: str) -> str:
    """The address of a webhook without what lets everybody who knows it in: its path and what follows."""
    host = urlsplit(url).netloc
    return f"{url.partition('//')[0]}//{host}/..." if host else url


def first_epoch(options: Mapping[str, str]) -> int | None:
    """The first epoch that is delivered; None for the next one that is committed.

    Raises:
        UserError: it is not a number, nor `now`.
    """
    text = options.get("from_epoch", "1")
    return None if text.lower() == "now" else _whole("from_epoch", text)


def retry_of(options: Mapping[str, str]) -> Retry:
    """What happens when a sink fails.

    Raises:
        UserError: an option is not a number, or makes no sense.
    """
    attempts = options.get("attempts")
    known = Retry()
    return Retry(
        None if attempts is None else _whole("attempts", attempts),
        _seconds("pause", options.get("pause"), known.pause),
        _seconds("longest", options.get("longest"), known.longest),
    )


def _columns(text: str) -> list[str]:
    """The names in a text, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise UserError(
            f"{name} is a whole number of at least 1, not '{text}'", hint=f"write {name} = 3, or leave it out"
        )
    return int(text)


def _seconds(name: str, text: str | None, otherwise: float) -> float:
    if text is None:
        return otherwise
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
        raise UserError(
            f"{name} is a number of seconds, not '{text}'", hint=f"write {name} = 0.5, or leave it out"
        )
    return float(text)
