"""Downloads against a real HTTP server on the loopback interface."""

import hashlib
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from fitzpatrick.datasets import (
    DATASETS,
    DataError,
    DatasetMismatchWarning,
    Transfer,
    UnavailableError,
    _load,
    load_dataset,
)
from fitzpatrick.datasets._download import fetch, record
from fitzpatrick.datasets._registry import DatasetInfo, Remote, Statistics

CONTENT = bytes(range(256)) * 2000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
FAST = Transfer(timeout=2.0, attempts=3, wait=0.01)
ONCE = replace(FAST, attempts=1)


class Server(ThreadingHTTPServer):
    """Serves CONTENT in whatever way its handler is told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str | None] = []  # the Range header of each
        self.faults: list[str] = []  # one per request to come
        self.content = CONTENT
        self.tag = '"one"'

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/data.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        self.server.requests.append(self.headers.get("Range"))
        fault = self.server.faults.pop(0) if self.server.faults else ""
        content = self.server.content
        if fault == "silence":
            time.sleep(1.0)
            return
        if fault.isdigit():
            self.send_response(int(fault))
            self.end_headers()
            return
        first = 0
        wanted, tag = self.headers.get("Range"), self.headers.get("If-Range")
        if wanted and tag == self.server.tag:
            first = int(wanted.removeprefix("bytes=").rstrip("-"))
            first = 0 if fault == "other part" else first
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[first:]
        if fault != "no length":
            self.send_header("Content-Length", str(len(body)))
        if self.server.tag:
            self.send_header("ETag", self.server.tag)
        self.end_headers()
        if fault == "slow":
            time.sleep(0.3)
        self.wfile.write(body[: len(body) // 2] if fault == "truncated" else body)

    def log_message(self, *_):
        """Keep the test's output clean."""


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(60)
    assert not thread.is_alive()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_recorded_checksums_are_enforced(server, tmp_path):
    path = fetch(Remote(server.url), "a.bin", tmp_path, FAST)
    assert names(tmp_path) == ["a.bin"]  # nothing is recorded until the file has been read
    record([path])
    assert (tmp_path / "SHA256SUMS").read_text() == f"{DIGEST}  a.bin\n"
    path.write_bytes(b"something else")
    with pytest.raises(UnavailableError, match="delete the file to have it downloaded again"):
        fetch(Remote(server.url), "a.bin", tmp_path, FAST)
    path.unlink()
    server.content = b"another version"
    with pytest.raises(UnavailableError, match="its SHA-256 is"):
        fetch(Remote(server.url), "a.bin", tmp_path, FAST)
    assert names(tmp_path) == ["SHA256SUMS"]


@pytest.mark.parametrize(
    ("faults", "tag", "n_requests", "last_is_resumed"),
    [
        ([], '"one"', 1, False),
        (["truncated", "truncated"], '"one"', 3, True),
        (["truncated", "other part"], '"one"', 3, False),
        (["truncated", "416"], '"one"', 3, False),
        (["truncated"], "", 2, False),  # without a validator it begins anew
        (["truncated"], 'W/"one"', 2, False),
        (["503", "500"], '"one"', 3, False),
    ],
)
def test_faults_that_pass(server, tmp_path, faults, tag, n_requests, last_is_resumed):
    (server.faults, server.tag), seen = (faults, tag), []
    for _ in range(2):  # the second time it is in the cache
        path = fetch(
            Remote(server.url, DIGEST), "a.bin", tmp_path, FAST, lambda *now: seen.append(now)
        )
        assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert len(server.requests) == n_requests
    starts = [int(one[len("bytes=") : -1]) for one in server.requests if one]
    assert starts == sorted(set(starts))  # each goes on where the one before broke off
    assert all(0 < start < len(CONTENT) for start in starts)
    assert (server.requests[-1] is not None) == last_is_resumed
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize(
    ("faults", "digest", "transfer", "n_requests", "problem"),
    [
        ([], "0" * 64, {}, 1, "its SHA-256 is .*, expected 0000"),
        (["404"] * 5, None, {}, 1, r"data\.bin cannot be .* the server answered 404"),
        (["silence"] * 5, None, {"timeout": 0.1, "attempts": 2}, 2, "[Tt]ime"),
        ([], None, {"max_bytes": 1000}, 1, "more than the cap of 1000"),
        (["no length"], None, {"max_bytes": 1000}, 1, "more than the cap of 1000"),
    ],
)
def test_faults_that_stay(server, tmp_path, faults, digest, transfer, n_requests, problem):
    server.faults = faults
    with pytest.raises(UnavailableError, match=problem):
        fetch(Remote(server.url, digest), "a.bin", tmp_path, replace(FAST, **transfer))
    assert len(server.requests) == n_requests
    assert names(tmp_path) == []


@pytest.mark.parametrize("is_new", [False, True])
def test_the_next_call_goes_on_unless_the_file_is_another(server, tmp_path, is_new):
    server.faults = ["truncated"]
    with pytest.raises(UnavailableError, match="cannot be downloaded"):
        fetch(Remote(server.url), "a.bin", tmp_path, ONCE)
    assert not (tmp_path / "a.bin").exists()
    if is_new:
        server.content, server.tag = CONTENT[::-1], '"two"'
    assert fetch(Remote(server.url), "a.bin", tmp_path, ONCE).read_bytes() == server.content
    assert server.requests[0] is None
    assert 0 < int(server.requests[1][len("bytes=") : -1]) <= len(CONTENT) // 2


def test_two_downloads_of_one_file_do_not_mix(server, tmp_path):
    """The second one waits, and finds the file."""
    server.faults = ["slow"]
    threads = [
        threading.Thread(target=fetch, args=(Remote(server.url), "a.bin", tmp_path, FAST))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_a_body_that_ends_early_without_an_error(server, tmp_path, monkeypatch):
    """Which an HTTP library may not notice: urllib3 did not before version 2."""

    def ends_early(response, size):
        yield response.raw.read(size)[:1000]

    monkeypatch.setattr(requests.Response, "iter_content", ends_early)
    with pytest.raises(UnavailableError, match=r"1000 of \d+ bytes arrived"):
        fetch(Remote(server.url), "a.bin", tmp_path, ONCE)
    assert not (tmp_path / "a.bin").exists()


def test_caches_that_cannot_be_used(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match=r"the cache \S+file cannot be used: (File|Not a)"):
        fetch(Remote(server.url), "a.bin", tmp_path / "file", FAST)
    (tmp_path / "SHA256SUMS").write_text("[1")
    with pytest.raises(DataError, match=r"SHA256SUMS, line 1: '\[1' is not 64 hexadecimal digits"):
        fetch(Remote(server.url), "a.bin", tmp_path, FAST)


def test_without_pooch(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    for cache in (str(tmp_path), ""):
        monkeypatch.setenv("FITZPATRICK_CACHE", cache)
        with pytest.raises(UnavailableError, match=r"pip install 'fitzpatrick\[cli\]'"):
            load_dataset("scene", transfer=FAST)
        assert _load.where()["yeast"] == "embedded"


@pytest.fixture
def demo(server, tmp_path, monkeypatch):
    """A data set of the server, and an empty cache."""
    server.content = b"0,1 1:1 2:2\n 1:3\n1 2:1\n"
    known = ("Demo", "a server", "libsvm", Statistics(1, 1, 2, 2, 2))
    info = DatasetInfo(*known, train=Remote(server.url), test=Remote(server.url))
    monkeypatch.setitem(DATASETS, "demo", info)
    monkeypatch.setenv("FITZPATRICK_CACHE", str(tmp_path))
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    return server


def test_load_dataset_downloads_into_the_cache(demo, tmp_path):
    data = load_dataset("demo", transfer=FAST)
    assert data.train.labelled().Y.tolist() == [[1, 1], [0, 1]]
    assert data.source == "downloaded from a server"
    assert _load.where()["demo"] == "cache"
    assert (tmp_path / "SHA256SUMS").read_text().count("demo_t") == 2
    load_dataset("demo", transfer=FAST)
    assert len(demo.requests) == 2  # train and test, once


@pytest.mark.parametrize("content", [b"", b"<html>moved</html>", b"0,1 1:1 2:", b"0 9:1\n"])
def test_a_body_that_cannot_be_read_is_not_kept(demo, tmp_path, content):
    demo.content, good = content, demo.content
    with pytest.raises((DataError, UnavailableError)):
        load_dataset("demo", transfer=FAST)
    assert names(tmp_path) == []
    demo.content = good
    assert load_dataset("demo", transfer=FAST).train.X.shape == (3, 2)


def test_a_file_whose_width_is_not_the_papers_is_recorded(demo, tmp_path, monkeypatch):
    info = replace(DATASETS["demo"], published=Statistics(1, 1, 2, 5, 2), n_features=2)
    monkeypatch.setitem(DATASETS, "demo", info)
    demo.content = demo.content.replace(b" 1:3\n", b" 2:3\n")
    with pytest.warns(DatasetMismatchWarning, match="2 features, where the paper has 5"):
        load_dataset("demo", transfer=FAST)
    assert "SHA256SUMS" in names(tmp_path)


def test_a_recorded_file_is_kept_though_it_cannot_be_read(demo, tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "demo", replace(DATASETS["demo"], n_features=3))
    with pytest.warns(DatasetMismatchWarning, match="3 features, where the paper has 2"):
        load_dataset("demo", transfer=FAST)
    kept = names(tmp_path)
    monkeypatch.setitem(DATASETS, "demo", replace(DATASETS["demo"], n_features=1))
    with pytest.raises(DataError, match="the download cannot be used"):
        load_dataset("demo", transfer=FAST)
    assert names(tmp_path) == kept == ["SHA256SUMS", "demo_test.svm.bz2", "demo_train.svm.bz2"]


def test_a_body_of_another_size_is_not_recorded(demo, tmp_path):
    demo.content += b"1 1:1\n"
    with pytest.warns(DatasetMismatchWarning, match="3 t(raining|est) samples"):
        load_dataset("demo", transfer=FAST)
    assert "SHA256SUMS" not in names(tmp_path)
