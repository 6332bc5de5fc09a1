"""An object store on this machine: what pyarrow asks of S3 to read files, over HTTP."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from pathlib import Path

LOCKED = "locked"
"""A bucket that nobody may read."""


class S3(BaseHTTPRequestHandler):
    """Answers from a folder, whose folders are the buckets."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).strip("/").partition("/")
        root: Path = self.server.root  # type: ignore[attr-defined]
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if bucket == LOCKED:
            self._send(403, _error("AccessDenied", "Access Denied"), body=body)
        elif not (root / bucket).is_dir():
            self._send(404, _error("NoSuchBucket", "The bucket does not exist"), body=body)
        elif not key:
            self._send(200, _listing(root / bucket, parse_qs(url.query)), body=body)
        elif not (root / bucket / key).is_file():
            self._send(404, _error("NoSuchKey", "The key does not exist"), body=body)
        else:
            self._send_part((root / bucket / key).read_bytes(), body=body)

    def _send_part(self, content: bytes, *, body: bool) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            self._send(200, content, body=body)
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        part = content[int(first) : int(last) + 1]
        where = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        self._send(206, part, body=body, **{"Content-Range": where})

    def _send(self, code: int, content: bytes, *, body: bool, **headers: str) -> None:
        self.send_response(code)
        headers |= {"Content-Length": str(len(content)), "ETag": '"0"', "Accept-Ranges": "bytes"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _error(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


def _listing(bucket: Path, query: dict[str, list[str]]) -> bytes:
    """Return ListObjectsV2: the keys that begin with a prefix, those behind a delimiter folded."""
    prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
    keys = sorted(str(one.relative_to(bucket)) for one in bucket.rglob("*") if one.is_file())
    files, folders = [], []
    for key in (key for key in keys if key.startswith(prefix)):
        inner = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        (folders if inner[1] else files).append(prefix + inner[0] + inner[1] if delimiter else key)
    found = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{(bucket / key).stat().st_size}</Size>"
        "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for key in files
    )
    found += "".join(
        f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
        for one in dict.fromkeys(folders)
    )
    count = len(files) + len(set(folders))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{bucket.name}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{count}</KeyCount>"
        f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
    ).encode()


@contextmanager
def serving(root: Path):
    """Serve a folder; gives the options of its paths, and the list of what is asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), S3)
    server.root, server.asked = root, []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"?endpoint_override=127.0.0.1:{server.server_port}&scheme=http", server.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
