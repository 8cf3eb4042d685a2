"""Peers of reading a table: from a CSV file to how often each distinct row occurs.

Usage: read.py PEER FOLDER. Writes the files it read into FOLDER, so that both sides work on the same.
"""

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

# One thread, as on our side; it is read when polars is imported.
os.environ["POLARS_MAX_THREADS"] = "1"

import numpy as np

NAMES = list("abcde")
REPEATS = 3


def write(path, n_labels):
    """A million rows of five columns."""
    import pandas as pd

    rng = np.random.default_rng(1)
    labels = np.array([f"v{label}" for label in range(n_labels)])
    columns = {name: labels[rng.integers(n_labels, size=1_000_000)] for name in NAMES}
    pd.DataFrame(columns).to_csv(path, index=False)


def by_pandas(path, dtype):
    import pandas as pd

    return len(pd.read_csv(path, dtype=dtype).groupby(NAMES, sort=False, observed=True).size())


def by_polars(path, is_category):
    import polars as pl

    schema = dict.fromkeys(NAMES, pl.Categorical) if is_category else None
    return len(pl.read_csv(path, schema_overrides=schema).group_by(NAMES).len())


def best(count, path, kinds):
    """The shortest time, over types of columns."""
    seconds = np.inf
    for kind in kinds:
        for _ in range(REPEATS):
            start = time.perf_counter()
            n_distinct = count(path, kind)
            seconds = min(seconds, time.perf_counter() - start)
    return {"seconds": seconds, "n_distinct": n_distinct}


def main(peer, folder):
    count, kinds = {"pandas": (by_pandas, [None, "category"]), "polars": (by_polars, [False, True])}[peer]
    found = {"version": f"{peer} {version(peer)}"}
    for n_labels in (6, 40):
        path = folder / f"{n_labels}.csv"
        write(path, n_labels)
        found[str(n_labels)] = best(count, path, kinds)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
