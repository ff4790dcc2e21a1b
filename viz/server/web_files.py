"""The page's own files below /atlas/DIGEST/: what viz/web/ holds, and the installed Plotly.js."""

from __future__ import annotations

import gzip
import mimetypes
from pathlib import Path

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz import assets, words

KINDS = (".js", ".css", ".json")
FOREVER = "public, max-age=31536000, immutable"  # the address names the content by its digest


def route() -> Route:
    """The route of the page's own files. Each is read and packed once."""
    files = {assets.name(path): path for path in assets.WEB.rglob("*") if path.suffix in KINDS}
    files |= {f"words/{path.name}": path for path in words.files().values()}
    files[assets.PLOTLY.name] = assets.PLOTLY
    digest, packed = assets.digest(), {}

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return Response(status_code=404)
        if name not in packed:
            packed[name] = await to_thread.run_sync(_packed, files[name])
        headers = {
            "cache-control": FOREVER if request.path_params["digest"] == digest else "no-cache",
            "vary": "accept-encoding",
        }
        kind = mimetypes.types_map[files[name].suffix]
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(packed[name]), 200, headers, kind)
        return Response(packed[name], 200, {**headers, "content-encoding": "gzip"}, kind)

    return Route("/atlas/{digest}/{name:path}", answer, methods=["GET"])


def _packed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=6)
