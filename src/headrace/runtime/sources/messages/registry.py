"""Schemas of messages that are in a registry: a message begins with a zero and its schema's number.

The form is that of *Confluent Schema Registry*, section *Wire format*. What has a number never changes.
"""

from __future__ import annotations

import base64
import json
import urllib.error
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from headrace.errors import SourceError
from headrace.later import later

if TYPE_CHECKING:
    import urllib.request as requests
else:
    requests = later("urllib.request")

_SECONDS: Final = 10.0
"""How long a registry has for an answer."""
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
        SourceError: the registry does not answer.
        UnusableError: it has no such schema, or that is of another kind.
    """
    try:
        found: dict[str, Any] = json.loads(_answer(registry, number, form))
        if found.get("schemaType", "AVRO") != kind:
            raise UnusableError(f"schema {number} is not one of {kind.capitalize()}")
        if found.get("references"):
            raise UnusableError(f"schema {number} refers to other schemas, which are not looked up")
        return str(found["schema"])
    except (ValueError, KeyError, AttributeError) as error:
        raise UnusableError(f"schema {number} cannot be read: {error}") from None


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
    """What the registry says of a schema."""
    try:
        return _asked(registry, f"schemas/ids/{number}{form and f'?format={form}'}")
    except _MissingError:
        raise UnusableError(f"the registry has no schema {number}") from None


class _MissingError(SourceError):
    """The registry does not have what it was asked for."""


def _asked(registry: str, path: str, body: bytes | None = None) -> bytes:
    """The answer to a request.

    Raises:
        SourceError: there is none, or not a good one.
    """
    parts = urlsplit(registry)
    host = parts.netloc.rpartition("@")[2]
    request = requests.Request(f"{parts.scheme}://{host}{parts.path.rstrip('/')}/{path}", body)
    request.add_header("Accept", f"{_FORM}, application/json")
    if body is not None:
        request.add_header("Content-Type", _FORM)
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        with requests.urlopen(request, timeout=_SECONDS) as answer:
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        kind = _MissingError if error.code == 404 else SourceError
        raise kind(f"the schema registry at {host} answers {error.code}", hint=_AWAY) from None
    except OSError as error:
        raise SourceError(f"the schema registry at {host} cannot be reached: {error}", hint=_AWAY) from None
