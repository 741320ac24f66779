"""What a database remembers of its definitions, so that a store can be started without their texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from headrace.engine.catalog.entries import Entries
from headrace.runtime.journal.definition import Definition


@dataclass(frozen=True)
class DefinitionTexts:
    """The definitions of a database as texts, by key, in the order in which they were made.

    Attributes:
        known: all of them.
        waiting: those of a store that cannot be made yet, with the reason, such as a function that has to be
            defined in Python.
        unclaimed: those of a store that nobody has given again since the database was opened.
        forgotten: those that were dropped since then.
        dropped: the identities of queries that were.
    """

    known: Entries[Definition] = field(default_factory=Entries)
    waiting: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unclaimed: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()

    def having(self, definition: Definition) -> DefinitionTexts:
        """The same with a definition that is new, or was waiting; what was said of that stays."""
        key, before = definition.key, self.known.get(definition.key)
        forgotten = self.forgotten - {key}
        if before is None:
            return replace(self, known=self.known.adding(key, definition), forgotten=forgotten)
        said = replace(
            definition,
            comment=before.comment,
            columns=before.columns,
            paused=before.paused,
            keeps_input=before.keeps_input,
            delivery=before.delivery,
            added=before.added,
            read=definition.read or before.read,
            hides=before.hides,
            id=before.id or definition.id,
        )
        waiting = {other: why for other, why in self.waiting.items() if other != key}
        return replace(self.changed(key, said), waiting=waiting, forgotten=forgotten)

    def changed(self, key: str, definition: Definition) -> DefinitionTexts:
        """The same with another definition in the place of one, perhaps of another name."""
        known = self.known.replacing(key, definition)
        return replace(self, known=known if definition.key == key else known.renaming(key, definition.key))

    def saying(self, key: str, columns: Mapping[str, str]) -> DefinitionTexts:
        """The same with other comments on the columns of something."""
        return self.changed(key, replace(self.known[key], columns=columns))

    def replaced(self, key: str, columns: Mapping[str, str]) -> DefinitionTexts:
        """The same once a query is another one, over all columns of its streams.

        Args:
            key: the query's.
            columns: the comments that its columns keep.
        """
        return self.changed(key, replace(self.known[key], columns=columns, hides={}))

    def moved_last(self, keys: Iterable[str]) -> DefinitionTexts:
        """The same with some definitions behind all others, which they may need."""
        known = self.known
        for key in keys:
            known = known.without(key).adding(key, self.known[key])
        return replace(self, known=known)

    def without(self, key: str) -> DefinitionTexts:
        """The same without a definition, if there is one."""
        if key not in self.known:
            return self
        waiting = {other: why for other, why in self.waiting.items() if other != key}
        return DefinitionTexts(
            self.known.without(key),
            waiting,
            self.unclaimed - {key},
            self.forgotten | {key},
            self.dropped | {self.known[key].id},
        )

    def claimed(self, key: str) -> DefinitionTexts:
        """The same once a definition of a store has been given again."""
        return replace(self, unclaimed=self.unclaimed - {key})

    def stored(self, definition: Definition) -> DefinitionTexts:
        """The same with a definition of a store, which has yet to be made."""
        key = definition.key
        return replace(
            self,
            known=self.known.adding(key, definition),
            waiting={**self.waiting, key: definition.lacks},
            unclaimed=self.unclaimed | {key, *(column_key(key, column) for column in definition.added)},
        )

    def lacking(self, key: str, why: str) -> DefinitionTexts:
        """The same with another reason why a definition cannot be made yet."""
        return replace(self, waiting={**self.waiting, key: why})

    def queries(self) -> Mapping[str, Definition]:
        """The queries that cannot be made yet, by name."""
        waiting = (self.known[key] for key in self.waiting)
        return {one.name: one for one in waiting if one.kind == "QUERY"}

    def sinks(self) -> Mapping[str, Definition]:
        """The sinks that cannot be made yet, by name."""
        waiting = (self.known[key] for key in self.waiting)
        return {one.name: one for one in waiting if one.kind == "SINK"}


def column_key(stream: str, column: str) -> str:
    """What a column that was added to a stream is known by.

    Args:
        stream: what the stream's definition is known by.
        column: the column's name.
    """
    return f"{stream}.{column}"
