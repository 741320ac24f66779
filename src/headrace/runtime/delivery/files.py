"""Results as files, one per epoch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from headrace.errors import DeliveryError, UserError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.labels import LABEL, FolderLabel, unpacked
from headrace.runtime.outside.trouble import away, is_away
from headrace.runtime.results.changes import Change
from headrace.runtime.store.whole_files import draft_of, is_draft, make_folder, put, settle
from headrace.runtime.writing.tables import write_table
from headrace.time import INFINITY, TimeDomain, format_instant

FILE_FORMATS: Final = ("jsonl", "parquet", "csv", "arrow")
"""What the files can be."""


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
        self._domain = TimeDomain.INTEGER
        self._label: FolderLabel | None = None

    @property
    def name(self) -> str:
        """`files`."""
        return "files"

    def open(self, origin: Origin) -> None:
        """Make the folder, or see that it is ours, in step and complete.

        Nothing is removed but what this delivery has left unfinished, and nothing at all from a folder that
        is refused.

        Raises:
            DeliveryError: the folder holds something else, or lacks what was delivered; or it has epochs that
                the store, which is a copy, does not have.
        """
        self._domain = origin.domain
        try:
            label = self._read_label()
            if label is None:
                label = self._claim(origin)
            elif (label.delivery, label.format) != (origin.delivery, self._format):
                raise DeliveryError(
                    f"the folder {self._folder} holds {label.format} files of another run, of {label.query}",
                    hint="name an empty folder; with a durable store a run goes on in the same one",
                )
            origin.check_most(f"the folder {self._folder}", label.epoch)
            self._check_complete(label)
            for path in self._folder.iterdir():
                if is_draft(path.name, origin.delivery):
                    path.unlink()
        except (OSError, ValueError) as error:
            if is_away(error):
                raise away(f"the folder {self._folder} cannot be used", error) from error
            raise DeliveryError(f"the folder {self._folder} cannot be used: {error}") from error
        self._label = label

    def write(self, change: Change) -> None:
        """Write the epoch's file, unless it is there, then say that the folder is complete up to it."""
        assert self._label is not None, "it was opened"
        if change.epoch <= self._label.epoch:
            return
        label = replace(self._label, epoch=change.epoch, heartbeat=self._shown(change.heartbeat))
        if change.rows.num_rows:
            target = self._folder / f"epoch-{change.epoch:012d}.{self._format}"
            if not target.exists():
                draft = draft_of(target, label.delivery)
                write_table(change.rows, self._format, draft)
                settle(draft, target)
            label = replace(label, files=label.files + 1, size=label.size + target.stat().st_size)
        self._put(label)

    def _claim(self, origin: Origin) -> FolderLabel:
        if origin.epoch >= origin.first:
            raise DeliveryError(
                f"the folder {self._folder} lacks what was delivered up to epoch {origin.epoch}",
                hint="put the folder back, or give the sink another name to deliver everything again",
            )
        make_folder(self._folder)
        if not all(is_draft(path.name, origin.delivery) for path in self._folder.iterdir()):
            raise DeliveryError(f"the folder {self._folder} is not empty", hint="name an empty folder")
        label = FolderLabel(origin.query, origin.delivery, self._format, origin.epoch, None)
        self._put(label)
        return label

    def _check_complete(self, label: FolderLabel) -> None:
        """See that the files that were delivered are there, with all their bytes."""
        ours = re.compile(rf"epoch-(\d{{12}})\.{self._format}")
        found = [(ours.fullmatch(path.name), path) for path in self._folder.iterdir()]
        sizes = [path.stat().st_size for name, path in found if name and int(name[1]) <= label.epoch]
        if (len(sizes), sum(sizes)) != (label.files, label.size):
            raise DeliveryError(
                f"the folder {self._folder} has changed: up to epoch {label.epoch} it had {label.files:,} "
                f"files with {label.size:,} bytes, and it has {len(sizes):,} with {sum(sizes):,}",
                hint="put back what was removed or changed, or name an empty folder and give the sink "
                "another name to deliver everything again",
            )

    def _read_label(self) -> FolderLabel | None:
        path = self._folder / LABEL
        return unpacked(path.read_bytes()) if path.exists() else None

    def _put(self, label: FolderLabel) -> None:
        put(self._folder / LABEL, label.packed(), label.delivery)
        self._label = label

    def _shown(self, heartbeat: int) -> str:
        return "infinity" if heartbeat == INFINITY else format_instant(heartbeat, self._domain)
