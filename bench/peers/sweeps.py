"""Peers of the engines that sweep: times and what they reach, one JSON object a call.

Usage: sweeps.py PEER FOLDER. Writes the data and starts it used into FOLDER, so that both sides work on the same.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
RANK = 20


def reuters():
    import lda.datasets

    return lda.datasets.load_reuters()


def write_counts(path, columns, indices, counts):
    with open(path, "w") as out:
        out.write(",".join(columns) + ",count\n")
        for row, count in zip(zip(*indices), counts):
            out.write(",".join(map(str, row)) + f",{int(count)}\n")


def write_array(path, array):
    np.asarray(array, dtype="<f8").tofile(path)


def nmf(folder):
    """KL-NMF by multiplicative updates, from a random start that is written down."""
    from scipy import sparse
    from sklearn.decomposition import NMF

    x = reuters()
    write_counts(folder / "data.csv", ["row", "column"], x.nonzero(), x[x.nonzero()])
    rng = np.random.default_rng(1)
    scale = np.sqrt(x.mean() / RANK)
    w, h = scale * rng.random((x.shape[0], RANK)), scale * rng.random((RANK, x.shape[1]))
    write_array(folder / "w.f64", w)
    write_array(folder / "h.f64", h)
    x = sparse.csr_matrix(x.astype(float))

    def fit(n_iter):
        model = NMF(RANK, solver="mu", beta_loss="kullback-leibler", init="custom", max_iter=n_iter, tol=0)
        start = time.perf_counter()
        model.fit_transform(x, W=w.copy(), H=h.copy())
        seconds = time.perf_counter() - start
        return seconds, model.reconstruction_err_**2 / 2

    divergences = {n_iter: fit(n_iter)[1] for n_iter in (1, 2, 5, 20, 50)}
    times = [fit(100) for _ in range(3)]
    divergences[100] = times[0][1]
    return {
        "seconds": min(t for t, _ in times),
        "divergences": divergences,
        "plain": plain_updates(x.toarray(), w, h, 100),
        "version": "scikit-learn " + version("scikit-learn"),
    }


def plain_updates(x, w, h, n_iter):
    """The divergence after each multiplicative update of w and h, written out: nothing is set to zero on the way."""
    from scipy.special import xlogy

    w, h, divergences = w.copy(), h.copy(), []
    for _ in range(n_iter):
        w *= ((x / (w @ h)) @ h.T) / h.sum(axis=1)
        h *= (w.T @ (x / (w @ h))) / w.sum(axis=0)[:, None]
        fitted = w @ h
        divergences.append((xlogy(x, x / fitted) - x + fitted).sum())
    return divergences


def lda(folder):
    """LDA by batch VB; the bound is that of the whole corpus."""
    from scipy import sparse
    from sklearn.decomposition import LatentDirichletAllocation

    x = reuters()
    write_counts(folder / "data.csv", ["doc", "word"], x.nonzero(), x[x.nonzero()])
    x = sparse.csr_matrix(x.astype(float))
    model = LatentDirichletAllocation(
        RANK, doc_topic_prior=0.1, topic_word_prior=0.01, learning_method="batch", max_iter=100, random_state=1,
        evaluate_every=-1,
    )
    start = time.perf_counter()
    model.fit(x)
    seconds = time.perf_counter() - start
    doc_topic, _ = model._e_step(x, cal_sstats=False, random_init=False)
    bound = model._approx_bound(x, doc_topic, sub_sampling=False)
    write_array(folder / "gamma.f64", doc_topic)
    write_array(folder / "lambda.f64", model.components_)
    return {"seconds": seconds, "bound": bound, "version": "scikit-learn " + version("scikit-learn")}


if __name__ == "__main__":
    peers = {peer.__name__: peer for peer in (nmf, lda)}
    print(json.dumps(peers[sys.argv[1]](Path(sys.argv[2]))))
