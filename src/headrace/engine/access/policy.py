"""What a piece of SQL may reach: files, formats, functions, and what others have defined."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from headrace.errors import PolicyError, Position, SourceError, UserError
from headrace.language.catalog import Catalog
from headrace.language.statements.formats import FORMATS
from headrace.language.statements.secret import SecretName
from headrace.language.statements.sinks import CreateSink
from headrace.language.statements.streams import CreateRelation, CreateStream, is_topic
from headrace.runtime.sources.files.files import allowed_path

_HADOOP_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")
"""What makes Hadoop read a path as a pattern for many."""


@dataclass(frozen=True)
class Policy:
    """What SQL may reach; see `Policy.open` and `Policy.closed`, which make one.

    Attributes:
        folders: the folders whose files it may read, as real paths; None for any file, on any file system.
        formats: what it may CREATE STREAM or CREATE RELATION FROM, in lower case; None for everything.
        options: the options that it may give to Spark's formats, in lower case; None for all.
        functions: the users' functions and aggregates that it may call, in lower case; None for all.
        may_change: whether it may change what others have defined, by DROP, REFRESH RELATION and SET, and
            see how their queries run, by WHY, EXPLAIN ANALYZE and streams such as headrace.queries.
        may_define: whether it may define streams, relations and queries; if not, it only asks what is there.
        sinks: the kinds of sinks that it may create, in lower case; None for all.
        outputs: the folders into which its sinks may write, as real paths; None for any.
    """

    folders: tuple[Path, ...] | None
    formats: frozenset[str] | None
    options: frozenset[str] | None
    functions: frozenset[str] | None
    may_change: bool
    may_define: bool = True
    sinks: frozenset[str] | None = frozenset()
    outputs: tuple[Path, ...] | None = ()

    @classmethod
    def open(cls) -> Policy:
        """For the operator's own SQL: everything but deleting the files that are read."""
        return cls(None, None, None, None, True, sinks=None, outputs=None)

    @classmethod
    def closed(
        cls,
        *,
        folders: Iterable[str | Path] = (),
        formats: Iterable[str] = ("push",),
        options: Iterable[str] = (),
        functions: Iterable[str] = (),
        may_change: bool = False,
        may_define: bool = True,
        sinks: Iterable[str] = (),
        outputs: Iterable[str | Path] = (),
    ) -> Policy:
        """For SQL of others: pushed streams, and whatever streams are defined already.

        Args:
            folders: whose files it may read too, those in subfolders included; links out of them are refused.
            formats: what it may CREATE STREAM FROM, such as "csv", or one of Spark's, such as "rate".
            options: which options it may give to Spark's formats, besides a `path` in one of the folders.
            functions: which of the users' functions and aggregates it may call.
            may_change: whether it may DROP streams and queries, SET the dialect of what comes later, and see
                how queries run, by WHY and EXPLAIN ANALYZE with a name.
            may_define: whether it may create streams, relations and queries.
            sinks: which kinds of sinks it may create, such as "parquet". Those that are not files reach
                whatever address they are given.
            outputs: into which folders such sinks may write, those in subfolders included.

        Raises:
            UserError: a text is given for a list; its letters would be taken for names.

        Example:
            >>> import headrace
            >>> policy = headrace.Policy.closed(folders=["/srv/shared"], formats=["csv", "push"])
        """
        for name, value in (
            ("folders", folders), ("formats", formats), ("options", options), ("functions", functions),
            ("sinks", sinks), ("outputs", outputs),
        ):  # fmt: skip
            if isinstance(value, str | Path):
                raise UserError(
                    f"{name} is {str(value)!r}, not a list", hint=f"write {name}=[{str(value)!r}]"
                )
        real, written = (tuple(Path(os.path.realpath(one)) for one in part) for part in (folders, outputs))
        return cls(
            *(real, _lower(formats), _lower(options), _lower(functions), may_change, may_define),
            *(_lower(sinks), written),
        )

    def check_source(self, statement: CreateStream | CreateRelation) -> None:
        """Refuse a format that may not be read, and options that nobody's SQL, or not this one, may give.

        Raises:
            PolicyError: the policy does not allow it.
        """
        kind = statement.format
        if self.formats is not None and kind not in self.formats:
            allowed = ", ".join(sorted(self.formats)) or "none"
            what = "relations" if isinstance(statement, CreateRelation) else "streams"
            raise PolicyError(f"{what} may not be created FROM {kind}", hint=f"allowed are: {allowed}")
        for name, value in statement.options:
            # What signs rows that come is sent nowhere.
            if self.options is not None and isinstance(value, SecretName) and kind != "push":
                raise PolicyError(
                    f"the secret of the option {name} may not be used",
                    hint="the operator may define the stream: who chooses the address could read the secret",
                )
        if kind in FORMATS:
            return
        if is_topic(statement.format, statement.options):
            # A library's own options can name files, and code to be loaded.
            for name, _ in statement.options:
                if self.options is not None and "." in name and name not in self.options:
                    raise PolicyError(f"the option {name} may not be given", hint="ask the operator")
            return
        for name, value in statement.options:
            if name == "cleansource" and value.lower() != "off":
                raise PolicyError(
                    "the option cleanSource would delete or move the files that are read",
                    hint="SQL never does; make the data frame in Python and hand it to Database.stream",
                )
            if self.options is not None and name not in self.options and name != "path":
                allowed = ", ".join(sorted({*self.options, "path"}))
                raise PolicyError(f"the option {name} may not be given", hint=f"allowed are: {allowed}")

    def check_sink(self, statement: CreateSink) -> None:
        """Refuse a sink that may not be created, and options that may not be given to its library.

        Raises:
            PolicyError: the policy does not allow it.
        """
        position, kind = statement.position, statement.kind.text.lower()
        if self.sinks is not None and kind not in self.sinks:
            allowed = ", ".join(sorted(self.sinks)) or "none"
            raise PolicyError(
                f"sinks may not be created TO {statement.kind.text}",
                position=position,
                hint=f"allowed are: {allowed}",
            )
        for name, value in statement.options if self.options is not None else ():
            if isinstance(value, SecretName):
                raise PolicyError(
                    f"the secret of the option {name} may not be used",
                    position=position,
                    hint="the operator may define the sink: who chooses the address could read the secret",
                )
            if kind == "table" and name == "url" and not value.startswith("postgresql:"):
                raise PolicyError(
                    "a table may be in a database of the network alone",
                    position=position,
                    hint="the operator may define the sink: files are written",
                )
            # A library's own options can name files, and code to be loaded.
            if "." in name and name not in (self.options or ()):
                raise PolicyError(
                    f"the option {name} may not be given", position=position, hint="ask the operator"
                )

    def written_path(self, place: Path, label: str) -> Path:
        """The folder into which a sink writes: the real one, without links, if only some are allowed.

        Args:
            place: where it is.
            label: its name to show.

        Raises:
            PolicyError: it is in none of those that are allowed.
        """
        if self.outputs is None:
            return place
        real = Path(os.path.realpath(place))
        if not any(real.is_relative_to(folder) for folder in self.outputs):
            folders = ", ".join(map(str, self.outputs))
            hint = f"sinks may write in {folders}" if folders else "the policy of this SQL allows no folder"
            raise PolicyError(f"{label} may not be written", hint=hint)
        return real

    def spark_options(self, options: Mapping[str, str], base: Path) -> dict[str, str]:
        """The options of one of Spark's formats, with a path that names the very place that was checked.

        Raises:
            PolicyError: the path leads elsewhere, or is a pattern, which might.
        """
        if self.folders is None or "path" not in options:
            return dict(options)
        path = options["path"]
        if "\0" in path:
            raise SourceError("the path holds a zero byte")
        real = str(allowed_path(base / path, path, self.folders))
        if _HADOOP_PATTERN.search(real):
            raise PolicyError(f"{path} may not be read", hint="name one folder, without * ? [ ] { } \\")
        return {**options, "path": real}

    def visible(self, catalog: Catalog) -> Catalog:
        """The catalog as it may be seen: without functions and streams that are not allowed.

        Who reads a query by its name could see in a plan how it is written.
        """
        catalog = replace(catalog, shows_itself=self.may_change)
        if not self.may_change:
            catalog = replace(catalog, queries=MappingProxyType({}))
        if self.functions is None:
            return catalog
        seen = {name: user for name, user in catalog.functions.items() if name in self.functions}
        return replace(catalog, functions=MappingProxyType(seen))

    def check_change(self, what: str, position: Position) -> None:
        """Refuse a statement that changes what others have defined, or shows what is in it.

        Raises:
            PolicyError: the policy does not allow it.
        """
        if not self.may_change:
            raise PolicyError(f"{what} is not allowed", position=position, hint="ask the operator")

    def check_definition(self, what: str, position: Position) -> None:
        """Refuse a statement that defines something.

        Raises:
            PolicyError: the policy does not allow it.
        """
        if not self.may_define:
            raise PolicyError(f"{what} is not allowed", position=position, hint="ask the operator")


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
