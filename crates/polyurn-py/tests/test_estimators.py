"""Estimators keep scikit-learn's rules, and say what the library says."""

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import polyurn
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

pytestmark = pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")

QUICK = {"random_state": 0, "n_init": 1, "max_iter": 30}
DOCUMENTS = [polyurn.LDA, polyurn.NMF, polyurn.CP, polyurn.Tucker, polyurn.Pachinko]
RECORDS = [polyurn.LatentClass, polyurn.HMM]

# Checks of scikit-learn that cannot apply to models of counts, and why.
A_DOCUMENT_IS_NOT_TWO = (
    "a document with weight two is one document with twice the tokens and one row of hidden probabilities; two documents have two "
    "rows, so the two are different data"
)
VALUES_ARE_CATEGORIES = (
    "it fits and predicts real numbers, each of which is a category of its own here; a row that was left out of the fit has values "
    "that the fit does not know"
)
NO_CLASSIFIER = (
    "it takes everything that takes sparse data and has predict_proba for a classifier, and asks for its classes; our components "
    "are no classes of a target"
)
CANNOT_APPLY_TO_DOCUMENTS = {
    "check_sample_weight_equivalence_on_dense_data": A_DOCUMENT_IS_NOT_TWO,
    "check_sample_weight_equivalence_on_sparse_data": A_DOCUMENT_IS_NOT_TWO,
    "check_estimator_sparse_array": NO_CLASSIFIER,
    "check_estimator_sparse_matrix": NO_CLASSIFIER,
}
CANNOT_APPLY_TO_RECORDS = {"check_sample_weight_equivalence_on_dense_data": VALUES_ARE_CATEGORIES}


def checks():
    for kind in [*DOCUMENTS, polyurn.AllocationModel]:
        estimator = kind(**QUICK) if kind is polyurn.AllocationModel else kind(2, **QUICK)
        yield from ((one, check, CANNOT_APPLY_TO_DOCUMENTS) for one, check in estimator_checks_generator(estimator))
    for kind in RECORDS:
        estimator = kind(2, **QUICK)
        yield from ((one, check, CANNOT_APPLY_TO_RECORDS) for one, check in estimator_checks_generator(estimator))
    estimator = polyurn.SymmetricNMF(2, **QUICK)
    yield from ((one, check, {}) for one, check in estimator_checks_generator(estimator))


def name_of(value):
    return getattr(getattr(value, "func", value), "__name__", type(value).__name__)


@pytest.mark.parametrize(("estimator", "check", "exceptions"), list(checks()), ids=name_of)
def test_scikit_learns_checks_pass(estimator, check, exceptions, monkeypatch):
    """All but those above, and a blockmodel, whose data have three axes and theirs two."""
    # Without it scikit-learn skips its checks of arrays that are not NumPy's.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    if name_of(check) in exceptions:
        with pytest.raises((AssertionError, ValueError)):
            check(estimator)
    else:
        check(estimator)


ENGINES = {
    "vb": {}, "em": {"prior": "none"}, "dual-em": {}, "icm": {},
    "gibbs": {"engine": {"sweeps": 40, "chains": 3, "draws": 4}}, "smc": {"engine": {"particles": 20, "runs": 3}},
}


@pytest.mark.parametrize("method", ENGINES)
@pytest.mark.parametrize("kind", [*DOCUMENTS, *RECORDS, polyurn.Blockmodel, polyurn.SymmetricNMF])
def test_one_and_eight_jobs_give_the_same_arrays(survey, kind, method):
    rng = np.random.default_rng(0)
    three = polyurn.CP, polyurn.Tucker, polyurn.Blockmodel
    X = pd.DataFrame(survey) if kind in RECORDS else rng.poisson(2.0, size=(6, 6, 3) if kind in three else (6, 6))
    one, eight = (kind(2, random_state=3, method=method, n_jobs=n, **ENGINES[method]).fit(X) for n in (1, 8))
    assert np.array_equal(one.core_, eight.core_)
    assert all(np.array_equal(one.factors_[name], eight.factors_[name]) for name in one.factors_)
    if kind is not polyurn.SymmetricNMF:
        assert np.array_equal(one.transform(X), eight.transform(X)) and one.score(X) == eight.score(X)
    assert all(np.array_equal(*both) for both in zip(one.sample(20), eight.sample(20)))
    again = pickle.loads(pickle.dumps(one))
    assert all(np.array_equal(one.factors_[name], again.factors_[name]) for name in one.factors_)
    assert clone(one).get_params() == one.get_params()


def test_topics_that_were_put_in_come_out():
    rng = np.random.default_rng(1)
    topics = np.array([[0.5, 0.5, 0, 0, 0, 0], [0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 0.5, 0.5]])
    shares = rng.dirichlet(np.full(3, 0.1), size=80)
    X = np.stack([rng.multinomial(60, row @ topics) for row in shares])
    model = polyurn.LDA(3, random_state=1).fit(X[:60])
    order, alike = polyurn.metrics.align(topics, model.components_)
    assert alike.min() > 0.999
    # With 60 tokens a share p is known to sqrt(p (1 - p) / 60), 0.065 at most; four and a half times that.
    assert np.abs(model.transform(X[60:])[:, order] - shares[60:]).max() < 4.5 * 0.065
    assert np.array_equal(model.labels_[:60], model.predict(X[:60]))


def test_classes_that_were_put_in_come_out():
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=400)
    tables = np.array([[0.95, 0.9, 0.9, 0.95], [0.1, 0.05, 0.1, 0.05]])
    X = (rng.random((400, 4)) < tables[truth]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = polyurn.LatentClass(2, random_state=1).fit(X)
    same = np.mean(model.labels_ == truth)
    # A person is mistaken with probability below 0.03; five standard errors above that.
    assert max(same, 1 - same) > 1 - 0.03 - 5 * np.sqrt(0.03 / 400)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(proba.argmax(axis=1), model.predict(X))


def test_probabilities_of_records_are_those_of_the_tables(survey):
    frame = pd.DataFrame(survey)
    model = polyurn.LatentClass(2, random_state=1).fit(frame)
    share = model.fit_.table("r")
    tables = {name: model.components_[name] for name in survey}
    codes = {name: [model.fit_.labels(name).index(value) for value in frame[name]] for name in survey}
    joint = np.prod([tables[name][:, codes[name]] for name in survey], axis=0) * share[:, None]
    np.testing.assert_allclose(model.score_samples(frame), np.log(joint.sum(axis=0)), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(frame), (joint / joint.sum(axis=0)).T, rtol=1e-10)
    assert model.score(frame) == pytest.approx(np.log(joint.sum(axis=0)).mean(), rel=1e-12)
    n_parameters = 1 + 2 * 3
    assert model.aic(frame) == pytest.approx(-2 * np.log(joint.sum(axis=0)).sum() + 2 * n_parameters, rel=1e-12)
    assert model.bic(frame) == pytest.approx(-2 * np.log(joint.sum(axis=0)).sum() + n_parameters * np.log(60), rel=1e-12)


def test_evidence_is_that_of_the_functions(survey):
    matrix = np.array([[3, 1, 0], [0, 2, 2]])
    model = polyurn.LDA(2, random_state=5).fit(matrix)
    score = polyurn.score("lda(2)", matrix, a=1.0, random_state=5)
    assert (model.log_evidence_, model.log_evidence_std_error_) == (score.log_evidence, None)
    particles = {"particles": 50, "runs": 3}
    model = polyurn.LDA(2, random_state=5, method="smc", engine=particles).fit(matrix)
    score = polyurn.score("lda(2)", matrix, a=1.0, random_state=5, method="smc", **particles)
    assert (model.log_evidence_, model.log_evidence_std_error_) == (score.log_evidence, score.std_error)
    model = polyurn.LDA(2, random_state=5).fit(matrix)
    model.log_evidence_
    assert model.elbo_ == polyurn.score("lda(2)", matrix, a=1.0, random_state=5, method="vb").log_evidence
    seen = {"a": survey["a"], "b": survey["b"]}
    exact = polyurn.AllocationModel("a -> b", method="exact").fit(pd.DataFrame(seen))
    assert exact.log_evidence_std_error_ is None
    assert exact.log_evidence_ == polyurn.score("a -> b", seen, a=1.0, method="exact").log_evidence
    again = pickle.loads(pickle.dumps(model))
    assert again.log_evidence_ == model.log_evidence_
    with pytest.raises(AttributeError, match="did not come with the pickle"):
        pickle.loads(pickle.dumps(clone(model).fit(matrix))).log_evidence_


@pytest.mark.parametrize("size", [1, 2, 3])
def test_presets_that_let_new_samples_in_have_the_evidence_of_those_that_do_not(size):
    rng = np.random.default_rng(size)
    X = rng.poisson(0.35, size=(3, 3, 2))
    ours = polyurn.CP(size)._text(X.shape)
    assert polyurn.score(ours, X, method="exact").log_evidence == pytest.approx(
        polyurn.score(f"cp({size})", X, method="exact").log_evidence, rel=1e-10
    )
    ours = polyurn.Tucker(min(size, 2))._text(X.shape)
    assert polyurn.score(ours, X, method="exact").log_evidence == pytest.approx(
        polyurn.score(f"tucker({','.join(3 * [str(min(size, 2))])})", X, method="exact").log_evidence, rel=1e-10
    )
    matrix = X.sum(axis=2)
    ours = polyurn.NMF(size)._text(matrix.shape)
    assert polyurn.score(ours, matrix, method="exact").log_evidence == pytest.approx(
        polyurn.score(f"nmf({size})", matrix, method="exact").log_evidence, rel=1e-10
    )


def test_matrix_factors_give_the_matrix_back(matrix):
    model = polyurn.NMF(2, method="em", prior="none", random_state=1, n_init=4, tol=1e-12, max_iter=5000).fit(matrix)
    W = model.transform(matrix)
    # Rows are inferred anew, each to a share of 1e-9 of its tokens.
    assert polyurn.metrics.kl_divergence(matrix, W @ model.components_) == pytest.approx(
        model.fit_.kl_divergence, rel=1e-5
    )
    np.testing.assert_allclose(model.inverse_transform(W), W @ model.components_)
    assert model.components_.sum() == pytest.approx(matrix.sum(), rel=1e-9)


def test_factors_of_a_tensor_give_it_back():
    rng = np.random.default_rng(4)
    X = rng.poisson(polyurn.metrics.reconstruct([300.0, 500.0], [rng.dirichlet(np.ones(n), 2) for n in (4, 5, 3)]))
    model = polyurn.CP(2, method="em", prior="none", random_state=1, tol=1e-12, max_iter=5000).fit(X)
    expected = polyurn.metrics.reconstruct(model.weights_, [model.factors_[f"i{ix}"] for ix in (1, 2, 3)])
    assert polyurn.metrics.kl_divergence(X, expected) == pytest.approx(model.fit_.kl_divergence, rel=1e-8)
    assert polyurn.Tucker((2, 3, 2), random_state=1).fit(X).core_.shape == (2, 3, 2)


def test_memberships_of_a_symmetric_model_are_probabilities():
    rng = np.random.default_rng(4)
    X = rng.poisson(2, size=(6, 6))
    model = polyurn.SymmetricNMF(2, random_state=1).fit(X)
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0)
    assert not hasattr(model, "transform") and not hasattr(model, "predict")


def test_a_blockmodel_places_new_sources():
    rng = np.random.default_rng(4)
    X = rng.poisson(1.0, size=(6, 6, 2))
    model = polyurn.Blockmodel(2, random_state=1).fit(X)
    np.testing.assert_allclose(model.transform(X[:2]).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="3 axes"):
        polyurn.Blockmodel(2).fit(X[:, :, 0])


def test_states_of_a_chain_come_one_for_each_step():
    rng = np.random.default_rng(4)
    X = rng.integers(3, size=(50, 4))
    model = polyurn.HMM(2, tied=True, random_state=1).fit(X)
    assert model.predict(X).shape == (50, 4) and model.predict_proba(X).shape == (50, 4, 2)


def test_samples_follow_the_tables():
    rng = np.random.default_rng(4)
    X = rng.integers(2, size=(200, 2)).astype(float)
    model = polyurn.LatentClass(2, random_state=1).fit(X)
    drawn, hidden = model.sample(40_000)
    assert drawn.shape == (40_000, 2) and hidden.shape == (40_000,)
    expected = model.fit_.marginal(["r", "i1", "i2"])
    found = np.zeros_like(expected)
    places = [np.array([model.fit_.labels(f"i{ix + 1}").index(f"{value:g}") for value in drawn[:, ix]]) for ix in range(2)]
    np.add.at(found, (hidden, *places), 1 / 40_000)
    # Eight cells, each known to sqrt(p / 40000) or better: five standard errors of the largest.
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected.max() / 40_000)


def test_samples_have_the_names_that_were_given(survey, matrix):
    frame = pd.DataFrame(survey)
    drawn, hidden = polyurn.LatentClass(2, random_state=1).fit(frame).sample(50)
    assert set(np.unique(drawn)) == {"yes", "no"} and set(hidden) <= {0, 1}
    mixed = pd.DataFrame({"n": [10, 30, 10, 30], "x": [0.5, 2.0, 0.5, 2.0], "is": [True, False, True, False], "w": list("uvuv")})
    drawn, _ = polyurn.LatentClass(2, random_state=1).fit(mixed).sample(40)
    kinds = [{type(value) for value in column} for column in drawn.T]
    assert kinds == [{int}, {float}, {bool}, {str}] and set(drawn[:, 0]) == {10, 30} and set(drawn[:, 1]) == {0.5, 2.0}
    codes = np.array([[7, 9], [9, 7], [7, 7]])
    drawn, _ = polyurn.LatentClass(2, random_state=1).fit(codes).sample(30)
    assert drawn.dtype == np.int64 and set(np.unique(drawn)) == {7, 9}
    drawn, _ = polyurn.LDA(2, random_state=1).fit(matrix).sample(30)
    assert drawn.dtype.kind == "i" and (drawn < matrix.shape).all()
    words = [f"word {ix}" for ix in range(8)]
    drawn, _ = polyurn.LDA(2, random_state=1).fit(pd.DataFrame(matrix, columns=words)).sample(30)
    assert set(drawn[:, 1]) <= set(words) and all(isinstance(doc, int) for doc in drawn[:, 0])


@pytest.mark.parametrize("make", [lambda: None, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)])
def test_samples_differ_from_call_to_call_unless_the_seed_is_a_number(matrix, make):
    model = polyurn.LDA(2, random_state=make()).fit(matrix)
    assert not np.array_equal(model.sample(200)[0], model.sample(200)[0])
    model = polyurn.LDA(2, random_state=3).fit(matrix)
    assert np.array_equal(model.sample(200)[0], model.sample(200)[0])


def test_weights_are_counts(survey):
    frame = pd.DataFrame(survey)
    weights = np.arange(60) % 3
    weighted = polyurn.LatentClass(2, random_state=1).fit(frame, sample_weight=weights)
    repeated = polyurn.LatentClass(2, random_state=1).fit(frame.iloc[np.repeat(np.arange(60), weights)])
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, rel=1e-9)
    with pytest.raises(ValueError, match="not whole"):
        polyurn.LatentClass(2, method="smc").fit(frame, sample_weight=np.full(60, 0.5))
    with warnings.catch_warnings():
        # That people answer alike is no news.
        warnings.simplefilter("error", polyurn.DataWarning)
        polyurn.LatentClass(2, random_state=1).fit(frame, sample_weight=np.full(60, 0.5))


def test_data_that_were_read_are_fitted_with_weights_too(matrix):
    coords = np.nonzero(matrix)
    data, weights = polyurn.tensor(coords, matrix[coords], matrix.shape), np.arange(12) % 3
    weighted = polyurn.LDA(2, random_state=1).fit(data, sample_weight=weights)
    assert weighted.elbo_ == polyurn.LDA(2, random_state=1).fit(matrix, sample_weight=weights).elbo_
    assert weighted.n_features_in_ == 8 and weighted.labels_.shape == (12,)


def test_estimators_work_in_pipelines_and_searches():
    texts = ["cat dog cat", "dog cat dog", "stock bond stock", "bond stock bond"] * 6
    pipeline = make_pipeline(CountVectorizer(), polyurn.LDA(2, random_state=1))
    shares = pipeline.fit_transform(texts)
    assert (shares[0] @ shares[1] > 0.9) and (shares[0] @ shares[2] < 0.1)
    names = pipeline.get_feature_names_out()
    assert list(names) == ["lda0", "lda1"]
    X = scipy.sparse.csr_array(CountVectorizer().fit_transform(texts))
    search = GridSearchCV(polyurn.LDA(random_state=1, n_init=2), {"n_components": [1, 2]}, cv=3).fit(X)
    assert search.best_params_ == {"n_components": 2}


def test_estimators_can_be_cloned_and_pickled(matrix):
    model = polyurn.LDA(2, random_state=1, method="gibbs", engine={"sweeps": 30, "chains": 2}).fit(matrix)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.transform(matrix), model.transform(matrix))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(matrix)


def test_frames_of_numbers_are_matrices_and_frames_of_words_are_records(matrix):
    frame = pd.DataFrame(matrix, columns=[f"word {ix}" for ix in range(8)])
    model = polyurn.LDA(2, random_state=1).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.elbo_ == polyurn.LDA(2, random_state=1).fit(matrix).elbo_
    matrix = np.array([[3, 1, 0], [0, 2, 2]])
    docs, words = np.nonzero(matrix)
    long = pd.DataFrame({"doc": docs.astype(str), "word": words.astype(str), "count": matrix[docs, words]})
    records = polyurn.LDA(2, random_state=1).fit(long)
    assert records.log_evidence_ == pytest.approx(polyurn.score("doc -> t[2] -> word", long, a=1.0, random_state=1).log_evidence)


def test_arrays_of_records_bind_to_the_nodes_in_order(survey):
    frame = pd.DataFrame(survey)
    model = polyurn.AllocationModel("class[2] -> a b c", kind="records", random_state=1).fit(frame.to_numpy())
    named = polyurn.AllocationModel("class[2] -> a b c", random_state=1).fit(frame)
    assert model.elbo_ == named.elbo_
    assert np.array_equal(model.predict_proba(frame.to_numpy()), named.predict_proba(frame))


def test_files_and_data_are_fitted_too(matrix, tmp_path):
    import scipy.io

    scipy.io.mmwrite(tmp_path / "matrix.mtx", scipy.sparse.coo_array(matrix))
    from_file = polyurn.LDA(2, random_state=1).fit(tmp_path / "matrix.mtx")
    from_data = polyurn.LDA(2, random_state=1).fit(polyurn.read(tmp_path / "matrix.mtx"))
    assert from_file.elbo_ == from_data.elbo_
    assert np.array_equal(from_file.transform(matrix), from_data.transform(matrix))
    records = polyurn.LatentClass(2, random_state=1).fit({"x": list("aabb"), "y": list("ccdd")})
    assert records.n_features_in_ == 2 and records.labels_.shape == (4,)
    with pytest.raises(ValueError, match="have no order"):
        records.predict(polyurn.records({"x": list("ab"), "y": list("cd")}))


def test_a_fit_that_fails_leaves_none_behind(matrix):
    model = polyurn.LDA(2, random_state=1)
    with pytest.raises(ValueError, match="Negative"):
        model.fit(-matrix)
    with pytest.raises(NotFittedError):
        model.predict(matrix)
    model.fit(matrix)
    with pytest.raises(ValueError, match="n_components"):
        model.set_params(n_components=0).fit(matrix)
    with pytest.raises(NotFittedError):
        model.transform(matrix)
    with pytest.raises(NotFittedError):
        model.log_evidence_


def test_evidence_is_that_of_the_fit_whatever_was_set_since():
    matrix = np.array([[3, 1, 0], [0, 2, 2]])
    model = polyurn.LDA(2, random_state=5).fit(matrix)
    model.set_params(n_components=3, a=7.0, prior="none")
    assert model.log_evidence_ == polyurn.score("lda(2)", matrix, a=1.0, random_state=5).log_evidence


def test_showing_an_estimator_works_nothing_out():
    """Notebooks list all attributes of what they show, and ask for each."""
    X = np.random.default_rng(0).poisson(3, size=(30, 30))
    model = polyurn.LDA(20, random_state=1, n_init=1, max_iter=5).fit(X)
    start = time.perf_counter()
    assert "components_" in dir(model) and "labels_" in model._repr_html_()
    assert "log_evidence_" not in dir(model) and model._score is None
    # Its evidence takes many times as long.
    assert time.perf_counter() - start < 2.0
    small = polyurn.LDA(2, random_state=1).fit(np.array([[3, 1, 0], [0, 2, 2]]))
    assert np.isfinite(small.log_evidence_) and "log_evidence_" in dir(small)
    assert "log_evidence_" not in dir(polyurn.LDA(2)) and "predict" in dir(polyurn.LDA(2))
    assert "predict" not in dir(polyurn.SymmetricNMF(2))


def test_evidence_keeps_the_time_limit():
    X = np.random.default_rng(1).poisson(3.0, size=(60, 60))
    model = polyurn.LDA(5, random_state=1, n_init=1, max_iter=5, engine={"time_limit": 2.0}).fit(X)
    start = time.perf_counter()
    try:
        assert np.isfinite(model.log_evidence_)
    except TimeoutError:
        pass
    assert time.perf_counter() - start < 6.0


@pytest.mark.parametrize("kind", [polyurn.NMF, polyurn.CP, polyurn.Tucker, polyurn.LDA, polyurn.LatentClass])
def test_averages_over_all_namings_are_refused(kind):
    with pytest.raises(ValueError, match="averages over all namings"):
        kind(2, method="exact").fit(np.array([[2, 1, 0], [0, 3, 1]]))
    # The model alone tells: of data for which the exact posterior would take years the answer is the same, and at once.
    start = time.perf_counter()
    with pytest.raises(ValueError, match="averages over all namings"):
        kind(2, method="exact").fit(np.random.default_rng(0).integers(0, 30, size=(40, 40)))
    assert time.perf_counter() - start < 2.0


def test_an_exact_fit_is_made_where_names_are_fixed():
    X = np.array([[2, 1, 0], [0, 3, 1]])
    model = polyurn.NMF(1, method="exact").fit(X)
    assert model.log_evidence_ == pytest.approx(polyurn.score("nmf(1)", X, a=1.0, method="exact").log_evidence, rel=1e-12)
    np.testing.assert_allclose(model.components_.sum(), X.sum())


def test_what_is_wrong_is_said(matrix, survey):
    with pytest.raises(ValueError, match="belongs to a prior"):
        polyurn.LDA(2, a=3.0, prior="none", method="em").fit(matrix)
    with pytest.raises(ValueError, match="n_components"):
        polyurn.LDA(0).fit(matrix)
    with pytest.raises(ValueError, match="kind"):
        polyurn.LDA(2, kind="table").fit(matrix)
    with pytest.raises(ValueError, match="method"):
        polyurn.LDA(2, method="magic").fit(matrix)
    with pytest.raises(ValueError, match="unknown setting 'swoops'"):
        polyurn.LDA(2, engine={"swoops": 3}).fit(matrix)
    with pytest.raises(ValueError, match="engine: expected a dict"):
        polyurn.LDA(2, engine=[3]).fit(matrix)
    with pytest.raises(ValueError, match="engine: n_init is a parameter of its own"):
        polyurn.LDA(2, engine={"n_init": 3}).fit(matrix)
    with pytest.raises(ValueError, match="a: expected a positive number"):
        polyurn.LDA(2, a="large").fit(matrix)
    for n_samples in (0, 2.5, "3", True):
        with pytest.raises(ValueError, match="'n_samples'"):
            polyurn.LDA(2, random_state=1).fit(matrix).sample(n_samples)
    with pytest.raises(ValueError, match="n_jobs: expected a whole number"):
        polyurn.LDA(2, n_jobs="all").fit(matrix)
    with pytest.raises(ValueError, match="all counts are zero"):
        polyurn.LDA(2).fit(np.zeros((3, 3)))
    model = polyurn.LatentClass(2, random_state=1).fit(pd.DataFrame(survey))
    other = pd.DataFrame({"a": ["yes", "perhaps"], "b": ["no", "no"], "c": ["no", "yes"]})
    with pytest.raises(ValueError, match="value `perhaps` of `a` was not in the data"):
        model.predict(other)
    assert model.set_params(handle_unknown="missing").predict(other).shape == (2,)
