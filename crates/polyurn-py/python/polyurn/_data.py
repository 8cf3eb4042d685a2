"""Data in: arrays, sparse tensors and tables become columns of codes, and nothing is made dense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._encode import integers, narrow
from ._results import Shown
from ._settings import bytes_of
from ._tables import (
    COUNT,
    Frame,
    Records,
    agreed,
    check_axes,
    check_kind,
    counts_of,
    is_scipy_sparse,
    is_sparse_tensor,
    is_table,
    plain_numbers,
    refuse_records,
    unmasked,
)


#: Rows of data that are shown.
SHOWN = 10


class Data(Shown):
    """Counts as the library holds them: distinct rows, a count for each, and labels of every column.

    Made by :func:`read`, :func:`records`, :func:`tensor` and :func:`simulate`; every function and estimator takes it.

    Attributes
    ----------
    names : list of str or None
        Names of the columns; ``None`` for axes without names.
    sizes : list of int
        Number of values of each column.
    n_tokens : float
        Sum of all counts that are known.
    """

    def __init__(self, core: _core.Dataset) -> None:
        self._core = core

    @property
    def names(self) -> list[str | None]:
        return self._core.names

    @property
    def sizes(self) -> list[int]:
        return self._core.sizes

    @property
    def n_tokens(self) -> float:
        return self._core.n_tokens

    def __len__(self) -> int:
        """Number of distinct rows."""
        return len(self._core)

    def labels(self, column: int | str) -> list[str]:
        """What the values of a column are called."""
        ix = self.names.index(column) if isinstance(column, str) else column
        names, first = self._core.labels(ix)
        return names if names is not None else [str(first + value) for value in range(self.sizes[ix])]

    def to_coo(self) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        """Coordinates (columns by rows), counts and shape.

        Missing values have the coordinate -1. Cells that nobody counted come last, and have the count NaN.
        """
        coords, counts = self._rows_from(None)
        return coords, counts, tuple(self.sizes)

    def _rows_from(self, most: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and counts of the first rows, or of all of them."""
        unknown = self._core.unknown if most is None else self._core.unknown[: max(most - len(self), 0)]
        n_known = len(self) if most is None else min(most, len(self))
        coords = np.empty((len(self.sizes), n_known + len(unknown)), dtype=np.int64)
        for ix in range(len(self.sizes)):
            coords[ix, :n_known] = self._core.codes(ix, most)
            coords[ix, n_known:] = [cell[ix] for cell in unknown]
        coords[coords == _core.MISSING] = -1
        counts = self._core.counts(most)
        return coords, np.append(counts, np.full(len(unknown), np.nan)) if unknown else counts

    def to_dict(self) -> dict[str, list[Any]]:
        """A list for each column, with labels or none where a value is missing, and one of counts: what :func:`records` takes."""
        coords, counts = self._rows_from(None)
        columns: dict[str, list[Any]] = {
            name: [None if code < 0 else labels[code] for code in codes] for (name, labels), codes in zip(self._columns(), coords)
        }
        return columns | {COUNT: [None if np.isnan(n) else n for n in (counts.astype(int) if self._are_whole(counts) else counts).tolist()]}

    def to_pandas(self) -> Any:
        """A frame with a categorical column for each column, and one of counts, NaN where nobody counted."""
        import pandas as pd

        coords, counts = self._rows_from(None)
        columns = {name: pd.Categorical.from_codes(codes, categories=labels) for (name, labels), codes in zip(self._columns(), coords)}
        columns[COUNT] = counts.astype(np.int64) if self._are_whole(counts) else counts
        return pd.DataFrame(columns)

    def _columns(self) -> list[tuple[str, list[str]]]:
        """Names and labels of the columns; axes without names are called as estimators call them."""
        return [(name or f"i{ix + 1}", self.labels(ix)) for ix, name in enumerate(self.names)]

    def _are_whole(self, counts: np.ndarray) -> bool:
        return self._core.is_whole and not np.isnan(counts[-1:]).any()

    def _rows(self) -> tuple[list[str], list[list[str]], str]:
        coords, counts = self._rows_from(SHOWN)
        columns = self._columns()
        rows = [
            [*("" if code < 0 else labels[code] for (_, labels), code in zip(columns, row)), "?" if np.isnan(n) else f"{n:.12g}"]
            for row, n in zip(coords.T, counts)
        ]
        n_rows = len(self) + len(self._core.unknown)
        caption = repr(self)[6:-1] + (f", the first {SHOWN}" if n_rows > SHOWN else "")
        return [*(name for name, _ in columns), COUNT], rows, caption

    def __repr__(self) -> str:
        shown = ", ".join(f"{name or f'axis {ix}'}[{n}]" for ix, (name, n) in enumerate(zip(self.names, self.sizes)))
        unknown = f", {len(self._core.unknown)} of unknown count" if self._core.unknown else ""
        return f"<Data {shown}: {self.n_tokens:.12g} tokens, {len(self)} distinct rows{unknown}>"


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    fractions: bool = False,
    kind: str = "auto",
    vocab: str | os.PathLike[str] | None = None,
    labels: bool = False,
    max_unpacked: int | str | None = None,
    bins: str | Sequence[str] = (),
) -> Data:
    """Reads data from a file of any format that the command line reads, plain or compressed (docs/data.md).

    Parameters
    ----------
    path : path
        The file.
    format : {"csv", "tsv", "tns", "tensor-toolbox", "mtx", "uci", "lda-c", "svmlight", "npy", "npz"}, optional
        Its format, if its name does not tell.
    fractions : bool, default False
        Whether counts may be fractions, for ``method="vb"`` and ``"em"``.
    kind : {"auto", "records", "matrix", "tensor"}, default "auto"
        What it should hold; another kind is refused. Files with named columns hold records, all others counts of cells.
    vocab : path, optional
        The words of a file of word numbers, one on each line; without it a file of a usual name beside it.
    labels : bool, default False
        Whether labels of an SVMlight file become a column.
    max_unpacked : int or str, default "64G"
        What a compressed file may unpack to.
    bins : str or sequence of str, optional
        Columns of a table whose numbers are cut into categories: ``"height,weight=5"``, ``"age=4:quantile"``. A fit
        keeps the cuts, and raw numbers of new records are cut there too.

    Returns
    -------
    Data
    """
    check_kind(kind)
    most = None if max_unpacked is None else bytes_of(max_unpacked, "max_unpacked")
    cuts = [bins] if isinstance(bins, str) else list(bins)
    words = None if vocab is None else os.fspath(vocab)
    data = Data(_core.Dataset.read(os.fspath(path), format, fractions, (words, labels, most, cuts)))
    agreed(kind, data._core, os.fspath(path))
    return data


def tensor(
    coords: Any, values: Any, shape: Sequence[int] | None = None, *, names: Sequence[str] | None = None
) -> Data:
    """Counts of cells of a tensor by their coordinates; cells that are not listed are zero.

    Parameters
    ----------
    coords : array-like of int, shape (n_axes, n_cells)
        Coordinates, counted from 0.
    values : array-like, shape (n_cells,)
        Counts; NaN where nobody counted.
    shape : sequence of int, optional
        Sizes of the axes; the largest coordinates if it is not given.
    names : sequence of str, optional
        Names of the axes.

    Examples
    --------
    >>> polyurn.tensor([[0, 1, 1], [0, 0, 2]], [3, 1, 2], (2, 3))
    <Data axis 0[2], axis 1[3]: 6 tokens, 3 distinct rows>
    """
    return Data(_from_coo(coords, values, shape, names, fractions=True))


def records(table: Any, *, counts: str | None = None, columns: Sequence[str] | None = None) -> Data:
    """A table with one row for each record, and one column of categories for each variable.

    Parameters
    ----------
    table : frame, Arrow table, mapping of columns, or two-dimensional array
        pandas and polars frames, pyarrow tables, and everything with ``__arrow_c_stream__``. ``None``, NaN and NA are missing
        values.
    counts : str, optional
        The column that says how many tokens a row stands for; ``"count"`` where there is one of that name.
    columns : sequence of str, optional
        Names of the columns of an array.

    Examples
    --------
    >>> polyurn.records({"hair": ["fair", "dark", None], "eye": ["blue", "brown", "blue"]})
    <Data hair[2], eye[2]: 3 tokens, 3 distinct rows>
    """
    return Data(Records(table, counts=counts, columns=columns).dataset(True, None))


def as_dataset(X: Any, *, fractions: bool, kind: str = "auto", weights: np.ndarray | None = None) -> _core.Dataset:
    """What was given, as the library wants it.

    ``kind`` says what it is: ``"records"``, or counts of the cells of a ``"matrix"`` or ``"tensor"``. By default frames are records and
    arrays are counts.
    """
    check_kind(kind)
    if isinstance(X, (str, os.PathLike)):
        X = read(X, fractions=fractions, kind=kind)
    if isinstance(X, (Data, _core.Dataset)):
        core = X._core if isinstance(X, Data) else X
        agreed(kind, core, core.source if core.source != "data" else "this")
        if weights is not None:
            raise ValueError("sample_weight: the rows of a file or a Data object have counts already")
        return core
    if is_table(X):
        frame = Frame(X)
        if frame.kind(kind) == "records":
            return Records(frame).dataset(fractions, weights)
        return _from_matrix(frame.matrix(), frame.names, weights, fractions)
    if kind == "records":
        if _full_array(X, any_type=True) is None:
            refuse_records(kind)
        # Axes of an array bind to nodes by their order, whatever they hold.
        return Records(X).dataset(fractions, weights)
    check_axes(kind, n_axes(X))
    return _from_matrix(X, None, weights, fractions)


def _from_matrix(X: Any, labels: list[str] | None, weights: np.ndarray | None, fractions: bool) -> _core.Dataset:
    """Counts of cells. ``labels`` are what the values of the second axis are called."""
    array = None if weights is not None else _full_array(X)
    if array is not None:
        # Read where it is: coordinates of cells would take several times its memory.
        cells = counts_of(np.ascontiguousarray(array).reshape(-1))
        return _core.Dataset.from_cells("data", cells, list(array.shape), [None, labels] if labels else None, fractions)
    coords, values, shape = as_coo(X)
    if weights is not None:
        values = np.asarray(values, dtype=np.float64) * weights[np.asarray(coords[0])]
    return _from_coo(coords, values, shape, None, fractions, [None, labels] if labels else None)


def n_axes(X: Any) -> int:
    """Number of axes of an array or a sparse tensor."""
    if _is_coo(X):
        return len(X[0])
    shape = getattr(X, "shape", None)
    return np.asarray(X).ndim if shape is None else len(shape)


def as_coo(X: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Coordinates, counts and shape of an array or a sparse tensor. What is zero is left out."""
    array = _full_array(X)
    if array is not None:
        coords = np.nonzero(array)
        return coords, array[coords], array.shape
    if _is_coo(X):
        coords, values = X[0], X[1]
        return coords, values, tuple(X[2]) if len(X) == 3 else _shape_of(coords)
    if is_scipy_sparse(X):
        if X.format in ("csr", "csc") and X.ndim == 2:
            # Only the compressed axis has to be written out, in as few bytes as it needs.
            n_major = len(X.indptr) - 1
            major = np.repeat(narrow(np.arange(n_major), n_major), np.diff(X.indptr))
            coords = (major, X.indices) if X.format == "csr" else (X.indices, major)
            return coords, X.data, tuple(X.shape)
        coo = X.tocoo(copy=False)
        coords = getattr(coo, "coords", None) or (coo.row, coo.col)
        return coords, coo.data, tuple(coo.shape)
    if not hasattr(X, "coords"):
        # Other forms of the same library, compressed ones say.
        X = X.asformat("coo")
    if not X.fill_value == 0:
        raise ValueError(f"cells that are not listed must be zero, but this sparse tensor has fill value {X.fill_value}")
    return X.coords, X.data, tuple(X.shape)


def _is_coo(X: Any) -> bool:
    """Whether it is a tuple of coordinates, values and maybe a shape."""
    return isinstance(X, tuple) and len(X) in (2, 3) and not np.isscalar(X[0])


def _full_array(X: Any, any_type: bool = False) -> np.ndarray | None:
    """An array that holds all its cells; none for coordinates and sparse tensors."""
    if _is_coo(X) or is_sparse_tensor(X) or is_scipy_sparse(X):
        return None
    array = unmasked(X, any_type)
    if array.ndim == 0:
        raise ValueError(f"expected data, not {type(X).__name__}; give an array, a frame or the name of a file")
    if any_type:
        return array
    if array.dtype == object:
        array = plain_numbers(array.reshape(-1)).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"an array of counts holds numbers, not {array.dtype}; give records as a frame, or say kind=\"records\"")
    return array


def _shape_of(coords: Any) -> tuple[int, ...]:
    return tuple(int(np.max(axis)) + 1 if len(axis) else 0 for axis in coords)


def _from_coo(
    coords: Any,
    values: Any,
    shape: Sequence[int] | None,
    names: Sequence[str] | None,
    fractions: bool,
    labels: Sequence[Sequence[str] | None] | None = None,
) -> _core.Dataset:
    shape = _shape_of(coords) if shape is None else shape
    if len(coords) != len(shape):
        raise ValueError(f"there are coordinates of {len(coords)} axes, but the shape has {len(shape)}")
    counts = counts_of(values)
    columns: list[Any] = []
    for ix, (axis, size) in enumerate(zip(coords, shape)):
        codes = integers(axis)
        if len(codes) and codes.min() < 0:
            raise ValueError(f"axis {ix}: a coordinate is negative; they count from 0")
        own = None if labels is None or labels[ix] is None else list(labels[ix] or ())
        columns.append((names[ix] if names is not None else None, codes, own, int(size), 0))
    return _core.Dataset.from_codes("data", columns, counts, len(counts), fractions)
