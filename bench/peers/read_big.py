"""Peers of reading large files, each in a process of its own: read_big.py PEER FILE. Prints seconds of the processor, what was found and the peak of memory."""

import json
import resource
import sys
import time
from importlib.metadata import version


def by_pandas(path):
    """Categories, the faster of the two ways for few labels, and the count of each distinct row."""
    import pandas as pd

    table = pd.read_csv(path, dtype="category")
    return len(table.groupby(list(table.columns), sort=False, observed=True).size())


def by_pandas_tns(path):
    """What most people do with a .tns file: a table of integers."""
    import pandas as pd

    return len(pd.read_csv(path, sep=" ", header=None, dtype="int64"))


def by_scipy(path):
    from scipy.io import mmread

    return int(mmread(path).nnz)


def by_pyttb(path):
    import pyttb

    return int(pyttb.import_data(path).nnz)


def main(peer, path):
    read, package = {
        "pandas": (by_pandas, "pandas"),
        "pandas-tns": (by_pandas_tns, "pandas"),
        "scipy": (by_scipy, "scipy"),
        "pyttb": (by_pyttb, "pyttb"),
    }[peer]
    __import__(package)
    start = time.process_time()
    n_found = read(path)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"version": f"{package} {version(package)}", "seconds": seconds, "found": n_found, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
