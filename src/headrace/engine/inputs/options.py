"""The formats that streams are read from and the kinds of sinks, with the options of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from headrace.engine.inputs.declared import LIMIT, PUSH, PUSHED_OPTIONS
from headrace.language.statements.formats import FILE_FORMATS
from headrace.language.statements.streams import WEB
from headrace.runtime.delivery.kinds import COMMON, SinkKind, options_of
from headrace.runtime.intake import folder, topic, web
from headrace.runtime.intake.message_form import FORMAT_OPTIONS
from headrace.runtime.sources.columnar import typed
from headrace.runtime.sources.composed import nexmark
from headrace.runtime.sources.text import csv, json, plain

_OF_FILES: Final = {"csv": csv.OPTIONS, "json": json.OPTIONS, "text": plain.OPTIONS}

FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        PUSH: (*PUSHED_OPTIONS, LIMIT),
        **{one: (*_OF_FILES.get(one, typed.OPTIONS), *folder.OPTIONS, LIMIT) for one in FILE_FORMATS},
        "kafka": (*topic.OPTIONS, *FORMAT_OPTIONS, LIMIT),
        WEB: (*web.OPTIONS, LIMIT),
        "nexmark": (*nexmark.OPTIONS, LIMIT),
    }
)
"""The formats that are read here, not by Spark, each with its options."""

SINKS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {kind.value: (*(of := options_of(kind)).needed, *of.others, *COMMON) for kind in SinkKind}
)
"""The kinds of sinks, each with its options."""
