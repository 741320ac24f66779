"""SET and SHOW: how texts are read, and what there is."""

from __future__ import annotations

from typing import Final

from headrace.errors import Position
from headrace.language.defaults import Defaults
from headrace.language.parsing.cursor import Cursor
from headrace.language.statements import SetDialect, Show, Shown
from headrace.suggestions import did_you_mean

_OPTIONS: Final = ("dialect",)
_RUN: Final = "options of a stream go into its OPTIONS (...), options of a run onto the command line"


def parse_set(cursor: Cursor, position: Position) -> SetDialect:
    """Read what follows SET: `dialect = 'cql'`.

    Raises:
        LanguageError: there is no such option, or it has no such value.
    """
    place = cursor.index
    option = cursor.name("the name of an option")
    if option.text.lower() not in _OPTIONS:
        cursor.index = place
        hint = did_you_mean(option.text, _OPTIONS) or f"SET dialect = 'cql' is all there is; {_RUN}"
        raise cursor.error(f"there is no option {option.text}", hint)
    cursor.expect("=", f"after SET {option.text}")
    token = cursor.peek()
    written = "write SET dialect = 'pipes' or SET dialect = 'cql'"
    if token is None:
        raise cursor.error(f"a dialect is missing, before {cursor.shown()}", written)
    text = str(token.text).lower()
    known = {defaults.value: defaults for defaults in Defaults}
    if text not in known:
        raise cursor.error(f"there is no dialect {cursor.shown()}", did_you_mean(text, known) or written)
    cursor.index += 1
    return SetDialect(known[text], position)


def parse_show(cursor: Cursor, position: Position) -> Show:
    """Read what follows SHOW.

    Raises:
        LanguageError: it is nothing that can be shown.
    """
    for shown in Shown:
        if cursor.accept(shown.value):
            return Show(shown, position)
    known = [shown.value for shown in Shown]
    hint = did_you_mean(cursor.word(), known) or f"write SHOW {', SHOW '.join(known)}"
    raise cursor.error(f"SHOW does not know {cursor.shown()}", hint)
