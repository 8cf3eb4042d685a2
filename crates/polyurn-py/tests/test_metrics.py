"""Numbers that can be worked out by hand."""

import numpy as np
import polyurn
import pytest
import scipy.sparse
import sparse
from polyurn import metrics


def test_divergence_is_zero_for_the_same_and_known_for_others():
    X = np.array([[2.0, 0.0], [1.0, 3.0]])
    assert metrics.kl_divergence(X, X) == 0.0
    assert metrics.kl_divergence([2.0, 0.0], [1.0, 0.5]) == pytest.approx(2 * np.log(2) - 2 + 1 + 0.5)
    assert metrics.kl_divergence([1.0], [0.0]) == np.inf
    with pytest.raises(ValueError, match="negative"):
        metrics.kl_divergence([-1.0], [1.0])
    with pytest.raises(ValueError, match="shapes differ"):
        metrics.kl_divergence([1.0], [1.0, 2.0])


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_matrix, sparse.COO, sparse.GCXS])
def test_sparse_data_can_be_compared_as_they_are(kind):
    X, Y = np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([[1.0, 0.5], [1.0, 2.5]])
    assert metrics.kl_divergence(kind(X), Y) == metrics.kl_divergence(X, Y)
    assert metrics.frobenius(kind(X), Y) == metrics.frobenius(X, Y)


def test_divergence_is_that_of_the_library():
    X = np.random.default_rng(0).poisson(4, size=(5, 6))
    fit = polyurn.fit("k[2] -> i j", X, method="em", prior="none", random_state=1)
    core, factors = fit.factors()
    expected = metrics.reconstruct(core, [factors["i"], factors["j"]])
    assert metrics.kl_divergence(X, expected) == pytest.approx(fit.kl_divergence, rel=1e-10)
    assert metrics.frobenius(X, expected) == pytest.approx(np.linalg.norm(X - expected))


def test_sparsity_runs_from_none_to_all():
    assert metrics.hoyer(np.ones((3, 4))) == pytest.approx(0.0)
    assert metrics.hoyer([[0, 0], [0, 5]]) == 1.0
    # n = 4, |x|_1 / |x|_2 = sqrt(2): (2 - sqrt 2) / 1.
    assert metrics.hoyer([1, 1, 0, 0]) == pytest.approx(2 - np.sqrt(2))
    for wrong in ([0.0, 0.0], [1.0]):
        with pytest.raises(ValueError):
            metrics.hoyer(wrong)


def test_components_are_aligned_whatever_their_order_and_number():
    rng = np.random.default_rng(0)
    components = rng.random((4, 9))
    order = np.array([2, 0, 3, 1])
    shuffled = 8.0 * components[order]
    found, alike = metrics.align(components, shuffled)
    np.testing.assert_array_equal(shuffled[found] / 8.0, components)
    np.testing.assert_allclose(alike, 1.0)
    found, alike = metrics.align(components, shuffled[:2])
    assert (found == -1).sum() == 2 and (alike > 0.99).sum() == 2
    found, _ = metrics.align(components[:2], shuffled)
    np.testing.assert_array_equal(shuffled[found] / 8.0, components[:2])
