"""What a shell does with what is typed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, assert_never

import pyarrow as pa

from headrace.cli.errors import read_text
from headrace.cli.shell.completion import COMMANDS
from headrace.cli.shell.constants import constants, constants_in
from headrace.cli.shell.screen import Screen
from headrace.cli.shell.tables import text_of_table
from headrace.cli.shell.target import Made, Ran, Result, Target, Told
from headrace.cli.shell.watching import watch
from headrace.errors import UserError
from headrace.language.completion.tokens import TokenKind, statements_of, tokens_of
from headrace.language.named_values import ParameterValue, parameters_in, value_of, with_values
from headrace.suggestions import did_you_mean

MOST_ROWS: Final = 1_000
"""So many rows of an answer are shown if nothing else is said."""

_ASKED: Final = re.compile(r"\b(FROM|JOIN)\s+(HISTORY|CHANGES|STREAM|EPOCHS|ROWS)\s+OF\b", re.IGNORECASE)
"""What no continuous query can name, and a question can."""
_SAID: Final = (TokenKind.COMMENT, TokenKind.STRING)
_ENDED: Final = "the run has ended"


class MisstepError(Exception):
    """A statement that failed, with the text that its error's place is in.

    Attributes:
        error: what is wrong.
        text: what was carried out.
        file: the file that it is from; None where it was typed.
    """

    def __init__(self, error: UserError, text: str, file: Path | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.text = text
        self.file = file


class Shell:
    """Carries out statements and commands, one after the other.

    Args:
        target: what they are about.
        screen: where their answers go.
        values: those of `:name` in statements and questions, by name.

    Attributes:
        left: whether `\\q` was given.
    """

    def __init__(
        self, target: Target, screen: Screen, values: Mapping[str, ParameterValue] | None = None
    ) -> None:
        self._target = target
        self._screen = screen
        self._values = dict(values or {})
        self._most = MOST_ROWS
        self._expanded = False
        self._timing = False
        self.left = False
        self._commands: Mapping[str, Callable[[str], None]] = {
            "\\?": self._help,
            "\\answer": self._answer,
            "\\ask": self._ask,
            "\\d": self._describe,
            "\\i": self._include,
            "\\push": self._push,
            "\\q": self._leave,
            "\\rows": self._limit,
            "\\run": self._run,
            "\\set": self._set,
            "\\status": self._status,
            "\\stop": self._stop,
            "\\timing": self._time,
            "\\unset": self._unset,
            "\\watch": self._watch,
            "\\why": self._why,
            "\\x": self._expand,
        }

    def do(self, text: str, file: Path | None = None, begin: int = 0) -> None:
        """Carry out what was typed, or a part of a file: one command, or statements.

        Args:
            text: also what is before it, for the places in errors.
            file: the file that it is from.
            begin: where the part begins (offset).

        Raises:
            MisstepError: something is wrong; what came before it has taken effect.
        """
        begun = time.perf_counter()
        try:
            part = text[begin:]
            if part.lstrip().startswith("\\"):
                self._command(part.strip())
            else:
                self._statements(text, begin, file)
        except UserError as error:
            raise MisstepError(error, text, file) from error
        if self._timing:
            self._screen.say(f"{1000 * (time.perf_counter() - begun):,.0f} ms", "dim")

    def settle(self) -> None:
        """Let what was defined be answered in the background, where it is to be.

        Raises:
            MisstepError: it cannot be, or what has ended it.
        """
        try:
            if self._target.settle() and self._screen.is_terminal:
                self._screen.say("the run goes on in the background", "dim")
        except UserError as error:
            raise MisstepError(error, "", None) from error

    def include(self, file: Path) -> None:
        """Carry out the statements and commands of a file, up to the first that fails.

        Raises:
            MisstepError: one failed, with its place in the file.
            UserError: the file cannot be read.
        """
        text = read_text(file)
        for begin, end in parts_of(text):
            self.do(text[:end], file, begin)
            if self.left:
                return

    # --- statements --------------------------------------------------------------------------------------

    def _statements(self, text: str, begin: int, file: Path | None) -> None:
        base = Path.cwd() if file is None else file.parent
        for start, statement in statements_of(text[begin:]):
            # Blanks in the place of what is before it: its errors then have their places in the whole text.
            before = re.sub(r"[^\n]", " ", text[: begin + start])
            if _is_question(statement):
                self._show(self._target.ask(before + statement, self._used(statement)))
                continue
            if (asked := constants_in(before + statement)) is not None:
                self._show(self._constants(asked))
                continue
            results = self._execute(before + statement, base)
            for result in results:
                match result:
                    case Told(text=told):
                        self._screen.show(told)
                    case Made():
                        self._made(result)
                    case _:
                        assert_never(result)
            if not results and self._screen.is_terminal:
                self._screen.say("done", "dim")

    def _execute(self, text: str, base: Path) -> list[Result]:
        """Carry out a statement with the values of its parameters."""
        valued = with_values(text, self._used(text) if parameters_in(text) else None)
        with valued.positions():
            return self._target.execute(valued.text, base)

    def _constants(self, text: str) -> pa.Table:
        """The answer of a SELECT without FROM."""
        valued = with_values(text, self._used(text) if parameters_in(text) else None)
        with valued.positions():
            return constants(valued.text)

    def _used(self, text: str) -> dict[str, ParameterValue]:
        """The values of the parameters in a text, as far as they have some."""
        return {name: self._values[name] for name in sorted(parameters_in(text)) if name in self._values}

    def _made(self, made: Made) -> None:
        if self._screen.is_terminal:
            self._screen.say(f"{made.name}: \\run or \\watch {made.name} shows its answer", "dim")
        for note in made.notes:
            self._screen.say(note, "yellow")

    def _show(self, table: pa.Table, hint: str = "") -> None:
        text = text_of_table(table, most=self._most, width=self._screen.width, expanded=self._expanded)
        is_cut = table.num_rows > self._most
        self._screen.show(f"{text}\n{hint}" if is_cut and hint else text)

    # --- commands ----------------------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        argument = argument.strip()
        known = self._commands.get(name)
        if known is None:
            hint = did_you_mean(name, COMMANDS) or "\\? lists the commands"
            raise UserError(f"there is no command {name}", hint=hint)
        if name != "\\ask":
            argument = argument.rstrip("; ")
        if name in _ABOUT_THE_RUN:
            self.settle()
        known(argument)

    def _help(self, _: str) -> None:
        room = max(map(len, COMMANDS))
        commands = "\n".join(f"{name:<{room}}  {what}" for name, what in COMMANDS.items())
        self._screen.show(
            f"Statements end with ; and may have several lines. Commands are lines:\n{commands}"
        )

    def _describe(self, name: str) -> None:
        text = f"DESCRIBE {name}" if name else "SHOW STREAMS; SHOW RELATIONS; SHOW QUERIES; SHOW SINKS"
        told = [result.text for result in self._target.execute(text, Path.cwd()) if isinstance(result, Told)]
        if not name:
            titles = ("streams", "relations", "queries", "sinks")
            told = [f"-- {title}\n{one}" for title, one in zip(titles, told, strict=True)]
        self._screen.show("\n\n".join(told))

    def _answer(self, argument: str) -> None:
        query, _, view = argument.partition(" ")
        view = view.strip() or "history"
        _required(query, "\\answer QUERY")
        if view == "tail":
            self._show(self._target.tail(query, self._most))
            return
        hint = "" if view == "latest" else f"\\answer {query} tail shows the newest"
        self._show(self._target.answer(query, view), hint)

    def _ask(self, question: str) -> None:
        asked = _required(question, "\\ask SELECT ...").rstrip("; ")
        self._show(self._target.ask(asked, self._used(asked)))

    def _set(self, argument: str) -> None:
        name, _, value = argument.partition(" ")
        if not name:
            listed = (
                f"{known} = {'NULL' if value is None else value}" for known, value in self._values.items()
            )
            self._screen.show("\n".join(listed) or "no parameter has a value")
            return
        written = _required(value.strip(), "\\set NAME VALUE")
        name, read = value_of(f"{name}={written}")
        self._values[name] = read

    def _unset(self, name: str) -> None:
        if self._values.pop(_required(name, "\\unset NAME"), self) is self:
            hint = did_you_mean(name, self._values) or "\\set lists all values"
            raise UserError(f"the parameter :{name} has no value", hint=hint)

    def _include(self, name: str) -> None:
        self.include(Path(_required(name, "\\i FILE").strip("'")).expanduser())

    def _push(self, argument: str) -> None:
        stream, _, rows = argument.partition(" ")
        _required(rows, '\\push STREAM {"column": value}')
        taken = self._target.push(stream, rows)
        if self._screen.is_terminal:
            self._screen.say("committed" if taken else "a repeat, left out", "dim")

    def _run(self, _: str) -> None:
        ran = self._target.run()
        if ran is None:
            self._screen.say("the run goes on in the background", "dim")
        else:
            self._ran(ran)

    def _ran(self, ran: Ran) -> None:
        for name, table in ran.answers:
            self._screen.say(f"-- {name}", "bold")
            self._show(table)
        self._screen.say(ran.summary, "dim")
        if ran.failed:
            raise UserError("\n".join(f"{name} failed: {message}" for name, message in ran.failed))

    def _stop(self, _: str) -> None:
        self._target.stop()
        self._screen.say(_ENDED, "dim")

    def _status(self, _: str) -> None:
        self._screen.show(self._target.status())

    def _why(self, query: str) -> None:
        self._screen.show(self._target.why(_required(query, "\\why QUERY")))

    def _watch(self, query: str) -> None:
        _required(query, "\\watch QUERY")
        if not self._screen.is_terminal:
            raise UserError("\\watch needs a terminal", hint=f"write \\answer {query} latest, or tail")
        watch(self._target, query, self._screen, self._most, expanded=self._expanded)

    def _limit(self, argument: str) -> None:
        if not argument.isdecimal() or not int(argument):
            raise UserError(f"{argument or 'nothing'} is not a number of rows", hint="write \\rows 100")
        self._most = int(argument)

    def _expand(self, _: str) -> None:
        self._expanded = not self._expanded
        self._switched("rows are shown value by value", self._expanded)

    def _time(self, _: str) -> None:
        self._timing = not self._timing
        self._switched("times are shown", self._timing)

    def _switched(self, what: str, on: bool) -> None:
        if self._screen.is_terminal:
            self._screen.say(f"{what}: {'yes' if on else 'no'}", "dim")

    def _leave(self, _: str) -> None:
        self.left = True


_ABOUT_THE_RUN: Final = ("\\answer", "\\ask", "\\push", "\\status", "\\watch", "\\why")
"""The commands before which what was defined begins to be answered."""


def _required(argument: str, usage: str) -> str:
    if not argument:
        raise UserError("something is missing", hint=f"write {usage}")
    return argument


def _is_question(statement: str) -> bool:
    """Whether a statement asks once, over what is kept."""
    plain = "".join(" " if token.kind in _SAID else token.text for token in tokens_of(statement))
    return _ASKED.search(plain) is not None and not re.match(r"\s*(CREATE|EXPLAIN)\b", plain, re.IGNORECASE)


def parts_of(text: str) -> list[tuple[int, int]]:
    """Where the commands and the statements between them begin and end (offsets) in a text of several lines.

    A command is a line of its own that begins with a backslash, where no statement is open.
    """
    parts: list[tuple[int, int]] = []
    begin = place = 0
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("\\") and is_complete(text[begin:place]):
            if text[begin:place].strip():
                parts.append((begin, place))
            parts.append((place, place + len(line)))
            begin = place + len(line)
        place += len(line)
    if text[begin:].strip():
        parts.append((begin, len(text)))
    return parts


def is_complete(text: str) -> bool:
    """Whether a text holds nothing after the end of its last statement but blanks and comments."""
    pieces = [
        token
        for token in tokens_of(text)
        if token.is_open or token.kind not in (TokenKind.BLANK, TokenKind.COMMENT)
    ]
    return not pieces or pieces[-1].word == ";"
