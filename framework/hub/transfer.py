"""Brings one remote file to one local path: resumable, one process at a time. Checking is the hub's part (`hub.py`).

Problems come back as a `HubError` whose `problem` is one short reason; the hub lists it among the places it tried.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from framework.core.disk import free_bytes
from framework.core.disk import sha256_of as sha256_of
from framework.core.errors import HubError, OarError
from framework.core.file_lock import is_without_locks
from framework.core.whole_folder import fresh_folder

if TYPE_CHECKING:
    from http.client import HTTPMessage, HTTPResponse
    from urllib.request import BaseHandler, Request

log = logging.getLogger("oar.hub")
CHUNK = 1 << 18  # bytes
_LOOK_EVERY = 64 << 20  # bytes, after which the disk is looked at again
TIMEOUT = 30.0  # seconds without a byte
RESUMES = 20  # times a cut connection is taken up again; each time some bytes must have come
LOCK_POLL = 0.1  # seconds
LIMIT = 20 << 30  # bytes of a file whose size nobody says
SPARE = 256 << 20  # bytes that stay free on the disk
SLOWEST = 1 << 10  # bytes a second, over five minutes
_SLOW_SECONDS = 300.0


def md5_of(path: Path) -> str:
    """The file's MD5 sum as 32 lower-case hex digits, read from disk."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "md5").hexdigest()


@contextlib.contextmanager
def place_for(target: Path) -> Iterator[Path]:
    """The folder where `target` is downloaded to, under the lock of its folder: that folder, where a cut download is
    found again; where the file system has no locks one that no other process writes into, and that is gone afterwards.
    """
    with locked(target.parent / ".lock") as is_alone:
        if is_alone:
            yield target.parent
            return
        with fresh_folder(target) as fresh:
            yield fresh


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Holds an exclusive lock on `path` against other processes and threads; made if missing, never removed.

    The operating system frees it when its holder dies, so a killed download leaves nothing to clean up.

    Gives whether it is held: some file systems have no locks, and others may do the same there at the same time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as handle:
        waits = False
        while not (free := _try_lock_here(handle)):
            if free is None:
                yield False
                return
            if not waits:
                log.info("another process downloads into %s, waiting for it", path.parent)
                waits = True
            time.sleep(LOCK_POLL)
        try:
            yield True
        finally:
            _unlock(handle)


def _try_lock_here(handle: IO[bytes]) -> bool | None:
    """Whether the lock is held now; None where the file system has none."""
    try:
        return _try_lock(handle)
    except OSError as error:
        if is_without_locks(error):
            return None
        raise


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: IO[bytes]) -> bool:
        handle.seek(0)
        try:
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(handle: IO[bytes]) -> None:
        handle.seek(0)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(handle: IO[bytes]) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


def download(
    url: str,
    part: Path,
    size: int | None,
    label: str,
    check: Callable[[str], object] = lambda url: None,
    is_verified: bool = True,
) -> bool:
    """Brings `url` to `part`, going on after the bytes that are there already, of the same content as far as the server
    tells (ETag, Last-Modified; kept beside `part`).

    Args:
        url: an http or https address; redirects and proxy variables are followed, but none from https to another
            scheme.
        check: Called with each address that a redirect leads to. Raises: OarError, where it may not be fetched.
        part: the partial file. It stays after a failure, for the next call to take up.
        size: the whole file's bytes, if known. A server that offers another size is refused before any byte is stored.
        label: the progress bar's text.
        is_verified: Whether the caller compares the content with a hash that is known. Where it does not, bytes of an
            earlier call are dropped if the server did not say which content they are of: two contents would be mixed.

    Returns:
        Whether bytes of an earlier call were kept; if the content then proves wrong, they may be the reason.

    Raises:
        HubError: the server cannot be reached, refuses, offers another size, more than the disk has or than 20 GB
            where no size is known, keeps cutting the connection or sends less than a kilobyte a second.
        OSError: the disk cannot be written.
    """
    import http.client
    import urllib.error

    version = _version_file(part)
    if not is_verified and not _read_version(part):
        part.unlink(missing_ok=True)
    kept = _bytes_in(part) > 0
    for _ in range(RESUMES):
        start = _bytes_in(part)
        if size is not None and start == size:
            version.unlink(missing_ok=True)
            return kept
        try:
            resumed = _receive(url, part, start, size, label, check)
            version.unlink(missing_ok=True)
            return resumed and kept
        except _OtherContent:
            part.unlink()
            kept = False
        except RedirectRefused as error:
            raise HubError(str(error)) from None
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 416 or not start:
                    raise HubError(f"HTTP {error.code} {error.reason}") from None
                # 416 says that nothing follows our last byte: we have all of it, or bytes of another file.
                if size is None and error.headers.get("Content-Range", "").rpartition("/")[2] == str(start):
                    version.unlink(missing_ok=True)
                    return kept
            part.unlink()
            kept = False
        except urllib.error.URLError as error:
            raise HubError(f"cannot connect: {error.reason}") from None
        except (http.client.HTTPException, ConnectionError) as error:
            if _bytes_in(part) <= start:
                raise HubError(f"the connection broke: {error or type(error).__name__}") from None
    raise HubError(
        f"the connection broke {RESUMES} times; {_bytes_in(part):,} bytes are kept, pull again to go on"
    )


class _OtherContent(Exception):
    """The bytes that are kept are not of what the server has now."""


class RedirectRefused(OSError):
    """An address that a redirect leads to is not fetched."""


def open_url(
    url: str,
    headers: Mapping[str, str],
    check: Callable[[str], object] = lambda url: None,
    timeout: float = TIMEOUT,
    handlers: Sequence[BaseHandler] = (),
) -> HTTPResponse:
    """The answer of a request. Redirects are followed, but none from https to another scheme; `check` as of `download`.

    Args:
        handlers: Of urllib, in the place of those that connect.

    Raises:
        RedirectRefused: one is not followed. What `urllib.request.urlopen` raises.
    """
    import urllib.error
    import urllib.request

    class Redirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            if req.full_url.lower().startswith("https:") and not newurl.lower().startswith("https:"):
                fp.close()
                raise RedirectRefused(f"the server leads from https to {newurl[:200]}, which is not followed")
            try:
                check(newurl)
            except OarError as error:
                fp.close()
                raise RedirectRefused(f"the server leads to {newurl[:200]}: {error.problem}") from None
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    if not handlers and (proxy := _socks_proxy(url)):  # those that are given may go without a proxy
        raise urllib.error.URLError(
            f"the proxy {proxy} speaks SOCKS, which is not known here: name an HTTP proxy in its place, or bring the "
            "file here with a tool that knows SOCKS (curl --proxy)"
        )
    request = urllib.request.Request(url, headers=dict(headers))
    return urllib.request.build_opener(Redirects, *handlers).open(request, timeout=timeout)


def _socks_proxy(url: str) -> str:
    """The SOCKS proxy that the environment names for an address, to which urllib would speak HTTP; "" where none."""
    import urllib.request
    from urllib.parse import urlsplit

    address = urlsplit(url)
    proxy = urllib.request.getproxies().get(address.scheme, "")
    is_socks = proxy.lower().startswith("socks") and not urllib.request.proxy_bypass(address.hostname or "")
    return f"{urlsplit(proxy).scheme}://{urlsplit(proxy).hostname}" if is_socks else ""


def _receive(
    url: str, part: Path, start: int, size: int | None, label: str, check: Callable[[str], object]
) -> bool:
    """One request; appends to `part` from byte `start`. Returns False when the server began at byte 0 instead."""
    from tqdm import tqdm

    headers = {"User-Agent": "oar-zoo", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if stored := _read_version(part):
            headers["If-Range"] = stored
    with open_url(url, headers, check) as response:
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(
            f"bytes {start}-"
        )
        offered = _version(response)
        if not resumed:
            start = 0
            _version_file(part).write_text(offered, encoding="utf-8")
        elif offered and (stored := _read_version(part)) and offered != stored:
            raise _OtherContent  # If-Range is not known everywhere
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        if size is not None and total is not None and total != size:
            raise HubError(f"the server offers {total:,} bytes, {size:,} are expected")
        expected = size if size is not None else total
        if expected is not None and size is None and expected > LIMIT:
            raise HubError(f"the server offers {expected:,} bytes, at most {LIMIT:,} are taken")
        _check_space(part, start, 0 if expected is None else expected - start)
        done, began = start, time.monotonic()
        with (
            part.open("ab" if resumed else "wb") as out,
            tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=label, disable=None) as bar,
        ):
            while chunk := _read(response):
                out.write(chunk)
                bar.update(len(chunk))
                done += len(chunk)
                if size is not None and done > size:
                    out.truncate(0)
                    raise HubError(f"the server sends more than the expected {size:,} bytes")
                if total is None and done > LIMIT:
                    out.truncate(0)
                    raise HubError(f"the server sends more than {LIMIT:,} bytes and does not say how many")
                if done % _LOOK_EVERY < len(chunk) and expected is None:
                    _check_space(part, done, 0)
                spent = time.monotonic() - began
                if spent > _SLOW_SECONDS and done - start < SLOWEST * spent:
                    raise HubError(
                        f"the server sends {done - start:,} bytes in {spent:.0f} seconds; pull again"
                    )
            out.flush()
            os.fsync(out.fileno())
    if total is not None and done < total:
        raise ConnectionError(f"{done:,} of {total:,} bytes came")
    return resumed


def _version(response: HTTPResponse) -> str:
    """What tells this content of an address from others; "" where the server does not say."""
    tag = response.headers.get("ETag", "")
    if tag and not tag.startswith("W/"):
        return tag
    return response.headers.get("Last-Modified", "")


def _version_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.version")


def _read_version(path: Path) -> str:
    try:
        return _version_file(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _check_space(path: Path, done: int, needed: int) -> None:
    """Raises: HubError, where so many bytes more would fill the disk."""
    left = free_bytes(path)
    if left is not None and left < needed + SPARE:
        raise HubError(
            f"the disk has {left:,} bytes left; "
            + (
                f"{needed:,} are to come"
                if needed
                else f"{done:,} came, and the server does not say how many do"
            )
            + f", and {SPARE:,} stay free"
        )


def _read(response: HTTPResponse) -> bytes:
    try:  # what is there, and not a whole chunk: else a server that sends a byte a second is never looked at
        return response.read1(CHUNK)
    except OSError as error:  # TLS errors too; what is left as a plain OSError is then the disk's
        raise ConnectionError(str(error)) from error


def _bytes_in(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def download_hf(repo: str, file: str, revision: str, part: Path) -> None:
    """Brings a file of a Hugging Face repository to `part` through huggingface-hub: its tokens, mirrors and resuming.

    Raises:
        HubError: whatever huggingface-hub reports.
        OSError: the disk cannot be written.
    """
    try:
        from huggingface_hub import constants, hf_hub_download
    except ImportError:
        raise HubError("the package huggingface-hub is not installed") from None
    _check_reachable(constants.ENDPOINT)
    # A folder of our own instead of its cache: the file would lie on the disk twice.
    folder = part.with_name(part.name + ".hf")
    try:
        got = hf_hub_download(repo, file, revision=revision, local_dir=folder)
    except Exception as error:  # its error classes, and those of its HTTP library, differ between releases
        cause = error.__cause__ or error
        lines = str(cause).strip().splitlines()
        raise HubError(f"{type(cause).__name__}: {lines[0] if lines else 'no message'}") from None
    os.replace(got, part)
    shutil.rmtree(folder, ignore_errors=True)


def _check_reachable(url: str) -> None:
    """Raises HubError if nothing answers: huggingface-hub would retry for half a minute before it gives up."""
    import socket
    import urllib.error
    import urllib.request

    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=TIMEOUT / 3).close()
    except urllib.error.HTTPError as error:
        error.close()  # an answer, whatever it says
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, (socket.gaierror, ConnectionError, TimeoutError)):
            raise HubError(f"cannot connect: {reason}") from None
