"""An address of the web that is asked every so often: what it answers are rows, if it is another answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from headrace.errors import SourceError, UserError
from headrace.runtime.intake.pulling import PulledPiece
from headrace.runtime.outside.web import asked, shown
from headrace.runtime.sources.composed.computed import ComputedSource
from headrace.runtime.sources.composed.unreadable import UnreadableFile
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.options import required, seconds
from headrace.runtime.sources.text.csv import CsvSource
from headrace.runtime.sources.text.json import JsonSource
from headrace.runtime.sources.text.json_values import place_of
from headrace.schema import Schema

OPTIONS: Final = ("url", "poll", "format", "authorization", "path")
"""The options of an address, besides those of the format of its answers."""

FORMATS: Final = ("json", "csv")
"""The formats of answers."""

_MOST_BYTES: Final = 256 * 2**20
"""An answer has fewer bytes."""
_ROW_BYTES: Final = 100
"""About how many bytes a row has."""
_CONDITIONS: Final = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
"""What a server says of an answer, and how it is asked whether it has another one."""

Opened = Callable[[Path], SplitSource]


class WebPull:
    """The answers of an address.

    An answer counts once: the digest of the last one is in the commit with its rows.

    Args:
        url: the address.
        authorization: what that header says, or None.
        every: seconds between two questions.
        schema: the columns.
        opened: opens an answer that was written to a file.
        inside: the keys, from the outside in, under which an answer has its rows; none if it is they.
    """

    drains = False
    together = False

    def __init__(
        self,
        url: str,
        authorization: str | None,
        every: float,
        schema: Schema,
        opened: Opened,
        inside: tuple[str, ...] = (),
    ) -> None:
        self.every = every
        self._url = url
        self._label = shown(url)
        self._authorization = authorization
        self._schema = schema
        self._opened = opened
        self._inside = inside
        self._conditions: dict[str, str] = {}

    def pull(self, last: int | None) -> PulledPiece | None:
        """What the address answers, if that has changed.

        Raises:
            AwayError: it cannot be reached, breaks off, or says that it cannot answer for now.
            SourceError: it answers with an error.
        """
        secret = {} if self._authorization is None else {"Authorization": self._authorization}
        answer = asked(self._url, self._label, headers=self._conditions, secret=secret, most=_MOST_BYTES)
        if answer.status == 304:
            return None
        if not 200 <= answer.status < 300:
            raise SourceError(f"{self._label} answers {answer.status}", hint="check the option url")
        body = answer.body
        said = {name: answer.headers.get(name) for name in _CONDITIONS}
        self._conditions = {_CONDITIONS[name]: text for name, text in said.items() if text is not None}
        number = int.from_bytes(hashlib.sha256(body).digest()[:7], "big")
        if number == last:
            return None
        return PulledPiece(body, len(body) // _ROW_BYTES, len(body), number)

    def opened(self, pieces: Sequence[PulledPiece], path: Path) -> SplitSource:
        """What reads an answer; as a whole a dead letter if it is not of its format."""
        (piece,) = pieces
        try:
            path.write_bytes(_inside(piece.content, self._inside))
            return labelled(self._opened(path), self._label)
        except UserError as error:
            reason = error.message.replace(str(path), self._label)
            return UnreadableFile(self._schema, self._label, reason)


def open_web(
    options: Mapping[str, str], schema: Schema, opened: Callable[[str, dict[str, str]], SplitSource]
) -> WebPull:
    """What asks the address that the options name; it is not asked yet.

    Args:
        options: of the stream, secrets in their places.
        schema: the columns.
        opened: opens a format with options.

    Raises:
        SourceError: an option is wrong.
    """
    url = required(options, "url")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
        raise SourceError("the url is not an address of the web", hint="write url 'https://host/path'")
    if parts.username is not None:
        raise SourceError("the url has a user in it", hint="write authorization SECRET 'name'")
    form = options.get("format", "json").lower()
    if form not in FORMATS:
        raise SourceError(f"answers have no format {form}", hint=f"the formats are {', '.join(FORMATS)}")
    further = {name: value for name, value in options.items() if name not in OPTIONS}
    inside = tuple(options["path"].split(".")) if "path" in options else ()
    if inside and form != "json":
        raise SourceError(f"answers in {form} have no path", hint="leave out the option path")
    if not all(inside):
        raise SourceError(f"the option path is '{options['path']}'", hint="write keys, as in 'data.items'")
    if form == "json":
        further = {"missing": "some", **further}
    every = seconds(options, "poll", "10 seconds")

    def of_file(path: Path) -> SplitSource:
        return opened(form, {**further, "path": str(path)})

    with TemporaryDirectory(prefix="headrace-") as folder:
        # Options that the format does not have are found now, and not with the first answer.
        empty = Path(folder, "empty")
        empty.touch()
        of_file(empty)
    authorization = options.get("authorization")
    told = None if authorization is None else str(authorization)
    return WebPull(url, told, every, schema, of_file, inside)


def _inside(body: bytes, keys: Sequence[str]) -> bytes:
    """What an answer has under some keys.

    Raises:
        SourceError: it is no JSON, or there is no such key.
    """
    if not keys:
        return body
    try:
        text = body.decode("utf-8-sig")
        begin, end = place_of(text, keys)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the answer has no rows at {'.'.join(keys)}: {error}") from None
    return text[begin:end].encode()


def labelled(source: SplitSource, label: str) -> SplitSource:
    """The same, with another name to show for its file."""
    match source:
        case JsonSource():
            return replace(source, parts=tuple(replace(part, label=label) for part in source.parts))
        case CsvSource():
            parts = (replace(part, text=replace(part.text, label=label)) for part in source.parts)
            return replace(source, parts=tuple(parts))
        case ComputedSource():
            return replace(source, input=labelled(source.input, label))
        case _:
            return source
