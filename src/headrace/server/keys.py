"""Keys: who may read, write or administer, and which names; of each key only a hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from headrace.errors import UserError

FILE_NAME: Final = "keys.json"
"""What the file is called in the folder of a store."""
_PREFIX: Final = "hr_"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Role(StrEnum):
    """What the holder of a key may do; each role includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether a role may do all that another one may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class ServerKey:
    """A key, without what its holder sends.

    Attributes:
        name: whose it is, for people and logs.
        digest: the SHA-256 of what its holder sends, in hexadecimal. That has 256 random bits, so that no
            slow hash is needed.
        role: what may be done with it.
        only: the streams, relations and queries it is for, in lower case; all if None.
    """

    name: str
    digest: str
    role: Role
    only: tuple[str, ...] | None = None


class KeyFile:
    """The keys in a file, which is read again when it has changed.

    Args:
        path: the file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: tuple[object, tuple[ServerKey, ...]] = (None, ())
        self._seen = False

    @property
    def _made(self) -> Path:
        """A file beside it that says that there was one: where only it is left, the keys are lost."""
        return self.path.with_name(f".{self.path.name}.made")

    @property
    def keys(self) -> tuple[ServerKey, ...]:
        """All keys.

        Raises:
            UserError: the file is damaged, or it is gone.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if self._made.exists() and not self._seen:
                raise UserError(
                    f"{self.path} is gone, which had keys",
                    hint="restore it, or add a key: headrace keys add NAME --role admin",
                ) from None
            return ()
        version = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._read[0] != version:
            self._read = version, _parsed(self.path)
        self._seen = self._seen or bool(self._read[1])
        return self._read[1]

    @property
    def lets_all_in(self) -> bool:
        """Whether no key is needed: there is none, and has been none since this was made.

        So a server does not open its door to everybody when its last key is dropped, or its file is lost.

        Raises:
            UserError: the file is damaged.
        """
        return not self.keys and not self._seen

    def find(self, sent: str) -> ServerKey | None:
        """The key that somebody sends, or None."""
        digest = _digest(sent)
        matching = [key for key in self.keys if hmac.compare_digest(key.digest, digest)]
        return matching[0] if matching else None

    def add(self, name: str, role: Role, only: tuple[str, ...] | None = None) -> str:
        """Make a new key.

        Args:
            name: whose it is.
            role: what may be done with it.
            only: the names it is for; all if None.

        Returns:
            What its holder sends. It is not kept, and cannot be had again.

        Raises:
            UserError: the name is taken or cannot be used, or the file cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise UserError(
                f"'{name}' cannot be the name of a key", hint="use letters, digits, and the signs _ . -"
            )
        known = self.keys if self.path.exists() else ()
        if any(key.name == name for key in known):
            raise UserError(f"there is a key {name} already", hint=f"headrace keys drop {name}")
        sent = _PREFIX + secrets.token_urlsafe(32)
        names = None if only is None else tuple(one.lower() for one in only)
        self._write((*known, ServerKey(name, _digest(sent), role, names)))
        return sent

    def drop(self, name: str) -> None:
        """Remove a key; requests with it are refused from now on.

        Raises:
            UserError: there is none of that name, or the file cannot be written.
        """
        left = tuple(key for key in self.keys if key.name != name)
        if len(left) == len(self.keys):
            raise UserError(f"there is no key {name}", hint="headrace keys list shows them")
        self._write(left)

    def _write(self, keys: tuple[ServerKey, ...]) -> None:
        """Replace the file; nobody but its owner can read it."""
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump({"keys": [asdict(key) for key in keys]}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            self._made.touch(mode=0o600)
            unfinished.replace(self.path)
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror}") from error
        finally:
            unfinished.unlink(missing_ok=True)


def _digest(sent: str) -> str:
    return hashlib.sha256(sent.encode("utf-8", "surrogateescape")).hexdigest()


def _parsed(path: Path) -> tuple[ServerKey, ...]:
    try:
        return tuple(map(_key, json.loads(path.read_text(encoding="utf-8"))["keys"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the keys in {path} cannot be read", hint="restore the file, or remove it and add the keys again"
        ) from error


def _key(found: dict[str, Any]) -> ServerKey:
    key = ServerKey(**found)
    only = None if key.only is None else tuple(str(name) for name in key.only)
    return replace(key, role=Role(key.role), only=only)
