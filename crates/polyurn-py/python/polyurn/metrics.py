"""How far factors are from data and from each other; any arrays will do, whoever made them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["align", "frobenius", "hoyer", "kl_divergence", "reconstruct"]


def reconstruct(weights: Any, factors: Any) -> np.ndarray:
    """The full tensor of CP factors: the sum over components of weight times outer product.

    Parameters
    ----------
    weights : array-like, shape (n_components,) or None
        Weights of the components; ones where there are none.
    factors : sequence of array-like, each of shape (n_components, size)
        One matrix for each axis.

    Examples
    --------
    >>> polyurn.metrics.reconstruct([2.0], [[[1, 0]], [[0.5, 0.5]]])
    array([[1., 1.],
           [0., 0.]])
    """
    factors = [np.asarray(factor, dtype=float) for factor in factors]
    if not factors or any(factor.ndim != 2 or len(factor) != len(factors[0]) for factor in factors):
        raise ValueError("factors: expected matrices with one row for each component")
    weights = np.ones(len(factors[0])) if weights is None else np.asarray(weights, dtype=float)
    letters = "abcdefghijklmnopqrstuvwxy"[: len(factors)]
    return np.einsum(f"z,{','.join('z' + letter for letter in letters)}->{letters}", weights, *factors)


def kl_divergence(X: Any, Y: Any) -> float:
    """Generalised Kullback-Leibler divergence, the sum of x ln(x / y) - x + y.

    Parameters
    ----------
    X, Y : array-like
        Counts, and what a fit expects of them, of the same shape. Infinite where Y is zero and X is not.

    Examples
    --------
    >>> polyurn.metrics.kl_divergence([1.0, 2.0, 0.0], [1.0, 1.0, 1.0])
    1.3862943611198906
    """
    X, Y = _pair(X, Y)
    if X.size and (X.min() < 0 or Y.min() < 0):
        raise ValueError("a number is negative, and the divergence is one of counts")
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(X > 0, X * (np.log(X) - np.log(Y)), 0.0)
    return float(np.sum(terms - X + Y))


def frobenius(X: Any, Y: Any) -> float:
    """The Frobenius norm of the difference.

    Examples
    --------
    >>> polyurn.metrics.frobenius([3.0, 0.0], [0.0, 4.0])
    5.0
    """
    X, Y = _pair(X, Y)
    return float(np.sqrt(np.sum((X - Y) ** 2)))


def hoyer(array: Any) -> float:
    """Hoyer's sparsity: 0 where all entries are the same, 1 where all but one are zero.

    Examples
    --------
    >>> polyurn.metrics.hoyer([0, 0, 7, 0]), polyurn.metrics.hoyer([1, 1, 1, 1])
    (1.0, 0.0)
    """
    values = np.abs(np.asarray(array, dtype=float)).ravel()
    if values.size < 2:
        raise ValueError("the sparsity of fewer than two numbers is not defined")
    norm = np.sqrt(np.sum(values**2))
    if norm == 0:
        raise ValueError("the sparsity of zeros is not defined")
    root = np.sqrt(values.size)
    return float((root - np.sum(values) / norm) / (root - 1))


def align(reference: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """The order of components that brings one fit nearest to another, and how alike they then are.

    Parameters
    ----------
    reference, other : array-like, shape (n_components, ...)
        Components in rows; ``other`` may have more or fewer.

    Returns
    -------
    order : ndarray of int
        ``other[order]`` stands beside ``reference[:len(order)]``; where ``other`` has fewer, the best of ``reference`` are paired
        and the rest have -1.
    similarity : ndarray of float
        Cosine of each pair, 0 where there is none.

    Examples
    --------
    >>> order, alike = polyurn.metrics.align([[1, 0], [0, 1]], [[0, 2], [3, 0]])
    >>> order.tolist(), alike.tolist()
    ([1, 0], [1.0, 1.0])
    """
    reference, other = (np.asarray(part, dtype=float).reshape(len(part), -1) for part in (reference, other))
    if reference.shape[1] != other.shape[1]:
        raise ValueError(f"components have {reference.shape[1]} and {other.shape[1]} entries; they must have the same")
    lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in (reference, other)]
    units = [part / np.where(length > 0, length, 1.0) for part, length in zip((reference, other), lengths)]
    cosines = units[0] @ units[1].T
    order = _assignment(cosines)
    paired = order >= 0
    similarity = np.where(paired, cosines[np.arange(len(order)), order], 0.0)
    return order, similarity


def _assignment(gain: np.ndarray) -> np.ndarray:
    """For each row its column so that the sum is largest, each column once; -1 for rows that are left."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(gain, maximize=True)
    order = np.full(len(gain), -1)
    order[rows] = columns
    return order


def _pair(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, Y = _full(X), _full(Y)
    if X.shape != Y.shape:
        raise ValueError(f"shapes differ: {X.shape} and {Y.shape}")
    return X, Y


def _full(X: Any) -> np.ndarray:
    """All entries; those of sparse arrays are written out, as what stands beside them is full."""
    for write_out in ("toarray", "todense"):
        if hasattr(X, write_out):
            X = getattr(X, write_out)()
    return np.asarray(X, dtype=float)
