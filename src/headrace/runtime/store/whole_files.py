"""Files that are whole or not there: written beside their place, forced to disk, then moved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from headrace.runtime.store.crash_points import reach

DRAFT_SUFFIX: Final = ".part"
"""How the hidden name of an unfinished file ends."""


def draft_of(target: Path) -> Path:
    """Where a file is written before it is whole."""
    return target.with_name(f".{target.name}{DRAFT_SUFFIX}")


def settle(draft: Path, target: Path) -> None:
    """Force a finished draft to disk and give it its name, which replaces what had it."""
    _force(draft)
    reach("file.drafted")
    draft.replace(target)
    reach("file.moved")
    _force(target.parent)


def put(target: Path, content: bytes) -> None:
    """Write a small file, in place of an older one of that name."""
    draft = draft_of(target)
    draft.write_bytes(content)
    settle(draft, target)


def make_folder(folder: Path) -> None:
    """Make a folder, and force its name to disk."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        _force(folder.parent)


def _force(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
