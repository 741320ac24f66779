"""Schemas of messages that are in a registry: a message begins with a zero and its schema's number.

The form is that of *Confluent Schema Registry*, section *Wire format*. What has a number never changes.
"""

from __future__ import annotations

import base64
import json
import time
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from headrace.errors import AwayError, SourceError
from headrace.runtime.outside.patience import patience
from headrace.runtime.outside.web import asked

HEAD: Final = 5
"""So many bytes are before what the schema says."""
_AWAY: Final = "check the option schema_registry"
_FORM: Final = "application/vnd.schemaregistry.v1+json"


class UnusableError(Exception):
    """A message cannot be read, or none of a schema."""


def head_of(value: bytes | None) -> tuple[int, bytes]:
    """The number of a message's schema, and what is behind it.

    Raises:
        UnusableError: it has none.
    """
    if value is None:
        raise UnusableError("the message has no value")
    if len(value) < HEAD or value[0]:
        raise UnusableError("the message does not begin with the number of a schema of a registry")
    return int.from_bytes(value[1:HEAD], "big"), value[HEAD:]


def registered(registry: str, number: int, kind: str, form: str = "") -> str:
    """A schema's text.

    Args:
        registry: its address; there may be a password in it.
        number: of the schema.
        kind: `AVRO` or `PROTOBUF`.
        form: in which form it is wanted, as the registry calls it.

    Raises:
        AwayError: the registry does not answer, or not with a schema.
        UnusableError: it has no such schema, or that is of another kind.
    """
    found: dict[str, Any] = {}
    with suppress(ValueError, TypeError):
        found = dict(json.loads(_answer(registry, number, form)))
    if "schema" not in found:
        raise AwayError(f"the schema registry answers without schema {number}", hint=_AWAY)
    if found.get("schemaType", "AVRO") != kind:
        raise UnusableError(f"schema {number} is not one of {kind.capitalize()}")
    if found.get("references"):
        raise UnusableError(f"schema {number} refers to other schemas, which are not looked up")
    return str(found["schema"])


def register(registry: str, subject: str, schema: str) -> int:
    """Register a schema of Avro, unless it is registered already; its number.

    Args:
        registry: its address; there may be a password in it.
        subject: under which name.
        schema: as JSON.

    Raises:
        SourceError: the registry does not answer, or does not take it.
    """
    path = f"subjects/{quote(subject, safe='')}/versions"
    try:
        answer = json.loads(_asked(registry, path, json.dumps({"schema": schema}).encode()))
        return int(answer["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"the schema registry has answered without a number: {error}") from None


def _answer(registry: str, number: int, form: str) -> bytes:
    """What the registry says of a schema.

    A schema that it does not know may be one that it does not know yet: a replica lags, a proxy is ahead of
    the registry.

    Raises:
        AwayError: the registry does not answer, or has not known the schema for long.
        UnusableError: it does not know the schema.
    """
    missing = (registry, number)
    try:
        found = _asked(registry, f"schemas/ids/{number}{form and f'?format={form}'}")
    except _MissingError as error:
        since = _missed.setdefault(missing, time.monotonic())
        if len(_missed) > _MOST_MISSED:
            del _missed[next(iter(_missed))]
        if error.is_certain and time.monotonic() - since >= patience().lag:
            raise UnusableError(f"the registry has no schema {number}") from None
        raise AwayError(error.message, hint=error.hint) from None
    _missed.pop(missing, None)
    return found


_missed: Final[dict[tuple[str, int], float]] = {}
"""Since when registries have not known schemas (`time.monotonic()`)."""
_MOST_MISSED: Final = 1_000


class _MissingError(SourceError):
    """The registry does not have what it was asked for.

    Attributes:
        is_certain: whether a registry says so, and not something before it.
    """

    is_certain = False


def _asked(registry: str, path: str, body: bytes | None = None) -> bytes:
    """The answer to a request.

    Raises:
        AwayError: there is none for now.
        SourceError: it is not a good one.
    """
    parts = urlsplit(registry)
    host = parts.netloc.rpartition("@")[2]
    headers, secret = {"Accept": f"{_FORM}, application/json"}, {}
    if body is not None:
        headers["Content-Type"] = _FORM
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        secret["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    label = f"the schema registry at {host}"
    url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}/{path}"
    # An epoch waits for it, and the other streams with it.
    answer = asked(
        *(url, label),
        method="GET" if body is None else "POST",
        body=body,
        headers=headers,
        secret=secret,
        silent=patience().opening,
    )
    if 200 <= answer.status < 300:
        return answer.body
    if answer.status == 404:
        missing = _MissingError(f"{label} answers 404", hint=_AWAY)
        missing.is_certain = _says_why(answer.body)
        raise missing
    kind = AwayError if answer.status in (401, 403) else SourceError
    raise kind(f"{label} answers {answer.status}", hint=_AWAY)


def _says_why(body: bytes) -> bool:
    """Whether an error is one that a registry has written: an object with its number."""
    try:
        return "error_code" in json.loads(body)
    except (ValueError, TypeError):
        return False
