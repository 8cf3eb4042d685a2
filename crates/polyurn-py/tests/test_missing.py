"""None, NaN and NA are missing answers in records, and cells that nobody counted in arrays."""

import numpy as np
import pandas as pd
import polars as pl
import polyurn
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")

ANSWERS = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 4, dtype=float)


@pytest.fixture
def gaps():
    """Answers some of which are missing, and one person who gave none."""
    X = ANSWERS.copy()
    X[[0, 3, 7, 20], [0, 1, 2, 1]] = np.nan
    X[9] = np.nan
    return X


def forms(X):
    words = np.where(np.isnan(X), None, np.where(X == 1, "1", "0"))
    names = ["a", "b", "c"]
    yield pd.DataFrame(X, columns=names)
    yield pd.DataFrame(X, columns=names).astype("Int64")
    yield pd.DataFrame(words, columns=names)
    yield pl.DataFrame({name: words[:, ix].tolist() for ix, name in enumerate(names)})
    yield {name: words[:, ix].tolist() for ix, name in enumerate(names)}
    yield np.ma.masked_array(np.nan_to_num(X), mask=np.isnan(X))


def test_all_ways_of_saying_that_an_answer_is_missing_are_the_same(gaps):
    expected = polyurn.LatentClass(2, random_state=1).fit(gaps)
    assert np.array_equal(expected.labels_, expected.predict(gaps))
    for X in forms(gaps):
        model = polyurn.LatentClass(2, random_state=1).fit(X)
        assert model.elbo_ == expected.elbo_, type(X)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(gaps))
        np.testing.assert_array_equal(model.score_samples(X), expected.score_samples(gaps))


@pytest.mark.parametrize("method", ["vb", "em", "gibbs", "smc", "icm", "dual-em"])
@pytest.mark.parametrize("kind", [polyurn.LatentClass, polyurn.HMM])
def test_estimators_of_records_take_missing_answers_with_every_engine(gaps, kind, method):
    quick = {"smc": {"particles": 30, "runs": 2}, "gibbs": {"sweeps": 60, "chains": 2}}.get(method)
    model = kind(2, method=method, random_state=1, engine=quick).fit(gaps)
    proba = model.predict_proba(gaps)
    np.testing.assert_allclose(proba.sum(axis=-1), 1.0, rtol=1e-9)
    assert np.isfinite(model.score(gaps)) and np.isfinite(model.transform(gaps)).all()
    # A row without answers has ln probability 0, and the classes' shares.
    assert model.score_samples(gaps)[9] == pytest.approx(0.0, abs=1e-9)


def test_other_estimators_take_missing_answers_in_frames(gaps):
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"])
    for model in (
        polyurn.AllocationModel("class[2] -> a b c", random_state=1),
        polyurn.Blockmodel(2, kind="records", random_state=1),
        polyurn.CP(2, kind="records", random_state=1),
        polyurn.Tucker(2, kind="records", random_state=1),
    ):
        assert np.isfinite(model.fit(frame).elbo_)
        assert np.isfinite(model.transform(frame)).all() and len(model.predict(frame)) == len(frame)
    exact = polyurn.AllocationModel("a -> b; a -> c", method="exact").fit(frame[:8])
    assert exact.log_evidence_ == polyurn.score("a -> b; a -> c", frame[:8], a=1.0, method="exact").log_evidence


CELLS = np.array([[3.0, 1.0, 0.0], [0.0, np.nan, 2.0]])


@pytest.mark.parametrize("kind", [polyurn.LDA, polyurn.NMF, polyurn.CP, polyurn.Tucker, polyurn.Pachinko, polyurn.AllocationModel])
def test_a_cell_that_nobody_counted_needs_b(kind):
    size = ("lda(2)",) if kind is polyurn.AllocationModel else (2,)
    with pytest.raises(ValueError, match="X contains NaN, a cell that nobody counted.*give b"):
        kind(*size).fit(CELLS)
    coo = (np.nonzero(CELLS), CELLS[np.nonzero(CELLS)], (2, 3))
    frame = pd.DataFrame(CELLS) if kind is not polyurn.AllocationModel else CELLS
    masked = np.ma.masked_array(np.nan_to_num(CELLS), mask=np.isnan(CELLS))
    for X in (CELLS, frame, coo, polyurn.tensor(*coo), masked):
        with pytest.raises(ValueError, match="X contains NaN, a cell that nobody counted.*give b"):
            kind(*size).fit(X)
        model = kind(*size, b=0.1, random_state=1).fit(X)
        assert model.elbo_ == kind(*size, b=0.1, random_state=1).fit(CELLS).elbo_
        with pytest.raises(ValueError, match="need all their counts"):
            model.transform(X)
    with pytest.raises(ValueError, match="give --b|give b"):
        polyurn.score("i -> k[2] -> j", CELLS, method="smc")


def test_the_evidence_with_unknown_cells_is_that_of_the_function():
    model = polyurn.NMF(2, b=0.5, random_state=1).fit(CELLS)
    expected = polyurn.score("i1 -> k[2] -> i2", CELLS, a=1.0, b=0.5, random_state=1)
    assert model.log_evidence_ == expected.log_evidence
