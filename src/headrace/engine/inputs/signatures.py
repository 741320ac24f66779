"""Signatures of rows that are sent to the server, by which the senders of webhooks say who they are.

All are an HMAC with SHA-256 of the body under a secret that both sides know (RFC 2104). Stripe, Slack and
Standard Webhooks sign the time with it, so that what was sent once cannot be sent again much later.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from headrace.errors import UserError

TOLERANCE: Final = 300
"""So many seconds the time that is signed may differ from the clock's."""

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_STRIPE: Final = "stripe-signature"
_SLACK: Final = "x-slack-signature"
_STANDARD: Final = ("webhook-signature", "svix-signature")
_ENCODED: Final = "whsec_"
"""The beginning of a secret of Standard Webhooks that is written in base64."""


@dataclass(frozen=True)
class Signature:
    """The signature of the rows of a stream.

    Attributes:
        header: the header with the signature, in lower case.
        secret: what they are signed with.
    """

    header: str
    secret: str = field(repr=False)

    @classmethod
    def of(cls, options: dict[str, str]) -> Signature | None:
        """That which two options say, which are taken out of them; None if they say nothing.

        Raises:
            UserError: one of them is missing, or the header cannot be one.
        """
        header, secret = options.pop("signature", None), options.pop("secret", None)
        if header is None and secret is None:
            return None
        if header is None or not secret:
            raise UserError(
                "rows are signed in a header, with a secret",
                hint="write OPTIONS (signature 'X-Hub-Signature-256', secret SECRET 'name')",
            )
        if not _HEADER.fullmatch(header):
            raise UserError(f"'{header}' cannot be a header", hint="write signature 'X-Hub-Signature-256'")
        return cls(header.lower(), str(secret))

    def holds(self, headers: Mapping[str, str], body: bytes, now: float) -> bool:
        """Whether a request is signed with the secret, and, where the time is signed, has just been.

        Args:
            headers: its headers, by names in lower case.
            body: its body, as it was sent.
            now: the clock's reading (seconds since 1970-01-01 UTC).
        """
        for at, text, sent in self._signed(headers, body):
            # A time of another form would be another text, and so another signature.
            if at is not None and not (at.isdecimal() and abs(now - int(at)) <= TOLERANCE):
                continue
            digest = hmac.digest(self._key, text, "sha256")
            if any(hmac.compare_digest(digest, one) for one in _digests(sent)):
                return True
        return False

    @property
    def _key(self) -> bytes:
        if self.header in _STANDARD and self.secret.startswith(_ENCODED):
            with suppress(ValueError):
                return base64.b64decode(self.secret.removeprefix(_ENCODED), validate=True)
        return self.secret.encode()

    def _signed(self, headers: Mapping[str, str], body: bytes) -> Iterator[tuple[str | None, bytes, str]]:
        """When something was signed, what, and its signature, in each of the ways that the header says."""
        sent = headers.get(self.header, "")
        if self.header == _STRIPE:
            parts = [part.strip().partition("=") for part in sent.split(",")]
            at = next((value for name, _, value in parts if name == "t"), "")
            for name, _, value in parts:
                if name == "v1":
                    yield at, at.encode() + b"." + body, value
        elif self.header == _SLACK:
            at = headers.get("x-slack-request-timestamp", "")
            yield at, b"v0:" + at.encode() + b":" + body, sent.removeprefix("v0=")
        elif self.header in _STANDARD:
            begins = self.header.removesuffix("signature")
            name, at = (headers.get(f"{begins}{part}", "") for part in ("id", "timestamp"))
            for one in sent.split():
                version, _, value = one.partition(",")
                if version == "v1":
                    yield at, f"{name}.{at}.".encode() + body, value
        else:
            yield None, body, sent.removeprefix("sha256=")


def _digests(sent: str) -> Iterator[bytes]:
    """The bytes that a text may mean, in hexadecimal digits or in base64."""
    with suppress(ValueError):
        yield bytes.fromhex(sent)
    with suppress(ValueError):
        yield base64.b64decode(sent, validate=True)
