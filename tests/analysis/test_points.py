"""Sweeps and samples on processes, threads and a Dask cluster: the same bytes, workers killed half way, checkpoints."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.errors import UsageError, WorkerError
from circuitsim.netlist import load, loads
from circuitsim.points import Journal, cluster, computed

CLIPPER = """clipper
.param k=1
V1 in 0 3
R1 in out {k*1k}
R2 out 0 2k
D1 out x
R3 x y 100
V2 y 0 1.5
"""
VARY: dict[Any, Any] = {"V1": np.linspace(-1.0, 5.0, 201).tolist(), "k": [1.0, 2.0]}
NETLISTS = Path(__file__).resolve().parents[2] / "netlists"


def swept(**how: Any) -> str:
    return json.dumps(circuitsim.sweep(loads(CLIPPER), VARY, "v(out) i(D1)", **how).to_dict())


def sampled(**how: Any) -> str:
    deck = loads(CLIPPER)
    return json.dumps(circuitsim.montecarlo(deck, ["R*=5%"], "v(out) i(D1)", 60_000, seed=5, **how).to_dict())


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    # Otherwise it sets variables for the memory allocator in the environment of this process.
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": {}}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path_factory.mktemp("dask")
        ) as local,
    ):
        yield local


def test_a_sweep_has_the_same_bytes_on_processes_threads_and_a_cluster(machines: Any) -> None:
    expected = swept()
    assert swept(workers=2) == expected
    with ThreadPoolExecutor(3) as threads:
        assert swept(executor=threads) == expected
    with cluster(machines.scheduler_address) as (executor, count):
        assert count == 2
        assert swept(executor=executor) == expected


def test_the_samples_of_a_killed_worker_are_drawn_elsewhere(machines: Any) -> None:
    expected = sampled(workers=1)
    killed = []

    def kill(done: int, samples: int) -> None:
        if not killed:
            killed.append(next(iter(machines.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with cluster(machines.scheduler_address) as (executor, count):
        assert sampled(workers=count, executor=executor, progress=kill) == expected
    assert killed


def test_the_command_line_finds_the_cluster(machines: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.cir").write_text(CLIPPER)
    words = ["sweep", str(tmp_path / "c.cir"), "--vary", "V1=0:5:0.1"]
    assert main(words) == 0
    expected = capsys.readouterr().out
    assert main([*words, "--dask", machines.scheduler_address]) == 0
    assert capsys.readouterr().out == expected
    assert main([*words, "--dask", "tcp://127.0.0.1:9", "--workers", "2"]) == 2
    assert "give one of them" in capsys.readouterr().err
    assert main([*words, "--dask", "nowhere://x"]) == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err


def die_at(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def test_a_killed_process_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    journal: Journal[int] = Journal(tmp_path / "kept", "squares", lambda n: {"n": np.array(n)}, lambda a: int(a["n"]))
    assert list(computed(die_at, range(3), journal=journal)) == [0, 1, 4]
    found: list[int] = []
    with pytest.raises(WorkerError, match="repeat the command"):
        found.extend(computed(die_at, range(9), 2, journal=journal))
    assert found[:3] == [0, 1, 4]
    with pytest.raises(WorkerError, match="start again"):
        list(computed(die_at, range(9), 2))


def written(folder: Path) -> dict[str, int]:
    """When each finished block was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npz")}


def stop_half_way(done: int, points: int) -> None:
    if done > points // 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize("run", [swept, sampled])
def test_a_run_goes_on_after_its_finished_blocks(run: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=folder, progress=stop_half_way)
    there, expected = written(folder), run()
    assert there and run(checkpoint=folder) == expected
    whole = written(folder)
    assert there.items() < whole.items()
    assert run(checkpoint=folder, workers=2) == expected and written(folder) == whole


def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    """`kill -9` in the middle, then the same command in another process: its digest of the run is the same."""
    (tmp_path / "c.cir").write_text(CLIPPER)
    words = [sys.executable, "-m", "circuitsim", "sweep", "c.cir", "--vary", "V1=0:5:0.02", "--vary", "k=1:3:0.5"]
    kept = tmp_path / "kept"
    with subprocess.Popen([*words, "--checkpoint", "kept"], cwd=tmp_path, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None and not (kept / "00000003.npz").exists():
            pass
        run.kill()
    there = written(kept)
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    again = subprocess.run([*words, "--checkpoint", "kept"], cwd=tmp_path, env=environment, capture_output=True)
    plain = subprocess.run(words, cwd=tmp_path, capture_output=True)
    assert again.returncode == plain.returncode == 0 and again.stdout == plain.stdout
    assert len(there) >= 4 and there.items() <= written(kept).items()


def test_folders_of_other_runs_are_refused(tmp_path: Path) -> None:
    swept(checkpoint=tmp_path / "kept")
    with pytest.raises(UsageError, match="another run"):
        sampled(checkpoint=tmp_path / "kept")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="other content"):
        swept(checkpoint=tmp_path / "mine")
    (tmp_path / "kept" / "run.json").write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        swept(checkpoint=tmp_path / "kept")


def test_rows_that_follow_a_branch_stay_in_one_task() -> None:
    deck = load(NETLISTS / "schmitt-trigger.cir")
    up = [k / 5.0 - 10.0 for k in range(101)]
    values: dict[Any, Any] = {"V1": up + up[::-1]}
    expected = json.dumps(circuitsim.sweep(deck, values, "v(out)").to_dict())
    assert json.dumps(circuitsim.sweep(deck, values, "v(out)", workers=2).to_dict()) == expected
    assert expected.count("jumps there") == 2


def test_failures_and_warnings_of_blocks(tmp_path: Path) -> None:
    deck = circuitsim.loads("two sources\nV1 a 0 1\nV2 a 0 1\nR1 a 0 1k\nR2 y z 1\n")
    values: dict[Any, Any] = {"V1": [1.0, 2.0] * 40}
    expected = json.dumps(circuitsim.sweep(deck, values).to_dict())
    assert expected.count('"row"') == 40 and '"warnings": [{' in expected
    for _ in range(2):
        again = circuitsim.sweep(deck, values, workers=2, checkpoint=tmp_path / "kept")
        assert json.dumps(again.to_dict()) == expected
