"""The sinks that SQL has defined: what each is, and how it is made of its statement."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import hidden, revealed, secret_option
from headrace.engine.query.query import Query
from headrace.errors import (
    AwayError,
    DeliveryError,
    HeadraceError,
    LanguageError,
    PolicyError,
    UserError,
    message_of,
)
from headrace.language.statements.secret import SecretName
from headrace.language.statements.sinks import CreateSink
from headrace.runtime.delivery.contract import Attachment, Origin, Sink
from headrace.runtime.delivery.deliveries import attachment_of
from headrace.runtime.delivery.kinds import (
    FOLDERS,
    SinkKind,
    check_options,
    first_epoch,
    kind_of,
    options_of,
    place_of,
    retry_of,
    sink_of,
)
from headrace.runtime.outside.trouble import is_away
from headrace.runtime.results.changes import Change

_ELSEWHERE: Final = "://"
"""What is in a path that is not one of this machine."""


@dataclass(frozen=True)
class DefinedSink:
    """A sink that SQL has defined.

    Attributes:
        kind: what it is.
        place: where it delivers to, for people; without what is secret.
        attachment: the sink itself, its name and its query.
    """

    kind: SinkKind
    place: str
    attachment: Attachment

    @property
    def name(self) -> str:
        """What it is called."""
        return self.attachment.name

    @property
    def query(self) -> str:
        """The name of the query whose changes it takes."""
        return self.attachment.query

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"the sink {self.name}"

    def of(self, query: str) -> DefinedSink:
        """The same when its query has another name."""
        return replace(self, attachment=replace(self.attachment, query=query))


def placed(statement: CreateSink, base: Path, policy: Policy) -> CreateSink:
    """The statement with a path that starts from no folder, and that is allowed.

    Args:
        statement: it.
        base: the folder that its relative paths start from.
        policy: where it may write.

    Raises:
        PolicyError: it may not write there.
        LanguageError: it is not a path of this machine.
    """
    if statement.kind.text.lower() not in FOLDERS:
        return statement
    options = tuple(
        (name, _placed(value, statement, base, policy) if name == "path" else value)
        for name, value in statement.options
    )
    return replace(statement, options=options)


def _placed(path: str, statement: CreateSink, base: Path, policy: Policy) -> str:
    position = statement.kind.position
    if isinstance(path, SecretName):
        raise LanguageError("the option path is not secret", position=position, hint="write its value")
    if _ELSEWHERE in path or "\0" in path or not path:
        raise LanguageError(
            f"{path!r} is not a folder of this machine",
            position=position,
            hint="write path 'folder'; relative ones start where the text is",
        )
    try:
        return str(policy.written_path(Path(os.path.abspath(base / os.path.expanduser(path))), path))
    except PolicyError as error:
        raise PolicyError(error.message, position=position, hint=error.hint) from None


def made_sink(
    statement: CreateSink, query: Query, delivery: str | None, others: Iterable[Attachment]
) -> DefinedSink:
    """The sink of a statement.

    Args:
        statement: it, with a path that starts from no folder.
        query: the query.
        delivery: what identifies what it delivers in a durable store, or None.
        others: the sinks that there are.

    Raises:
        LanguageError: there is no such kind, an option is missing, unknown or wrong, or the name is taken.
    """
    written = dict(statement.options)
    try:
        kind = kind_of(statement.kind.text)
        check_options(kind, written)
        if (secret := _bare_secret(kind, written)) is not None:
            raise UserError(
                f"the option {secret} may hold a secret, which no statement has",
                hint=f"write {secret} SECRET 'name', and set the variable HEADRACE_SECRET_NAME",
            )
        options = revealed(written)
        sink = _Discreet(_sink(kind, options), options)
        first = first_epoch(options)
        name, retry = statement.name.text, retry_of(options)
        made = attachment_of(query.name, sink, name, first or 1, retry, others, of=query.id)
    except UserError as error:
        raise LanguageError(error.message, position=statement.kind.position, hint=error.hint) from None
    return DefinedSink(
        kind, place_of(kind, _shown(written)), replace(made, from_now=first is None, delivery=delivery)
    )


def _bare_secret(kind: SinkKind, options: Mapping[str, str]) -> str | None:
    """The first option whose value may be secret and is written out; None if none is."""
    named = (name for name in options_of(kind).secret if name in options)
    bare = (name for name in named if not isinstance(options[name], SecretName))
    return next(bare, None) or secret_option(options.items())


def _shown(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they are written."""
    return {
        name: f"SECRET '{value}'" if isinstance(value, SecretName) else value
        for name, value in options.items()
    }


def _sink(kind: SinkKind, options: Mapping[str, str]) -> Sink:
    try:
        return sink_of(kind, options)
    except UserError as error:
        raise _without_secrets(error, options) from None


class _Discreet:
    """A sink whose errors show no secret.

    Args:
        sink: the sink.
        options: those that it was made of; secrets as their values.
    """

    def __init__(self, sink: Sink, options: Mapping[str, str]) -> None:
        self._sink = sink
        self._options = options

    @property
    def name(self) -> str:
        """As that of the sink."""
        return self._sink.name

    def open(self, origin: Origin) -> None:
        """Get the sink ready."""
        try:
            self._sink.open(origin)
        except Exception as error:
            raise _without_secrets(error, self._options) from None

    def write(self, change: Change) -> None:
        """Let the sink take an epoch."""
        try:
            self._sink.write(change)
        except Exception as error:
            raise _without_secrets(error, self._options) from None


def _without_secrets(error: Exception, options: Mapping[str, str]) -> UserError:
    """What an error says, with stars in the place of all that is secret."""
    if is_away(error) and not isinstance(error, AwayError):
        return AwayError(message_of(Exception(hidden(str(error), options))) or type(error).__name__)
    if not isinstance(error, HeadraceError):
        # Hidden first: of a secret that is cut off, what is left would not be found.
        text = message_of(Exception(hidden(str(error), options)))
        return DeliveryError(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    hint = None if error.hint is None else hidden(error.hint, options)
    kind = AwayError if isinstance(error, AwayError) else DeliveryError
    return kind(hidden(error.message, options), hint=hint)
