"""Data in: arrays, sparse tensors and tables become columns of codes, and nothing is made dense."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._encode import ArrowColumn, encode, integers, narrow, native

#: The column of counts in a table, as in CSV files.
COUNT = "count"


class Data:
    """Counts as the library holds them: distinct rows, a count for each, and labels of every column.

    Made by :func:`read`, :func:`records` and :func:`tensor`; every function and estimator takes it.

    Attributes
    ----------
    names : list of str or None
        Names of the columns; ``None`` for axes without names.
    sizes : list of int
        Number of values of each column.
    n_tokens : float
        Sum of all counts.
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

        Missing values have the coordinate -1.
        """
        coords = np.empty((len(self.sizes), len(self)), dtype=np.int64)
        for ix in range(len(self.sizes)):
            codes = self._core.codes(ix).astype(np.int64)
            codes[codes == _core.MISSING] = -1
            coords[ix] = codes
        return coords, self._core.counts(), tuple(self.sizes)

    def to_pandas(self) -> Any:
        """A frame with a categorical column for each column, and one of counts."""
        import pandas as pd

        coords, counts, _ = self.to_coo()
        columns = {}
        for ix, name in enumerate(self.names):
            labels = self.labels(ix)
            columns[name or f"i{ix + 1}"] = pd.Categorical.from_codes(coords[ix], categories=labels)
        columns[COUNT] = counts.astype(np.int64) if self._core.is_whole else counts
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name or f'axis {ix}'}[{n}]" for ix, (name, n) in enumerate(zip(self.names, self.sizes)))
        return f"<Data {shown}: {self.n_tokens:g} tokens, {len(self)} distinct rows>"


def read(path: str | os.PathLike[str], *, format: str | None = None, fractions: bool = False) -> Data:
    """Reads data from a file: CSV, TSV, ``.tns`` or Matrix Market, plain or compressed.

    Parameters
    ----------
    path : path
        The file.
    format : {"csv", "tsv", "tns", "mtx"}, optional
        Its format, if its name does not tell.
    fractions : bool, default False
        Whether counts may be fractions, for ``method="vb"`` and ``"em"``.

    Returns
    -------
    Data
    """
    return Data(_core.Dataset.read(os.fspath(path), format, fractions))


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
    return Data(_from_table(table, counts, columns, None, fractions=True))


def as_dataset(X: Any, *, fractions: bool, kind: str | None = None, weights: np.ndarray | None = None) -> _core.Dataset:
    """What was given, as the library wants it.

    ``kind`` says what a plain array is: ``"tensor"`` of counts (the default) or ``"records"``.
    """
    if isinstance(X, Data):
        if weights is not None:
            raise ValueError("sample_weight: the rows of a Data object have counts already")
        return X._core
    if isinstance(X, (str, os.PathLike)):
        if weights is not None:
            raise ValueError("sample_weight: the rows of a file have counts already")
        return _core.Dataset.read(os.fspath(X), None, fractions)
    if isinstance(X, _core.Dataset):
        return X
    if _is_table(X) or kind == "records":
        return _from_table(X, None, None, weights, fractions)
    array = None if weights is not None else _full_array(X)
    if array is not None:
        # Read where it is: coordinates of cells would take several times its memory.
        cells = _counts(np.ascontiguousarray(array).reshape(-1))
        return _core.Dataset.from_cells("data", cells, list(array.shape), fractions)
    coords, values, shape = as_coo(X)
    if weights is not None:
        values = np.asarray(values, dtype=np.float64) * weights[np.asarray(coords[0])]
    return _from_coo(coords, values, shape, None, fractions)


def as_coo(X: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Coordinates, counts and shape of an array or a sparse tensor. What is zero is left out."""
    array = _full_array(X)
    if array is not None:
        coords = np.nonzero(array)
        return coords, array[coords], array.shape
    if isinstance(X, tuple):
        coords, values = X[0], X[1]
        return coords, values, tuple(X[2]) if len(X) == 3 else _shape_of(coords)
    if _is_scipy_sparse(X):
        if X.format in ("csr", "csc") and X.ndim == 2:
            # Only the compressed axis has to be written out, in as few bytes as it needs.
            n_major = len(X.indptr) - 1
            major = np.repeat(narrow(np.arange(n_major), n_major), np.diff(X.indptr))
            coords = (major, X.indices) if X.format == "csr" else (X.indices, major)
            return coords, X.data, tuple(X.shape)
        coo = X.tocoo(copy=False)
        coords = getattr(coo, "coords", None) or (coo.row, coo.col)
        return coords, coo.data, tuple(coo.shape)
    if not X.fill_value == 0:
        raise ValueError(f"cells that are not listed must be zero, but this sparse tensor has fill value {X.fill_value}")
    return X.coords, X.data, tuple(X.shape)


def _full_array(X: Any) -> np.ndarray | None:
    """An array that holds all its cells; none for coordinates and sparse tensors."""
    is_coo = isinstance(X, tuple) and len(X) in (2, 3) and not np.isscalar(X[0])
    is_sparse = hasattr(X, "coords") and hasattr(X, "data") and hasattr(X, "fill_value")
    if is_coo or is_sparse or _is_scipy_sparse(X):
        return None
    array = np.asarray(X)
    if array.ndim == 0:
        raise ValueError(f"expected data, not {type(X).__name__}; give an array, a frame or the name of a file")
    if array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"an array of counts holds numbers, not {array.dtype}; give records as a frame")
    return array


def _shape_of(coords: Any) -> tuple[int, ...]:
    return tuple(int(np.max(axis)) + 1 if len(axis) else 0 for axis in coords)


def _from_coo(
    coords: Any, values: Any, shape: Sequence[int] | None, names: Sequence[str] | None, fractions: bool
) -> _core.Dataset:
    shape = _shape_of(coords) if shape is None else shape
    if len(coords) != len(shape):
        raise ValueError(f"there are coordinates of {len(coords)} axes, but the shape has {len(shape)}")
    counts = _counts(values)
    columns: list[Any] = []
    for ix, (axis, size) in enumerate(zip(coords, shape)):
        codes = integers(axis)
        if len(codes) and codes.min() < 0:
            raise ValueError(f"axis {ix}: a coordinate is negative; they count from 0")
        columns.append((names[ix] if names is not None else None, codes, None, int(size), 0))
    return _core.Dataset.from_codes("data", columns, counts, len(counts), fractions)


def _counts(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind in "iu":
        if values.dtype.kind == "i" and len(values) and values.min() < 0:
            raise ValueError(f"Negative values in data: a count is {values.min()}, and counts start from 0")
        values = native(values)
        return values.view(np.uint64) if values.dtype == np.int64 else values
    if values.dtype.kind != "f":
        raise ValueError(f"counts are numbers, not {values.dtype}")
    values = native(values.astype(np.float64, copy=False))
    if len(values) and np.nanmin(values, initial=0.0) < 0:
        raise ValueError(f"Negative values in data: a count is {np.nanmin(values)}, and counts start from 0")
    return values


def _is_scipy_sparse(X: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def _is_pandas(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _is_polars(X: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, (polars.DataFrame, polars.LazyFrame))


def _is_table(X: Any) -> bool:
    # Some sparse matrices of SciPy are dictionaries, too.
    if _is_scipy_sparse(X):
        return False
    return isinstance(X, Mapping) or _is_pandas(X) or _is_polars(X) or hasattr(X, "__arrow_c_stream__")


def table_columns(table: Any, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """The columns of a table by name, each as its maker keeps it."""
    if _is_table(table) and columns is not None:
        raise ValueError("columns: this table has names of its own; leave it out, or rename them in the table")
    if isinstance(table, Mapping):
        return _by_name((str(name), column) for name, column in table.items())
    if _is_pandas(table):
        return _by_name((str(name), table.iloc[:, ix]) for ix, name in enumerate(table.columns))
    if _is_polars(table):
        frame = table.collect() if hasattr(table, "collect") else table
        return {name: frame.get_column(name) for name in frame.columns}
    if hasattr(table, "__arrow_c_stream__"):
        return _arrow_columns(table)
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(f"records are a table with rows and columns, but this array has {array.ndim} axes")
    names = [f"i{ix + 1}" for ix in range(array.shape[1])] if columns is None else list(columns)
    if len(names) != array.shape[1]:
        raise ValueError(f"columns: {len(names)} names were given, and the array has {array.shape[1]} columns")
    return _by_name((name, array[:, ix]) for ix, name in enumerate(names))


def _by_name(columns: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Columns by name, which have to differ."""
    found: dict[str, Any] = {}
    for name, column in columns:
        if name in found:
            raise ValueError(f"there are two columns named {name!r}; rename one of them")
        found[name] = column
    return found


def _arrow_columns(table: Any) -> dict[str, Any]:
    held = _core.ArrowTable(table.__arrow_c_stream__())

    def column(ix: int, name: str) -> Any:
        if held.is_read(ix):
            return ArrowColumn(held, ix)
        if hasattr(table, "column_names") and hasattr(table, "column"):
            # Dates and the like: pyarrow knows how they are written.
            return table.column(ix)
        raise ValueError(f"column {name}: values of its Arrow type are not read; make it one of strings or categories")

    return _by_name((name, column(ix, name)) for ix, name in enumerate(held.names))


def _from_table(
    table: Any, counts: str | None, columns: Sequence[str] | None, weights: np.ndarray | None, fractions: bool
) -> _core.Dataset:
    by_name = table_columns(table, columns)
    if counts is not None and counts not in by_name:
        raise ValueError(f"there is no column {counts!r}; the columns are {', '.join(by_name)}")
    held = by_name.pop(counts or COUNT, None)
    row_counts = None if held is None else _counts(_plain_numbers(held))
    if weights is not None:
        row_counts = weights if row_counts is None else row_counts * weights
        row_counts = _counts(row_counts)
    n_rows = len(held) if held is not None else None
    encoded: list[Any] = []
    for name, column in by_name.items():
        codes, labels = encode(column)
        n_rows = len(codes) if n_rows is None else n_rows
        encoded.append((name, codes, labels, None, 0))
    return _core.Dataset.from_codes("data", encoded, row_counts, n_rows or 0, fractions)


def _plain_numbers(column: Any) -> np.ndarray:
    """A column of counts; what is missing becomes NaN, an unknown count."""
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    array = np.asarray(column)
    if array.dtype == object:
        array = np.array([np.nan if value is None or value != value else float(value) for value in array])
    return array
