"""One rule says what data are, for frames of every library, functions and estimators."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import polyurn
import pyarrow as pa
import pytest
import scipy.sparse

pytestmark = pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")

MATRIX = np.array([[3, 1, 0, 2], [0, 2, 2, 0], [1, 0, 0, 4]])
WORDS = ["cat", "dog", "fish", "hen"]


class Stream:
    """Nothing but the stream of a table."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def frames(columns):
    """The same table by all libraries."""
    table = pa.table(columns)
    yield from (pd.DataFrame(columns), pl.DataFrame(columns), pl.LazyFrame(columns), table, Stream(table), columns)


def matrix_frames(names=WORDS):
    return frames({name: MATRIX[:, ix] for ix, name in enumerate(names)})


@pytest.mark.parametrize("frame", list(matrix_frames()), ids=lambda frame: type(frame).__module__.split(".")[0])
def test_frames_of_numbers_are_what_kind_says_in_every_library(frame):
    expected = polyurn.score("row -> k[2] -> column", MATRIX).log_evidence
    assert polyurn.score("row -> k[2] -> column", frame, kind="matrix").log_evidence == expected
    records = polyurn.score("class[2] -> cat dog fish hen", frame)
    assert records["tokens"] == 3
    assert polyurn.score("class[2] -> cat dog fish hen", frame, kind="records").log_evidence == records.log_evidence
    lda = polyurn.LDA(2, random_state=1).fit(frame)
    assert lda.elbo_ == polyurn.LDA(2, random_state=1).fit(MATRIX).elbo_
    assert list(lda.feature_names_in_) == WORDS
    np.testing.assert_array_equal(lda.transform(frame), lda.transform(pd.DataFrame(MATRIX, columns=WORDS)))
    classes = polyurn.LatentClass(2, random_state=1).fit(frame)
    assert sorted(classes.components_) == sorted(WORDS)


@pytest.mark.parametrize("frame", list(matrix_frames(["cat", "count", "fish", "hen"])), ids=lambda frame: type(frame).__module__.split(".")[0])
def test_a_word_called_count_is_asked_about(frame):
    with pytest.raises(ValueError, match='a column .count. may be a matrix'):
        polyurn.LDA(2).fit(frame)
    assert polyurn.LDA(2, kind="matrix", random_state=1).fit(frame).elbo_ == polyurn.LDA(2, random_state=1).fit(MATRIX).elbo_
    assert polyurn.score("row -> k[2] -> column", frame, kind="matrix")["tokens"] == MATRIX.sum()
    # A list of records in functions and in estimators of records, as in CSV files.
    assert polyurn.score("class[2] -> cat fish hen", frame)["tokens"] == 3


def long():
    docs, words = np.nonzero(MATRIX)
    n = MATRIX[docs, words]
    return {"doc": np.repeat(docs, n), "word": np.repeat(words, n)}


@pytest.mark.parametrize("frame", list(frames(long())), ids=lambda frame: type(frame).__module__.split(".")[0])
def test_a_long_frame_of_whole_numbers_is_not_taken_for_a_matrix_without_a_word(frame):
    with pytest.warns(polyurn.DataWarning, match='2 columns of whole numbers was taken for a matrix'):
        polyurn.LDA(2, random_state=1).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", polyurn.DataWarning)
        records = polyurn.LDA(2, kind="records", random_state=1).fit(frame)
        polyurn.LDA(2, kind="matrix", random_state=1).fit(frame)
    assert records.fit_["tokens"] == MATRIX.sum()


def test_named_columns_of_a_matrix_are_its_labels():
    for frame in matrix_frames():
        fit = polyurn.fit("row -> k[2] -> column", frame, kind="matrix", random_state=1)
        assert fit.labels("column") == WORDS
    sparse = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_array(MATRIX), columns=WORDS)
    fit = polyurn.fit("row -> k[2] -> column", sparse, kind="matrix", random_state=1)
    assert fit.labels("column") == WORDS and fit["tokens"] == MATRIX.sum()


def test_arrays_are_what_kind_says():
    X = np.array([[0, 1], [1, 0], [1, 1]])
    as_records = polyurn.score("class[2] -> a b", X, kind="records")
    assert as_records.log_evidence == polyurn.score("class[2] -> a b", {"a": X[:, 0], "b": X[:, 1]}).log_evidence
    texts = np.array([["x", "y"], ["y", "x"]])
    assert polyurn.select("lca(1..2)", texts, kind="records", random_state=1).models[0]["method"] == "exact"
    assert polyurn.simulate(table=X, kind="records", tokens=5, random_state=1).n_tokens == 5
    assert polyurn.fit("a -> b", X, kind="records", method="exact")["tokens"] == 3
    assert polyurn.compare(["a -> b", "b -> a"], X, kind="records", random_state=1).models[0]["method"] == "exact"


def test_a_kind_that_contradicts_is_refused_in_one_line(tmp_path):
    csv, tns = tmp_path / "long.csv", tmp_path / "cells.tns"
    csv.write_text("a,b\nx,y\nx,z\n")
    tns.write_text("1 1 2\n2 2 1\n")
    cube = np.ones((2, 2, 2), int)
    wrong = [
        (lambda: polyurn.read(csv, kind="matrix"), "long.csv holds records"),
        (lambda: polyurn.read(tns, kind="records"), "cells.tns holds counts of cells"),
        (lambda: polyurn.score("a -> b", csv, kind="tensor"), "holds records"),
        (lambda: polyurn.LDA(2, kind="records").fit(tns), "holds counts of cells"),
        (lambda: polyurn.score("i -> j", polyurn.read(csv), kind="matrix"), "holds records"),
        (lambda: polyurn.score("i -> j", pd.DataFrame(MATRIX), kind="tensor"), "a frame has rows and columns"),
        (lambda: polyurn.score("i -> j", {"a": ["x"], "b": [1]}, kind="matrix"), "'a' holds no numbers"),
        (lambda: polyurn.score("i -> j -> k", cube, kind="matrix"), "a matrix has 2 axes, and these counts have 3"),
        (lambda: polyurn.CP(2, kind="matrix").fit(cube), "a matrix has 2 axes, and these counts have 3"),
        (lambda: polyurn.score("i -> j", scipy.sparse.csr_array(MATRIX), kind="records"), "a sparse tensor"),
        (lambda: polyurn.LatentClass(2, kind="records").fit(scipy.sparse.csr_array(MATRIX)), "a sparse tensor"),
        (lambda: polyurn.score("i -> j", MATRIX, kind="table"), "expected .auto., .records., .matrix. or .tensor."),
        (lambda: polyurn.LDA(2, kind="table").fit(MATRIX), "expected .auto., .records., .matrix. or .tensor."),
        (lambda: polyurn.simulate("r[2] -> i[2]", 3, kind="records"), "there is none"),
    ]
    for act, why in wrong:
        with pytest.raises(ValueError, match=why) as caught:
            act()
        assert "\n" not in str(caught.value)
    assert polyurn.read(csv, kind="records").n_tokens == 2
    assert polyurn.read(tns, kind="tensor").n_tokens == polyurn.read(tns, kind="matrix").n_tokens == 3
    # Numbered axes with names may be either.
    named = polyurn.tensor([[0, 1], [0, 1]], [2, 1], (2, 2), names=["i", "j"])
    assert len({polyurn.score("i -> j", named, kind=kind).log_evidence for kind in ("auto", "records", "tensor")}) == 1


def test_a_matrix_that_was_taken_for_records_is_hinted_at():
    hint = 'taken for records: say kind="matrix"'
    for frame in (pd.DataFrame(MATRIX, columns=WORDS), pl.DataFrame(MATRIX, schema=WORDS), pa.table(dict(zip(WORDS, MATRIX.T)))):
        for act in (
            lambda: polyurn.score("lda(2)", frame),
            lambda: polyurn.fit("row -> k[2] -> column", frame),
            lambda: polyurn.select("nmf(1..2)", frame),
            lambda: polyurn.AllocationModel("lda(2)").fit(frame),
        ):
            with pytest.raises(ValueError, match=hint) as caught:
                act()
            assert hint in str(caught.value).splitlines()[0]
    with pytest.raises(ValueError) as caught:
        polyurn.score("lda(2)", {"a": ["x"], "b": ["y"], "c": ["z"]})
    assert "kind" not in str(caught.value)
