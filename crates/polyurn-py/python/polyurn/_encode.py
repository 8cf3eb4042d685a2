"""Columns of categories become codes and labels."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _core


#: Numbers that are looked through at once.
PART = 1 << 16
#: Values of any kind that are, each of which is looked up again.
LONG_PART = 1 << 18


class Looked:
    """Codes that are looked up where they are needed: numbers that stay where they are, and the code of each number.

    A part of it, or all of it as ``[:]``, is an array, as that of an array is.
    """

    def __init__(self, numbers: np.ndarray, table: np.ndarray) -> None:
        self.numbers, self.table = numbers, table

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: slice) -> np.ndarray:
        return self.table[self.numbers[part]]

    def handed(self) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """As the library reads them: where they are, if it can."""
        return (self.numbers, self.table) if self.numbers.dtype.kind == "u" else self[:]


#: Codes of a column, whose parts are arrays.
Codes = np.ndarray | Looked


def looked(codes: Codes, table: np.ndarray) -> Looked:
    """The numbers of a table that stand at these codes; -1 is the last one."""
    return Looked(codes.numbers, table[codes.table]) if isinstance(codes, Looked) else Looked(codes, table)


def handed(codes: Codes) -> Any:
    """Codes as the library reads them."""
    return codes.handed() if isinstance(codes, Looked) else codes


def encode(column: Any) -> tuple[Codes, list[str]]:
    """Codes and labels of a column of categories. Missing values get the code -1.

    Categories of pandas, polars and Arrow are kept in their order, whether they occur or not; other values get codes in the
    order of their first appearance, as in a file.
    """
    if isinstance(column, ArrowColumn):
        return column.encode()
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(column, polars.Series):
        return _encode_polars(column, polars)
    if hasattr(column, "dictionary_encode"):
        return _encode_arrow(column)
    if hasattr(column, "cat") and hasattr(column.array, "codes"):
        # Its own codes; those of the accessor are a copy.
        return integers(column.array.codes), [label(value) for value in column.cat.categories]
    if hasattr(column, "codes") and hasattr(column, "categories"):
        return integers(column.codes), [label(value) for value in column.categories]
    if isinstance(getattr(column, "dtype", None), np.dtype) and column.dtype.kind in "biu" and column.dtype.itemsize <= 2:
        return _encode_short(np.asarray(column))
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        return _encode_parts(column.iloc if hasattr(column, "iloc") else np.asarray(column), len(column), pandas)
    return _encode_plain(np.asarray(column))


def _encode_short(array: np.ndarray) -> tuple[Looked, list[str]]:
    """Codes of numbers of one or two bytes, by a table of all that there are: the numbers stay where they are."""
    array = native(array)
    places = array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
    table = np.full(1 << (8 * places.dtype.itemsize), -1, dtype=np.int32)
    values: list[Any] = []
    for start in range(0, len(array), PART):
        part = array[start : start + PART]
        found, first = np.unique(part, return_index=True)
        for ix in np.argsort(first):
            place = places[start + first[ix]]
            if table[place] < 0:
                table[place] = len(values)
                values.append(found[ix])
    return Looked(places, narrow(table, len(values))), [label(value) for value in values]


def _encode_parts(rows: Any, n_rows: int, pandas: Any) -> tuple[np.ndarray, list[str]]:
    """Codes of any values, by pandas: part by part, whose codes have 8 bytes."""
    known: dict[Any, int] = {}
    codes = np.empty(n_rows, dtype=np.int8)
    for start in range(0, n_rows, LONG_PART):
        own, values = pandas.factorize(rows[start : start + LONG_PART])
        table = np.array([known.setdefault(value, len(known)) for value in values] + [-1], dtype=np.int64)
        codes = narrow(codes, len(known)) if len(known) > np.iinfo(codes.dtype).max else codes
        codes[start : start + len(own)] = table[own]
    return codes, _distinct([label(value) for value in known])


def _encode_plain(array: np.ndarray) -> tuple[np.ndarray, list[str]]:
    if array.dtype.kind in "biu":
        values, first, inverse = np.unique(array, return_index=True, return_inverse=True)
        rank = np.empty(len(values), dtype=np.int64)
        order = np.argsort(first)
        rank[order] = np.arange(len(values))
        return narrow(rank, len(values))[inverse], [label(value) for value in values[order]]
    known: dict[Any, int] = {}
    codes = np.empty(len(array), dtype=np.int32)
    for row, value in enumerate(array):
        value = value.item() if isinstance(value, np.generic) else value
        codes[row] = -1 if value is None or value != value else known.setdefault(value, len(known))
    return narrow(codes, len(known)), _distinct([label(value) for value in known])


def _encode_polars(column: Any, polars: Any) -> tuple[np.ndarray, list[str]]:
    if column.dtype == polars.Enum:
        codes = column.to_physical().cast(polars.Int32).fill_null(-1).to_numpy()
        return integers(codes), [label(value) for value in column.dtype.categories]
    if column.dtype.is_float():
        column = column.fill_nan(None)
    values = column.drop_nulls().unique(maintain_order=True)
    numbers = polars.Series(range(len(values)), dtype=polars.Int32)
    codes = column.replace_strict(values, numbers, default=None, return_dtype=polars.Int32).fill_null(-1)
    return narrow(codes.to_numpy(), len(values)), _distinct([label(value) for value in values.to_list()])


def _encode_arrow(column: Any) -> tuple[np.ndarray, list[str]]:
    import pyarrow
    import pyarrow.compute

    if pyarrow.types.is_floating(column.type):
        column = pyarrow.compute.if_else(pyarrow.compute.is_nan(column), None, column)
    if not pyarrow.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pyarrow.ArrowNotImplementedError:
            raise ValueError(f"a column of type {column.type} holds no categories; make it one of strings") from None
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if isinstance(whole, pyarrow.ChunkedArray):
        whole = pyarrow.chunked_array(whole.chunks).unify_dictionaries().combine_chunks()
    codes = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return integers(codes), _distinct([label(value) for value in whole.dictionary.to_pylist()])


def label(value: Any) -> str:
    """What a value is called: whole floats, as NumPy makes of integers beside NaN, as the integers that they are."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _distinct(labels: list[str]) -> list[str]:
    if len(set(labels)) != len(labels):
        twice = next(value for value in labels if labels.count(value) > 1)
        raise ValueError(f"different values are both called {twice!r}; make the column one of strings")
    return labels


class ArrowColumn:
    """A column of an Arrow table, held as its maker has it."""

    def __init__(self, table: _core.ArrowTable, ix: int) -> None:
        self.table, self.ix = table, ix

    def __len__(self) -> int:
        return len(self.table)

    @property
    def kind(self) -> str:
        """What kind of numbers it holds, in NumPy's letters; empty if none."""
        return self.table.kind_of_numbers(self.ix)

    def to_numpy(self) -> np.ndarray:
        """Its numbers."""
        return self.table.numbers(self.ix)

    def encode(self) -> tuple[np.ndarray, list[str]]:
        """Its codes and labels."""
        codes, labels = self.table.codes(self.ix)
        return narrow(codes, len(labels)), labels


def integers(codes: Any) -> np.ndarray:
    """Codes that can be read where they are."""
    codes = np.asarray(codes)
    if codes.dtype.kind not in "iu":
        raise ValueError(f"coordinates are integers, not {codes.dtype}")
    codes = native(codes)
    return codes.view(np.int64) if codes.dtype == np.uint64 else codes


def native(array: np.ndarray) -> np.ndarray:
    """As the machine reads numbers; a copy only where bytes are in another order or fields are packed."""
    return np.require(array, dtype=array.dtype.newbyteorder("="), requirements="A")


def narrow(codes: np.ndarray, n_labels: int) -> np.ndarray:
    """Codes in as few bytes as hold them: those of all columns are held until rows are merged."""
    dtype = next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if n_labels <= np.iinfo(kind).max)
    return codes.astype(dtype, copy=False)
