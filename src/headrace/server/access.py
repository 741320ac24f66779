"""Who sends a request, what they may do, and from which pages and hosts requests are taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from headrace.engine import Policy
from headrace.server.errors import RequestError, not_found
from headrace.server.keys import KeyFile, Role, ServerKey

_LOCAL: Final = frozenset(["localhost", "127.0.0.1", "::1"])


@dataclass(frozen=True)
class Caller:
    """Who sends a request.

    Attributes:
        name: the name of the key; `local` where there are no keys.
        role: what they may do.
        only: the names they may see and use, in lower case; all if None.
        key: whether they have sent a key.
    """

    name: str
    role: Role
    only: frozenset[str] | None = None
    key: bool = False

    def check(self, role: Role) -> None:
        """Refuse what needs another role.

        Raises:
            RequestError: this one does not include it.
        """
        if not self.role.includes(role):
            raise RequestError(
                "forbidden", 403, f"this needs a key with the role {role}", f"yours has the role {self.role}"
            )

    def check_unlimited(self, what: str) -> None:
        """Refuse what shows or changes more than some names.

        Raises:
            RequestError: the key is limited to names.
        """
        if self.only is not None:
            raise RequestError("forbidden", 403, f"{what} needs a key for all names")

    def sees(self, name: str) -> bool:
        """Whether they may see something of that name."""
        return self.only is None or name.lower() in self.only

    def producer(self, name: str) -> str:
        """What a producer of theirs is called in the store: after the name of the key, not its secret.

        Without keys as they call it, as in programs.
        """
        return name if self == LOCAL else f"{self.name}/{name}"

    @property
    def sees_texts(self) -> bool:
        """Whether they may see what is written in the queries of all."""
        return self.only is None and self.role is Role.ADMIN

    def check_name(self, kind: str, name: str) -> None:
        """Refuse names that they may not see, with the words for names that do not exist.

        Raises:
            RequestError: they may not.
        """
        if not self.sees(name):
            raise not_found(f"{kind} {name}")

    def policy(self, of_server: Policy) -> Policy:
        """What their statements may reach.

        Args:
            of_server: what those of an administrator may.
        """
        match self.role:
            case Role.ADMIN:
                return of_server
            case Role.WRITE:
                return Policy.closed()
            case Role.READ:
                return replace(Policy.closed(), may_define=False)


LOCAL: Final = Caller("local", Role.ADMIN)
"""Whoever is on this machine, where there are no keys."""


@dataclass(frozen=True)
class Door:
    """Which requests are let in.

    Attributes:
        keys: the file of keys.
        hosts: the names, besides those of this machine, under which the server is called; any if None.
    """

    keys: KeyFile
    hosts: frozenset[str] | None = frozenset()

    @property
    def needs_key(self) -> bool:
        """Whether a request has to send a key."""
        return not self.keys.lets_all_in

    def caller(self, authorization: str | None) -> Caller:
        """Who sends a request with that header.

        Raises:
            RequestError: there are keys, and none of them is sent.
        """
        if self.keys.lets_all_in:
            return LOCAL
        scheme, _, sent = (authorization or "").partition(" ")
        key: ServerKey | None = self.keys.find(sent.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise unauthorized("a key is needed" if not sent else "this key is not known")
        return Caller(key.name, key.role, None if key.only is None else frozenset(key.only), key=True)

    def check_host(self, host: str | None) -> None:
        """Refuse requests for other hosts: a page of somebody else's that has its name resolved to this one.

        Raises:
            RequestError: the host is not one of ours.
        """
        name = host_name(host or "")
        if name in _LOCAL or self.hosts is None or name in self.hosts:
            return
        raise RequestError(
            "wrong_host", 421, "this server is not called so", "start it with --allow-host NAME to allow that"
        )

    def check_origin(self, origin: str | None, host: str | None) -> None:
        """Refuse requests that the pages of other sites send.

        Raises:
            RequestError: the page is not one of this server's.
        """
        if origin is not None and urlsplit(origin).netloc.lower() != (host or "").lower():
            raise RequestError("wrong_origin", 403, "pages of other sites may not use this server")


def unauthorized(message: str, hint: str = "send the header Authorization: Bearer KEY") -> RequestError:
    """It is not known who sends a request."""
    return RequestError("unauthorized", 401, message, hint, headers={"WWW-Authenticate": "Bearer"})


def host_name(host: str) -> str:
    """The name or address in a header Host, in lower case and without the port; empty where it is none."""
    if "@" in host:
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def hosts_of(host: str, allowed: Iterable[str]) -> frozenset[str] | None:
    """The names under which a server on an address is called.

    Args:
        host: the address it listens on.
        allowed: the names that the operator allows.

    Returns:
        The names; None for any, where it listens to the network and no name is given.
    """
    names = frozenset(name.lower() for name in allowed)
    if names or is_loopback(host):
        return names | {host.lower()}
    return None
