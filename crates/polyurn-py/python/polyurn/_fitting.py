"""How estimators are fitted: data checked and counted, a fit taken over, samples in its terms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_non_negative, validate_data

from . import _core
from ._data import Data, _is_pandas, _is_table, as_coo, as_dataset, read, table_columns
from ._fits import Fit
from ._functions import FITTING, FRACTIONS, _engine
from ._progress import Progress
from ._samples import Groups, Rows, Samples, axis_nodes, rows_of
from ._settings import request, seed_of, threads_of
from ._warnings import warn_all


#: Limits that hold for a fit, and again for its evidence.
LIMITS = ("time_limit", "max_memory")


class CountEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all estimators share. Their parameters are attributes, as scikit-learn wants it."""

    model: str
    a: float
    method: str
    random_state: Any
    n_jobs: int | None
    max_iter: int | None
    tol: float | None
    n_init: int | None
    prior: Any
    pseudo_count: Any
    engine: Any
    kind: str
    handle_unknown: str
    verbose: bool | None

    #: What plain arrays, and frames of nothing but numbers, are where ``kind`` does not say.
    _kind_of_arrays = "tensor"
    _kind_of_frames = "records"
    _takes_new_samples = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
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
        # A fit that fails leaves none behind, not that of other data.
        vars(self).pop("fit_", None)
        kind, X = self._checked(X, reset=True)
        method = self._method()
        data = self._dataset(X, kind, method, sample_weight)
        if data.n_tokens == 0:
            raise ValueError("there is nothing to fit: all counts are zero (0 tokens)")
        settings = self._settings(method, data)
        with Progress(self.verbose) as bar:
            core, summary, interrupted = _core.fit(data, request(**settings), False, bar.watcher)
        found = Fit(core, json.loads(summary))
        if found._core.is_averaged:
            hidden = ", ".join(node["name"] for node in found.nodes if not node["seen"])
            raise ValueError(
                f'method="exact": tables are averages over all namings of {hidden}, which leaves no components; use "vb", "em", '
                '"smc" or "gibbs" (log_evidence_ is exact wherever it can be), or polyurn.fit for the tables'
            )
        self.fit_ = found
        self._kind, self._data, self._score, self._asked = kind, data, None, settings
        warn_all(found.warnings, interrupted)
        self._take(X)
        if interrupted:
            # What is finished is here; a search or a pipeline around it has to end.
            raise KeyboardInterrupt
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")

    def _method(self) -> str:
        return "vb" if self.method == "auto" else self.method

    def _text(self, sizes: Sequence[int]) -> str:
        """The model for data of so many axes or columns."""
        return self.model

    def _settings(self, method: str, data: _core.Dataset) -> dict[str, Any]:
        has_prior = not isinstance(self.prior, str)
        if not has_prior and self.a != 1.0:
            raise ValueError(f"a={self.a}: it belongs to a prior, and prior={self.prior!r} has none; leave it out")
        engine = _engine(dict(self.engine or {}), (*FITTING, *LIMITS))
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
        if self.hidden_nodes_:
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
        if not self.hidden_nodes_:
            return None
        if self._root is not None:
            target = self._target()
            draw = "best" if self.fit_._core.draws[0] else None
            return None if target is None else self.fit_.table(target, draw=draw).argmax(axis=-1)
        if self._kind == "tensor" or isinstance(X, Data):
            return None
        return most_likely(self._answer(self._samples(X)).posteriors)

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


def _n_axes(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return 2 if shape is None else len(shape)


def most_likely(posteriors: list[np.ndarray]) -> np.ndarray:
    """The value with the largest posterior of each sample; a column for each node where there are several."""
    if not posteriors:
        raise ValueError("this model has no hidden node whose values samples could have")
    best = [posterior.argmax(axis=1) for posterior in posteriors]
    return best[0] if len(best) == 1 else np.stack(best, axis=1)
