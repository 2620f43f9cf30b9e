"""Checkpoints, history, the run's directory and the progress line."""

import io
import json
import math
import signal
import subprocess
import sys

import numpy as np
import pytest

from circuitsim._files import atomic_write, remove_abandoned
from circuitsim.errors import UsageError
from circuitsim.training import CheckpointError, History, ProgressLine, RunDirectory, load_checkpoint, save_checkpoint


def test_checkpoint_keeps_every_bit(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "a/b c": np.asfortranarray(rng.standard_normal((3, 4)).astype(np.float32)),
        "empty": np.zeros((0, 2)),
        "scalar": np.array(7, dtype=np.int64),
        "odd": np.array([np.nan, -0.0, np.inf, 5e-324]),
    }
    facts = {"rng": rng.bit_generator.state, "third": 1 / 3}
    save_checkpoint(tmp_path / "c.npz", arrays, facts)
    found, told = load_checkpoint(tmp_path / "c.npz")
    assert told == facts
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
    assert [p.name for p in tmp_path.iterdir()] == ["c.npz"]


def test_every_damaged_byte_and_every_cut_is_noticed(tmp_path):
    path = tmp_path / "c.npz"
    save_checkpoint(path, {"w": np.arange(40.0)}, {"x": 1})
    whole = path.read_bytes()
    # A byte in the middle of the data, and files cut at several lengths.
    at = whole.index(np.arange(40.0).tobytes()) + 100
    for broken in [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
        *(whole[:n] for n in (0, 10, len(whole) // 2, -1)),
    ]:
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match=r"^the checkpoint .*c\.npz is damaged and cannot be read \("):
            load_checkpoint(path)


def test_foreign_files_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"^there is no checkpoint at .*absent\.npz$"):
        load_checkpoint(tmp_path / "absent.npz")
    np.savez(tmp_path / "other.npz", w=np.ones(2))
    with pytest.raises(CheckpointError, match="is damaged and cannot be read"):
        load_checkpoint(tmp_path / "other.npz")
    np.savez(tmp_path / "future.npz", __json__=np.frombuffer(b'{"format": 99}', np.uint8))
    with pytest.raises(CheckpointError, match=r"future\.npz has format 99; this version reads format 1$"):
        load_checkpoint(tmp_path / "future.npz")


def test_pickled_objects_are_neither_written_nor_read(tmp_path):
    with pytest.raises(CheckpointError, match="array 'o' holds Python objects, which a checkpoint does not store"):
        save_checkpoint(tmp_path / "c.npz", {"o": np.array([{}], dtype=object)}, {})
    np.savez(tmp_path / "evil.npz", __json__=np.array([{"format": 1}], dtype=object))
    with pytest.raises(CheckpointError, match="is damaged and cannot be read"):
        load_checkpoint(tmp_path / "evil.npz")


def test_a_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "f"
    atomic_write(path, b"old")
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom circuitsim._files import atomic_file\n"
        "with atomic_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half of something lon')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 2
    (tmp_path / ".mine.part").write_bytes(b"not a temporary file of this package")
    remove_abandoned(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".mine.part", "f"]


def test_a_resumed_run_removes_what_a_killed_one_left(tmp_path):
    run = RunDirectory(tmp_path)
    run.create({})
    left = tmp_path / ".checkpoint.npz.0123456789abcdef.part"
    left.write_bytes(b"half")
    run.update({})
    assert not left.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of a file's size")
def test_where_nothing_more_can_be_written_the_file_is_named(tmp_path):
    from resource import RLIMIT_FSIZE, getrlimit, setrlimit

    kept = getrlimit(RLIMIT_FSIZE)
    for name, write in {
        "f": lambda: atomic_write(tmp_path / "f", b"x"),
        "c": lambda: save_checkpoint(tmp_path / "c", {"x": np.ones(3)}, {}),
        "history.jsonl": lambda: History(tmp_path).append({"loss": 1.0}),
    }.items():
        setrlimit(RLIMIT_FSIZE, (0, kept[1]))
        try:
            with pytest.raises(OSError) as caught:
                write()
        finally:
            setrlimit(RLIMIT_FSIZE, kept)
        assert caught.value.filename == str(tmp_path / name) and not (tmp_path / "f").exists()


def test_history_on_disk(tmp_path):
    history = History(tmp_path)
    history.append({"epoch": 1, "loss": 0.1, "flag": True})
    history.append({"epoch": 2, "loss": math.nan, "flag": False})
    assert (tmp_path / "history.csv").read_text() == "epoch,loss,flag\n1,0.1,True\n2,,False\n"
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines][1] == {"epoch": 2, "loss": None, "flag": False}
    assert history.column("epoch") == [1, 2]
    # What a crash left behind after the checkpoint gives way to the rows of the checkpoint.
    with open(tmp_path / "history.jsonl", "a") as file:
        file.write('{"epoch": 3, "lo')
    again = History(tmp_path)
    again.restart(history.rows[:1])
    assert (tmp_path / "history.jsonl").read_text() == '{"epoch": 1, "loss": 0.1, "flag": true}\n'
    again.append({"epoch": 2, "loss": 7.0, "flag": False})
    assert (tmp_path / "history.csv").read_text() == "epoch,loss,flag\n1,0.1,True\n2,7.0,False\n"


def test_history_keeps_its_columns():
    history = History()
    history.append({"a": 1})
    with pytest.raises(UsageError, match=r"^the history's columns are \['a'\], a new row has \['b'\]$"):
        history.append({"b": 1})


def test_run_directory(tmp_path):
    run = RunDirectory(tmp_path / "deep" / "run")
    run.create({"lr": 0.1, "name": None})
    assert run.options() == {"lr": 0.1, "name": None}
    recorded = json.loads(run.config.read_text())
    assert {"circuitsim", "python", "numpy", "numba"} <= set(recorded["versions"])
    with pytest.raises(
        UsageError, match=r"already holds a run; continue it with circuitsim train resume --out .*, or choose another"
    ):
        run.create({})
    with pytest.raises(UsageError, match=r"^there is no run in .*nowhere \(no config\.json\)$"):
        RunDirectory(tmp_path / "nowhere").options()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"^cannot make the directory .*file/run: Not a directory$"):
        RunDirectory(tmp_path / "file" / "run").create({})
    for text in ("{", "{}", '{"options": 3}'):
        run.config.write_text(text)
        with pytest.raises(UsageError, match=r"config\.json is damaged and cannot be read \("):
            run.options()


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_tells_the_time_left_and_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream, now = _Terminal(), [0.0]
    line = ProgressLine(stream, "training", clock=lambda: now[0])
    for time, done, note in (
        (0.0, 0.5, ""),  # a resumed run begins in the middle
        (100.0, 0.6, "loss 3" + "x" * 99),
        (100.1, 0.61, "too soon to be drawn"),
        (20_000.0, 0.7, ""),  # 0.2 in 20,000 s leaves 0.3: 30,000 s
    ):
        now[0] = time
        line.update(done, note)
    line.close()
    drawn = "\rtraining  50.0 %  ", "\rtraining  60.0 %  0:06:40 left  loss 3x", "\rtraining  70.0 %  8:20:00 left"
    assert [part.strip() for part in stream.getvalue().split("\r")[1:]] == [part.strip() for part in drawn]


def test_progress_without_a_terminal_is_a_line_now_and_then():
    stream, now = io.StringIO(), [0.0]
    line = ProgressLine(stream, "training", clock=lambda: now[0])
    for second in range(0, 200, 10):
        now[0] = float(second)
        line.update(second / 200, f"step {second}")
    line.update(1.0, "the end is no reason for a line")
    line.close()
    assert stream.getvalue().splitlines() == [
        f"training  {second / 2:.1f} %  {left} left  step {second}"
        for second, left in ((60, "0:02:20"), (120, "0:01:20"), (180, "0:00:20"))
    ]
