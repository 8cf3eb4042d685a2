"""BAM-SIS-R for CP models, hand-written in vectorised NumPy: what a careful user would write.

Reads one token per line (three indices), runs a few times and prints the best time in seconds and ln p(sequence).
"""

import sys
import time

import numpy as np


def smc(tokens, sizes, rank, particles, a, rng):
    """ESS-triggered systematic resampling, one token order shared by all particles, no rejuvenation."""
    row = a / rank
    cells = [a / (rank * size) for size in sizes]
    component = np.zeros((particles, rank))
    tables = [np.zeros((size, particles, rank)) for size in sizes]
    weights = np.ones(particles)
    everyone = np.arange(particles)
    log = 0.0
    for placed, (i, j, k) in enumerate(tokens):
        theta = (
            (cells[0] + tables[0][i])
            * (cells[1] + tables[1][j])
            * (cells[2] + tables[2][k])
            / (row + component) ** 2
        )
        sums = np.cumsum(theta, axis=1)
        total = sums[:, -1]
        weights *= total / (a + placed)
        z = (sums < (rng.random(particles) * total)[:, None]).sum(axis=1)
        component[everyone, z] += 1
        tables[0][i, everyone, z] += 1
        tables[1][j, everyone, z] += 1
        tables[2][k, everyone, z] += 1
        weight_sum = weights.sum()
        if weight_sum**2 < 0.5 * particles * (weights**2).sum() and placed + 1 < len(tokens):
            log += np.log(weight_sum / particles)
            points = (np.arange(particles) + rng.random()) / particles * weight_sum
            ancestors = np.searchsorted(np.cumsum(weights), points)
            component = component[ancestors]
            tables = [table[:, ancestors] for table in tables]
            weights[:] = 1.0
        elif weight_sum < 1e-200:
            log += np.log(weight_sum)
            weights /= weight_sum
    return log + np.log(weights.mean())


def main():
    path, rank, particles, a, repeats = sys.argv[1], *map(int, sys.argv[2:4]), float(sys.argv[4]), int(sys.argv[5])
    with open(path) as lines:
        side, *rows = [tuple(map(int, line.split())) for line in lines]
    rng = np.random.default_rng(1)
    tokens = [rows[ix] for ix in rng.permutation(len(rows))]
    best, logs = float("inf"), []
    for _ in range(repeats):
        start = time.perf_counter()
        logs.append(smc(tokens, side, rank, particles, a, rng))
        best = min(best, time.perf_counter() - start)
    print(best, np.mean(logs), np.__version__)


if __name__ == "__main__":
    main()
