"""Tables of any library as columns by name, and the one rule that says what data are: records, or counts of cells."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._encode import ArrowColumn, encode, handed, native
from ._warnings import warn_of_data

#: The column of counts in a table of records, as in CSV files.
COUNT = "count"
#: What data can be said to be.
KINDS = ("auto", "records", "matrix", "tensor")
#: A frame of whole numbers with so few columns may well be a list of coordinates.
FEW_COLUMNS = 3


def check_kind(kind: Any) -> None:
    """Refuses a ``kind`` that is none."""
    if kind not in KINDS:
        raise ValueError(f'kind: expected "auto", "records", "matrix" or "tensor", not {kind!r}')


def agreed(kind: str, data: _core.Dataset, what: str) -> str:
    """What data that were read before are; a ``kind`` that contradicts is refused.

    Columns with labels or names are records, all others axes of cells; numbered axes that were given names may be either.
    """
    check_kind(kind)
    has_labels = any(data.labels(ix)[0] is not None for ix in range(len(data.names)))
    is_named = has_labels or any(name is not None for name in data.names)
    if kind in ("matrix", "tensor") and has_labels:
        raise ValueError(f'kind="{kind}": {what} holds records, a column for each variable; leave kind out')
    if kind == "records" and not is_named:
        raise ValueError(f'kind="records": {what} holds counts of cells; leave kind out')
    check_axes(kind, len(data.names))
    return ("records" if is_named else "tensor") if kind == "auto" else "records" if kind == "records" else "tensor"


def refuse_records(kind: str) -> None:
    """Refuses to take a sparse tensor for records."""
    if kind == "records":
        raise ValueError('kind="records": a sparse tensor holds counts of cells; leave kind out, or give a frame')


def check_axes(kind: str, n_axes: int) -> None:
    """Refuses a matrix that is none."""
    if kind == "matrix" and n_axes != 2:
        raise ValueError(f'kind="matrix": a matrix has 2 axes, and these counts have {n_axes}; say "tensor"')


def is_scipy_sparse(X: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def is_sparse_tensor(X: Any) -> bool:
    """Whether it is a tensor of the library `sparse`."""
    return hasattr(X, "fill_value") and hasattr(X, "asformat")


def is_pandas(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def is_polars(X: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, (polars.DataFrame, polars.LazyFrame))


def is_table(X: Any) -> bool:
    """Whether it is a table with named columns, of whatever library."""
    # Some sparse matrices of SciPy are dictionaries, too.
    if is_scipy_sparse(X):
        return False
    return isinstance(X, (Frame, Mapping)) or is_pandas(X) or is_polars(X) or hasattr(X, "__arrow_c_stream__")


class Frame:
    """A table of any library: its columns by name, each as its maker keeps it. An Arrow stream can be read but once, so this is kept.

    Parameters
    ----------
    table : frame, Arrow table, mapping of columns, or two-dimensional array
        What was given.
    columns : sequence of str, optional
        Names for the columns of an array.
    """

    def __init__(self, table: Any, columns: Sequence[str] | None = None) -> None:
        self.columns = _columns_of(table, columns)
        self.table = table

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def features(self, kind: str) -> list[Any]:
        """What scikit-learn calls features: its columns as they are named, but for counts of records."""
        given = list(self.table.columns) if is_pandas(self.table) else self.names
        return [name for name in given if kind == "matrix" or str(name) != COUNT]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def kind(self, kind: str = "auto", frames: str = "records") -> str:
        """What it is: ``"records"`` or ``"matrix"``. ``frames`` says what one of nothing but numbers is by default.

        Where it could well be both it is refused or warned of: nobody should fit the wrong thing without a word.
        """
        check_kind(kind)
        if kind == "tensor":
            raise ValueError('kind="tensor": a frame has rows and columns; say "matrix" if it holds counts, "records" if each row is one')
        if kind == "matrix":
            wrong = next((name for name, column in self.columns.items() if not is_numeric(column)), None)
            if wrong is not None:
                raise ValueError(f'kind="matrix": column {wrong!r} holds no numbers; counts are numbers')
        if kind != "auto":
            return kind
        if frames == "records" or not self.columns or not all(map(is_numeric, self.columns.values())):
            return "records"
        if COUNT in self.columns:
            raise ValueError(
                f'a frame of numbers with a column {COUNT!r} may be a matrix of counts or a list of records; say kind="matrix" or '
                'kind="records"'
            )
        if len(self.columns) <= FEW_COLUMNS and all(map(is_whole, self.columns.values())):
            warn_of_data(
                f"a frame of {len(self.columns)} columns of whole numbers was taken for a matrix of counts; say kind=\"matrix\" if it is "
                'one, or kind="records" if each row is one'
            )
        return "matrix"

    def matrix(self) -> Any:
        """Its numbers as an array, or as a sparse matrix where the frame keeps them so."""
        if is_pandas(self.table) and len(self.columns) and all(hasattr(dtype, "fill_value") for dtype in self.table.dtypes):
            return self.table.sparse.to_coo()
        if is_pandas(self.table) and all(isinstance(dtype, np.dtype) for dtype in self.table.dtypes):
            return self.table.to_numpy()
        columns = [plain_numbers(column) for column in self.columns.values()]
        return np.column_stack(columns) if columns else np.empty((0, 0))


@contextlib.contextmanager
def hinting(X: Any, kind: str) -> Iterator[None]:
    """Adds to a complaint about columns that the frame may have been meant for a matrix."""
    try:
        yield
    except ValueError as error:
        may_be_matrix = kind == "auto" and (is_pandas(X) or is_polars(X) or isinstance(X, Mapping) or hasattr(X, "column_names"))
        if may_be_matrix and "column" in str(error) and all(map(is_numeric, Frame(X).columns.values())):
            first, *rest = str(error).split("\n")
            hint = 'this frame of numbers was taken for records: say kind="matrix" if it holds counts'
            raise ValueError("\n".join([f"{first}; {hint}", *rest])) from None
        raise


def is_numeric(column: Any) -> bool:
    """Whether a column holds numbers."""
    return _kind_of_numbers(column) in ("b", "i", "u", "f")


def is_whole(column: Any) -> bool:
    """Whether they are of a type of whole numbers."""
    return _kind_of_numbers(column) in ("b", "i", "u")


def _kind_of_numbers(column: Any) -> str:
    if isinstance(column, ArrowColumn):
        return column.kind
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "is_integer") and hasattr(dtype, "is_float"):
        return "i" if dtype.is_integer() else "f" if dtype.is_float() else "b" if str(dtype) == "Boolean" else ""
    if hasattr(column, "dictionary_encode"):
        # Dates and the like, which were left to pyarrow.
        return ""
    if hasattr(column, "codes") and hasattr(column, "categories"):
        return ""
    kind = dtype.kind if dtype is not None else np.asarray(column).dtype.kind
    return "" if str(dtype) == "category" else kind


def _columns_of(table: Any, columns: Sequence[str] | None) -> dict[str, Any]:
    if is_table(table) and columns is not None:
        raise ValueError("columns: this table has names of its own; leave it out, or rename them in the table")
    if isinstance(table, Frame):
        return dict(table.columns)
    if isinstance(table, Mapping):
        return _by_name((str(name), column) for name, column in table.items())
    if is_pandas(table):
        return _by_name((str(name), table.iloc[:, ix]) for ix, name in enumerate(table.columns))
    if is_polars(table):
        frame = table.collect() if hasattr(table, "collect") else table
        return {name: frame.get_column(name) for name in frame.columns}
    if hasattr(table, "to_frame"):
        # A single column.
        return _columns_of(table.to_frame(), columns)
    if hasattr(table, "__arrow_c_stream__"):
        return _arrow_columns(table)
    array = unmasked(table, any_type=True)
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


class Records:
    """Rows of a table, each a record: codes and labels of every column, and how many tokens a row stands for.

    Parameters
    ----------
    table : frame, Arrow table, mapping of columns, or two-dimensional array
        What was given.
    counts : str, optional
        The column of counts; ``"count"`` where there is one of that name.
    columns : sequence of str, optional
        Names for the columns of an array.
    """

    def __init__(self, table: Any, *, counts: str | None = None, columns: Sequence[str] | None = None) -> None:
        by_name = Frame(table, columns).columns
        #: Whether columns have names of their own; else they bind by their order.
        self.is_named = is_table(table) or columns is not None
        if counts is not None and counts not in by_name:
            raise ValueError(f"there is no column {counts!r}; the columns are {', '.join(by_name)}")
        held = by_name.pop(counts or COUNT, None)
        self.counts = None if held is None else counts_of(plain_numbers(held))
        self.kinds = {name: _kind_of_numbers(column) for name, column in by_name.items()}
        self.columns = {name: encode(column) for name, column in by_name.items()}
        first = next(iter(self.columns.values()), None)
        self.n_rows = 0 if first is None and held is None else len(first[0]) if first is not None else len(held)

    def dataset(self, fractions: bool, weights: np.ndarray | None) -> _core.Dataset:
        """The same for the library; columns without names bind by their order."""
        counts = self.counts
        if weights is not None:
            counts = counts_of(weights if counts is None else counts * weights)
        encoded: list[Any] = [
            (name if self.is_named else None, handed(codes), labels, None, 0) for name, (codes, labels) in self.columns.items()
        ]
        # Weights make no counts of the rows of people: two who answer alike are no slip.
        return _core.Dataset.from_codes("data", encoded, counts, self.n_rows, fractions, self.counts is None)

    def named(self, names: Sequence[str]) -> Records:
        """The same with names for columns that have none."""
        if not self.is_named:
            if len(names) != len(self.columns):
                raise ValueError(f"the fit has {len(names)} columns, and these records have {len(self.columns)}")
            self.kinds = dict(zip(names, self.kinds.values()))
            self.columns = dict(zip(names, self.columns.values()))
            self.is_named = True
        return self


def counts_of(values: Any) -> np.ndarray:
    """Counts as the library reads them: bytes, whole numbers, or floats with NaN for an unknown count."""
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


def plain_numbers(column: Any) -> np.ndarray:
    """A column of counts; what is missing becomes NaN, an unknown count."""
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    array = np.asarray(column)
    if array.dtype == object:
        array = np.array([np.nan if is_missing(value) else float(value) for value in array])
    return array


def unmasked(X: Any, any_type: bool = False) -> np.ndarray:
    """An array whose masked entries are missing: NaN in numbers, none in labels of any type."""
    if not np.ma.is_masked(X):
        return np.asarray(X)
    if any_type:
        labels = np.ma.getdata(X).astype(object)
        labels[np.ma.getmaskarray(X)] = None
        return labels
    return np.ma.filled(X.astype(np.float64), np.nan)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or NA, of which the last says of nothing whether it is the same."""
    if value is None:
        return True
    same = value == value
    return type(same).__name__ == "NAType" or not same
