"""Results as files, one per epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from headrace.errors import DeliveryError, UserError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.results.changes import Change
from headrace.runtime.store.whole_files import DRAFT_SUFFIX, draft_of, make_folder, put, settle
from headrace.runtime.writing.tables import write_table
from headrace.time import INFINITY, format_instant

FILE_FORMATS: Final = ("jsonl", "parquet", "csv", "arrow")
"""What the files can be."""

LABEL: Final = "_headrace.json"
"""The file that says what a folder holds; readers of folders leave names that begin with `_` out."""


class FileSink:
    """Writes files into a folder: `epoch-000000000042.jsonl`, one per epoch that changed something.

    Promise: exactly once, also after a crash, as long as the run's store is durable and nobody else writes to
    the folder. A file that has its name is complete, is never changed, and is on disk before the sink's
    position moves on; after a crash the same epoch finds its file there. `_headrace.json` in the folder says
    how far it is complete: the last epoch, and the heartbeat after it. An epoch up to there without a file
    changed nothing.

    A folder belongs to one query of one store. Without a durable store every run is another one, and needs
    an empty folder.

    Args:
        folder: where the files go; made if it is missing.
        format: `jsonl`, `parquet`, `csv` or `arrow`.

    Raises:
        UserError: the format is unknown.
    """

    def __init__(self, folder: str | Path, format: str = "jsonl") -> None:
        if format not in FILE_FORMATS:
            raise UserError(
                f"there is no format {format} for files", hint=f"the formats are {', '.join(FILE_FORMATS)}"
            )
        self._folder = Path(folder).absolute()
        self._format = format
        self._origin: Origin | None = None

    @property
    def name(self) -> str:
        """`files`."""
        return "files"

    def open(self, origin: Origin) -> None:
        """Make the folder, or see that it is ours and in step.

        Raises:
            DeliveryError: the folder holds something else, or lacks what was delivered.
        """
        try:
            make_folder(self._folder)
            for draft in self._folder.glob(f".*{DRAFT_SUFFIX}"):
                draft.unlink()
            label = self._label()
        except (OSError, ValueError) as error:
            raise DeliveryError(f"the folder {self._folder} cannot be used: {error}") from error
        self._origin = origin
        if label is None:
            self._claim(origin)
        elif label.get("delivery") != origin.delivery or label.get("format") != self._format:
            raise DeliveryError(
                f"the folder {self._folder} holds {label.get('format')} files of another run, of "
                f"{label.get('query')}",
                hint="name an empty folder; with a durable store a run goes on in the same one",
            )

    def write(self, change: Change) -> None:
        """Write the epoch's file, unless it is there, then say that the folder is complete up to it."""
        target = self._folder / f"epoch-{change.epoch:012d}.{self._format}"
        if change.rows.num_rows and not target.exists():
            draft = draft_of(target)
            write_table(change.rows, self._format, draft)
            settle(draft, target)
        self._put_label(change.epoch, change.heartbeat)

    def _claim(self, origin: Origin) -> None:
        if origin.epoch >= origin.first:
            raise DeliveryError(
                f"the folder {self._folder} lacks what was delivered up to epoch {origin.epoch}",
                hint="put the folder back, or give the sink another name to deliver everything again",
            )
        if any(self._folder.iterdir()):
            raise DeliveryError(f"the folder {self._folder} is not empty", hint="name an empty folder")
        self._put_label(origin.epoch, None)

    def _label(self) -> dict[str, Any] | None:
        path = self._folder / LABEL
        return json.loads(path.read_bytes()) if path.exists() else None

    def _put_label(self, epoch: int, heartbeat: int | None) -> None:
        assert self._origin is not None
        origin = self._origin
        shown = None if heartbeat is None else format_instant(heartbeat, origin.domain)
        content = {
            "query": origin.query,
            "delivery": origin.delivery,
            "format": self._format,
            "epoch": epoch,
            "heartbeat": "infinity" if heartbeat == INFINITY else shown,
        }
        put(self._folder / LABEL, json.dumps(content).encode())
