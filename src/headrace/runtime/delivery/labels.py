"""The file that says what a folder of delivered files holds."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Final

LABEL: Final = "_headrace.json"
"""Its name; readers of folders leave names that begin with `_` out."""


@dataclass(frozen=True)
class FolderLabel:
    """What a folder holds.

    Attributes:
        query: the query whose changes they are.
        delivery: identifies the delivery; see `Origin`.
        format: the format of the files.
        epoch: the last epoch that it is complete up to.
        heartbeat: the one after that epoch, as text; None before any.
        files: how many files there are up to that epoch.
        size: how many bytes they have together.
    """

    query: str
    delivery: str
    format: str
    epoch: int
    heartbeat: str | None
    files: int = 0
    size: int = 0

    def packed(self) -> bytes:
        """The bytes of the file: a JSON object with a checksum at its end."""
        content = asdict(self)
        crc = zlib.crc32(json.dumps(content).encode())
        return json.dumps({**content, "crc": crc}).encode()


def unpacked(data: bytes) -> FolderLabel:
    """The label that some bytes are.

    Raises:
        ValueError: they are not what was written.
    """
    try:
        content = json.loads(data)
        del content["crc"]
        label = FolderLabel(**content)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{LABEL} is not one of ours") from error
    if label.packed() != data:
        raise ValueError(f"{LABEL} is damaged")
    return label
