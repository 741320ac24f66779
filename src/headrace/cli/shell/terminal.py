"""The line to type on: several lines, colours, completion and a history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from headrace.cli.shell.colours import STYLES, coloured
from headrace.cli.shell.completion import candidates
from headrace.cli.shell.shell import is_complete
from headrace.language.completion.candidates import KnownNames

PROMPT = "headrace> "
_CONTINUED = "       -> "


class Terminal:
    """Reads what somebody types.

    Args:
        known: the names that can be used, asked for while something is typed.
        history: the file of what was typed before; None for none.
    """

    def __init__(self, known: Callable[[], KnownNames], history: Path | None) -> None:
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_CONTINUED,
            completer=_Words(known),
            complete_while_typing=False,
            lexer=_Colours(),
            style=Style.from_dict(STYLES),
            history=_history(history),
            key_bindings=_keys(),
            enable_history_search=Condition(lambda: True),
        )

    def read(self) -> str:
        """The next statements or the next command.

        Raises:
            EOFError: Ctrl-D on an empty line.
            KeyboardInterrupt: Ctrl-C, which drops what has been typed.
        """
        return self._session.prompt()


def _history(file: Path | None) -> History:
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab"):
            file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)


def _keys() -> KeyBindings:
    """Enter ends what is complete, and begins a new line in what is not."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
        elif is_ready(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    return keys


def is_ready(text: str) -> bool:
    """Whether what is typed is to be carried out by Enter: a command, or statements that have ended."""
    return text.lstrip().startswith("\\") or is_complete(text)


class _Words(Completer):
    """Offers what may come next."""

    def __init__(self, known: Callable[[], KnownNames]) -> None:
        self._known = known

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The candidates at the cursor."""
        at = document.cursor_position
        start, found = candidates(document.text, at, self._known())
        for candidate in found:
            yield Completion(candidate.text, start - at, display_meta=candidate.what)


class _Colours(Lexer):
    """Gives each piece its colour."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The pieces of each line."""
        pieces: StyleAndTextTuples = [
            (f"class:{style}" if style else "", text) for style, text in coloured(document.text)
        ]
        lines = list(split_lines(pieces))
        return lambda number: lines[number] if number < len(lines) else []
