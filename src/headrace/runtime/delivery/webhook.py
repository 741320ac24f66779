"""A query's changes, sent to an address of the web: one request for each epoch that changes something."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from headrace.errors import DeliveryError, UserError, shortened
from headrace.later import later
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.outside.web import connection
from headrace.runtime.results.changes import Change
from headrace.runtime.writing.tables import write_table
from headrace.time import INFINITY, TimeDomain, format_instant

if TYPE_CHECKING:
    import http.client as http
else:
    http = later("http.client")

TIMEOUT: Final = 30.0
"""Seconds that a receiver has for each step of a request, unless another time is given."""

_SHOWN: Final = 200
"""So many characters of what a receiver answers are in an error."""


class WebhookSink:
    """Posts the changes of each epoch to an address, as JSON lines.

    Promise: at least once, in order, no epoch left out. A request whose answer is not a success (a status of
    200 to 299), or that fails, is sent again with the same rows; so is the last one after a crash. The header
    `Idempotency-Key` is the same then, and another one for every other epoch: a receiver that keeps the last
    one it has carried out, together with what it has done, and answers a repeat at once, has everything
    exactly once. The headers `Headrace-Query`, `Headrace-Epoch` and `Headrace-Heartbeat` say what it is, and
    below which instant the answer is final. An epoch that changes nothing is not sent. Redirections are not
    followed.

    Args:
        url: the address, which begins with `http://` or `https://`.
        authorization: what the header `Authorization` says, such as `Bearer ...`; None for none.
        timeout: seconds that the receiver has for each step.

    Raises:
        UserError: it is not such an address, or the authorization cannot be a header.
    """

    def __init__(self, url: str, authorization: str | None = None, timeout: float = TIMEOUT) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            raise _not_an_address() from None
        if parts.scheme not in ("http", "https") or not self._host or not _is_plain(url) or " " in url:
            raise _not_an_address()
        if "@" in parts.netloc:
            raise UserError(
                "the address of a webhook has a user", hint="give authorization: Basic and both in base64"
            )
        self._is_secure = parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": "application/x-ndjson"}
        if authorization is not None and not _is_plain(authorization):
            raise UserError(
                "the authorization of a webhook has other than printable characters of ASCII",
                hint="check the secret: it may have a line break",
            )
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._timeout = timeout
        self._origin: Origin | None = None

    @property
    def name(self) -> str:
        """`webhook`."""
        return "webhook"

    def open(self, origin: Origin) -> None:
        """Remember whose changes they are; the receiver is not asked."""
        self._origin = origin

    def write(self, change: Change) -> None:
        """Send the epoch's changes, if there are any.

        Raises:
            DeliveryError: the receiver cannot be reached, or does not answer that it has them.
        """
        assert self._origin is not None, "it was opened"
        if not change.rows.num_rows:
            return
        text = io.BytesIO()
        write_table(change.rows, "jsonl", text)
        status, answer = self._post(text.getvalue(), self._headers_of(change, self._origin))
        if not 200 <= status < 300:
            raise DeliveryError(f"the receiver answered {status}: {shortened(answer, _SHOWN) or 'nothing'}")

    def _headers_of(self, change: Change, origin: Origin) -> dict[str, str]:
        return {
            **self._headers,
            # After a copy of the store epochs of the same number are other ones.
            "Idempotency-Key": f"{origin.delivery}{origin.branch and f'-{origin.branch}'}-{change.epoch}",
            # A query may be called anything; what is not ASCII is written as JSON does.
            "Headrace-Query": origin.query.encode("ascii", "backslashreplace").decode().replace("\n", "\\n"),
            "Headrace-Epoch": str(change.epoch),
            "Headrace-Heartbeat": _shown(change.heartbeat, origin.domain),
        }

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        """Send a request; the status of the answer, and the beginning of its text."""
        made = connection(self._host, self._port, secure=self._is_secure, timeout=self._timeout)
        try:
            made.request("POST", self._path, body, headers)
            answer = made.getresponse()
            return answer.status, answer.read(4 * _SHOWN).decode("utf-8", "replace").strip()
        except (OSError, http.HTTPException) as error:
            raise DeliveryError(f"the receiver cannot be reached: {error or type(error).__name__}") from error
        finally:
            made.close()


def _is_plain(text: str) -> bool:
    """Whether it can be sent as it is, and no error of the library shows it."""
    return text.isascii() and text.isprintable()


def _not_an_address() -> UserError:
    # What was given may be secret.
    return UserError(
        "the url of a webhook is not an address of the web", hint="write url 'https://host/path'"
    )


def _shown(heartbeat: int, domain: TimeDomain) -> str:
    return "infinity" if heartbeat == INFINITY else format_instant(heartbeat, domain)
