"""Models of counts as estimators on scikit-learn's rules: what a user asks of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._fitting import LIMITS, CountEstimator, keep
from ._progress import Progress
from ._results import Score
from ._settings import request, seed_of
from ._warnings import warn_all


def _takes_samples(estimator: Any) -> bool:
    """Whether it can be asked about samples that it was not fitted to."""
    return estimator._takes_new_samples


class AllocationModel(CountEstimator):
    """Any model of the model language as an estimator.

    What a sample is follows from the data. In an array, sparse matrix or tensor of counts it is a slice of the first axis (a
    document), if the model has that node as a root with a hidden child: then samples of new data are new values of that node, and
    their hidden rows are inferred. In a table of records it is a row.

    Parameters
    ----------
    model : str, default "lda(3)"
        Model text, preset, or the name of a model file.
    a : float, default 1.0
        Equivalent sample size of the prior and shape of the Gamma prior.
    method : {"auto", "vb", "exact", "smc", "gibbs", "em", "dual-em", "icm"}, default "auto"
        The engine that fits the tables; ``"auto"`` is ``"vb"``. ``"exact"`` is for models whose hidden values cannot be renamed:
        otherwise its tables are averages over all namings, without components, and it is refused.
    random_state : int, generator or None
        The seed; an integer gives the numbers of ``--seed`` on the command line.
    n_jobs : int, optional
        Threads: 1 without it, -1 for all cores. The answer does not depend on it.
    max_iter, tol, n_init : optional
        Sweeps at most, when to stop, and starts of engines that sweep.
    prior : mapping or "none", optional
        A prior as in a model file, or none for maximum likelihood by ``"em"`` or ``"icm"``.
    b : float, optional
        Rate of the Gamma prior of the total. Needed where cells are NaN, which nobody counted: then the total is unknown.
    pseudo_count : mapping, optional
        Pseudo-counts of every cell of the tables of some nodes.
    engine : mapping, optional
        Further settings of the engine, by the names of :func:`polyurn.fit`; also ``time_limit`` and ``max_memory``, which hold for
        the fit and again for ``log_evidence_``.
    kind : {"auto", "records", "matrix", "tensor"}, default "auto"
        What data are: records in rows, or counts of the cells of a matrix or of an array with any number of axes. ``"auto"`` takes
        arrays for counts and frames for records; presets of matrices take frames of nothing but numbers for counts.
    handle_unknown : {"error", "missing"}, default "error"
        What to do with a value, in new records, that the fit does not know.
    verbose : bool or None, default False
        A progress bar; ``None`` for one where somebody looks.

    Attributes
    ----------
    fit_ : polyurn.Fit
        The fit with all its tables.
    components_ : ndarray, or dict of ndarrays
        Probabilities of features given components, for one hidden node and one axis of features; else one array for each seen
        node, by name, the hidden nodes that it depends on in front.
    core_ : ndarray or None
        Expected tokens of every combination of hidden values.
    labels_ : ndarray
        The most probable hidden value of each training sample, where samples have one.
    elbo_ : float
        The lower bound, for ``"vb"``.
    log_evidence_ : float
        ln p(data). Exact, or by the engines of :func:`polyurn.score`; worked out when it is first asked for, unless the method
        gives it.
    log_evidence_std_error_ : float or None
        Its standard error; none where it is exact.
    n_iter_ : int
        Sweeps of the best start.
    converged_ : bool
        Whether they came to rest.
    n_features_in_ : int
        Number of features: values of the second axis, or columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[4, 4, 0, 0], [4, 4, 0, 0], [0, 0, 4, 4], [0, 0, 4, 4]])
    >>> model = polyurn.AllocationModel("doc -> topic[2] -> word", random_state=1).fit(X)
    >>> bool(model.labels_[0] != model.labels_[2]), model.components_.shape
    (True, (2, 4))
    """

    def __init__(
        self,
        model: str = "lda(3)",
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

    # Samples.

    def transform(self, X: Any) -> np.ndarray:
        """Probabilities of hidden values for each sample.

        Parameters
        ----------
        X : data
            New samples, of the kind that the model was fitted to.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            With several hidden nodes theirs stand side by side.
        """
        posteriors = self._answer(self._new(X)).posteriors
        if not posteriors:
            raise ValueError("this model has no hidden node whose values samples could have")
        return np.hstack(posteriors)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fits, and transforms the same samples."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    @available_if(_takes_samples)
    def predict_proba(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Probabilities of hidden values.

        With several hidden nodes of one size their number is the second axis; with different sizes there is a list.
        """
        posteriors = self._answer(self._new(X)).posteriors
        if len(posteriors) == 1:
            return posteriors[0]
        is_even = len({posterior.shape for posterior in posteriors}) == 1
        return np.stack(posteriors, axis=1) if is_even else posteriors

    @available_if(_takes_samples)
    def predict(self, X: Any) -> np.ndarray:
        """The most probable hidden value of each sample; a column for each node where several are hidden."""
        return self._new(X).most_likely(self.hidden_nodes_)

    @available_if(_takes_samples)
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fits, and predicts the same samples."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    @available_if(_takes_samples)
    def score_samples(self, X: Any) -> np.ndarray:
        """ln probability of each sample: of a record, or of all tokens of a document given its own inferred row."""
        return self._new(X).ln_probabilities()

    @available_if(_takes_samples)
    def score(self, X: Any, y: Any = None) -> float:
        """Mean ln probability of a token; larger is better.

        Of a document every other token tells about its row, and the others are scored, as in ``score --heldout`` of the command
        line: no token is predicted from itself.
        """
        return self._new(X).mean_ln_probability()

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Tokens drawn from the fitted tables: other ones at each call, unless ``random_state`` is an integer.

        Parameters
        ----------
        n_samples : int, default 1
            How many tokens.

        Returns
        -------
        X : ndarray of shape (n_samples, n_seen)
            Values of the seen nodes, as they were given: answers of records, positions along axes of counts (names of words where the
            matrix was a frame). Of type object where columns are of different kinds.
        y : ndarray of shape (n_samples,) or (n_samples, n_hidden)
            Values of the hidden nodes.
        """
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples!r}. At least one sample is wanted, a whole number of them.")
        rng = np.random.default_rng(seed_of(self.random_state))
        draw = "best" if self.fit_._core.draws[0] else None
        values: dict[str, np.ndarray] = {}
        waiting = list(self.fit_.nodes)
        while waiting:
            node = next(one for one in waiting if all(parent in values for parent in one["parents"]))
            waiting.remove(node)
            table = self.fit_.table(node["name"], draw=draw)
            rows = np.cumsum(table[tuple(values[parent] for parent in node["parents"])], axis=-1)
            rows = np.broadcast_to(rows, (n_samples, table.shape[-1]))
            # The last cell takes what rounding leaves.
            drawn = (rng.random((n_samples, 1)) * rows[:, -1:] >= rows[:, :-1]).sum(axis=1)
            values[node["name"]] = drawn
        X = together([self._as_given(name, values[name]) for name in self._nodes], n_samples)
        hidden = [values[name] for name in self.hidden_nodes_]
        y = hidden[0] if len(hidden) == 1 else np.stack(hidden, axis=1) if hidden else np.empty((n_samples, 0), int)
        return X, y

    def _as_given(self, node: str, codes: np.ndarray) -> np.ndarray:
        """Values of a seen node as the user has them."""
        if self._kind == "tensor":
            names = getattr(self, "feature_names_in_", None)
            return names[codes] if names is not None and [node] == self._nodes[1:] else codes
        labels = np.array(self.fit_.labels(node), dtype=object)
        kind = self._label_kinds.get(node, "")
        if kind == "b":
            labels = labels == "True"
        elif kind in ("i", "u", "f"):
            labels = labels.astype({"i": np.int64, "u": np.uint64, "f": np.float64}[kind])
        return np.asarray(labels[codes])

    # Criteria and evidence.

    def _n_parameters(self, n_samples: int) -> int:
        """Free numbers of all tables; of documents those of the samples at hand."""
        core = self.fit_._core
        sizes = {name: size for name, size, _, _ in core.nodes}
        parents = {name: list(above) for name, _, _, above in core.nodes}
        total = 0
        for group in core.tables:
            rows = int(np.prod([n_samples if one == self._root else sizes[one] for one in parents[group[0]]]))
            total += 0 if group[0] == self._root else rows * (sizes[group[0]] - 1)
        return total

    @available_if(_takes_samples)
    def aic(self, X: Any) -> float:
        """Akaike's criterion of the fitted tables on ``X``; the lower the better."""
        samples = self._new(X)
        return float(-2.0 * samples.ln_total() + 2.0 * self._n_parameters(samples.n_samples))

    @available_if(_takes_samples)
    def bic(self, X: Any) -> float:
        """The Bayesian criterion; the lower the better. ``log_evidence_`` is what it stands in for."""
        samples = self._new(X)
        n = self._n_parameters(samples.n_samples)
        return float(-2.0 * samples.ln_total() + n * np.log(max(samples.n_tokens, 1.0)))

    @property
    def log_evidence_(self) -> float:
        return self._evidence()[0]

    @property
    def log_evidence_std_error_(self) -> float | None:
        return self._evidence()[1]

    def __dir__(self) -> list[str]:
        # Notebooks and debuggers ask for everything that is listed here. What may take minutes is listed once it is known.
        is_known = hasattr(self, "fit_") and (self._score is not None or self.fit_.log_evidence is not None)
        return [name for name in object.__dir__(self) if (is_known or name not in WHEN_ASKED) and hasattr(self, name)]

    def _evidence(self) -> tuple[float, float | None]:
        check_is_fitted(self)
        if self.fit_.log_evidence is not None:
            return self.fit_.log_evidence, self.fit_["std_error"]
        if isinstance(self._asked["prior"], str):
            raise AttributeError('there is no evidence without a prior; leave prior="none" out')
        if self._score is None:
            if self._data is None:
                raise AttributeError("the training data did not come with the pickle; ask for log_evidence_ before, or fit again")
            if not self._data.is_whole:
                raise AttributeError("the evidence of counts that are not whole is not defined; elbo_ bounds what stands for it")
            # As it was fitted: parameters that were set since then are about the next fit.
            asked = {**self._asked, "method": "auto"}
            asked = {name: value for name, value in asked.items() if name in EVIDENCE}
            with Progress(self.verbose) as bar:
                result, text, interrupted = _core.score(self._data, request(**asked), False, bar.watcher)
            self._score = Score(json.loads(result), text, asked["model"])
            warn_all(self._score.warnings, interrupted)
        return self._score.log_evidence, self._score.std_error


def together(columns: list[np.ndarray], n_rows: int) -> np.ndarray:
    """Columns side by side, as objects where they are of different kinds."""
    if not columns:
        return np.empty((n_rows, 0))
    is_alike = len({column.dtype.kind for column in columns}) == 1
    return np.stack(columns if is_alike else [column.astype(object) for column in columns], axis=1)


#: What is worked out when it is asked for.
WHEN_ASKED = ("log_evidence_", "log_evidence_std_error_")
#: What the question of the evidence shares with that of a fit.
EVIDENCE = ("model", "method", "a", "b", "prior", "pseudo_count", "seed", "threads", *LIMITS)
