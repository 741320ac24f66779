"""Modules that are loaded when something of them is first used, so that a start does not wait for them."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def later(name: str) -> Any:
    """A module outside Headrace by its name; an error that it is missing comes with its first use.

    Write `if TYPE_CHECKING: import name` beside it, so that the types are known.
    """
    return _Later(name)
