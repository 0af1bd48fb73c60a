"""Real faults: a proxy that delays, refuses or loses answers, a database held by another process."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

HOP = {"transfer-encoding", "connection", "content-length", "host"}  # of one connection, not of the message
_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=600)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
connection.rollback()
"""


@dataclass
class Weather:
    """What a proxy does to the requests that pass it; changed while it runs.

    Attributes:
        fault: for the number of a request, from 0: "" (none), "refuse" (500, not passed on), "lose" (passed on,
            the answer is a 500), "cut" (passed on, the connection breaks).
        delay: seconds before an answer.
        requests: how many came in.
    """

    uri: str = ""
    fault: Callable[[int], str] = lambda _: ""
    delay: float = 0.0
    requests: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def proxy(target: str) -> Iterator[Weather]:
    """A real HTTP proxy before a server."""
    weather, place = Weather(), urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            with weather.lock:
                fault = weather.fault(weather.requests)
                weather.requests += 1
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, answer = (
                500,
                [("Content-Type", "text/html")],
                b"<html>Internal Server Error</html>",
            )
            if fault != "refuse":
                upstream = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
                sent = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
                upstream.request(self.command, self.path, body, sent)
                got = upstream.getresponse()
                content = got.read()
                upstream.close()
                if not fault:
                    status, answer = got.status, content
                    headers = [(k, v) for k, v in got.getheaders() if k.lower() not in HOP]
            time.sleep(weather.delay)
            if fault == "cut":
                self.close_connection = True
                return
            with suppress(BrokenPipeError, ConnectionResetError):  # the client may have given up waiting
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    weather.uri = f"http://127.0.0.1:{httpd.server_port}"
    try:
        yield weather
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


@contextmanager
def held_by_another_process(database: Path) -> Iterator[None]:
    """A SQLite file that another process has locked."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield
    finally:
        process.communicate()
