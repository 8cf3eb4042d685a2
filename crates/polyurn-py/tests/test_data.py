"""Every way in gives the same data."""

import gzip
import json
import pickle
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import polars as pl
import polyurn
import pyarrow as pa
import pytest
import scipy.sparse
import sparse
from polyurn._data import as_dataset


def rows(data, n=None):
    coords, counts, shape = data.to_coo()
    return sorted(zip(map(tuple, coords.T.tolist()), [None if np.isnan(n) else n for n in counts.tolist()])), shape


def held(X, **how):
    return polyurn.Data(as_dataset(X, fractions=False, **how))


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(0.7, size=(5, 4))


def test_all_forms_of_a_matrix_are_the_same_data(counts):
    expected = rows(held(counts))
    assert expected[1] == (5, 4) and sum(n for _, n in expected[0]) == counts.sum()
    coords = np.nonzero(counts)
    forms = [
        counts.tolist(),
        counts.astype(np.uint8),
        counts.astype(float),
        (coords, counts[coords], counts.shape),
        (np.array(coords), counts[coords], counts.shape),
        sparse.COO(counts),
        *(kind(counts) for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array)),
        *(kind(counts) for kind in (scipy.sparse.dok_array, scipy.sparse.dia_array, scipy.sparse.lil_array)),
    ]
    for form in forms:
        assert rows(held(form)) == expected, type(form)
    assert rows(polyurn.tensor(coords, counts[coords], counts.shape)) == expected


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u2"])
def test_coordinates_are_read_however_they_lie(counts, dtype):
    coords = np.nonzero(counts)
    expected = rows(polyurn.tensor(coords, counts[coords], counts.shape))
    values = counts[coords].astype(dtype)
    pairs = np.stack(coords, axis=1).astype(dtype)
    packed = np.zeros(len(values), dtype=[("pad", "i1"), ("i", dtype), ("j", dtype), ("n", dtype)])
    packed["i"], packed["j"], packed["n"] = *pairs.T, values
    forms = [
        (pairs.T, values),
        (pairs[::-1].T, values[::-1]),
        (np.asfortranarray(pairs).T, np.repeat(values, 2)[::2]),
        ((packed["i"], packed["j"]), packed["n"]),
    ]
    for where, n in forms:
        assert rows(polyurn.tensor(where, n, counts.shape)) == expected
    assert rows(held((counts.astype(dtype)[::-1]).T[:, ::-1].T)) == rows(held(counts))
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array):
        assert rows(held(kind(counts.astype(dtype.replace(">", ""))))) == rows(held(counts))


def test_tensors_have_as_many_axes_as_they_have():
    tensor = np.zeros((2, 3, 4), dtype=int)
    tensor[1, 2, 3], tensor[0, 1, 2] = 5, 1
    for form in (tensor, sparse.COO(tensor)):
        assert rows(held(form)) == ([((0, 1, 2), 1.0), ((1, 2, 3), 5.0)], (2, 3, 4))


def test_all_forms_of_a_table_are_the_same_data():
    plain = {"hair": ["fair", "dark", None, "fair"], "eye": ["blue", "brown", "blue", None], "count": [3, 1, 2, 4]}
    expected = rows(held(plain))
    assert expected[0] == [((-1, 0), 2.0), ((0, -1), 4.0), ((0, 0), 3.0), ((1, 1), 1.0)]
    frames = [pd.DataFrame(plain), pl.DataFrame(plain), pl.LazyFrame(plain), pa.table(plain)]
    frames.append(pd.DataFrame(plain).convert_dtypes())
    for frame in frames:
        data = held(frame)
        assert rows(data) == expected, type(frame)
        assert data.labels("hair") == ["fair", "dark"] and data.names == ["hair", "eye"]


class Stream:
    """Nothing but the stream of a table."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_that_speaks_arrow_is_read():
    table = pa.table({"a": ["x", "y", "x"], "b": [1, 2, None]})
    assert rows(held(Stream(table))) == rows(held({"a": ["x", "y", "x"], "b": [1, 2, None]}))


def test_arrow_needs_no_other_library(tmp_path):
    """Neither pyarrow nor polars is imported, whoever makes the stream."""
    code = """
        import sys, ctypes
        import polyurn
        from polyurn import _core
        assert not {"pyarrow", "polars", "pandas"} & set(sys.modules)
        class Stream:
            def __arrow_c_stream__(self, requested_schema=None):
                import pyarrow as pa
                capsule = pa.table({"a": ["x", "y", "x"]}).__arrow_c_stream__()
                for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
                    sys.modules[name] = None
                return capsule
        data = polyurn.records(Stream())
        print(repr(data), data.labels("a"))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stdout == "<Data a[2]: 3 tokens, 2 distinct rows> ['x', 'y']\n", done.stderr


ARROW_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", [*ARROW_TYPES, pa.dictionary(pa.uint32(), pa.large_string())], ids=str)
def test_texts_of_arrow_are_the_same_in_every_type(kind):
    """Also sliced, in several batches, longer than a view holds in place, and with letters of several bytes."""
    plain = ["left out", "b", None, "a text that is longer than twelve bytes", "", "b", "Größe", None, "another one that is long"]
    chunks = [pa.array(plain[:4], kind), pa.array(plain[4:7], kind), pa.array([], kind), pa.array(plain[7:], kind)]
    table = pa.table({"x": pa.chunked_array(chunks, kind)}).slice(1)
    columns = polyurn._tables.Frame(Stream(table)).columns
    codes, labels = polyurn._encode.encode(columns["x"])
    assert [None if code < 0 else labels[code] for code in codes] == plain[1:]
    distinct = list(dict.fromkeys(label for label in plain[1:] if label is not None))
    assert [label for label in labels if label != "left out"] == distinct


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", [*INTEGERS, pa.float32(), pa.float64()], ids=str)
def test_numbers_of_arrow_are_values_and_counts(kind):
    table = pa.table({"x": pa.array([7, None, 5, 7], kind), "count": pa.array([1, 2, 3, 4], kind)}).slice(1)
    data = held(Stream(table))
    assert data.labels("x") == ["5", "7"]
    assert rows(data)[0] == [((-1,), 2.0), ((0,), 3.0), ((1,), 4.0)]
    unknown = polyurn.records(Stream(pa.table({"x": ["a", "b"], "count": pa.array([3, None], kind)})))
    assert unknown.to_dict() == {"x": ["a", "b"], "count": [3, None]}


def test_other_types_of_arrow():
    table = pa.table({"x": [True, None, False], "y": pa.nulls(3), "z": [0.1, 1e-7, float("nan")]})
    data = held(Stream(table))
    assert (data.labels("x"), data.labels("y"), data.labels("z")) == (["True", "False"], [], ["0.1", "1e-07"])
    dates = pa.table({"x": pa.array([0, 1, 0], pa.date32())})
    assert held(dates).labels("x") == ["1970-01-01", "1970-01-02"]
    with pytest.raises(ValueError, match="column x: values of its Arrow type"):
        held(Stream(dates))
    with pytest.raises(ValueError, match="list.* holds no categories"):
        held(pa.table({"x": [[1], [2]]}))
    with pytest.raises(ValueError, match="holds no numbers"):
        held(Stream(pa.table({"x": ["a"], "count": ["b"]})))


def test_floats_of_arrow_are_called_as_in_python():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.standard_normal(200) * 10.0 ** rng.integers(-20, 20, 200), [-0.0, 1e22, 5e-324]])
    columns = polyurn._tables.Frame(Stream(pa.table({"x": numbers}))).columns
    codes, labels = polyurn._encode.encode(columns["x"])
    assert [labels[code] for code in codes] == [polyurn._encode.label(number) for number in numbers]


def test_a_stream_is_read_once():
    capsule = pa.table({"x": ["a"]}).__arrow_c_stream__()
    assert polyurn._core.ArrowTable(capsule).names == ["x"]
    with pytest.raises(ValueError, match="read already"):
        polyurn._core.ArrowTable(capsule)
    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.string())]), failing())
    with pytest.raises(ValueError, match="no more batches today"):
        held(Stream(reader))


def failing():
    yield pa.record_batch({"x": pa.array(["a"])})
    raise RuntimeError("no more batches today")


def test_categories_are_kept_whether_they_occur_or_not():
    levels = ["low", "middle", "high"]
    for column in (
        pd.DataFrame({"x": pd.Categorical(["high", None, "low"], categories=levels)}),
        pl.DataFrame({"x": pl.Series(["high", None, "low"], dtype=pl.Enum(levels))}),
        pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int8()), levels)}),
    ):
        data = held(column)
        assert data.labels("x") == levels, type(column)
        assert rows(data)[0] == [((-1,), 1.0), ((0,), 1.0), ((2,), 1.0)]


def test_chunks_of_arrow_share_their_labels():
    chunks = pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["a", "c"]).dictionary_encode()])
    data = held(pa.table({"x": chunks}))
    by_label = {data.labels("x")[code]: n for ((code,), n) in rows(data)[0]}
    assert by_label == {"a": 2.0, "b": 1.0, "c": 1.0}


def test_numbers_beside_missing_values_keep_their_names():
    data = held(pd.DataFrame({"x": [1.0, np.nan, 2.0]}))
    assert data.labels("x") == ["1", "2"]
    assert held(pl.DataFrame({"x": [1.0, float("nan"), 2.0]})).labels("x") == ["1", "2"]


def test_a_count_that_is_not_a_number_is_unknown():
    found = polyurn.score("i -> j", [[3, 1], [2, np.nan]], b=0.1)
    assert found["totals"][0]["tokens"] == 6


def test_cells_that_nobody_counted_are_not_lost():
    for data in (polyurn.tensor([[0, 1, 1], [0, 1, 0]], [3, np.nan, 2], (2, 2)), held([[3, 0], [2, np.nan]])):
        counts = data.to_coo()[1]
        assert rows(data) == ([((0, 0), 3.0), ((1, 0), 2.0), ((1, 1), None)], (2, 2)) and np.isnan(counts).sum() == 1
        assert data.to_pandas()["count"].isna().sum() == 1 and "?" in str(data) and "1 of unknown count" in repr(data)
        again = polyurn.records(data.to_dict())
        expected = polyurn.score("i1 -> i2", data, b=0.1).log_evidence
        assert polyurn.score("i1 -> i2", again, b=0.1).log_evidence == pytest.approx(expected, rel=1e-12)


def test_masked_entries_are_missing(counts):
    masked = np.ma.masked_array(counts, mask=counts == counts.max())
    holes = np.where(masked.mask, np.nan, counts)
    for kind in (held, lambda X: polyurn.Data(as_dataset(X, fractions=True))):
        assert kind(masked).to_dict() == kind(holes).to_dict()
    assert rows(held(np.ma.masked_array(counts))) == rows(held(counts))
    answers = np.array([[0, 1], [1, 1], [0, 0]])
    gone = np.ma.masked_array(answers, mask=[[0, 1], [0, 0], [1, 0]])
    assert polyurn.records(gone).to_dict() == polyurn.records([[0, None], [1, 1], [None, 0]]).to_dict()


def test_other_forms_of_sparse_tensors(counts):
    tensor = np.stack([counts, 2 * counts])
    for X in (counts, tensor):
        for form in (sparse.GCXS(X), sparse.DOK(X)):
            assert rows(held(form)) == rows(held(X)), type(form)


def test_files_are_read_as_the_command_line_reads_them(tmp_path):
    (tmp_path / "people.csv").write_text("height,hair\n" + "".join(f"{n},{'fair' if n % 2 else 'dark'}\n" for n in range(8)))
    data = polyurn.read(tmp_path / "people.csv", bins="height=2:width")
    assert data.labels("height") == ["< 3.5", ">= 3.5"] and data.n_tokens == 8
    with pytest.raises(ValueError, match="bins age: there is no column of this name"):
        polyurn.read(tmp_path / "people.csv", bins=["age=2"])
    (tmp_path / "docword.x.txt").write_text("2\n2\n2\n1 1 3\n2 2 1\n")
    (tmp_path / "words").write_text("cat\ndog\n")
    assert polyurn.read(tmp_path / "docword.x.txt", format="uci", vocab=tmp_path / "words").labels(1) == ["cat", "dog"]
    with gzip.open(tmp_path / "long.csv.gz", "wt") as out:
        out.write("a\n" + "x\n" * 10_000)
    with pytest.raises((ValueError, OSError), match="max_unpacked"):
        polyurn.read(tmp_path / "long.csv.gz", max_unpacked="1k")
    with pytest.raises(ValueError, match="^max_unpacked: "):
        polyurn.read(tmp_path / "long.csv.gz", max_unpacked="much")


def test_short_numbers_are_read_where_they_are(counts):
    """Codes that are looked up are those that would be written down, whatever lies between one number and the next."""
    rng = np.random.default_rng(3)
    for dtype in (np.int8, np.uint8, np.int16, ">i2", np.uint16, bool):
        numbers = rng.integers(0, 2, size=(500, 6)) if dtype is bool else rng.integers(-100 if np.dtype(dtype).kind == "i" else 0, 200, size=(500, 6))
        numbers = numbers.astype(dtype)
        for table in (numbers, numbers[::-2, ::2], np.asfortranarray(numbers), numbers.reshape(-1, 3)):
            wide = np.asarray(table).astype(object if dtype is bool else np.int64)
            assert polyurn.records(table).to_dict() == polyurn.records(wide).to_dict(), dtype
    few = rng.integers(0, 3, size=(2000, 2)).astype(np.int8)
    whole = polyurn.LatentClass(2, random_state=1, max_iter=5, engine={"time_limit": 60})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = whole.fit(few).labels_
        assert np.array_equal(labels, polyurn.LatentClass(2, random_state=1, max_iter=5).fit(few.astype(np.int64)).labels_)
    with pytest.raises(ValueError, match="value `7` of `i2` was not in the data of the fit"):
        whole.predict(np.array([[1, 2], [0, 7]], dtype=np.int8))


def test_long_columns_of_objects_are_encoded_in_parts():
    from polyurn._encode import LONG_PART, encode

    n = LONG_PART + 1000
    values = np.array([None if row % 11 == 3 else f"v{row % 200}" if row < LONG_PART else float(row % 3) for row in range(n)], dtype=object)
    codes, labels = encode(pd.Series(values))
    expected, uniques = pd.factorize(values)
    assert np.array_equal(codes, expected) and codes.dtype == np.int16
    assert labels == [str(int(one)) if isinstance(one, float) else one for one in uniques]


def test_cuts_stay_with_data_and_their_fits(tmp_path):
    (tmp_path / "people.csv").write_text("height,hair\n" + "".join(f"{n / 2},{'fair' if n < 5 else 'dark'}\n" for n in range(10)))
    data = polyurn.read(tmp_path / "people.csv", bins="height=2:width")
    assert data.labels("height") == ["< 2.25", ">= 2.25"]
    raw, named = {"height": [0.25, 9, None], "hair": ["fair", None, "dark"]}, {"height": ["< 2.25", ">= 2.25", None]}
    named["hair"] = raw["hair"]
    for given in (data, pickle.loads(pickle.dumps(data))):
        made = polyurn.fit("height -> hair", given, method="exact")
        made.save(tmp_path / "made.polyurn")
        for fit in (made, polyurn.Fit.read(tmp_path / "made.polyurn"), pickle.loads(pickle.dumps(made))):
            assert np.array_equal(fit.predict(raw).log_probability, fit.predict(named).log_probability)
            assert fit.predict({"height": [-3, 77]}, impute=True).most_likely("hair")[0] == ["fair", "dark"]
            with pytest.raises(ValueError, match="value `tall` of `height` was not in the data of the fit"):
                fit.predict({"height": [1.0, "tall"]})
    renamed = polyurn.fit("size -> colour", data, method="exact", columns=["size", "colour"])
    assert np.array_equal(renamed.predict({"size": raw["height"]}).log_probability, renamed.predict({"size": named["height"]}).log_probability)
    drawn = polyurn.simulate(table=data, tokens=50, random_state=1)
    assert polyurn.fit("height -> hair", drawn, method="exact").predict({"height": [1.0]}).log_probability[0] < 0
    table = pd.DataFrame(raw).dropna()
    estimator = polyurn.AllocationModel("class[2] -> height hair", random_state=1).fit(data)
    assert np.array_equal(estimator.predict(table), estimator.predict(pd.DataFrame(named).dropna()))


def test_pickles_of_earlier_versions_are_read():
    """Codes of four bytes, and nothing of cuts."""
    data = polyurn.records({"a": ["x", "y", None], "b": [1, 2, 1]})
    maker, (header, values, counts) = data._core.__reduce__()
    assert "cuts" not in json.loads(header) and {codes.dtype for codes in values} == {np.dtype(np.uint32)}
    assert polyurn.Data(maker(header, values, counts)).to_dict() == data.to_dict()


def test_a_series_is_one_column():
    expected = rows(polyurn.records({"a": ["x", "y", "x"]}))
    for series in (pd.Series(["x", "y", "x"], name="a"), pl.Series("a", ["x", "y", "x"])):
        data = polyurn.records(series)
        assert rows(data) == expected and data.names == ["a"]


def test_what_is_wrong_is_said_with_its_place():
    with pytest.raises(ValueError, match="Negative values"):
        held([[1, -1]])
    with pytest.raises(ValueError, match="line 2, column count"):
        polyurn.score("i -> j", {"i": [0, 1], "j": [0, 1], "count": [1, np.inf]})
    with pytest.raises(ValueError, match="not whole"):
        polyurn.score("i -> k[2] -> j", [[1.5, 2], [3, 1]], method="exact")
    with pytest.raises(ValueError, match="not whole"):
        polyurn.score("i -> k[2] -> j", polyurn.tensor([[0, 1], [0, 1]], [1.5, 2]), method="exact")
    with pytest.raises(ValueError, match="fill value"):
        held(sparse.COO(np.ones((2, 2)), fill_value=1))
    with pytest.raises(ValueError, match="both called"):
        held({"x": np.array([1, "1"], dtype=object)})
    with pytest.raises(FileNotFoundError):
        polyurn.score("i -> j", "no such file.csv")


def test_nothing_is_made_dense():
    # A tensor of 10^18 cells with two tokens.
    coords = ([0, 999_999], [5, 7], [1, 999_999])
    found = polyurn.score("i -> r[2] -> j k", (coords, [1, 1], (10**6,) * 3), method="exact")
    assert np.isfinite(found.log_evidence)


def test_ten_million_records_are_read_where_they_are():
    """Equal records are merged as they come, so that hardly anything is added to the arrays that were given."""
    import resource

    n = 10**7
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 50, size=n, dtype=np.int32), rng.integers(0, 40, size=n, dtype=np.int32)]
    ones = np.ones(n, dtype=np.uint64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = polyurn.tensor(codes, ones, (50, 40))
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert data.n_tokens == n and len(data) == 2000
    assert added < 20e6, added


def test_no_column_is_lost_without_a_word():
    two = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ValueError, match="two columns named 'a'"):
        polyurn.records(two)
    with pytest.raises(ValueError, match="two columns named '1'"):
        polyurn.records({1: [0, 1], "1": [1, 0]})
    with pytest.raises(ValueError, match="two columns named 'a'"):
        polyurn.records(pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]))
    with pytest.raises(ValueError, match="2 names were given, and the array has 3 columns"):
        polyurn.records(np.ones((2, 3), int), columns=["a", "b"])
    with pytest.raises(ValueError, match="names of its own"):
        polyurn.records(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), columns=["a"])


def test_data_are_pickled():
    import copy
    import pickle

    tables = [
        polyurn.records({"x": pd.Categorical(["b", None, "a", "b"], categories=["a", "b", "c"]), "count": [2, 1, 0, 2**60]}),
        polyurn.tensor([[0, 1, 1], [0, 0, 2]], [3, 0.25, 2], (2, 3), names=["i", "j"]),
        polyurn.tensor([[0, 1], [0, 1]], [3, np.nan], (2, 2)),
        polyurn.records({"x": ["u", "u"], "y": ["v", "v"], "count": [1, 1]}),
        polyurn.simulate("r[2] -> i[3] j[4]", 10, seen=["i", "j"], random_state=1),
    ]
    for data in tables:
        for again in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
            assert rows(again) == rows(data) and again.names == data.names and again.sizes == data.sizes
            assert [again.labels(ix) for ix in range(len(data.names))] == [data.labels(ix) for ix in range(len(data.names))]
            assert again._core.unknown == data._core.unknown and again._core.is_whole == data._core.is_whole
            assert again._core.warnings == data._core.warnings and repr(again) == repr(data)
    model = "i[3] -> j[4]"
    assert polyurn.score(model, pickle.loads(pickle.dumps(tables[4]))).log_evidence == polyurn.score(model, tables[4]).log_evidence
    with pytest.raises(ValueError, match="no data of this version"):
        polyurn._core.Dataset.from_parts("{}", [], np.empty(0, np.uint64))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "?", ">i2", "i4", "i8", "f8"])
def test_numbers_of_any_width_get_the_same_codes(dtype):
    """In the order of their first appearance, also far down, and whatever lies between one and the next."""
    column = np.concatenate([np.full(70_000, 3), [1, 0, 1, 120], np.full(70_000, 1), [7]])
    table = np.stack([column, column[::-1]], axis=1).astype(dtype)
    data = polyurn.records(table)
    down, up = (data.labels(ix) for ix in (0, 1))
    if dtype == "?":
        assert (down, up) == (["True", "False"], ["True", "False"])
    else:
        assert (down, up) == (["3", "1", "0", "120", "7"], ["7", "1", "120", "0", "3"])
    expected = rows(polyurn.records(table.astype(np.int64)))
    assert rows(data) == expected
    assert rows(polyurn.records(pd.DataFrame(table.astype(table.dtype.newbyteorder("="))))) == expected
