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

    def fit(n_iter, factor=1.0):
        model = NMF(RANK, solver="mu", beta_loss="kullback-leibler", init="custom", max_iter=n_iter, tol=0)
        start = time.perf_counter()
        model.fit_transform(x, W=w / factor, H=h * factor)
        seconds = time.perf_counter() - start
        return seconds, model.reconstruction_err_**2 / 2

    # The start has its scale in h. Multiplicative updates do not see where it is, but scikit-learn sets entries of h below
    # 2.2e-16 to zero, and entries that plain updates would raise again are lost. Times and divergences are of one start.
    scale_in_h = 1e60
    return {
        "seconds": min(fit(100, scale_in_h)[0] for _ in range(5)),
        "divergences": {n_iter: fit(n_iter, scale_in_h)[1] for n_iter in (1, 2, 5, 20, 50, 100)},
        "with_entries_lost": fit(100)[1],
        "plain": plain_updates(x.toarray(), w, h, 100),
        "version": "scikit-learn " + version("scikit-learn"),
    }


def dense(folder):
    """KL-NMF of a matrix without zeros, where its matrix products are dense."""
    from sklearn.decomposition import NMF

    rng = np.random.default_rng(3)
    x = 1 + rng.poisson(3, size=(1000, 800))
    write_counts(folder / "data.csv", ["row", "column"], x.nonzero(), x.ravel())
    w, h = 0.1 + rng.random((1000, RANK)), 0.1 + rng.random((RANK, 800))
    write_array(folder / "w.f64", w)
    write_array(folder / "h.f64", h)
    x, best = x.astype(float), np.inf
    for _ in range(5):
        model = NMF(RANK, solver="mu", beta_loss="kullback-leibler", init="custom", max_iter=100, tol=0)
        start = time.perf_counter()
        model.fit_transform(x, W=w.copy(), H=h.copy())
        best = min(best, time.perf_counter() - start)
    divergence = model.reconstruction_err_**2 / 2
    return {"seconds": best, "divergence": divergence, "version": "scikit-learn " + version("scikit-learn")}


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


def simulated_tensor(side, n_tokens):
    """Counts of a CP model of rank 10, with factor columns from a flat-tailed Dirichlet distribution."""
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.full(side, 0.1), size=10) for _ in range(3)]
    component = rng.integers(10, size=n_tokens)
    cells = np.zeros(n_tokens, dtype=np.int64)
    for factor in factors:
        values = np.empty(n_tokens, dtype=np.int64)
        for r in range(10):
            own = component == r
            values[own] = rng.choice(side, size=own.sum(), p=factor[r])
        cells = cells * side + values
    cells, counts = np.unique(cells, return_counts=True)
    return np.stack([cells // side**2, cells // side % side, cells % side], axis=1), counts


def divergence_of(factors, weights, indices, counts):
    fitted = np.ones((len(counts), 10)) * weights
    for mode, factor in enumerate(factors):
        fitted *= factor[indices[:, mode]]
    fitted = np.maximum(fitted.sum(axis=1), 1e-10)
    total = (weights * np.prod([factor.sum(axis=0) for factor in factors], axis=0)).sum()
    return float((counts * np.log(counts / fitted)).sum() - counts.sum() + total)


def poisson_cp(folder, side, n_tokens, algorithm, seconds):
    import pyttb

    indices, counts = simulated_tensor(side, n_tokens)
    write_counts(folder / "data.csv", ["i", "j", "k"], indices.T, counts)
    tensor = pyttb.sptensor(indices, counts[:, None].astype(float), (side,) * 3)
    rng = np.random.default_rng(2)
    start = [rng.random((side, 10)) for _ in range(3)]
    for name, factor in zip("ijk", start):
        write_array(folder / f"{name}.f64", factor)
    init = pyttb.ktensor([factor.copy() for factor in start], np.ones(10))
    began = time.perf_counter()
    model, _, output = pyttb.cp_apr(tensor, 10, algorithm=algorithm, init=init, stoptime=seconds, printitn=0)
    elapsed = time.perf_counter() - began
    return {
        "seconds": elapsed,
        "divergence": divergence_of(model.factor_matrices, model.weights, indices, counts),
        "outer": int(output["nTotalIters"]) if algorithm == "mu" else int(output.get("nTotalIters", 0)),
        "version": "pyttb " + version("pyttb"),
    }


def cp64(folder):
    """Poisson CP by projected damped Newton, to convergence."""
    return poisson_cp(folder, 64, 100_000, "pdnr", 60)


def cp1000(folder):
    """Poisson CP by multiplicative updates, half a minute of it."""
    return poisson_cp(folder, 1000, 1_000_000, "mu", 30)


def lca(folder):
    """Latent classes, one to ten of them, by EM."""
    from stepmix.stepmix import StepMix

    rng = np.random.default_rng(1)
    shares, tables = rng.dirichlet(np.full(6, 5.0)), rng.dirichlet(np.full(5, 0.7), size=(6, 7))
    classes = rng.choice(6, size=4177, p=shares)
    x = np.stack([[rng.choice(5, p=tables[c, item]) for item in range(7)] for c in classes])
    with open(folder / "data.csv", "w") as out:
        out.write(",".join("abdefgh") + "\n")
        out.writelines(",".join(map(str, row)) + "\n" for row in x)
    began, likelihoods, bics = time.perf_counter(), [], []
    for n_classes in range(1, 11):
        model = StepMix(n_classes, measurement="categorical", n_init=1, abs_tol=1e-6, max_iter=10_000, random_state=1,
                        verbose=0, progress_bar=0)
        model.fit(x)
        likelihoods.append(model.score(x) * len(x))
        bics.append(model.bic(x))
    seconds = time.perf_counter() - began
    # Longer, for a comparison of what both converge to.
    best = max(
        StepMix(6, measurement="categorical", n_init=1, abs_tol=1e-13, max_iter=100_000, random_state=seed, verbose=0,
                progress_bar=0).fit(x).score(x) * len(x)
        for seed in range(5)
    )
    return {
        "seconds": seconds,
        "likelihoods": likelihoods,
        "best_of_six": best,
        "chosen": int(np.argmin(bics)) + 1,
        "version": "stepmix " + version("stepmix"),
    }


if __name__ == "__main__":
    peers = {peer.__name__: peer for peer in (nmf, dense, lda, cp64, cp1000, lca)}
    print(json.dumps(peers[sys.argv[1]](Path(sys.argv[2]))))
