"""From names to paths: a user's name as a file's name, and a name in a store as a path that stays in it.

Whatever a stream, a query, a record or a whole store says, nothing outside the store is made or removed:
names of users go through `file_name`, and every path in a store comes from `inside`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from headrace.errors import StoreError

_LONGEST: Final = 64
"""How many bytes a name may have before it is cut; two of them, and what is put around them, fit in 255."""

_LONGEST_READABLE: Final = 200
"""The same where a name has a file to itself."""

_PART: Final = re.compile(r"[A-Za-z0-9_%~-][A-Za-z0-9_%~.-]{0,199}")
"""A file or folder of a store; what begins with a dot is a draft, or leads elsewhere."""


def file_name(name: str) -> str:
    """What a file or folder of a store is called that belongs to a name given by a user.

    Lower-case letters of ASCII, digits and `_` stay; of every other character each byte becomes `%` and two
    digits. A name that gets too long is cut, and a digest of all of it follows `~`. So two names never share
    a file, not even where a file system ignores case or normalises accents, and none of them is hidden, too
    long, or leads into another folder.
    """
    return _escaped(
        name, lambda char: char == "_" or (char.isascii() and (char.islower() or char.isdigit())), _LONGEST
    )


def readable_file_name(name: str) -> str:
    """What a file for people is called that holds something of that name; names differ in more than case.

    Everything that can be read stays, except `/`, `%`, `~`, and a dot at the beginning.
    """
    found = _escaped(name, lambda char: char.isprintable() and char not in "/%~", _LONGEST_READABLE)
    return f"%2E{found[1:]}" if found.startswith(".") else found


def _escaped(name: str, stays: Callable[[str], bool], longest: int) -> str:
    texts = (char if stays(char) else "".join(f"%{byte:02X}" for byte in _bytes(char)) for char in name)
    # A single % is not the escape of anything.
    found = "".join(texts) or "%"
    if len(_bytes(found)) <= longest:
        return found
    head = _bytes(found)[: longest // 2].decode(errors="ignore")
    return f"{head}~{hashlib.sha256(_bytes(name)).hexdigest()[:32]}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def inside(root: str | Path, name: str) -> Path:
    """The path of a file or folder of a store.

    Args:
        root: the store's folder.
        name: names of folders and then of a file, with `/` between them.

    Raises:
        StoreError: the name leads out of the store, to one of its drafts, or through a symbolic link.
    """
    path = str(root)
    for part in name.split("/"):
        if not _PART.fullmatch(part):
            raise StoreError(
                f"the store {root} has no place for a file {name!r}", hint="restore the store from a copy"
            )
        path = f"{path}/{part}"
        if os.path.islink(path):
            raise _link_found(path)
    return Path(path)


def refuse_links(folder: Path) -> None:
    """See that whoever writes to a folder of a store, and to the folders in it, stays there.

    Raises:
        StoreError: it is, or holds, a symbolic link.
    """
    if folder.is_symlink():
        raise _link_found(folder)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(place, name)):
                raise _link_found(os.path.join(place, name))


def make_inside(root: str | Path, name: str = "") -> Path:
    """Make a folder of a store, and the store's own, where they are missing; only their owner may use them.

    Args:
        root: the store's folder.
        name: the folder's name, as for `inside`; the store's own if empty.

    Returns:
        The folder's path.

    Raises:
        StoreError: as for `inside`.
        OSError: it cannot be made.
    """
    path = Path(root)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        parts = name.split("/") if name else []
        for count in range(1, len(parts) + 1):
            path = inside(root, "/".join(parts[:count]))
            path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        # It is a file, and `mkdir` says only that there is something.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
    return path


def open_new(path: Path) -> int:
    """Open a new file, in place of one that a killed writer has left, for writing; only its owner may use it.

    Returns:
        The file's descriptor.

    Raises:
        OSError: it cannot be made.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _link_found(path: str | Path) -> StoreError:
    return StoreError(
        f"{path} is a symbolic link, and a store has none: what it leads to may be somebody else's",
        hint="put the folder or file itself there",
    )
