"""Records are taken up without copies of their table.

Each kind of table is read in a process of its own, by the program that measures ten million rows (``bench/memory.py``).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "bench" / "memory.py"
N_ROWS = 2_000_000

# Bytes a row while rows are merged: codes of 2 bytes in each column, and the index: a bit for each of 2^27 cells, which have 9 bits of
# each of three columns. With a fourth column that is too much, and there are 2^22 places of 5 bytes. Counts of one take nothing.
BITS, HASHES = 2**27 / 8 / N_ROWS, 5 * 2**22 / N_ROWS
# What must not be exceeded, and bytes a row of the table itself. A copy of the table, or of codes in 4 or 8 bytes, goes beyond.
MERGED = 3 * 2 + BITS
KINDS = {
    # An estimator: labels of 8 bytes. Answers are read where they are.
    "classes": (8, 3),
    # Coordinates and counts are read where they are.
    "coo64": (MERGED, 32),
    "coo32": (MERGED, 20),
    # Equal rows are merged as they come.
    "repeated": (0, 20),
    # The rows are written out, in two bytes. Sorted cells need no index.
    "csr": (2 + 2 * 2, 16),
    "full": (2 * 2, 8),
    # Codes of categories are read where they are.
    "categories": (MERGED, 6),
    "missing": (4 * 2 + HASHES, 8),
    # Codes are made, of two bytes a column; wider ones are gone by the time that there is an index, or never there for all rows.
    "objects": (MERGED + 6, 24),
    "arrow": (MERGED + 6, 23),
    "dictionary": (MERGED + 6, 12),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_not_copied(kind):
    # So that the allocator gives back at once what was freed, as it does with larger blocks anyway.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
    done = subprocess.run([sys.executable, PROGRAM, kind, str(N_ROWS)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected, own = KINDS[kind]
    assert found["table"] * 1e6 / N_ROWS == pytest.approx(own, rel=0.05)
    # A tenth, and 8 MB for modules that are imported meanwhile. Columns of 8 bytes would take 16 MB each.
    assert found["added"] < 1.1 * expected * N_ROWS / 1e6 + 8, found
