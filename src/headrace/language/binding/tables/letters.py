"""Names in FROM that mean nothing, and `DEAD LETTERS OF name` where the name has none."""

from __future__ import annotations

from headrace.algebra.letters import stream_of_letters
from headrace.errors import LanguageError
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.syntax import Name
from headrace.suggestions import did_you_mean


def unknown_stream(name: Name, catalog: Catalog) -> LanguageError:
    """The error for a name in FROM that the catalog does not know.

    Args:
        name: the name.
        catalog: the streams, relations and queries.

    Raises:
        LanguageError: it is the dead letters of a name without any.
    """
    _refuse_letters(name, catalog)
    listed = f"{catalog.kinds} are {', '.join(catalog.names)}" if catalog.names else None
    near = did_you_mean(name.text, (*catalog.names, *catalog.queries))
    hint = near or listed or "define it with CREATE STREAM first"
    return LanguageError(f"there is no stream {name.text}", position=name.position, hint=hint)


def _refuse_letters(name: Name, catalog: Catalog) -> None:
    """Refuse dead letters of what is not read from outside.

    Args:
        name: what the catalog does not know, perhaps the dead letters of something.
        catalog: the streams.

    Raises:
        LanguageError: it is the dead letters of a name without any.
    """
    of = stream_of_letters(name.text)
    if of is None:
        return
    entry = catalog.find(of)
    sources = [known.name for known in catalog.entries.values() if isinstance(known, StreamInfo)]
    listed = f"the streams that are read from outside are {', '.join(sources)}" if sources else None
    if entry is None:
        hint = did_you_mean(of, sources) or listed or "define it with CREATE STREAM first"
        raise LanguageError(f"there is no stream {of}", position=name.position, hint=hint)
    raise LanguageError(
        f"{entry.name} is not read from outside as a stream, so that no rows of it are set apart",
        position=name.position,
        hint=listed,
    )
