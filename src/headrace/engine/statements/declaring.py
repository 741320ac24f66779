"""Inputs that CREATE STREAM and CREATE RELATION name: what is refused of them, and what is warned of."""

from __future__ import annotations

from pathlib import Path

from headrace.engine.access.policy import Policy
from headrace.engine.inputs.declared import overview_of
from headrace.engine.inputs.inputs import Input
from headrace.engine.planning.partitions import notes_on_partitions
from headrace.engine.run.core import Core
from headrace.errors import LanguageError, Position, warn
from headrace.language.statements.formats import FILE_FORMATS
from headrace.language.statements.streams import CreateRelation, CreateStream
from headrace.runtime.sources.files.files import pipe_at


def warn_of_topics(made: Input, position: Position) -> None:
    """Warn where topics are not there, or where the partitions that they have will make rows late."""
    there = overview_of(made)
    if there is None:
        return
    if there.absence is not None:
        warn(f"{made.name} has no rows so far: {there.absence}")
    if there.partitions > 1 and made.relation is None:
        topics = {made.name: (made.stream.timing, made.info, made.are_several)}
        for note in notes_on_partitions(topics, position):
            warn(f"{note.message} ({note.hint})")


def check_pipe(core: Core, statement: CreateStream | CreateRelation, base: Path, policy: Policy) -> None:
    """Refuse a pipe whose rows a durable store would want again when it is opened next.

    Raises:
        LanguageError: it is one.
    """
    path = dict(statement.options).get("path", "")
    if core.settings.storage is None or statement.format not in FILE_FORMATS:
        return
    if pipe_at(path, base, policy.folders):
        raise LanguageError(
            f"{path} gives its rows once, and a durable store may ask for them again",
            position=statement.position,
            hint="write them into a file before, push them, or leave out the storage",
        )
