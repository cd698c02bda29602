"""Serve the page of a running comparison on this machine: the page and nothing else."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lupi.errors import LupiError
from lupi.evidence.summary import summarise
from lupi.records import read_comparison
from lupi.report.page.document import render

HOST = "127.0.0.1"


class LivePage:
    """The page of a comparison, made again whenever a run has ended since."""

    def __init__(self, folder: Path) -> None:
        """Watch the comparison in `folder`."""
        self._folder = folder
        self._lock = threading.Lock()
        self._state = ""
        self._page = ""

    def state(self) -> str:
        """Name what is on disk: another name means that a run has ended or the plan has changed."""
        files = sorted(
            f"{path.relative_to(self._folder)} {path.stat().st_mtime_ns}"
            for pattern in ("comparison.json", "*/result.json", "*/failure.txt")
            for path in self._folder.glob(pattern)
        )
        return hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]

    def page(self) -> str:
        """Return the page as of now."""
        with self._lock:
            state = self.state()
            if state != self._state:
                record = read_comparison(self._folder)
                self._page = render(record, summarise(record), state=state)
                self._state = state
            return self._page


def page_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a comparison's page; only this machine can reach it.

    Args:
        folder: Where comparison.json is.
        port: 0 stands for any that is free.
    """
    live = LivePage(folder)
    live.page()  # a folder without a comparison is a mistake to tell now

    class Handler(BaseHTTPRequestHandler):
        timeout = 30  # who asks nothing in that time keeps no thread

        def do_GET(self) -> None:
            answers = {"/": ("text/html", live.page), "/state": ("text/plain", live.state)}
            # Another site's name that leads here (DNS rebinding) gets no answer.
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
            """Say nothing: a line per question would bury the terminal."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise LupiError(
            f"--port {port} of {HOST} can't be used: {error.strerror}; leave --port out to take "
            "any that is free"
        ) from None
