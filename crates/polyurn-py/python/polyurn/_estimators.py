"""Models of counts as estimators on scikit-learn's rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_non_negative, validate_data

from . import _core
from ._data import Data, _is_pandas, _is_table, as_coo, as_dataset, read, table_columns
from ._functions import FITTING, FRACTIONS, _engine
from ._progress import Progress
from ._results import Fit, Score
from ._samples import Groups, Rows, Samples, axis_nodes, rows_of
from ._settings import request, seed_of, threads_of
from ._warnings import warn_all


def _takes_samples(estimator: Any) -> bool:
    """Whether it can be asked about samples that it was not fitted to."""
    return estimator._takes_new_samples


class AllocationModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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
        The engine that fits the tables; ``"auto"`` is ``"vb"``.
    random_state : int, generator or None
        The seed; an integer gives the numbers of ``--seed`` on the command line.
    n_jobs : int, optional
        Threads: 1 without it, -1 for all cores. The answer does not depend on it.
    max_iter, tol, n_init : optional
        Sweeps at most, when to stop, and starts of engines that sweep.
    prior : mapping or "none", optional
        A prior as in a model file, or none for maximum likelihood by ``"em"`` or ``"icm"``.
    pseudo_count : mapping, optional
        Pseudo-counts of every cell of the tables of some nodes.
    engine : mapping, optional
        Further settings of the engine, by the names of :func:`polyurn.fit`.
    kind : {"auto", "tensor", "records"}, default "auto"
        What a plain array is: counts of cells, or records in rows. ``"auto"`` takes arrays as counts and frames as records.
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

    #: What plain arrays, and frames of nothing but numbers, are where ``kind`` does not say.
    _kind_of_arrays = "tensor"
    _kind_of_frames = "records"
    _takes_new_samples = True

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
        pseudo_count: Any = None,
        engine: Any = None,
        kind: str = "auto",
        handle_unknown: str = "error",
        verbose: bool | None = False,
    ) -> None:
        self.model = model
        self.a = a
        self.method = method
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.engine = engine
        self.kind = kind
        self.handle_unknown = handle_unknown
        self.verbose = verbose

    # Fitting.

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AllocationModel:
        """Fits the tables.

        Parameters
        ----------
        X : data
            Counts or records; see the class.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts; fractions with ``"vb"`` and ``"em"``.

        Returns
        -------
        self
        """
        kind, X = self._checked(X, reset=True)
        method = self._method()
        data = self._dataset(X, kind, method, sample_weight)
        if data.n_tokens == 0:
            raise ValueError("there is nothing to fit: all counts are zero (0 tokens)")
        settings = self._settings(method, data)
        with Progress(self.verbose) as bar:
            core, summary, interrupted = _core.fit(data, request(**settings), False, bar.watcher)
        self.fit_ = Fit(core, json.loads(summary))
        self._kind, self._data, self._score = kind, data, None
        warn_all(self.fit_.warnings, interrupted)
        self._take(X)
        return self

    def _method(self) -> str:
        return "vb" if self.method == "auto" else self.method

    def _text(self, sizes: Sequence[int]) -> str:
        """The model for data of so many axes or columns."""
        return self.model

    def _settings(self, method: str, data: _core.Dataset) -> dict[str, Any]:
        has_prior = not isinstance(self.prior, str)
        if not has_prior and self.a != 1.0:
            raise ValueError(f"a={self.a}: it belongs to a prior, and prior={self.prior!r} has none; leave it out")
        engine = _engine(dict(self.engine or {}), FITTING)
        return dict(
            model=self._text(data.sizes),
            a=float(self.a) if has_prior else None,
            method=method,
            prior=self.prior,
            pseudo_count=self.pseudo_count,
            seed=seed_of(self.random_state),
            threads=threads_of(self.n_jobs, default=1),
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            **engine,
        )

    def _checked(self, X: Any, reset: bool) -> tuple[str, Any]:
        """What kind of data these are, with what scikit-learn wants to be checked."""
        if self.kind not in ("auto", "tensor", "records"):
            raise ValueError(f'kind: expected "auto", "tensor" or "records", not {self.kind!r}')
        if self.handle_unknown not in ("error", "missing"):
            raise ValueError(f'handle_unknown: expected "error" or "missing", not {self.handle_unknown!r}')
        if isinstance(X, str) or hasattr(X, "__fspath__"):
            X = read(X, fractions=self._method() in FRACTIONS)
        if isinstance(X, Data):
            if not all(name is None for name in X.names):
                return "records", self._counted(X, len(X.names), reset)
            X = X.to_coo()
        if _is_table(X) and not self._is_matrix(X):
            if _is_pandas(X):
                return "records", validate_data(self, X, reset=reset, skip_check_array=True)
            return "records", self._counted(X, len(table_columns(X)), reset)
        kind = self._kind_of_arrays if self.kind == "auto" else self.kind
        if kind == "records":
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
            return "records", X
        if isinstance(X, tuple) or hasattr(X, "fill_value"):
            coo = as_coo(X)
            return "tensor", self._counted(coo, (*coo[2], 1)[1], reset)
        X = validate_data(
            self, X, reset=reset, accept_sparse=True, dtype=np.float64, ensure_2d=_n_axes(X) < 3, allow_nd=True
        )
        check_non_negative(X, type(self).__name__)
        return "tensor", as_coo(X)

    def _counted(self, X: Any, n_features: int, reset: bool) -> Any:
        """Takes note of the number of features, where scikit-learn does not know the container."""
        if reset:
            self.n_features_in_ = int(n_features)
            vars(self).pop("feature_names_in_", None)
        return X

    def _is_matrix(self, X: Any) -> bool:
        """Whether a frame is a matrix of counts with named columns."""
        frames = self._kind_of_frames if self.kind == "auto" else self.kind
        if frames != "tensor" or not _is_pandas(X):
            return False
        return "count" not in X.columns and all(dtype.kind in "biuf" for dtype in X.dtypes)

    def _dataset(self, X: Any, kind: str, method: str, sample_weight: Any) -> _core.Dataset:
        fractions = method in FRACTIONS
        weights = None
        if sample_weight is not None:
            n_samples = X[2][0] if kind == "tensor" else len(X)
            weights = _check_sample_weight(sample_weight, np.empty((n_samples, 1)), ensure_non_negative=True)
        if kind == "tensor":
            return as_dataset(X, fractions=fractions, weights=weights)
        if isinstance(X, np.ndarray):
            return rows_of(X).dataset(fractions, weights)
        return as_dataset(X, fractions=fractions, kind="records", weights=weights)

    def _take(self, X: Any) -> None:
        """Takes over what was found."""
        found = self.fit_
        self.n_iter_ = int(found._found.get("iterations") or 1)
        self.converged_ = bool(found._found.get("converged"))
        self.objective_ = found.objective
        self.hidden_nodes_ = [node["name"] for node in found.nodes if not node["seen"]]
        for name in ("elbo_", "log_likelihood_"):
            vars(self).pop(name, None)
        if found.method == "vb":
            self.elbo_ = found.objective
        if found["log_likelihood"] is not None:
            self.log_likelihood_ = found["log_likelihood"]
        self._nodes = axis_nodes(found._core)
        self._root = self._sample_node()
        self.core_, self.factors_ = (None, {})
        if self.hidden_nodes_ and not found._core.is_averaged:
            self.core_, self.factors_ = found.factors()
        self.components_ = self._components()
        self._n_features_out = self._n_outputs()
        for name in ("labels_",):
            vars(self).pop(name, None)
        labels = self._training_labels(X)
        if labels is not None:
            self.labels_ = labels

    def _sample_node(self) -> str | None:
        """The node whose values are samples, if they are documents."""
        local = self.fit_._core.local_nodes
        first = self._nodes[0] if self._nodes else None
        return first if self._kind == "tensor" and first in local else None

    def _components(self) -> Any:
        features = {name: table for name, table in self.factors_.items() if name != self._root}
        if len(features) == 1 and self._kind == "tensor":
            return next(iter(features.values()))
        return features

    def _target(self) -> str | None:
        """The hidden node whose values samples are given: the child of the document, or the only one."""
        if self._root is not None:
            children = [one["name"] for one in self.fit_.nodes if self._root in one["parents"] and not one["seen"]]
            return children[0] if len(children) == 1 else None
        return self.hidden_nodes_[0] if len(self.hidden_nodes_) == 1 else None

    def _n_outputs(self) -> int:
        sizes = {one["name"]: one["size"] for one in self.fit_.nodes}
        target = self._target()
        return sizes[target] if target else sum(sizes[name] for name in self.hidden_nodes_)

    def _training_labels(self, X: Any) -> np.ndarray | None:
        if not self.hidden_nodes_ or self.fit_._core.is_averaged:
            return None
        if self._root is not None:
            target = self._target()
            draw = "best" if self.fit_._core.draws[0] else None
            return None if target is None else self.fit_.table(target, draw=draw).argmax(axis=-1)
        if self._kind == "tensor" or isinstance(X, Data):
            return None
        return _most_likely(self._answer(self._samples(X)).posteriors)

    # Samples.

    def _samples(self, X: Any) -> Samples:
        draw = "best" if self.fit_._core.draws[0] else None
        threads = threads_of(self.n_jobs, default=1)
        if self._kind == "tensor":
            if self._root is None:
                raise AttributeError(
                    f"{type(self).__name__} has no rows for new values of its first axis; give records to predict from"
                )
            return Groups(self.fit_, X, self._root, self._nodes, draw, threads)
        rows = rows_of(X, names=self._nodes) if isinstance(X, np.ndarray) else rows_of(X)
        return Rows(self.fit_, rows, self.handle_unknown == "missing", draw, threads)

    def _answer(self, samples: Samples) -> Any:
        return samples.answer(self.hidden_nodes_)

    def _new(self, X: Any) -> Samples:
        check_is_fitted(self)
        kind, X = self._checked(X, reset=False)
        if kind != self._kind:
            raise ValueError(f"the model was fitted to {_KINDS[self._kind]}, and these are {_KINDS[kind]}")
        if isinstance(X, Data):
            raise ValueError("records of a file or of Data are merged and have no order; give a frame or an array")
        return self._samples(X)

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
        return _most_likely(self._answer(self._new(X)).posteriors)

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
        """Tokens drawn from the fitted tables.

        Parameters
        ----------
        n_samples : int, default 1
            How many tokens.

        Returns
        -------
        X : ndarray of shape (n_samples, n_seen)
            Values of the seen nodes, by their codes.
        y : ndarray of shape (n_samples,) or (n_samples, n_hidden)
            Values of the hidden nodes.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples}. At least one sample is wanted.")
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
        X = np.stack([values[name] for name in self._nodes], axis=1)
        hidden = [values[name] for name in self.hidden_nodes_]
        y = hidden[0] if len(hidden) == 1 else np.stack(hidden, axis=1) if hidden else np.empty((n_samples, 0), int)
        return X, y

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

    def _evidence(self) -> tuple[float, float | None]:
        check_is_fitted(self)
        if self.fit_.log_evidence is not None:
            return self.fit_.log_evidence, self.fit_["std_error"]
        if isinstance(self.prior, str):
            raise AttributeError('there is no evidence without a prior; leave prior="none" out')
        if self._score is None:
            if self._data is None:
                raise AttributeError("the training data did not come with the pickle; ask for log_evidence_ before, or fit again")
            if not self._data.is_whole:
                raise AttributeError("the evidence of counts that are not whole is not defined; elbo_ bounds what stands for it")
            asked = {**self._settings(self._method(), self._data), "method": "auto"}
            asked = {name: value for name, value in asked.items() if name in EVIDENCE}
            with Progress(self.verbose) as bar:
                result, text, interrupted = _core.score(self._data, request(**asked), False, bar.watcher)
            self._score = Score(json.loads(result), text, asked["model"])
            warn_all(self._score.warnings, interrupted)
        return self._score.log_evidence, self._score.std_error

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # The data are the user's; the evidence that was asked for is kept.
        if "_data" in state:
            state = {**state, "_data": None}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_records = (self._kind_of_arrays if self.kind == "auto" else self.kind) == "records"
        tags.input_tags.sparse = not is_records
        tags.input_tags.positive_only = not is_records
        tags.input_tags.categorical = is_records
        tags.input_tags.string = is_records
        tags.input_tags.allow_nan = is_records
        return tags


_KINDS = {"tensor": "counts of cells", "records": "records"}
#: What the question of the evidence shares with that of a fit.
EVIDENCE = ("model", "method", "a", "prior", "pseudo_count", "seed", "threads")


def _n_axes(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return 2 if shape is None else len(shape)


def _most_likely(posteriors: list[np.ndarray]) -> np.ndarray:
    if not posteriors:
        raise ValueError("this model has no hidden node whose values samples could have")
    best = [posterior.argmax(axis=1) for posterior in posteriors]
    return best[0] if len(best) == 1 else np.stack(best, axis=1)


