"""``circuitsim data``: fetching from a local server that is good, wrong, cut short, hostile, or down."""

import contextlib
import gzip
import hashlib
import http.server
import os
import threading

import pytest
from helpers import mnist

from circuitsim.cli import main
from circuitsim.datasets import load, remote
from circuitsim.datasets.remote import RemoteFile, RemoteSet

CONTENTS = mnist()
PACKED = {name: gzip.compress(content) for name, content in CONTENTS.items()}


@pytest.fixture
def served(monkeypatch):
    """A server of ``replies`` (path → bytes, or (bytes, stated length)), the requests it saw, and a small MNIST."""
    replies, seen = {f"/good/{name}.gz": packed for name, packed in PACKED.items()}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            reply = replies.get(self.path)
            if reply is None:
                self.send_error(404)
                return
            body, length = reply if isinstance(reply, tuple) else (reply, len(reply))
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *args):
            pass

    files = tuple(RemoteFile(n, len(c), hashlib.sha256(c).hexdigest()) for n, c in CONTENTS.items())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setitem(remote.REMOTE, "mnist", RemoteSet("small", files, (f"{base}/dead", f"{base}/good")))
        yield base, replies, seen
        server.shutdown()
        thread.join()


def _fetch(directory, *more):
    return main(["data", "fetch", "mnist", "--data-dir", str(directory), *more])


def test_the_next_mirror_serves_and_training_finds_it(served, tmp_path, monkeypatch, capsys):
    base, _, seen = served
    assert _fetch(tmp_path) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/mnist\n"
    assert f"{base}/dead/train-images-idx3-ubyte.gz: HTTP Error 404" in printed.err
    assert f"train-images-idx3-ubyte: fetched from {base}/good\n" in printed.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == CONTENTS
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path))
    assert load("mnist").train.shape == (12, 784)
    # Nothing is fetched twice.
    seen.clear()
    assert main(["data", "fetch", "mnist"]) == 0
    assert seen == [] and "train-images-idx3-ubyte: already there" in capsys.readouterr().err


def test_an_interrupted_fetch_goes_on_and_a_wrong_file_is_replaced(served, tmp_path, capsys):
    base, replies, seen = served
    packed = replies.pop("/good/t10k-labels-idx1-ubyte.gz")
    assert _fetch(tmp_path) == 3
    assert len(list((tmp_path / "mnist").iterdir())) == 3
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(b"half")
    replies["/good/t10k-labels-idx1-ubyte.gz"] = packed
    seen.clear()
    assert _fetch(tmp_path, "--mirror", f"{base}/good/") == 0
    assert seen == ["/good/train-labels-idx1-ubyte.gz", "/good/t10k-labels-idx1-ubyte.gz"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "mnist").iterdir()} == CONTENTS


NAME = "train-images-idx3-ubyte"


@pytest.mark.parametrize(
    "reply, reason",
    [
        (gzip.compress(CONTENTS[NAME][:-1] + b"!"), "the content has a wrong checksum"),
        (PACKED[NAME][:-200], "Compressed file ended before the end-of-stream marker was reached"),
        ((PACKED[NAME][:-200], len(PACKED[NAME])), ""),
        (b"<html>not found</html>", "Not a gzipped file"),
        (gzip.compress(bytes(10_000_000)), f"the content is longer than the {len(CONTENTS[NAME])} bytes"),
        (b"", "the content has a wrong checksum"),
    ],
    ids=["wrong", "cut", "broken-off", "html", "bomb", "empty"],
)
def test_a_bad_answer_leaves_nothing_behind(served, tmp_path, capsys, reply, reason):
    base, replies, _ = served
    address = f"{base}/bad/{NAME}.gz"
    replies[f"/bad/{NAME}.gz"] = reply
    assert _fetch(tmp_path, "--mirror", f"{base}/bad") == 3
    message = capsys.readouterr().err
    assert f"error: {NAME} could not be fetched:\n    {address}: {reason}" in message
    assert "hint: try again later, name another --mirror, or put the files into a folder" in message
    assert list((tmp_path / "mnist").iterdir()) == []
    # The next mirror in line still serves.
    assert _fetch(tmp_path, "--mirror", f"{base}/bad", "--mirror", f"{base}/good") == 0


def test_no_server_at_all(served, tmp_path, capsys):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as gone:
        port = gone.server_port
    assert _fetch(tmp_path, "--mirror", f"http://127.0.0.1:{port}") == 3
    assert "Connection refused" in capsys.readouterr().err


def test_what_is_there(served, tmp_path, capsys):
    assert main(["data", "list", "--data-dir", str(tmp_path)]) == 0
    heads = capsys.readouterr().out.splitlines()
    assert heads[:3] == [
        "data set    place                                  contents",
        "digits      bundled with scikit-learn              1,797 handwritten digits, 8 × 8 pixels",
        "mnist       not here: circuitsim data fetch mnist  small",
    ]
    assert [line[:30] for line in heads[3:]] == [
        "cifar10     not here: docs/mod",
        "cifar100    not here: docs/mod",
        "imagenet32  not here: docs/mod",
    ]
    assert _fetch(tmp_path) == 0
    for name in ("train.bin", "test.bin"):
        (tmp_path / name).touch()
    assert main(["data", "list", "--data-dir", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert f"mnist       {tmp_path}/mnist" in shown and f"cifar100    {tmp_path} " in shown


def test_where_data_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path))
    assert remote.data_directory("here").name == "here" and remote.data_directory() == tmp_path
    monkeypatch.delenv("CIRCUITSIM_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if os.name == "posix" and os.uname().sysname == "Linux":
        assert remote.data_directory() == tmp_path / "cache" / "circuitsim"
