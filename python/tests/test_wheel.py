"""The wheel in a virtual environment that has nothing else: no PyTorch, no libraries beside the system's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tidemark

CHECK = """
import tidemark
b = tidemark.ProgramBuilder("p")
t = b.tensor("t", 64)
b.op("make", [], [t], cost_ns=1000)
b.keep(t)
print(tidemark.__version__, tidemark.Plan.create(b.finish(), tidemark.Machine("a100"), policy="liveness").arena_bytes)
"""
WANTED = re.compile(r"NEEDED.*\[(?!(?:libc|libm|libpthread|libdl|librt|ld-linux[\w-]*)\.so)(.*)\]")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_in_a_clean_environment(tmp_path):
    root = Path(__file__).parents[2]
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", tmp_path, root)
    (wheel,) = tmp_path.glob("*.whl")
    assert "-py3-none-" in wheel.name
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "-q", "--disable-pip-version-check", "install", wheel)
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    assert run(python, "-c", CHECK, cwd=tmp_path, env=clean).split() == [tidemark.__version__, "64"]
    assert f"tidemark {tidemark.__version__}" in run(python, "-m", "tidemark", "--version", cwd=tmp_path, env=clean)
    assert "arena" in run(python, "-m", "tidemark", "plan", "lenet", "--machine", "a100", cwd=tmp_path, env=clean)
    assert "torch" not in run(python, "-m", "pip", "list", env=clean)


def test_the_library_needs_the_system_alone():
    folder = Path(os.environ.get("TIDEMARK_LIBRARY", Path(tidemark.__file__).parent / "lib" / "libtidemark.so")).parent
    if folder != Path(tidemark.__file__).parent / "lib":
        pytest.skip("another library than the package's is in use")
    for file in (*folder.glob("*.so"), folder.parent / "bin" / "tidemark"):
        others = WANTED.findall(run("readelf", "-d", file))
        assert [name for name in others if not name.startswith("libtidemark")] == [], file
