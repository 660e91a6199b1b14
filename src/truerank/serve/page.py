"""The page at `/`: files of this package, read once, with headers that allow nothing else."""

import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from truerank.serve.replies import has_already

_FILES = {
    "/": ("index.html", "text/html"),
    "/web/page.js": ("page.js", "text/javascript"),
    "/web/page.css": ("page.css", "text/css"),
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    etag: str


def page_routes() -> list[Route]:
    """One route per file of the page."""
    folder = resources.files("truerank.serve") / "web"
    routes = []
    for path, (name, media_type) in _FILES.items():
        content = (folder / name).read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        routes.append(Route(path, _serving(_File(content, media_type, etag)), methods=["GET"]))
    return routes


def _serving(file: _File) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    headers = _HEADERS | {"etag": file.etag}

    async def serve(request: Request) -> Response:
        if has_already(request.scope, file.etag):
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    return serve
