"""REFRESH RELATION: a relation is read again while queries run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.algebra.properties import relations_of
from headrace.engine.inputs.inputs import format_of
from headrace.engine.inputs.read_again import files_again, table_again
from headrace.engine.run.core import Core
from headrace.errors import LanguageError, Position
from headrace.language.catalog import RelationInfo
from headrace.language.syntax import Name
from headrace.runtime.driver.change.refresh import Refreshed
from headrace.runtime.writing.texts import count
from headrace.suggestions import did_you_mean
from headrace.time import ALWAYS, format_instant


def refresh(core: Core, name: str, position: Position | None, data: Any = None) -> Refreshed:
    """Read a relation again; returns when what was read counts.

    Args:
        core: the database.
        name: the relation's.
        position: where it is written, if that is a text.
        data: what it is read from this time; as it was declared if None.

    Raises:
        LanguageError: there is no such relation, it is not refreshed, or no endless run is going on.
        UserError: it cannot be read, or no query reads it; what was read before holds then.
    """
    info = _relation(core, name, position)
    if core.execution is None or not core.running:
        raise LanguageError(
            f"{info.name} cannot be refreshed: no endless run is going on",
            position=position,
            hint="a run reads it as it is when the run starts",
        )
    again = None
    if isinstance(data, str | Path):
        again = files_again(format_of(data), {"path": str(data)}, info.schema, info.name, Path.cwd())
    elif data is not None:
        again = table_again(data, info.schema, info.name)
    return core.execution.refresh(info.name, again)


def refreshed_text(core: Core, name: Name) -> str:
    """Carry out REFRESH RELATION; what became of it."""
    found = refresh(core, name.text, name.position)
    if found.at is None:
        text = f"{found.relation} has not changed: {count(found.rows, 'row')}"
    else:
        leaf = next(
            leaf
            for plan in core.definitions.plans.values()
            for leaf in relations_of(plan)
            if leaf.name == found.relation
        )
        since = (
            "from the beginning" if found.at == ALWAYS else f"from {format_instant(found.at, leaf.domain)}"
        )
        news = f"{found.inserted:,} inserted, {found.deleted:,} deleted"
        text = f"{found.relation} has {count(found.rows, 'row')} {since} on: {news}"
    return text + (f"; {count(found.rejected, 'row')} could not be read" if found.rejected else "")


def _relation(core: Core, name: str, position: Position | None) -> RelationInfo:
    """The relation of that name, which is one that is refreshed."""
    entry = core.definitions.catalog.find(name)
    if isinstance(entry, RelationInfo) and entry.refreshed:
        return entry
    names = [
        one.name
        for one in core.definitions.catalog.entries.values()
        if isinstance(one, RelationInfo) and one.refreshed
    ]
    if entry is None:
        raise LanguageError(f"there is no relation {name}", position=position, hint=did_you_mean(name, names))
    raise LanguageError(
        f"{entry.name} is not a relation that is refreshed",
        position=position,
        hint="write CREATE RELATION name FROM format REFRESH ON DEMAND",
    )
