"""Files that are whole or not there: written beside their place, forced to disk, then moved.

An unfinished file has a hidden name that ends in the mark of who writes it. What a killed process has left is
found by that mark, so a file of somebody else is never taken for one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from headrace.runtime.store.crash_points import reach


def draft_of(target: Path, mark: str) -> Path:
    """Where a file is written before it is whole.

    Args:
        target: its place.
        mark: letters and digits that identify the writer.
    """
    return target.with_name(f".{target.name}.{mark}.part")


def is_draft(name: str, mark: str) -> bool:
    """Whether a file is an unfinished one of a writer, or one beside it, of the function that fills it."""
    return re.fullmatch(rf"\..+\.{mark}\.part(\.\d+\.part)?", name) is not None


def settle(draft: Path, target: Path) -> None:
    """Force a finished draft to disk and give it its name, which replaces what had it."""
    _force(draft)
    reach("file.drafted")
    draft.replace(target)
    reach("file.moved")
    _force(target.parent)


def put(target: Path, content: bytes, mark: str) -> None:
    """Write a small file, in place of an older one of that name."""
    draft = draft_of(target, mark)
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
