"""What the tests of the package share."""

import json
import os
import shlex
import subprocess

import numpy as np
import pytest


@pytest.fixture(scope="session")
def command():
    """The command line as a function: words in, what it printed with ``--json`` out."""
    program = os.environ.get("POLYURN")
    if program is None:
        pytest.fail("POLYURN must name the command line's program; run these tests by `make test-python`")

    def run(*words):
        done = subprocess.run([*shlex.split(program), *map(str, words), "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def survey():
    """Answers of two kinds of people, as a mapping of columns."""
    rng = np.random.default_rng(5)
    kinds = rng.integers(2, size=60)
    tables = np.array([[0.9, 0.2], [0.8, 0.3], [0.85, 0.1]])
    answers = rng.random((60, 3)) < tables[:, kinds].T
    return {name: np.where(answers[:, ix], "yes", "no") for ix, name in enumerate(["a", "b", "c"])}


@pytest.fixture
def matrix():
    """Counts of 12 documents and 8 words, of two topics."""
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(8, 0.5), size=2)
    shares = rng.dirichlet(np.full(2, 0.5), size=12)
    return rng.poisson(20 * shares @ topics)
