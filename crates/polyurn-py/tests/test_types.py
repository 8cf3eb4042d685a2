"""Types: those of the package are checked strictly, and stubs are those of the compiled module."""

import subprocess
import sys
from pathlib import Path

import polyurn

ROOT = Path(__file__).parents[3]
PACKAGE = Path(polyurn.__file__).parent


def run(*words):
    done = subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_has_sound_types(tmp_path):
    run("mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path, "-p", "polyurn")
    assert (PACKAGE / "py.typed").exists()


def test_stubs_are_those_of_the_compiled_module(tmp_path):
    run("mypy.stubtest", "polyurn._core", "--mypy-config-file", ROOT / "pyproject.toml")


def test_users_see_types(tmp_path):
    """What is wrong in a program of a user is found, and what is right passes."""
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport polyurn\n"
        "found: polyurn.Ranking = polyurn.select('lca(1..2)', np.ones((2, 2)))\n"
        "evidence: float = polyurn.Stream('a[2]', b=1.0).update({'a': ['x']}).log_evidence\n"
        "model: polyurn.AllocationModel = polyurn.LDA(20, random_state=1)\n"
    )
    run("mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path / "cache", program)
    program.write_text("import polyurn\npolyurn.LDA(20, max_iter='many')\n")
    done = subprocess.run([sys.executable, "-m", "mypy", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "max_iter" in done.stdout
