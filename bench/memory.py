"""Memory that the Python package adds while it takes up records: one kind of table, in this process.

Usage: memory.py KIND N_ROWS. Prints a JSON object with megabytes: of the table itself, the most that was added while it was read, and what is
held afterwards. Rows are distinct, but for the kinds `repeated` and `classes`; the latter is a fit of an estimator. Without arguments all kinds with ten million rows, each in a process of its own.
"""

import json
import subprocess
import sys
import warnings

KINDS = ["classes", "coo64", "coo32", "repeated", "csr", "full", "categories", "objects", "missing", "arrow", "dictionary"]
SIDE = 300


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def forget_peak():
    with open("/proc/self/clear_refs", "w") as out:
        out.write("5")


def columns(n_rows, dtype):
    """Three columns whose rows all differ: a walk through the cells of a cube that comes back to none."""
    import numpy as np

    cell = np.arange(n_rows, dtype=np.int64)
    cell *= 7_368_787
    cell %= SIDE**3
    made = []
    for _ in range(3):
        made.append((cell % SIDE).astype(dtype))
        cell //= SIDE
    return made


def table(kind, n_rows):
    """What is given, how it is read, and its bytes."""
    import numpy as np
    import polyurn

    if kind == "classes":
        # An estimator, of which a small fit is made before, so that what it imports and compiles is not counted.
        answers = np.stack([column % 3 for column in columns(n_rows, np.int8)], axis=1)
        fit = polyurn.LatentClass(2, random_state=1, n_init=1, max_iter=2).fit
        fit(answers[:1000])
        return lambda: fit(answers), answers.nbytes

    if kind in ("coo64", "coo32", "repeated"):
        dtype = np.int64 if kind == "coo64" else np.int32
        coords = columns(n_rows, dtype)
        if kind == "repeated":
            coords = [column % 10 for column in coords]
        values = np.ones(n_rows, dtype=np.int64)
        return lambda: polyurn.tensor(coords, values, (SIDE,) * 3), sum(c.nbytes for c in coords) + values.nbytes
    if kind == "csr":
        import scipy.sparse

        n_words = 5000
        starts = np.arange(0, n_rows + 1, 1000, dtype=np.int64)
        words = (np.arange(n_rows) % 1000 * 5).astype(np.int32)
        matrix = scipy.sparse.csr_array((np.ones(n_rows), words, starts), shape=(len(starts) - 1, n_words))
        held = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        return lambda: polyurn._data.as_dataset(matrix, fractions=False), held
    if kind == "full":
        array = np.ones((n_rows // 1000, 1000), dtype=np.int64)
        return lambda: polyurn._data.as_dataset(array, fractions=False), array.nbytes
    if kind in ("categories", "missing", "objects"):
        import pandas as pd

        codes = columns(n_rows, np.int16)
        if kind == "missing":
            codes.append(np.where(np.arange(n_rows) % 3 == 0, -1, codes[0]).astype(np.int16))
        labels = [f"v{value}" for value in range(SIDE)]
        if kind == "objects":
            names = np.array(labels, dtype=object)
            frame = pd.DataFrame({name: pd.Series(names[column], dtype=object) for name, column in zip("abcd", codes)})
        else:
            frame = pd.DataFrame({n: pd.Categorical.from_codes(c, categories=labels) for n, c in zip("abcd", codes)})
        return lambda: polyurn.records(frame), int(frame.memory_usage(index=False).sum())
    import pyarrow as pa

    labels = pa.array([f"v{value}" for value in range(SIDE)])
    arrays = [pa.DictionaryArray.from_arrays(pa.array(column), labels) for column in columns(n_rows, np.int32)]
    if kind == "arrow":
        arrays = [array.dictionary_decode() for array in arrays]
    held = pa.table(dict(zip("abc", arrays)))
    return lambda: polyurn.records(held), held.nbytes


def measure(kind, n_rows):
    read, own = table(kind, n_rows)
    before = status("VmRSS")
    forget_peak()
    data = read()
    if kind == "classes":
        data = data._data
    added, after = status("VmHWM") - before, status("VmRSS") - before
    assert len(data) == {"repeated": 1000, "classes": 27}.get(kind, n_rows), len(data)
    return {"table": own / 1e6, "added": added / 1e6, "held": after / 1e6}


if __name__ == "__main__":
    # A fit of two sweeps has not converged.
    warnings.simplefilter("ignore")
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        print("kind         table   added at most   held afterwards   (MB, ten million rows)")
        for kind in KINDS:
            done = subprocess.run([sys.executable, __file__, kind, "10000000"], stdout=subprocess.PIPE, check=True)
            found = json.loads(done.stdout)
            print(f"{kind:12} {found['table']:5.0f}   {found['added']:13.0f}   {found['held']:15.0f}")
