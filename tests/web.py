"""A small web server that misbehaves as told, for the tests of downloads."""

import contextlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web(ThreadingHTTPServer):
    """Serves `body` at every address; each request takes the next of `habits`, the last for good.

    `requests` counts what was asked.
    """

    daemon_threads = True

    def __init__(self, body, *habits):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = body
        self.habits = list(habits) or ["good"]
        self.requests = 0
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
        web.requests += 1
        if habit.isdigit():
            return self.fail(int(habit))
        if habit.startswith("to "):
            self.send_response(302)
            self.send_header("Location", habit[3:])
            return self.end_headers()
        rest = bytes(len(web.body)) if habit == "wrong" else web.body
        self.send_response(200)
        if habit not in ("says no length", "endless"):
            self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if habit in ("half", "reset", "stall"):
            self.wfile.write(rest[: max(1, len(rest) // 2)])
            self.wfile.flush()
            if habit == "reset":  # an RST instead of a FIN
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.connection.close()
            if habit == "stall":
                web.over.wait()
        elif habit == "endless":
            while not web.over.is_set():
                self.wfile.write(rest)
        else:
            self.wfile.write(rest)
        return None

    def fail(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextlib.contextmanager
def serving(body, *habits):
    """Run a `Web` in a thread."""
    with Web(body, *habits) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield web
        finally:
            web.over.set()
            web.shutdown()
            thread.join()
