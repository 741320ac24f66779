"""The catalog of a durable store: what is defined in it, each as the text that defines it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

SKEW: Final = "SKEW"
"""The kind of bounds between streams."""

SETTING: Final = "SETTING"
"""The kind of what is said of how runs go on."""


@dataclass(frozen=True)
class Definition:
    """A stream, a relation, a query, a sink, bounds between streams or a setting.

    Attributes:
        kind: `STREAM`, `RELATION`, `QUERY`, `SINK`, `SKEW` or `SETTING`.
        name: its name.
        text: the statement that defines it again; None where SQL cannot say it, or where it would be secret.
        lacks: where there is no text, what has to be handed over instead, for people.
        dialect: whose defaults the text has.
        folders: the folders whose files it may read, or of a sink those it may write into; None for any.
        comment: what was said of it, or None.
        columns: what was said of its columns, by name.
        paused: whether it is a query that somebody has paused.
        keeps_input: whether the rows of its streams are kept meanwhile.
        added: of a stream the columns that ALTER STREAM has added, which are in its text.
        read: of a stream or a relation from files the columns that were found, or declared, with their types
            as SQL has them: a store is opened also while the files are away.
        hides: of a query or a derived stream the columns of streams that were added after it: `*` does not
            mean them in it. By the streams' names in lower case.
        delivery: of a sink what identifies what it delivers, among all that have had its name.
        id: of a query its identity; see `headrace.lowering.query_id`.
    """

    kind: str
    name: str
    text: str | None
    lacks: str = ""
    dialect: str = "pipes"
    folders: tuple[str, ...] | None = None
    comment: str | None = None
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    paused: bool = False
    keeps_input: bool = False
    added: tuple[str, ...] = ()
    read: tuple[tuple[str, str], ...] = ()
    hides: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    delivery: str = ""
    id: str = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"the {self.kind.lower()} {self.name}"

    @property
    def key(self) -> str:
        """What it is known by among the definitions of a catalog: names have any case."""
        return key_of(self.kind, self.name)


def key_of(kind: str, name: str) -> str:
    """What a definition is known by."""
    return f"{kind} {name.lower()}"


def packed_definition(definition: Definition) -> dict[str, Any]:
    """A definition as JSON has it: what says nothing is left out."""
    found: dict[str, Any] = {}
    for part in fields(Definition):
        value = getattr(definition, part.name)
        # No folders are other than any; no columns are nothing to say.
        if part.name in _NAMED or (value not in _NOTHING and (value or part.name == "folders")):
            found[part.name] = dict(value) if isinstance(value, Mapping) else value
    return found


def unpacked_definition(content: Mapping[str, Any]) -> Definition:
    """A definition from its JSON.

    Raises:
        TypeError: it has other parts.
    """
    folders, hides = content.get("folders"), content.get("hides", {})
    # Where an earlier Headrace has written it, the name was the identity.
    identity = content.get("id", content["name"] if content["kind"] == "QUERY" else "")
    given = {
        "id": identity,
        "folders": None if folders is None else tuple(folders),
        "added": tuple(content.get("added", ())),
        "read": tuple((name, dtype) for name, dtype in content.get("read", ())),
        "hides": {stream: tuple(names) for stream, names in hides.items()},
    }
    return Definition(**{**content, **given})


_NAMED: Final = ("kind", "name", "text", "dialect")
_NOTHING: Final[tuple[object, ...]] = (None, "", {}, False)
