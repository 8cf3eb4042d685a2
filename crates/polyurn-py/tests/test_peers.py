"""The same numbers as the tools people use now. A missing one is an error, not a reason to pass."""

import warnings

import numpy as np
import pandas as pd
import polyurn
import pyttb
import pytest
from pgmpy.estimators import BDeu
from pgmpy.models import DiscreteBayesianNetwork
from sklearn.decomposition import NMF
from stepmix.stepmix import StepMix

pytestmark = pytest.mark.filterwarnings("ignore")


def network(rng):
    """A random graph, and records that know nothing of it: the score is the same either way."""
    n_nodes = int(rng.integers(2, 6))
    names = [f"x{ix}" for ix in range(n_nodes)]
    sizes = rng.integers(2, 5, size=n_nodes)
    graph = DiscreteBayesianNetwork()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for j in range(n_nodes) for i in range(j) if rng.random() < 0.5)
    n_rows = int(rng.integers(5, 300))
    values = {name: rng.integers(size, size=n_rows) for name, size in zip(names, sizes)}
    states = {name: list(range(size)) for name, size in zip(names, sizes)}
    return graph, pd.DataFrame(values), dict(zip(names, map(int, sizes))), states


def test_bdeu_of_a_hundred_networks_is_pgmpys():
    rng = np.random.default_rng(1)
    for _ in range(100):
        graph, frame, sizes, states = network(rng)
        size = float(rng.choice([0.1, 1.0, 10.0]))
        theirs = BDeu(frame, equivalent_sample_size=size, state_names=states).score(graph)
        ours = polyurn.score(polyurn.models.from_pgmpy(graph, sizes=sizes), frame, a=size)
        assert ours.bound == "exact"
        assert ours.log_p_sequence == pytest.approx(theirs, rel=1e-9, abs=1e-9)


def test_latent_nodes_of_a_network_are_hidden():
    graph = DiscreteBayesianNetwork([("h", "x"), ("h", "y")], latents={"h"})
    table = {"x": [0, 1, 1, 0], "y": [0, 1, 1, 1]}
    expected = polyurn.score("h[2] -> x y", table).log_evidence
    assert polyurn.score(polyurn.models.from_pgmpy(graph, sizes={"h": 2}), table).log_evidence == expected
    with pytest.raises(ValueError, match="needs a size"):
        polyurn.models.from_pgmpy(graph)


def test_matrix_factors_are_updated_as_by_scikit_learns_mu():
    rng = np.random.default_rng(2)
    X = rng.poisson(3, size=(15, 12)).astype(float)
    W, H = rng.random((15, 4)) + 0.1, rng.random((4, 12)) + 0.1
    theirs = NMF(4, solver="mu", beta_loss="kullback-leibler", init="custom", max_iter=50, tol=0)
    their_W = theirs.fit_transform(X, W=W.copy(), H=H.copy())
    weights = W.sum(axis=0) * H.sum(axis=1)
    init = {"k": weights / weights.sum(), "row": (W / W.sum(axis=0)).T, "column": H / H.sum(axis=1, keepdims=True)}
    ours = polyurn.fit("k[4] -> row column", X, method="em", prior="none", init=init, max_iter=50, tol=0)
    core, factors = ours.factors()
    expected = polyurn.metrics.reconstruct(core, [factors["row"], factors["column"]])
    np.testing.assert_allclose(expected, their_W @ theirs.components_, rtol=1e-6)
    divergence = polyurn.metrics.kl_divergence(X, their_W @ theirs.components_)
    assert ours.kl_divergence == pytest.approx(divergence, rel=1e-6)


def test_tensor_factors_are_updated_as_by_pyttbs_mu():
    rng = np.random.default_rng(3)
    X = rng.poisson(2, size=(6, 5, 4)).astype(float)
    start = [rng.random((size, 3)) + 0.1 for size in X.shape]
    init = pyttb.ktensor([factor.copy() for factor in start], np.ones(3))
    theirs, _, _ = pyttb.cp_apr(
        *(pyttb.tensor(X), 3), init=init, algorithm="mu", maxiters=50, maxinneriters=1, stoptol=0.0, printitn=0
    )
    weights = np.prod([factor.sum(axis=0) for factor in start], axis=0)
    names = ["i", "j", "k"]
    tables = {name: (factor / factor.sum(axis=0)).T for name, factor in zip(names, start)}
    tables["r"] = weights / weights.sum()
    ours = polyurn.fit("r[3] -> i j k", X, method="em", prior="none", init=tables, max_iter=50, tol=0)
    core, factors = ours.factors()
    expected = polyurn.metrics.reconstruct(core, [factors[name] for name in names])
    np.testing.assert_allclose(expected, theirs.full().double(), rtol=1e-6)


@pytest.mark.parametrize("measurement", ["categorical", "categorical_nan"])
def test_latent_classes_reach_the_likelihood_of_stepmix(measurement):
    """With missing answers too: rows count by what they show."""
    rng = np.random.default_rng(4)
    truth = rng.integers(3, size=500)
    tables = rng.dirichlet(np.full(3, 0.4), size=(3, 5))
    X = np.stack([[rng.choice(3, p=tables[c, item]) for item in range(5)] for c in truth])
    if measurement == "categorical_nan":
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = StepMix(
            *(3,), measurement=measurement, n_init=10, abs_tol=1e-12, rel_tol=1e-14, max_iter=5000, random_state=1,
            verbose=0, progress_bar=0,
        ).fit(X)
    ours = polyurn.LatentClass(3, method="em", prior="none", n_init=10, tol=1e-14, max_iter=5000, random_state=1).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-8)
    assert ours.log_likelihood_ == pytest.approx(500 * theirs.score(X), rel=1e-8)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-8)
