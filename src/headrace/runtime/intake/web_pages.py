"""The pages of an answer of the web: where the next one is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from headrace.errors import SourceError
from headrace.runtime.outside.web import WebAnswer, shown
from headrace.runtime.sources.rows.options import required, whole

OPTIONS: Final = ("pages", "next", "parameter", "max_pages")
"""The options that say where the next page is."""

_KINDS: Final = {"link": (), "next": ("next",), "cursor": ("next", "parameter")} | dict.fromkeys(
    ("number", "offset"), ("parameter",)
)
"""The ways to the next page, and the options that each of them needs."""
_LINK: Final = re.compile(r'<([^>]*)>((?:\s*;\s*[\w*-]+\s*(?:=\s*(?:"[^"]*"|[^\s;,"]+))?)*)')
_RELATION: Final = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)
_ABSENT: Final = object()


@dataclass(frozen=True)
class Pages:
    """The way from a page to the next one.

    Attributes:
        kind: `link`: the header of that name has its address; `next`: the answer has its address; `cursor`:
            the answer has the value of a parameter; `number`: a parameter counts the pages; `offset`: a
            parameter counts the rows before it.
        keys: under which, from the outside in, an answer has its address or the value.
        parameter: of the address.
        most: an answer has no more pages.
    """

    kind: str
    keys: tuple[str, ...]
    parameter: str
    most: int

    def after(self, url: str, answer: WebAnswer, body: object, rows: int) -> str | None:
        """The address of the next page; None after the last one.

        Args:
            url: of this page.
            answer: it.
            body: what its text of JSON says; None if nothing looks into it.
            rows: how many this page has.

        Raises:
            SourceError: the answer does not say where it is, or it is on another server.
        """
        match self.kind:
            case "link":
                found = _linked(answer)
            case "next":
                found = self._said(body)
            case "cursor":
                said = self._said(body)
                return None if said is None else _with(url, self.parameter, said)
            case kind:
                if not rows:
                    return None
                first, step = (1, 1) if kind == "number" else (0, rows)
                return _with(url, self.parameter, str(_number(url, self.parameter, first) + step))
        return None if found is None else _joined(url, found)

    def is_told(self, body: object) -> bool:
        """Whether an answer has the keys that lead to the next page, also if it is the last one."""
        return not self.keys or _at(body, self.keys) is not _ABSENT

    def _said(self, body: object) -> str | None:
        """The text under the keys; None if there is none."""
        found = _at(body, self.keys)
        if found is _ABSENT or found is None or found == "":
            return None
        if not isinstance(found, str):
            raise SourceError(
                f"the answer has no text at {'.'.join(self.keys)}", hint="check the option next"
            )
        return found


def pages_of(options: Mapping[str, str], form: str) -> Pages | None:
    """What the options say of pages; None if an answer has one alone.

    Args:
        options: of the stream.
        form: the format of its answers.

    Raises:
        SourceError: an option is wrong.
    """
    kind = options.get("pages")
    if kind is None:
        if (given := next((name for name in OPTIONS if name in options), None)) is not None:
            raise SourceError(f"the option {given} is for pages", hint=f"add pages {_alternatives()}")
        return None
    if kind not in _KINDS:
        raise SourceError(f"the option pages is '{kind}'", hint=f"it must be {_alternatives()}")
    needed = _KINDS[kind]
    for name in ("next", "parameter"):
        if name in needed:
            required(options, name)
        elif name in options:
            raise SourceError(f"pages '{kind}' has no option {name}", hint="leave it out")
    if "next" in needed and form != "json":
        raise SourceError(f"answers in {form} have no keys", hint="pages 'link' and 'number' are for them")
    keys = tuple(options["next"].split(".")) if "next" in needed else ()
    if not all(keys):
        raise SourceError(f"the option next is '{options['next']}'", hint="write keys, as in 'links.next'")
    most = whole(options, "max_pages", 100)
    if most < 1:
        raise SourceError(f"the option max_pages is '{most}'", hint="it is a number of pages, from 1 on")
    return Pages(kind, keys, options.get("parameter", ""), most)


def parsed(body: bytes) -> object:
    """What a text of JSON says, with the text of numbers.

    Raises:
        SourceError: it is none.
    """
    try:
        return json.loads(body.decode("utf-8-sig"), parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the answer is not JSON: {error}", hint="check the option url") from None


def rows_of(body: bytes, form: str) -> int:
    """How many rows a page has.

    Args:
        body: the rows.
        form: their format.
    """
    if form == "json" and body.lstrip()[:1] == b"[":
        found = parsed(body)
        return len(found) if isinstance(found, list) else 1
    lines = sum(1 for line in body.splitlines() if line.strip())
    return lines if form == "json" else max(lines - 1, 0)


def _alternatives() -> str:
    *first, last = (f"'{one}'" for one in _KINDS)
    return f"{', '.join(first)} or {last}"


def _at(body: object, keys: Sequence[str]) -> object:
    """What is under some keys."""
    for key in keys:
        if not isinstance(body, dict) or key not in body:
            return _ABSENT
        body = body[key]
    return body


def _linked(answer: WebAnswer) -> str | None:
    """The address that a header `Link` calls the next one (RFC 8288)."""
    return next((url for url, relations in _links(answer) if "next" in relations), None)


def _links(answer: WebAnswer) -> Iterator[tuple[str, list[str]]]:
    for said in answer.all_of("Link"):
        for found in _LINK.finditer(said):
            named = _RELATION.search(found[2])
            yield found[1], (named[1] or named[2]).lower().split() if named is not None else []


def _joined(url: str, found: str) -> str:
    """An address that a page names.

    Raises:
        SourceError: it is none, or one of another server, which may not have the headers.
    """
    try:
        joined = urljoin(url, found)
        here, there = urlsplit(url), urlsplit(joined)
        is_same = (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)
    except ValueError:
        raise SourceError("the next page has no address of the web", hint="check the option pages") from None
    if not is_same:
        raise SourceError(
            f"the next page is on another server: {shown(joined)}",
            hint="write the url of that server; pages 'cursor' and 'number' stay on one",
        )
    return joined


def _with(url: str, parameter: str, value: str) -> str:
    """An address with a parameter, instead of the one of that name."""
    parts = urlsplit(url)
    kept = [(name, old) for name, old in parse_qsl(parts.query, keep_blank_values=True) if name != parameter]
    return urlunsplit(parts._replace(query=urlencode([*kept, (parameter, value)]), fragment=""))


def _number(url: str, parameter: str, default: int) -> int:
    """The whole number that an address gives a parameter."""
    text = dict(parse_qsl(urlsplit(url).query)).get(parameter, str(default))
    if not text.isdecimal():
        raise SourceError(f"the parameter {parameter} of the url is '{text}'", hint="write a whole number")
    return int(text)
