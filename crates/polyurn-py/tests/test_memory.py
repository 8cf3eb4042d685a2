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

# Bytes a row while rows are merged: codes of 2 bytes in each column, a count of 1, and the index, whose 2^22 places take 5 bytes each.
COUNT, INDEX = 1, 5 * 2**22 / N_ROWS
# What must not be exceeded, and bytes a row of the table itself. A copy of the table, or of codes in 8 bytes, goes beyond.
MERGED = 3 * 2 + COUNT + INDEX
KINDS = {
    # An estimator: codes of one byte a column, the same as the fit has them, and labels of 8 bytes.
    "classes": (3 + 3 + 8, 3),
    # Coordinates and counts are read where they are.
    "coo64": (MERGED, 32),
    "coo32": (MERGED, 20),
    # Equal rows are merged as they come.
    "repeated": (0, 20),
    # The rows are written out, in two bytes. Sorted cells need no index; at the end codes of four bytes stand beside those of two.
    "csr": (2 + 2 * 4 + 2 + COUNT, 16),
    "full": (2 * 4 + 2 + COUNT, 8),
    # Codes of categories are read where they are.
    "categories": (MERGED, 6),
    "missing": (MERGED + 2, 8),
    # Codes are made, of two bytes a column; wider ones are gone by the time that there is an index.
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
