"""A folder whose files keep coming: when a file counts, and how it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from headrace.errors import AwayError, SourceError
from headrace.runtime.sources.files.files import Stamp, allowed_path, found_stamp, present_files, stamps_of
from headrace.runtime.sources.files.patterns import is_partition, is_pattern, is_whole, plain_path
from headrace.runtime.sources.files.remote import Account, Place, RemoteFile, account_of, is_remote
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.options import flag, required, seconds
from headrace.schema import Schema

OPTIONS: Final = ("follow", "ready", "poll")
"""The options of a folder that is followed, besides those of its format."""
_ROOT: Final = Path("/")
_SUCCESS: Final = "_SUCCESS"
_POLL: Final = "1 second"


class Ready(Enum):
    """When a file counts."""

    UNCHANGED = "unchanged"
    """Once its size and time were the same at two polls."""
    RENAMED = "renamed"
    """At once: whoever writes it gives it its name when it is complete."""
    SUCCESS = "success"
    """Once there is a file `_SUCCESS` in its folder, or in the one around folders such as `day=1`."""


@dataclass(frozen=True)
class Folder:
    """What is looked for, and how it is read.

    Attributes:
        path: the folder, or a pattern for files and folders; it starts from no other folder, so that its
            files have the same names in every run.
        allowed: the folders that files must be in; None for any file.
        ready: when a file counts.
        every: seconds between two polls.
        account: how an object store is reached; never shown.
        schema: the columns that each file's rows have.
        opened: from a file's whole path to what reads it; a UserError says that the file cannot be read.
    """

    path: str
    allowed: tuple[Path, ...] | None
    ready: Ready
    every: float
    account: Account
    schema: Schema
    opened: Callable[[str], SplitSource]

    def files(self) -> dict[str, Stamp]:
        """What is there now: each file by its name to show, in the order of these names.

        Raises:
            SourceError: the folder cannot be looked into.
            PolicyError: a file is not in an allowed folder.
        """
        found = present_files(self.path, _ROOT, self.allowed, self.account)
        stamps = ((label, found_stamp(path)) for path, label in found)
        return {label: stamp for label, stamp in stamps if stamp.size >= 0}

    def stamp(self, label: str) -> Stamp:
        """What is known now of a file that was found before; see `Stamp`."""
        if is_remote(label):
            return stamps_of([RemoteFile(label, self.account, 0, 0)])[0]
        return stamps_of([allowed_path(Path(label), label, self.allowed)])[0]

    def counts(self, stamp: Stamp, before: Stamp | None) -> bool:
        """Whether a file counts.

        Args:
            stamp: what is known of it.
            before: what was known of it at the poll before.
        """
        match self.ready:
            case Ready.UNCHANGED:
                return stamp == before
            case Ready.RENAMED:
                return True
            case Ready.SUCCESS:
                return any(found.size >= 0 for found in stamps_of(self._marks(stamp.path)))

    def _marks(self, path: Place) -> Iterator[Place]:
        """Where it may be said that a file is complete; see `Ready.SUCCESS`."""
        folder = str(path.parent)
        while True:
            mark = f"{folder}/{_SUCCESS}"
            yield RemoteFile(mark, self.account, 0, 0) if isinstance(path, RemoteFile) else Path(mark)
            folder, _, name = folder.rpartition("/")
            if not is_partition(name):
                return


def is_followed(options: Mapping[str, str]) -> bool:
    """Whether the options of a source say that its files keep coming.

    Raises:
        SourceError: the option `follow` is neither true nor false, or one is given that needs it.
    """
    follow = flag(options, "follow", False)
    if not follow and (alone := [name for name in OPTIONS[1:] if name in options]):
        raise SourceError(f"the option {alone[0]} is for folders that are followed", hint="add follow true")
    return follow


def starts_above(path: str, base: Path) -> str:
    """What the names of a followed folder's files begin with that is not in the path as it is written."""
    if is_remote(path) or is_whole(path) or Path(path).is_absolute():
        return ""
    return os.path.join(os.path.abspath(base), "")


def open_folder(
    options: Mapping[str, str],
    base: Path,
    allowed: tuple[Path, ...] | None,
    schema: Schema,
    opened: Callable[[str], SplitSource],
    *,
    is_known: bool = False,
) -> Folder:
    """The folder that the options name.

    Args:
        options: of the source.
        base: the folder that a relative path starts from.
        allowed, schema, opened: as `Folder` has them.
        is_known: whether a store has the folder, so that it need not be there just now.

    Raises:
        SourceError: there is no such folder and none is known, or an option is wrong.
        PolicyError: a file is not in an allowed folder.
    """
    path = required(options, "path")
    text = options.get("ready", Ready.UNCHANGED.value).lower()
    try:
        ready = Ready(text)
    except ValueError:
        known = ", ".join(f"'{one.value}'" for one in Ready)
        raise SourceError(f"the option ready is '{text}'", hint=f"it must be one of {known}") from None
    every = seconds(options, "poll", _POLL)
    account = account_of(options)
    try:
        present_files(path, base, allowed, account)
    except (AwayError, SourceError):
        if not is_known:
            raise
    if is_remote(path):
        return Folder(path, allowed, ready, every, account, schema, opened)
    plain = plain_path(path)
    # One that cannot be looked at for now is looked at by the first poll.
    if not is_pattern(plain) and os.path.isfile(base / plain):
        raise SourceError(f"{path}: this is a file, and folders are followed", hint="name its folder")
    return Folder(os.path.abspath(base / plain), allowed, ready, every, account, schema, opened)
