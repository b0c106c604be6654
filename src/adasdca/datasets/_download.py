"""One file from the web, in spite of the web: resumed, retried, and accepted only if right.

A `.part` file grows beside its `.part.json`, which says of which version of which file the bytes
are. A download that breaks off goes on where it was, if the server can and the file is the same;
bytes that turn out wrong after that are fetched once more from the start before anyone is blamed.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import Any, TypeVar

from adasdca.storage import write_whole

T = TypeVar("T")
#: Looks at a finished file and returns what is made of it, or raises `RejectedError`.
Accept = Callable[[Path, str], T]
#: Told the bytes that are there and, where the server says so, how many there will be.
Progress = Callable[[int, "int | None"], Any]
CHUNK = 1 << 16
#: Seconds that a server may ask to wait.
LONGEST_WAIT = 60.0


class FetchError(OSError):
    """A data set that could not be fetched; the message says what was tried and what to do."""


class RejectedError(Exception):
    """The file that arrived is not the right one."""


class AttemptError(Exception):
    """An attempt that failed; `passing` if the next may succeed."""

    def __init__(self, words: str, passing: bool, wait: float = 0.0) -> None:
        super().__init__(words)
        self.passing = passing
        self.wait = wait


@dataclass(frozen=True)
class Patience:
    """How long to try."""

    timeout: float = 30.0  #: Seconds without an answer or a byte after which an attempt has failed.
    attempts: int = 5  #: Attempts in a row, for each address, that bring nothing new.
    wait: float = 1.0  #: Seconds before the second attempt, doubled before each further one.


@dataclass
class Version:
    """Which version of a file the bytes of a `.part` file belong to."""

    url: str = ""
    etag: str = ""
    modified: str = ""
    total: int | None = None

    @property
    def validator(self) -> str:
        """What If-Range takes: a strong ETag, else the date."""
        return self.modified if not self.etag or self.etag.startswith("W/") else self.etag


class Part:
    """The `.part` file and the note beside it."""

    def __init__(self, path: Path, most: int | None = None) -> None:
        self.path = path
        self.most = most  # bytes that the right file has, if that is known
        self._note = path.with_name(path.name + ".json")

    def size(self) -> int:
        """Return the bytes that are there."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def version(self) -> Version:
        """Return whose bytes they are; unknown ones are thrown away."""
        try:
            return Version(**json.loads(self._note.read_text("utf-8")))
        except (OSError, ValueError, TypeError, RecursionError):
            self.discard()
            return Version()

    def begin(self, version: Version) -> None:
        """Start anew."""
        self.path.write_bytes(b"")
        write_whole(self._note, json.dumps(asdict(version)))

    def discard(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def download(
    urls: Sequence[str],
    part: Part,
    accept: Accept[T],
    patience: Patience,
    progress: Progress | None = None,
) -> T:
    """Get a file from the first address that gives a right one, and return what `accept` makes."""
    told: list[str] = []
    for url in urls:
        run = _Run(url, part, patience, told)
        while run.goes_on:
            result = run.attempt(accept, progress)
            if result is not None:
                return result
    raise FetchError("; ".join(dict.fromkeys(told)))


class _Run:
    """Attempts at one address."""

    def __init__(self, url: str, part: Part, patience: Patience, told: list[str]) -> None:
        self.goes_on = True
        self._url = url
        self._part = part
        self._patience = patience
        self._told = told
        self._most = part.size()
        self._failures = 0
        self._resumed = self._most > 0
        self._rejected = False

    def attempt(self, accept: Accept[T], progress: Progress | None) -> T | None:
        """Return what is made of the file, or None after a failure."""
        try:
            _advance(self._url, self._part, self._patience.timeout, progress)
            result = accept(self._part.path, self._url)
        except RejectedError as error:
            self._part.discard()
            self._told.append(f"{self._url}: {error}")
            # Pieces of two versions may have met; in one piece it may be right.
            self.goes_on = self._resumed and not self._rejected
            self._rejected, self._resumed, self._most = True, False, 0
        except AttemptError as error:
            self._told.append(f"{self._url}: {error}")
            self._wait(error)
        else:
            self._part.discard()
            return result
        return None

    def _wait(self, error: AttemptError) -> None:
        size = self._part.size()
        # What arrives counts as progress: any size comes through a poor connection.
        self._failures = 1 if size > self._most else self._failures + 1
        self._most, self._resumed = max(self._most, size), size > 0
        self.goes_on = error.passing and self._failures < self._patience.attempts
        if self.goes_on:
            pause = max(error.wait, self._patience.wait * 2.0 ** (self._failures - 1))
            time.sleep(min(pause, LONGEST_WAIT))


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener of http and https, proxies of the environment included, and no more."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _advance(url: str, part: Part, timeout: float, progress: Progress | None) -> None:
    """Bring the part to its full length in one request, or raise `AttemptError`.

    A file that has, or is said to have, other than the known number of bytes is rejected as soon as
    that is seen.
    """
    version = part.version()
    if version.url != url:
        part.discard()
    have = part.size()
    headers = {"User-Agent": "adasdca", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if version.validator:
            headers["If-Range"] = version.validator
    try:
        request = urllib.request.Request(url, headers=headers)
        with _opener().open(request, timeout=timeout) as reply:
            if reply.status == 206:
                if not _continues(reply.headers, have, version):
                    part.discard()
                    raise AttemptError("the file changed while it was fetched", passing=True)
            else:
                version = _version(url, reply.headers)
                if None not in (part.most, version.total) and part.most != version.total:
                    raise RejectedError(f"it has {version.total} bytes, not {part.most}")
                part.begin(version)
            _copy(reply, part, version.total, progress)
    except urllib.error.HTTPError as error:
        with error:
            _judge(error, part, have)
    except FetchError:  # of the disk
        raise
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise AttemptError(f"{type(reason).__name__}: {reason}", passing=True) from error
    size = part.size()
    if version.total is not None and size != version.total:
        if size > version.total:
            part.discard()
        raise AttemptError(
            f"the connection ended after {size} of {version.total} bytes", passing=True
        )


def _version(url: str, headers: Message) -> Version:
    length = headers.get("Content-Length", "")
    return Version(
        url,
        headers.get("ETag", ""),
        headers.get("Last-Modified", ""),
        int(length) if length.isdigit() else None,
    )


def _continues(headers: Message, have: int, version: Version) -> bool:
    """Whether a partial answer goes on where the part ends, in the same version of the file."""
    span, _, total = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    first = span.partition("-")[0]
    return (
        first == str(have)
        and headers.get("ETag", version.etag) == version.etag
        and (version.total is None or total in ("*", str(version.total)))
    )


def _copy(reply: Any, part: Part, total: int | None, progress: Progress | None) -> None:
    done = part.size()
    with part.path.open("ab") as file:
        while chunk := reply.read(CHUNK):
            try:
                file.write(chunk)
            except OSError as error:  # the disk, not the web: no attempt will mend it
                raise FetchError(f"cannot write {part.path}: {error}") from error
            done += len(chunk)
            for most in (total, part.most):
                if most is not None and done > most:
                    raise RejectedError(f"it has more bytes than {most}")
            if progress is not None:
                progress(done, total)


def _judge(error: urllib.error.HTTPError, part: Part, have: int) -> None:
    """Make an error of the server a failed attempt."""
    if error.code == 416:
        total = error.headers.get("Content-Range", "").rpartition("/")[2]
        if total == str(have):
            return  # nothing is missing
        part.discard()
        raise AttemptError("the file changed while it was fetched", passing=True) from error
    after = error.headers.get("Retry-After", "")
    raise AttemptError(
        f"HTTP {error.code} {error.reason}",
        passing=error.code >= 500 or error.code in (408, 425, 429),
        wait=float(after) if after.isdigit() else 0.0,
    ) from error
