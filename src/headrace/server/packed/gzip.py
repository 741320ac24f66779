"""Bodies by gzip, unpacked a piece at a time and no further than a limit."""

from __future__ import annotations

import zlib
from typing import Final

from headrace.server.errors import RequestError
from headrace.server.packed.unpacked_size import unpacks_to_too_much

_PIECE: Final = 65_536
"""Bytes that are given to zlib at once: what it leaves of them is copied at the end of every member."""


def gunzipped(body: bytes, limit: int) -> bytes:
    """A body as it was before gzip packed it, in one member or several.

    Args:
        body: as it came.
        limit: how many bytes it may have unpacked.

    Raises:
        RequestError: it has more, or is damaged.
    """
    found, begun, at = bytearray(), False, 0
    member = zlib.decompressobj(wbits=31)
    try:
        while at < len(body):
            piece = body[at : at + _PIECE]
            at += len(piece)
            while piece:
                begun = True
                found += member.decompress(piece, limit + 1 - len(found))
                if len(found) > limit:
                    raise unpacks_to_too_much(limit)
                piece = member.unused_data or member.unconsumed_tail
                if member.eof:
                    member, begun = zlib.decompressobj(wbits=31), False
        if begun:
            raise zlib.error("it breaks off")
    except zlib.error as error:
        raise RequestError("request", 400, f"the body cannot be unpacked by gzip: {error}") from None
    return bytes(found)
