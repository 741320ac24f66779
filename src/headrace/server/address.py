"""Where a server listens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.errors import UserError
from headrace.server.access import is_loopback


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    Attributes:
        host: the address.
        port: the port; any free one if 0.
        certificate: the file of the TLS certificate, or None for plain HTTP.
        private_key: the file of its key, or None.
        insecure: whether others on the network may be served without TLS.
    """

    host: str = "127.0.0.1"
    port: int = 7878
    certificate: Path | None = None
    private_key: Path | None = None
    insecure: bool = False

    def check(self, *, has_keys: bool) -> None:
        """Refuse addresses on which anybody could listen in, or do everything.

        Raises:
            UserError: others can reach the address, and there is no key, or no TLS.
        """
        if (self.certificate is None) != (self.private_key is None):
            raise UserError("a certificate needs its key", hint="give both --tls-cert and --tls-key")
        if is_loopback(self.host):
            return
        if not has_keys:
            raise UserError(
                f"{self.host} can be reached by others, and there are no keys",
                hint="make one with headrace keys add NAME --role admin, or serve 127.0.0.1",
            )
        if self.certificate is None and not self.insecure:
            raise UserError(
                f"{self.host} can be reached by others, who could read keys and rows on their way",
                hint="give --tls-cert and --tls-key, or --insecure behind a proxy that has them",
            )
