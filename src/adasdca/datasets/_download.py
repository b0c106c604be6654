"""One file from the web: asked for again where that may help, and accepted only if right."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
#: Looks at a finished file and returns what is made of it, or raises `RejectedError`.
Accept = Callable[[Path, str], T]
#: Told the bytes that are there and, where the server says so, how many there will be.
Progress = Callable[[int, "int | None"], Any]
CHUNK = 1 << 16
#: Seconds between two attempts, at most.
LONGEST_WAIT = 60.0


class FetchError(OSError):
    """A data set that could not be fetched; the message says what was tried and what to do."""


class RejectedError(Exception):
    """The file that arrived is not the right one."""


@dataclass(frozen=True)
class Patience:
    """How long to try."""

    timeout: float = 30.0  #: Seconds without an answer or a byte after which an attempt has failed.
    attempts: int = 5  #: Attempts for each address.
    wait: float = 1.0  #: Seconds before the second attempt, doubled before each further one.


def download(
    urls: Sequence[str],
    path: Path,
    most: int | None,
    accept: Accept[T],
    patience: Patience,
    progress: Progress | None = None,
) -> T:
    """Get a file from the first address that gives a right one, and return what `accept` makes.

    It is at `path` until then; `most` are the bytes that the right one has, if that is known.
    """
    told: list[str] = []
    for url in urls:
        for attempt in range(patience.attempts):
            if attempt:
                time.sleep(min(patience.wait * 2.0 ** (attempt - 1), LONGEST_WAIT))
            try:
                failure = _copy(url, path, most, patience.timeout, progress)
                if failure is None:
                    return accept(path, url)
            except RejectedError as error:
                failure = str(error), False
            finally:
                path.unlink(missing_ok=True)
            words, passing = failure
            told.append(f"{url}: {words}")
            if not passing:
                break
    raise FetchError("; ".join(dict.fromkeys(told)))


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


def _copy(
    url: str, path: Path, most: int | None, timeout: float, progress: Progress | None
) -> tuple[str, bool] | None:
    """Copy a file in one request; return what has failed, and whether the next may succeed.

    A file that has, or is said to have, other than the known number of bytes is rejected as soon as
    that is seen.
    """
    headers = {"User-Agent": "adasdca", "Accept-Encoding": "identity"}
    done = 0
    try:
        request = urllib.request.Request(url, headers=headers)
        with _opener().open(request, timeout=timeout) as reply, path.open("wb") as file:
            length = reply.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            if None not in (most, total) and most != total:
                raise RejectedError(f"it has {total} bytes, not {most}")
            while chunk := reply.read(CHUNK):
                try:
                    file.write(chunk)
                except OSError as error:  # the disk, not the web: no attempt will mend it
                    raise FetchError(f"cannot write {path}: {error}") from error
                done += len(chunk)
                if most is not None and done > most:
                    raise RejectedError(f"it has more bytes than {most}")
                if progress is not None:
                    progress(done, total)
    except urllib.error.HTTPError as error:
        with error:
            passing = error.code >= 500 or error.code in (408, 425, 429)
            return f"HTTP {error.code} {error.reason}", passing
    except FetchError:
        raise
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        return f"{type(reason).__name__}: {reason}", True
    if total is not None and done < total:
        return f"the connection ended after {done} of {total} bytes", True
    return None
