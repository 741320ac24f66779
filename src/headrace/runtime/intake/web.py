"""An address of the web that is asked every so often: what it answers are rows, if it is another answer."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from headrace.errors import SourceError, UserError
from headrace.runtime.intake.pulling import PulledPiece
from headrace.runtime.intake.web_pages import OPTIONS as PAGE_OPTIONS
from headrace.runtime.intake.web_pages import Pages, pages_of, parsed, rows_of
from headrace.runtime.outside.web import WebAnswer, asked, shown
from headrace.runtime.sources.composed.computed import ComputedSource
from headrace.runtime.sources.composed.unreadable import UnreadableFile
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.options import required, seconds
from headrace.runtime.sources.text.csv import CsvSource
from headrace.runtime.sources.text.json import JsonSource
from headrace.runtime.sources.text.json_values import place_of
from headrace.schema import Schema

OPTIONS: Final = ("url", "poll", "format", "authorization", "path", *PAGE_OPTIONS)
"""The options of an address, besides those of the format of its answers, and `header.NAME`."""

FORMATS: Final = ("json", "csv")
"""The formats of answers."""

_MOST_BYTES: Final = 256 * 2**20
"""An answer has fewer bytes."""
_ROW_BYTES: Final = 100
"""About how many bytes a row has."""
_CONDITIONS: Final = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
"""What a server says of an answer, and how it is asked whether it has another one."""

_HEADER: Final = "header."
_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_OURS: Final = (
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "if-none-match",
    "if-modified-since",
)
"""Headers that belong to the transfer."""
_WAY: Final = "check the options pages, next and parameter"
_LOG: Final = logging.getLogger("headrace")

Opened = Callable[[Path], SplitSource]


@dataclass(frozen=True)
class Asking:
    """How an address is asked.

    Attributes:
        url: the address.
        headers: of each question; they may be secret, and are sent to no other server.
        form: the format of its answers.
        inside: the keys, from the outside in, under which an answer has its rows; none if it is they.
        pages: the way to further pages; None if an answer has one.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    form: str = "json"
    inside: tuple[str, ...] = ()
    pages: Pages | None = None


class WebPull:
    """The answers of an address.

    An answer counts once: the digest of the last one is in the commit with its rows.

    Args:
        asking: the address, and how it is asked.
        every: seconds between two questions.
        schema: the columns.
        opened: opens an answer that was written to a file, or its pages in a folder.
    """

    drains = False
    together = False

    def __init__(self, asking: Asking, every: float, schema: Schema, opened: Opened) -> None:
        self.every = every
        self._asking = asking
        self._label = shown(asking.url)
        self._schema = schema
        self._opened = opened
        self._conditions: dict[str, str] = {}
        self._is_told = False

    def pull(self, last: int | None) -> PulledPiece | None:
        """What the address answers, all its pages, if that has changed.

        Raises:
            AwayError: it cannot be reached, breaks off, or says that it cannot answer for now.
            SourceError: it answers with an error, or not with all pages.
        """
        pages = self._single() if self._asking.pages is None else self._all_pages(self._asking.pages)
        if pages is None:
            return None
        digest = hashlib.sha256()
        for page in pages:
            digest.update(page)
        number = int.from_bytes(digest.digest()[:7], "big")
        if number == last:
            return None
        size = sum(map(len, pages))
        return PulledPiece(pages, size // _ROW_BYTES, size, number)

    def opened(self, pieces: Sequence[PulledPiece], path: Path) -> SplitSource:
        """What reads an answer; as a whole a dead letter if it is not of its format."""
        (piece,) = pieces
        pages: tuple[bytes, ...] = piece.content
        try:
            rows = [_inside(page, self._asking.inside) for page in pages]
            if len(pages) == 1:
                path.write_bytes(rows[0])
                return labelled(self._opened(path), [self._label])
            path.mkdir()
            for number, page in enumerate(rows):
                (path / f"{number:08}").write_bytes(page)
            labels = [f"{self._label} page {number}" for number in range(1, len(pages) + 1)]
            return labelled(self._opened(path), labels)
        except UserError as error:
            reason = error.message.replace(str(path), self._label)
            return UnreadableFile(self._schema, self._label, reason)

    def end(self) -> None:
        """Nothing is open."""

    def _single(self) -> tuple[bytes] | None:
        """The answer of an address without pages; None if the server says that it is the one before."""
        answer = self._answer(self._asking.url, _MOST_BYTES, self._conditions)
        if answer.status == 304:
            return None
        said = {name: answer.headers.get(name) for name in _CONDITIONS}
        self._conditions = {_CONDITIONS[name]: text for name, text in said.items() if text is not None}
        return (answer.body,)

    def _all_pages(self, way: Pages) -> tuple[bytes, ...]:
        """All pages of an answer.

        Raises:
            SourceError: they do not end, or a page says nothing of the next one.
        """
        found: list[bytes] = []
        asking, left = self._asking, _MOST_BYTES
        url: str | None = asking.url
        known: set[str] = set()
        while url is not None:
            if url in known:
                raise SourceError(f"{self._label}: page {len(found)} leads back to an earlier one", hint=_WAY)
            if len(found) == way.most:
                raise SourceError(
                    f"{self._label} answers with more than {way.most} pages; nothing of them counts",
                    hint=f"add the option max_pages '{10 * way.most}', or ask for more rows on each page",
                )
            known.add(url)
            answer = self._answer(url, left, {})
            body = parsed(answer.body) if way.keys else None
            rows = rows_of(_inside(answer.body, asking.inside), asking.form) if not way.keys else 0
            self._note(way, body)
            found.append(answer.body)
            left -= len(answer.body)
            url = way.after(url, answer, body, rows)
        return tuple(found)

    def _note(self, way: Pages, body: object) -> None:
        """Say once that an answer has no such key: it may be that it has no further page, or another key."""
        if not way.is_told(body) and not self._is_told:
            where = ".".join(way.keys)
            _LOG.warning("%s: a page has nothing at %s, so it counts as the last one", self._label, where)
            self._is_told = True

    def _answer(self, url: str, most: int, conditions: Mapping[str, str]) -> WebAnswer:
        """What an address answers, if that is no error."""
        asking = self._asking
        answer = asked(url, self._label, headers=conditions, secret=asking.headers, most=most)
        if answer.status != 304 and not 200 <= answer.status < 300:
            page = "" if url == asking.url else " to the question for a further page"
            raise SourceError(f"{self._label} answers {answer.status}{page}", hint=_hint_of(answer.status))
        return answer


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
    url = _checked(required(options, "url"))
    form = options.get("format", "json").lower()
    if form not in FORMATS:
        raise SourceError(f"answers have no format {form}", hint=f"the formats are {', '.join(FORMATS)}")
    further = {
        name: value for name, value in options.items() if name not in OPTIONS and not name.startswith(_HEADER)
    }
    inside = tuple(options["path"].split(".")) if "path" in options else ()
    if inside and form != "json":
        raise SourceError(f"answers in {form} have no path", hint="leave out the option path")
    if not all(inside):
        raise SourceError(f"the option path is '{options['path']}'", hint="write keys, as in 'data.items'")
    if form == "json":
        further = {"missing": "some", **further}
    asking = Asking(url, _headers(options), form, inside, pages_of(options, form))
    every = seconds(options, "poll", "10 seconds")

    def of_file(path: Path) -> SplitSource:
        return opened(form, {**further, "path": str(path)})

    with TemporaryDirectory(prefix="headrace-") as folder:
        # Options that the format does not have are found now, and not with the first answer.
        empty = Path(folder, "empty")
        empty.touch()
        of_file(empty)
    return WebPull(asking, every, schema, of_file)


def _checked(url: str) -> str:
    """An address of the web.

    Raises:
        SourceError: it is none, or has a user in it.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
        raise SourceError("the url is not an address of the web", hint="write url 'https://host/path'")
    if parts.username is not None:
        raise SourceError("the url has a user in it", hint="write authorization SECRET 'name'")
    return url


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    """The headers that the options `authorization` and `header.NAME` name.

    Raises:
        SourceError: a name or a value cannot be a header, or one is there twice.
    """
    given = {name: value for name, value in options.items() if name.startswith(_HEADER)}
    found = {name.removeprefix(_HEADER): str(value) for name, value in given.items()}
    for name in found:
        if not _NAME.fullmatch(name):
            raise SourceError(f"'{name}' is not the name of a header", hint="write header.`X-Name` 'value'")
        if name in _OURS:
            raise SourceError(f"the header {name} is not to be given", hint="leave it out")
    if "authorization" in options:
        if "authorization" in found:
            raise SourceError("the option authorization is also there as a header", hint="leave out one")
        found["authorization"] = str(options["authorization"])
    for name, value in found.items():
        if not (value.isascii() and value.isprintable()):
            raise SourceError(
                f"the header {name} has other than printable characters of ASCII",
                hint="check the option; a secret may have a line break",
            )
    return found


def _hint_of(status: int) -> str:
    match status:
        case 401 | 403:
            return "check the option authorization, or the header that the server wants"
        case _:
            return "check the option url"


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


def labelled(source: SplitSource, labels: Sequence[str]) -> SplitSource:
    """The same, with other names to show for its files."""
    match source:
        case JsonSource():
            parts = zip(source.parts, labels, strict=True)
            return replace(source, parts=tuple(replace(part, label=label) for part, label in parts))
        case CsvSource():
            files = zip(source.parts, labels, strict=True)
            texts = (replace(part, text=replace(part.text, label=label)) for part, label in files)
            return replace(source, parts=tuple(texts))
        case ComputedSource():
            return replace(source, input=labelled(source.input, labels))
        case _:
            return source
