"""Polyurn: which rank, which structure? The evidence of hidden-variable models of counts.

Functions
---------
:func:`score`
    The evidence of one model.
:func:`select`, :func:`compare`
    Models ranked by their evidence.
:func:`fit`
    Tables of one model, as a result with factors and predictions.
:func:`simulate`
    Data drawn from a model.
:func:`read`
    Data from a file.
:class:`Stream`
    The evidence of data while they come in.

Estimators on scikit-learn's rules are :class:`AllocationModel` and its presets: :class:`LDA`, :class:`NMF`, :class:`CP`,
:class:`Tucker`, :class:`LatentClass`, :class:`Pachinko`, :class:`Blockmodel`, :class:`HMM` and :class:`SymmetricNMF`.

>>> import polyurn
>>> toy = {"i": [0, 0, 0, 1, 1, 2, 2], "j": [0, 1, 2, 2, 3, 2, 3], "count": [2, 1, 1, 1, 2, 1, 1]}
>>> result = polyurn.score("i -> k[2] -> j", toy)
>>> result.method, round(result.log_evidence, 10)
('exact', -19.8106243507)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import metrics, models
from ._core import TooCostlyError, __version__
from ._data import Data, read, records, tensor
from ._fits import Fit
from ._functions import compare, fit, score, select
from ._heldout import Heldout
from ._predictions import Prediction
from ._results import Curve, Ranking, Score
from ._simulate import simulate
from ._streams import Stream
from ._warnings import (
    DataWarning,
    EstimateWarning,
    InterruptedWarning,
    LabelWarning,
    NotConvergedWarning,
    PolyurnWarning,
    PriorWarning,
    TimeWarning,
)

if TYPE_CHECKING:
    from ._estimators import AllocationModel
    from ._presets import CP, HMM, LDA, NMF, Blockmodel, LatentClass, Pachinko, SymmetricNMF, Tucker

# Estimators need scikit-learn, which takes its time to import: they are fetched when somebody asks for one.
_LAZY = {
    "AllocationModel": "_estimators",
    **dict.fromkeys(
        ["LDA", "NMF", "CP", "Tucker", "LatentClass", "Pachinko", "Blockmodel", "HMM", "SymmetricNMF"], "_presets"
    ),
}

__all__ = [
    "AllocationModel",
    "Blockmodel",
    "CP",
    "Curve",
    "Data",
    "DataWarning",
    "EstimateWarning",
    "Fit",
    "HMM",
    "Heldout",
    "InterruptedWarning",
    "LDA",
    "LabelWarning",
    "LatentClass",
    "NMF",
    "NotConvergedWarning",
    "Pachinko",
    "PolyurnWarning",
    "Prediction",
    "PriorWarning",
    "Ranking",
    "Score",
    "Stream",
    "SymmetricNMF",
    "TimeWarning",
    "TooCostlyError",
    "Tucker",
    "__version__",
    "compare",
    "fit",
    "metrics",
    "models",
    "read",
    "records",
    "score",
    "select",
    "simulate",
    "tensor",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            module = importlib.import_module(f".{_LAZY[name]}", __name__)
        except ModuleNotFoundError as error:
            raise ImportError(f"{name} needs scikit-learn: pip install 'polyurn[sklearn]' ({error})") from error
        value = getattr(module, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
