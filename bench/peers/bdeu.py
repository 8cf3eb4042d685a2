"""pgmpy's BDeu scores of fully observed networks: times and numbers, one JSON object a call.

Usage: bdeu.py PART FOLDER. Writes the data it used into FOLDER, so that both sides work on the same.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
NAMES = list("abcdefg")
VERSION = "pgmpy " + version("pgmpy")


def draw(rng, order, parents, sizes, n_rows):
    """Rows from a network with random tables."""
    values = {}
    for child in order:
        row = np.zeros(n_rows, dtype=np.int64)
        for parent in parents[child]:
            row = row * sizes[parent] + values[parent]
        n_table_rows = int(np.prod([sizes[parent] for parent in parents[child]]))
        table = rng.dirichlet(np.full(sizes[child], 0.7), size=n_table_rows).cumsum(axis=1)
        values[child] = (rng.random(n_rows)[:, None] > table[row][:, :-1]).sum(axis=1)
    return pd.DataFrame({NAMES[node]: values[node] for node in range(len(NAMES))})


def network(parents):
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from(NAMES)
    model.add_edges_from((NAMES[parent], NAMES[child]) for child in range(len(NAMES)) for parent in parents[child])
    return model


def scorers(data, size, state_names):
    """The score as both its homes in pgmpy offer it, each without what it remembers of earlier calls."""
    from pgmpy import estimators

    old = estimators.BDeu(data, equivalent_sample_size=size, state_names=state_names)
    yield old.score
    try:
        from pgmpy.structure_score import BDeu
    except ImportError:
        return
    new = BDeu(data, equivalent_sample_size=size, state_names=state_names)

    def score(model):
        new._cached_local_score.cache_clear()
        return new.score(model)

    yield score


def time_one(folder):
    """The shortest time of one score, over both homes and over numbers and categories as the type of the columns."""
    parents = [[], [0], [0], [0, 1], [2, 3], [3, 4], [1, 5]]
    sizes = [5] * 7
    data = draw(np.random.default_rng(1), range(7), parents, sizes, 4177)
    data.to_csv(folder / "data.csv", index=False)
    model, best = network(parents), np.inf
    for frame in (data, data.astype("category")):
        for score in scorers(frame, 10, {name: list(range(5)) for name in NAMES}):
            for _ in range(30):
                start = time.perf_counter()
                value = score(model)
                best = min(best, time.perf_counter() - start)
    # In a search the same families come again and again, and it knows their scores.
    from pgmpy.structure_score import BDeu

    search, remembered = BDeu(data, equivalent_sample_size=10), np.inf
    for _ in range(100):
        start = time.perf_counter()
        search.score(model)
        remembered = min(remembered, time.perf_counter() - start)
    found = {"seconds": best, "seconds_remembered": remembered, "version": VERSION}
    return {**found, "parents": parents, "sizes": sizes, "a": 10, "score": value}


def agree(folder):
    """Scores of 50 random networks."""
    networks = []
    for ix in range(50):
        rng = np.random.default_rng(ix)
        order = rng.permutation(7).tolist()
        parents = [[] for _ in range(7)]
        for at, child in enumerate(order):
            parents[child] = sorted(parent for parent in order[:at] if rng.random() < 0.4)[:4]
        sizes = rng.integers(2, 7, size=7).tolist()
        data = draw(rng, order, parents, sizes, int(rng.integers(300, 3001)))
        data.to_csv(folder / f"{ix}.csv", index=False)
        a = float(rng.choice([0.5, 1.0, 10.0, 100.0]))
        states = {name: list(range(size)) for name, size in zip(NAMES, sizes)}
        scores = [float(score(network(parents))) for score in scorers(data, a, states)]
        networks.append({"parents": parents, "sizes": sizes, "a": a, "scores": scores})
    return {"networks": networks, "version": VERSION}


if __name__ == "__main__":
    parts = {"time": time_one, "agree": agree}
    print(json.dumps(parts[sys.argv[1]](Path(sys.argv[2]))))
