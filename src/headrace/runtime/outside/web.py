"""Requests to web servers: each has a timeout, and an answer is whole or none."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import quote, urlsplit

from headrace.errors import AwayError, SourceError
from headrace.later import later
from headrace.runtime.outside.patience import patience
from headrace.runtime.outside.trouble import away, is_away, is_temporary

if TYPE_CHECKING:
    import http.client as http
    import ssl
    import urllib.error as errors
    import urllib.request as requests
else:
    http = later("http.client")
    ssl = later("ssl")
    errors = later("urllib.error")
    requests = later("urllib.request")

_PIECE: Final = 2**16
_BUFFER: Final = 2**20
_SLOWEST: Final = 1_000
"""Bytes a second that a server sends at least, in the mean."""
_LONGEST_PAUSE: Final = 3600.0
"""Seconds that a server may ask to be left alone."""


@dataclass(frozen=True)
class WebAnswer:
    """What a server has answered, whole.

    Attributes:
        status: such as 200.
        headers: by their names, whatever their case.
        body: all of it.
    """

    status: int
    headers: Message
    body: bytes

    def all_of(self, name: str) -> list[str]:
        """What all headers of a name say."""
        return [str(one) for one in self.headers.get_all(name, [])]


def asked(
    url: str,
    label: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    secret: Mapping[str, str] | None = None,
    most: int = 2**28,
    silent: float | None = None,
) -> WebAnswer:
    """The answer of a web server, whatever its status, unless that says to come later.

    Args:
        url: the address.
        label: what errors call it.
        method, body: of the request.
        headers: of the request.
        secret: more of them, which are not sent to where an answer points.
        most: an answer has fewer bytes.
        silent: for how long the server may be silent (seconds); as for all peers if None.

    Raises:
        AwayError: it cannot be reached, is silent, breaks off, or says that it cannot answer for now.
        SourceError: the answer is too long, or the address is none.
    """
    request = requests.Request(sent(url), body, dict(headers or {}), method=method)
    for name, value in (secret or {}).items():
        request.add_unredirected_header(name, value)
    try:
        try:
            found = requests.urlopen(request, timeout=silent or patience().silent)
        except errors.HTTPError as error:
            if is_temporary(error.code):
                error.close()
                raise _busy(label, error.code, error.headers) from None
            found = error
        with closing(found):
            return WebAnswer(found.status, found.headers, _whole(found, label, most))
    except (OSError, http.HTTPException, ValueError) as error:
        raise _unreachable(label, error) from None


def opened(url: str, size: int) -> BinaryIO:
    """The bytes of a file of a web server, from its beginning.

    Args:
        url: its address.
        size: how many bytes it has, as far as is known; 0 where it is not.

    Raises:
        AwayError: it cannot be reached, now or later, breaks off, or says that it cannot answer for now.
        OSError: it is not given.
    """
    found = requested(url, "GET")
    length = found.headers["Content-Length"]
    promised = int(length) if length is not None and length.isdecimal() else size or None
    return cast(BinaryIO, io.BufferedReader(_Promised(found, shown(url), promised), _BUFFER))


def requested(url: str, method: str) -> Any:
    """The answer of a web server, whose body is not read yet.

    Raises:
        AwayError: it cannot be reached, or says that it cannot answer for now.
        OSError: it answers otherwise than with the file.
    """
    try:
        return requests.urlopen(requests.Request(sent(url), method=method), timeout=patience().silent)
    except errors.HTTPError as error:
        error.close()
        if is_temporary(error.code):
            raise _busy(shown(url), error.code, error.headers) from None
        raise OSError(f"the server does not give it: {error}") from None
    except (OSError, http.HTTPException) as error:
        raise _unreachable(shown(url), error) from None


def connection(host: str, port: int | None, *, secure: bool, timeout: float) -> http.HTTPConnection:
    """A connection to a web server, which is made with the first request.

    Args:
        host, port: where it is.
        secure: whether by TLS.
        timeout: seconds for each step.
    """
    if not secure:
        return http.HTTPConnection(host, port, timeout=timeout)
    return http.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())


class _Promised(io.RawIOBase):
    """An answer that has all bytes that were promised, or fails.

    Args:
        answer: the answer.
        label: what errors call it.
        promised: how many bytes it has; None where nobody said.
    """

    def __init__(self, answer: Any, label: str, promised: int | None) -> None:
        self._answer = answer
        self._label = label
        self._promised = promised
        self._come = 0
        self._waited = 0.0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes."""
        begun = time.monotonic()
        try:
            # What has come, and not as much as fits: a slow server is noticed.
            piece = self._answer.read1(len(buffer))
        except (OSError, http.HTTPException) as error:
            raise _unreachable(self._label, error) from None
        self._waited += time.monotonic() - begun
        self._come += len(piece)
        if not piece and self._promised is not None and self._come < self._promised:
            raise _broken_off(self._label, self._come, self._promised)
        _check_rate(self._label, self._come, self._waited)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """End the connection."""
        self._answer.close()
        super().close()


def _whole(answer: Any, label: str, most: int) -> bytes:
    """All bytes of an answer, from a server that is not too slow."""
    length = answer.headers.get("Content-Length")
    promised = int(length) if length is not None and length.isdecimal() else None
    if promised is not None and promised >= most:
        raise SourceError(f"{label} answers with {promised:,} bytes, and may with fewer than {most:,}")
    begun, read = time.monotonic(), io.BytesIO()
    while piece := answer.read1(_PIECE):
        read.write(piece)
        if read.tell() >= most:
            raise SourceError(f"{label} answers with {most:,} bytes or more")
        _check_rate(label, read.tell(), time.monotonic() - begun)
    is_none = answer.status in (204, 304)
    if promised is not None and read.tell() < promised and not is_none:
        raise _broken_off(label, read.tell(), promised)
    return read.getvalue()


def _check_rate(label: str, come: int, seconds: float) -> None:
    """Refuse to wait any longer for a server that sends next to nothing.

    Raises:
        AwayError: it does.
    """
    if seconds > patience().silent and come < seconds * _SLOWEST:
        raise AwayError(f"{label} is too slow: it has sent {come:,} bytes in {seconds:.0f} seconds")


def _broken_off(label: str, come: int, promised: int) -> AwayError:
    return AwayError(
        f"{label}: the transfer broke off after {come:,} of {promised:,} bytes",
        hint="nothing of it counts; it is tried again",
    )


def _busy(label: str, status: int, headers: Any) -> AwayError:
    return AwayError(f"{label} answers {status}", hint="it is asked again", pause=_pause(headers))


def _pause(headers: Any) -> float | None:
    """Seconds that a server wants to be left alone; None where it says nothing of use."""
    said = (headers.get("Retry-After") or "").strip() if headers is not None else ""
    if said.isdecimal():
        return min(float(said), _LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    now = datetime.now(moment.tzinfo or UTC)
    return min(max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()), _LONGEST_PAUSE)


def _unreachable(label: str, error: Exception) -> Exception:
    if is_away(error):
        reason = getattr(error, "reason", error)
        found = reason if isinstance(reason, Exception) else error
        return away(f"{label} cannot be reached", found, "check the address, and whether its server runs")
    return SourceError(f"{label} cannot be reached: {error}", hint="check the address")


def sent(url: str) -> str:
    """An address as requests have it: blanks and letters beyond ASCII are written as codes."""
    return quote(url, safe="%/:?#[]@!$&'()*+,;=~")


def shown(url: str) -> str:
    """An address without what may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
