"""Serve the page of a running comparison on this machine."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lupi.errors import LupiError
from lupi.records import read_comparison
from lupi.report.page.document import render
from lupi.verdict.summary import summarise

HOST = "127.0.0.1"


class LivePage:
    """The page of a comparison, rendered again after each finished run."""

    def __init__(self, folder: Path) -> None:
        """Watch the comparison in `folder`."""
        self._folder = folder
        self._lock = threading.Lock()
        self._state = ""
        self._page = ""

    def state(self) -> str:
        """Return an identifier that changes when a run ends or the plan changes."""
        files = sorted(
            f"{path.relative_to(self._folder)} {path.stat().st_mtime_ns}"
            for pattern in ("comparison.json", "*/result.json", "*/failure.txt")
            for path in self._folder.glob(pattern)
        )
        return hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]

    def page(self) -> str:
        """Return the current page."""
        with self._lock:
            state = self.state()
            if state != self._state:
                record = read_comparison(self._folder)
                self._page = render(record, summarise(record), state=state)
                self._state = state
            return self._page


def page_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server for the page of a comparison; only this machine can access it.

    Args:
        folder: The folder with comparison.json.
        port: The port, or 0 for any free one.
    """
    live = LivePage(folder)
    live.page()  # raises now if the folder has no comparison

    class Handler(BaseHTTPRequestHandler):
        timeout = 30  # idle connections must not keep a thread

        def do_GET(self) -> None:
            answers = {"/": ("text/html", live.page), "/state": ("text/plain", live.state)}
            # Refuse other host names (DNS rebinding).
            if self.headers.get("Host", "").rpartition(":")[0] not in (HOST, "localhost"):
                self.send_error(403)
                return
            if self.path not in answers:
                self.send_error(404)
                return
            kind, answer = answers[self.path]
            try:
                body = answer().encode()
            except (LupiError, OSError) as error:
                self.send_error(503, explain=str(error))
                return
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: one line per request would flood the terminal."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise LupiError(
            f"--port {port} on {HOST} can't be used: {error.strerror}; omit --port to use a free "
            "port"
        ) from None
