"""The catalog of a durable store, made again where it is opened: its streams, queries, sinks and so on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headrace.engine.access.policy import Policy
from headrace.engine.run.core import Core
from headrace.engine.statements.statements import carry_out
from headrace.errors import UserError
from headrace.language.defaults import Defaults
from headrace.language.parsing.parser import parse_one
from headrace.runtime.journal.definition import Definition


def make(core: Core, definition: Definition) -> None:
    """Make what a definition of a store says.

    Args:
        core: the database.
        definition: what is to be made.

    Raises:
        UserError: it cannot be made, such as where a function has to be handed over first.
    """
    if definition.text is None:
        raise UserError(definition.lacks)
    folders = definition.folders
    # It was allowed when it was made. The files that it may read are looked at again: links can change.
    allowed = None if folders is None else tuple(map(Path, folders))
    policy = replace(Policy.open(), folders=allowed, outputs=allowed)
    before = core.definitions.catalog
    core.definitions = core.definitions.with_defaults(Defaults(definition.dialect))
    try:
        carry_out(core, parse_one(definition.text), Path("/"), policy)
    finally:
        core.definitions = core.definitions.with_defaults(before.defaults, before.quotes_names)
