"""A small web server that misbehaves as told, for the tests of downloads."""

import contextlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web(ThreadingHTTPServer):
    """Serves `body` at every address; each request takes the next of `habits`, the last for good.

    `requests` keeps the headers of what was asked.
    """

    daemon_threads = True

    def __init__(self, body, *habits, etag='"1"'):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.etag = body, etag
        self.habits = list(habits) or ["good"]
        self.requests = []
        self.over = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file"

    def next_habit(self):
        return self.habits.pop(0) if len(self.habits) > 1 else self.habits[0]

    def handle_error(self, request, client_address):
        pass  # a client that has hung up is part of the play


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        web, habit = self.server, self.server.next_habit()
        web.requests.append(dict(self.headers))
        if habit.isdigit():
            return self.fail(int(habit))
        if habit.startswith("to "):
            self.send_response(302)
            self.send_header("Location", habit[3:])
            return self.end_headers()
        if habit == "changed":  # another version of the file, from now on
            web.body, web.etag = web.body[::-1], web.etag and '"2"'
        body, start = web.body, 0
        asked = self.headers.get("Range")
        if asked and habit not in ("ignores ranges", "half, no ranges"):
            valid = self.headers.get("If-Range") in (None, web.etag)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if valid else 0
            if start >= len(body):
                return self.fail(416, {"Content-Range": f"bytes */{len(body)}"})
        if habit == "wrong":
            body = bytes(len(body))
        shift = 1 if habit == "wrong place" and start else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start + shift}-{len(body) - 1}/{len(body)}")
        if web.etag:
            self.send_header("ETag", web.etag)
        if habit not in ("says no length", "endless"):
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        rest = body[start:]
        if habit.startswith(("half", "reset", "stall")):
            self.wfile.write(rest[: max(1, len(rest) // 2)])
            self.wfile.flush()
            if habit.startswith("reset"):  # an RST instead of a FIN
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.connection.close()
            if habit.startswith("stall"):
                web.over.wait()
        elif habit == "endless":
            while not web.over.is_set():
                self.wfile.write(rest)
        else:
            self.wfile.write(rest)
        return None

    def fail(self, code, headers=None):
        self.send_response(code)
        for name, value in (headers or {"Retry-After": "0"}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextlib.contextmanager
def serving(body, *habits, etag='"1"'):
    """Run a `Web` in a thread."""
    with Web(body, *habits, etag=etag) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield web
        finally:
            web.over.set()
            web.shutdown()
            thread.join()
