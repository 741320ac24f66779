"""The page, which is the same for everybody: what it shows it asks for with the key of its user."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from headrace.server.errors import not_found

router: Final = APIRouter(include_in_schema=False)

_TYPES: Final = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
    }
)
_HEADERS: Final = MappingProxyType(
    {
        # Nothing but the page's own files runs or is loaded, and no other page can frame it.
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        # Asked for again each time, so that a newer server's page is not mixed with an older one's files.
        "Cache-Control": "no-cache",
    }
)


def _read() -> Mapping[str, tuple[bytes, str, str]]:
    """By its name, each file with its type and its digest."""
    found = {}
    for file in files("headrace.server.page").iterdir():
        kind = _TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            data = file.read_bytes()
            found[file.name] = (data, kind, f'"{sha256(data).hexdigest()[:32]}"')
    return MappingProxyType(found)


_FILES: Final = _read()


@router.get("/")
async def page(request: Request) -> Response:
    """The page itself."""
    return _answer("index.html", request)


@router.get("/page/{name}")
async def part(name: str, request: Request) -> Response:
    """A file of the page: a module, the style or the icon."""
    return _answer(name, request)


def _answer(name: str, request: Request) -> Response:
    if name not in _FILES:
        raise not_found(f"file {name}")
    data, kind, tag = _FILES[name]
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)
