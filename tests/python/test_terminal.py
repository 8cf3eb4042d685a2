"""What a person sees on a terminal: a bar with the time left, and nothing of it in a file."""

import os
import pathlib
import pty
import shlex
import subprocess
import tempfile
import unittest

POLYURN = shlex.split(os.environ.get("POLYURN", "cargo run --quiet --package polyurn-cli --"))
DATA = pathlib.Path(__file__).parents[2] / "crates/polyurn-cli/src/demo_data/dilemmas.csv"


def seen_on_a_terminal(*words):
    """What a command writes to its standard error when that is a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([*POLYURN, *map(str, words)], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:
        # The other end is closed: the command is over.
        pass
    os.close(ours)
    assert child.wait() == 0, seen
    return seen.decode()


class Terminal(unittest.TestCase):
    def check(self, stage, *words):
        seen = seen_on_a_terminal(*words)
        self.assertIn(stage, seen)
        self.assertIn("% ", seen)
        self.assertIn(" left", seen)
        quiet = seen_on_a_terminal(*words, "--quiet")
        self.assertNotIn(" left", quiet)

    def test_particles(self):
        self.check("smc", "score", "--model", "lca(4)", "--data", DATA, "--method", "smc", "--particles", 400, "--runs", 16,
                   "--heat", 1, "--threads", 1, "--seed", 1)

    def test_a_curve(self):
        self.check("curve", "score", "--model", "lca(4)", "--data", DATA, "--method", "smc", "--particles", 400, "--runs", 4,
                   "--heat", 1, "--a", "0.5,1,2,4,8", "--seed", 1)

    def test_predicting(self):
        with tempfile.TemporaryDirectory() as folder:
            fit, people = pathlib.Path(folder) / "two.polyurn", pathlib.Path(folder) / "people.csv"
            subprocess.run([*POLYURN, "fit", "--model", "lca(2)", "--data", DATA, "--method", "vb", "-o", fit, "--quiet"],
                           check=True, stdout=subprocess.DEVNULL)
            # Seconds of work, on fast machines too.
            rows = "rule,rule,friend,rule\nfriend,rule,,friend\n" * 2_000_000
            people.write_text("passenger,critic,doctor,director\n" + rows)
            self.check("predicting", "predict", "--fit", fit, "--data", people, "--threads", 1)


if __name__ == "__main__":
    unittest.main()
