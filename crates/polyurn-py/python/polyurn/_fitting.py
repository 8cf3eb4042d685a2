"""How estimators are fitted: data checked and counted, a fit taken over, samples in its terms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, check_non_negative, validate_data

from . import _core
from ._data import Data, as_coo, as_dataset, n_axes, read
from ._fits import Fit
from ._functions import FRACTIONS
from ._progress import Progress
from ._results import Score
from ._samples import Groups, Rows, Samples, axis_nodes
from ._settings import FITTING, engine_settings, request, seed_of, threads_of
from ._tables import (
    Frame,
    Records,
    agreed,
    check_axes,
    check_kind,
    hinting,
    is_sparse_tensor,
    is_table,
    refuse_records,
    unmasked,
)
from ._warnings import warn_all

#: Limits that hold for a fit, and again for its evidence.
LIMITS = ("time_limit", "max_memory")
#: Settings of engines that are parameters of estimators.
OWN = ("max_iter", "tol", "n_init")


def keep(estimator: Any, given: dict[str, Any]) -> None:
    """Stores what a constructor was given, untouched, as scikit-learn wants it."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


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
    b: float | None
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
        self.__dict__.pop("fit_", None)
        given = X
        kind, X = self._checked(X, reset=True)
        method = self._method()
        data = self._dataset(X, kind, method, sample_weight)
        if data.n_tokens == 0:
            raise ValueError("there is nothing to fit: all counts are zero (0 tokens)")
        settings = self._settings(method, kind, data)
        if method == "exact":
            self._refuse_averages(data, settings)
        with hinting(given, self.kind), Progress(self.verbose) as bar:
            core, summary, interrupted = _core.fit(data, request(**settings), False, bar.watcher)
        found = self.fit_ = Fit(core, json.loads(summary))
        self._kind, self._data, self._asked = kind, data, settings
        self._score: Score | None = None
        warn_all(found.warnings, interrupted)
        self._take(X)
        if interrupted:
            # What is finished is here; a search or a pipeline around it has to end.
            raise KeyboardInterrupt
        return self

    def _refuse_averages(self, data: _core.Dataset, settings: dict[str, Any]) -> None:
        """Refuses an exact fit whose tables would be averages over namings, before it is made: the model alone tells."""
        hidden = _core.exchangeable(data, request(**settings))
        if hidden:
            raise ValueError(
                f'method="exact": tables are averages over all namings of {", ".join(hidden)}, which leaves no components; use "vb", '
                '"em", "smc" or "gibbs" (log_evidence_ is exact wherever it can be), or polyurn.fit for the tables'
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")

    def _method(self) -> str:
        return "vb" if self.method == "auto" else self.method

    def _text(self, sizes: Sequence[int]) -> str:
        """The model for data of so many axes or columns."""
        return self.model

    def _text_of_records(self, sizes: Sequence[int]) -> str:
        """The same for records, whose rows are samples: there are no slices that new ones could be."""
        return self._text(sizes)

    def _settings(self, method: str, kind: str, data: _core.Dataset) -> dict[str, Any]:
        has_prior = not isinstance(self.prior, str)
        if not has_prior and self.a != 1.0:
            raise ValueError(f"a={self.a}: it belongs to a prior, and prior={self.prior!r} has none; leave it out")
        if self.engine is not None and not isinstance(self.engine, Mapping):
            raise ValueError(f"engine: expected a dict of settings, not {self.engine!r}")
        own = next((name for name in OWN if name in (self.engine or {})), None)
        if own is not None:
            raise ValueError(f"engine: {own} is a parameter of its own; give it there")
        known = (*(name for name in FITTING if name not in OWN), *LIMITS)
        engine = engine_settings(self.engine or {}, known, ValueError)
        return dict(
            model=self._text(data.sizes) if kind == "tensor" else self._text_of_records(data.sizes),
            a=self.a if has_prior else None,
            b=self.b,
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
        check_kind(self.kind)
        if self.handle_unknown not in ("error", "missing"):
            raise ValueError(f'handle_unknown: expected "error" or "missing", not {self.handle_unknown!r}')
        if isinstance(X, str) or hasattr(X, "__fspath__"):
            X = read(X, fractions=self._method() in FRACTIONS, kind=self.kind)
        if isinstance(X, Data):
            if agreed(self.kind, X._core, "this") == "records":
                self._note_features(X.names, reset)
                return "records", X
            if reset:
                # Fitted as they are held, without coordinates of all cells.
                self._check_known(np.array([np.nan] if X._core.unknown else []), reset)
                self._note_features([None] * (*X.sizes, 1)[1], reset)
                return "tensor", X
            X = X.to_coo()
        if is_table(X):
            frame = X if isinstance(X, Frame) else Frame(X)
            kind = frame.kind(self.kind, self._kind_of_frames)
            found = Records(frame) if kind == "records" else self._checked_cells(frame.matrix(), reset)
            self._note_features(frame.features(kind), reset)
            return ("records" if kind == "records" else "tensor"), found
        X = unmasked(X, self._kind_of_array() == "records") if np.ma.is_masked(X) else X
        if isinstance(X, tuple) or is_sparse_tensor(X):
            refuse_records(self.kind)
            coo = as_coo(X)
            check_axes(self.kind, len(coo[2]))
            self._check_known(coo[1], reset)
            self._note_features([None] * (*coo[2], 1)[1], reset)
            return "tensor", coo
        kind = self._kind_of_array()
        if kind == "records":
            if hasattr(X, "tocoo"):
                refuse_records(self.kind)
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
            return "records", Records(X)
        check_axes(self.kind, n_axes(X))
        X = self._checked_cells(X, reset)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return "tensor", X

    def _kind_of_array(self) -> str:
        return self._kind_of_arrays if self.kind == "auto" else self.kind

    def _checked_cells(self, X: Any, reset: bool) -> Any:
        """Counts of cells, with what scikit-learn wants to be checked of an array."""
        if getattr(getattr(X, "dtype", None), "kind", "") in ("U", "S"):
            raise ValueError('an array of counts holds numbers, not texts; say kind="records" if each row is a record')
        checks: dict[str, Any] = {"ensure_2d": n_axes(X) < 3, "allow_nd": True, "ensure_all_finite": "allow-nan"}
        X = check_array(X, accept_sparse=True, dtype="numeric", estimator=self, input_name="X", **checks)
        check_non_negative(X, type(self).__name__)
        self._check_known(X.tocoo(copy=False).data if hasattr(X, "tocoo") else X, reset)
        return X

    def _check_known(self, counts: Any, reset: bool) -> None:
        """Refuses cells that nobody counted where there is nothing to be done about them."""
        counts = np.asarray(counts)
        if counts.dtype.kind != "f" or not np.isnan(np.min(counts, initial=0.0)):
            return
        if not reset:
            raise ValueError("X contains NaN, a cell that nobody counted; new samples need all their counts")
        if self.b is None:
            raise ValueError(
                "X contains NaN, a cell that nobody counted: then the total is not known either, so give b, the rate of its Gamma "
                'prior; if NaN is a missing answer in a record, say kind="records"'
            )

    def _note_features(self, names: Sequence[Any], reset: bool) -> None:
        """Takes note of the names of features, or compares them, as scikit-learn does with frames of the libraries that it knows."""
        has_names = len(names) > 0 and all(isinstance(name, str) for name in names)
        if reset:
            self.n_features_in_ = len(names)
            self.__dict__.pop("feature_names_in_", None)
            if has_names:
                self.feature_names_in_ = np.asarray(names, dtype=object)
            return
        known = getattr(self, "feature_names_in_", None)
        if known is not None and has_names and list(known) != list(names):
            unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
            said = ["The feature names should match those that were passed during fit."]
            said += ["Feature names unseen at fit time:", *(f"- {name}" for name in unseen)] if unseen else []
            said += ["Feature names seen at fit time, yet now missing:", *(f"- {name}" for name in missing)] if missing else []
            if not unseen and not missing:
                said += ["Feature names must be in the same order as they were in fit."]
            raise ValueError("\n".join(said) + "\n")
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(names)} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )

    def _dataset(self, X: Any, kind: str, method: str, sample_weight: Any) -> _core.Dataset:
        fractions = method in FRACTIONS
        weights = None
        if sample_weight is not None:
            if isinstance(X, Data) and kind == "tensor":
                X = X.to_coo()
            n_samples = X.n_rows if isinstance(X, Records) else X[2][0] if isinstance(X, tuple) else len(X) if isinstance(X, Data) else X.shape[0]
            weights = _check_sample_weight(sample_weight, np.empty((n_samples, 1)), ensure_non_negative=True)
        if isinstance(X, Records):
            return X.dataset(fractions, weights)
        return as_dataset(X, fractions=fractions, weights=weights)

    def _take(self, X: Any) -> None:
        """Takes over what was found."""
        found = self.fit_
        self.n_iter_ = int(found._found.get("iterations") or 1)
        self.converged_ = bool(found._found.get("converged"))
        self.objective_ = found.objective
        self.hidden_nodes_ = [node["name"] for node in found.nodes if not node["seen"]]
        for name in ("elbo_", "log_likelihood_"):
            self.__dict__.pop(name, None)
        if found.method == "vb":
            self.elbo_ = found.objective
        if found["log_likelihood"] is not None:
            self.log_likelihood_ = found["log_likelihood"]
        self._nodes = axis_nodes(found._core)
        self._label_kinds = X.named(self._nodes).kinds if isinstance(X, Records) else {}
        self._root = self._sample_node()
        self.core_: Any = None
        self.factors_: dict[str, np.ndarray] = {}
        if self.hidden_nodes_:
            self.core_, self.factors_ = found.factors()
        self.components_ = self._components()
        self._n_features_out = self._n_outputs()
        for name in ("labels_",):
            self.__dict__.pop(name, None)
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
        if not isinstance(X, Records):
            return None
        return self._samples(X).most_likely(self.hidden_nodes_)

    # Samples.

    def _samples(self, X: Any) -> Samples:
        draw = "best" if self.fit_._core.draws[0] else None
        threads = threads_of(self.n_jobs, default=1)
        if self._kind == "tensor":
            if self._root is None:
                raise AttributeError(
                    f"{type(self).__name__} has no rows for new values of its first axis; give records to predict from"
                )
            return Groups(self.fit_, as_coo(X), self._root, self._nodes, draw, threads)
        return Rows(self.fit_, X.named(self._nodes), self.handle_unknown == "missing", draw, threads)

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
        is_records = self._kind_of_array() == "records"
        tags.input_tags.sparse = not is_records
        tags.input_tags.positive_only = not is_records
        tags.input_tags.categorical = is_records
        tags.input_tags.string = is_records
        tags.input_tags.allow_nan = is_records or self.b is not None
        return tags


_KINDS = {"tensor": "counts of cells", "records": "records"}
