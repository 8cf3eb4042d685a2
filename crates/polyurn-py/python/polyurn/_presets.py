"""Models that have names, as thin subclasses of :class:`~polyurn.AllocationModel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._estimators import AllocationModel
from ._fitting import keep


class _Preset(AllocationModel):
    """A model that follows from its number of components."""

    _kind_of_frames = "matrix"

    def __init__(
        self,
        n_components: Any = 3,
        *,
        a: float = 1.0,
        method: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_init: int | None = None,
        prior: Any = None,
        b: float | None = None,
        pseudo_count: Any = None,
        engine: Any = None,
        kind: str = "auto",
        handle_unknown: str = "error",
        verbose: bool | None = False,
    ) -> None:
        keep(self, locals())

    def _one_size(self) -> int:
        n = self.n_components
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"n_components: expected a whole number from 1 on, not {n!r}")
        return int(n)

    def _sizes(self, n_hidden: int) -> list[int]:
        """One size for each hidden node; a single number is that of all."""
        if not isinstance(self.n_components, Sequence):
            return [self._one_size()] * n_hidden
        if len(self.n_components) != n_hidden:
            raise ValueError(f"n_components: {n_hidden} hidden nodes need as many sizes, not {len(self.n_components)}")
        return [int(size) for size in self.n_components]


class LDA(_Preset):
    """Topic model: documents -> topics -> words, ``lda(K)``.

    ``fit`` takes a document-term matrix of counts; ``transform`` gives topic proportions of documents, and ``components_`` words
    given topics.

    Parameters
    ----------
    n_components : int, default 3
        Topics.
    **others
        Those of :class:`AllocationModel`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[5, 5, 0], [4, 6, 0], [0, 1, 9]])
    >>> topics = polyurn.LDA(2, random_state=1).fit(X)
    >>> topics.transform(X).shape, topics.components_.shape
    ((3, 2), (2, 3))
    """

    def _text(self, sizes: Sequence[int]) -> str:
        return f"lda({self._one_size()})"


class NMF(_Preset):
    """Nonnegative matrix factorisation under the Kullback-Leibler divergence: X is about W H.

    The model is ``row -> k -> column``, which under the default prior has the evidence of ``nmf(K)`` and lets new rows come in.
    ``components_`` is H, with the total; ``transform`` gives W, whose columns add up to 1 over the training rows.
    """

    def _text(self, sizes: Sequence[int]) -> str:
        return f"i1 -> k[{self._one_size()}] -> i2"

    def _text_of_records(self, sizes: Sequence[int]) -> str:
        return f"nmf({self._one_size()})"

    def _components(self) -> Any:
        return self.core_[:, None] * self.factors_[self._nodes[1]]

    def transform(self, X: Any) -> np.ndarray:
        """W of new rows: their tokens, shared out over the components. Of records, the probabilities of components of each.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        samples = self._new(X)
        if self._kind == "records":
            return self._answer(samples).posteriors[0]
        (shares,) = self._answer(samples).posteriors
        return samples.tokens()[:, None] * shares / self.core_

    def inverse_transform(self, W: Any) -> np.ndarray:
        """Expected counts of rows, W H."""
        check_is_fitted(self)
        return np.asarray(W) @ self.components_


class CP(_Preset):
    """CP/PARAFAC of a tensor of counts with any number of axes.

    The model is ``i1 -> r -> i2 i3 ..``, which under the default prior has the evidence of ``cp(R)`` and lets new slices of the
    first axis come in. ``weights_`` and ``factors_`` (components by values) are those of the decomposition.
    """

    def _text(self, sizes: Sequence[int]) -> str:
        rest = " ".join(f"i{ix}" for ix in range(2, len(sizes) + 1))
        return f"i1 -> r[{self._one_size()}] -> {rest}" if rest else f"i1 -> r[{self._one_size()}]"

    def _text_of_records(self, sizes: Sequence[int]) -> str:
        return f"cp({self._one_size()})"

    @property
    def weights_(self) -> np.ndarray:
        """Expected tokens of each component."""
        check_is_fitted(self)
        return self.core_


class Tucker(_Preset):
    """Tucker decomposition: one hidden node for each axis, and a full core between them.

    Parameters
    ----------
    n_components : int or sequence of int, default 3
        Sizes of the core.
    """

    def _text(self, sizes: Sequence[int]) -> str:
        n = len(sizes)
        own = self._sizes(n)
        parts = [f"r{ix + 1}[{size}]" for ix, size in enumerate(own)]
        parts += [f"r{ix} -> r{below}" for ix in range(1, n + 1) for below in range(ix + 1, n + 1)]
        # The first axis stands above its hidden node, so that new slices can come in.
        parts += ["i1 -> r1", *(f"r{ix} -> i{ix}" for ix in range(2, n + 1))]
        return "; ".join(parts)

    def _text_of_records(self, sizes: Sequence[int]) -> str:
        return f"tucker({','.join(map(str, self._sizes(len(sizes))))})"


class Pachinko(_Preset):
    """Topics of topics: documents -> k1 -> k2 -> words, ``pachinko(k1,k2,..)``.

    Parameters
    ----------
    n_components : int or sequence of int, default 3
        Sizes of the levels, from the top; one number is that of two levels.
    """

    def _text(self, sizes: Sequence[int]) -> str:
        levels = self._sizes(len(self.n_components) if isinstance(self.n_components, Sequence) else 2)
        return f"pachinko({','.join(map(str, levels))})"


class SymmetricNMF(_Preset, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Symmetric factorisation: all axes share one table, ``symmetric(R)``.

    There are no rows for nodes that the fit does not know, so it has neither ``transform`` nor ``predict``; memberships of the
    fitted nodes are in ``memberships_``.
    """

    _takes_new_samples = False

    @property
    def transform(self) -> Any:
        raise AttributeError("SymmetricNMF has no rows for nodes that it was not fitted to; see memberships_")

    fit_transform = transform

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = None
        return tags

    def _text(self, sizes: Sequence[int]) -> str:
        return f"symmetric({self._one_size()})"

    @property
    def memberships_(self) -> np.ndarray:
        """Probabilities of components given nodes, shape (n_nodes, n_components)."""
        check_is_fitted(self)
        joint = self.core_[:, None] * self.factors_[self._nodes[0]]
        return (joint / joint.sum(axis=0)).T


class LatentClass(_Preset):
    """Latent class analysis of records: one hidden class, within which columns are independent, ``lca(R)``.

    ``fit`` takes a frame, or an array with one row for each person and one column for each item; missing answers are NaN or None.
    ``predict`` gives classes, ``components_`` for each item the probabilities of its answers in each class.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, np.nan]])
    >>> classes = polyurn.LatentClass(2, random_state=1).fit(X)
    >>> classes.predict_proba(X).shape, sorted(classes.components_)
    ((4, 2), ['i1', 'i2', 'i3'])
    """

    _kind_of_arrays = "records"
    _kind_of_frames = "records"

    def _text(self, sizes: Sequence[int]) -> str:
        return f"lca({self._one_size()})"


class _TiedPreset(_Preset):
    """A preset whose tables may be tied."""

    def __init__(
        self,
        n_components: Any = 3,
        *,
        tied: bool = False,
        a: float = 1.0,
        method: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_init: int | None = None,
        prior: Any = None,
        b: float | None = None,
        pseudo_count: Any = None,
        engine: Any = None,
        kind: str = "auto",
        handle_unknown: str = "error",
        verbose: bool | None = False,
    ) -> None:
        keep(self, locals())

    def _call(self, name: str) -> str:
        return f"{name}({self._one_size()}{',tied' if self.tied else ''})"


class Blockmodel(_TiedPreset):
    """Mixed-membership blockmodel of source, destination and relation, ``mmsb(K)``.

    ``fit`` takes counts with three axes, or a frame of records with three columns.

    Parameters
    ----------
    n_components : int, default 3
        Blocks.
    tied : bool, default False
        Whether a node has one membership, as source and as destination.
    """

    _kind_of_frames = "records"

    def _text(self, sizes: Sequence[int]) -> str:
        if len(sizes) != 3:
            raise ValueError(f"a blockmodel has 3 axes (source, destination, relation), and these data have {len(sizes)}")
        return self._call("mmsb")


class HMM(_TiedPreset):
    """Hidden Markov model of a few columns, one for each step, ``hmm(K)``.

    Parameters
    ----------
    n_components : int, default 3
        Hidden states.
    tied : bool, default False
        Whether all steps share one transition and one emission table.
    """

    _kind_of_arrays = "records"
    _kind_of_frames = "records"

    def _text(self, sizes: Sequence[int]) -> str:
        return self._call("hmm")
