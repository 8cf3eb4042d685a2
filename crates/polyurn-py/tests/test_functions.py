"""Functions and their results."""

import json

import numpy as np
import polyurn
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
TOY = {"i": [0, 0, 0, 1, 1, 2, 2], "j": [0, 1, 2, 2, 3, 2, 3], "count": [2, 1, 1, 1, 2, 1, 1]}


def test_the_parts_of_the_evidence_add_up():
    found = polyurn.score("i -> k[2] -> j", TOY)
    parts = found.log_p_total + found.log_arrangements + found.log_p_sequence
    assert found.bound == "exact" and found.std_error is None
    assert found.log_evidence == pytest.approx(parts, rel=1e-12)


def test_estimates_lie_around_the_exact_number():
    exact = polyurn.score("i -> k[2] -> j", TOY).log_evidence
    found = polyurn.score("i -> k[2] -> j", TOY, method="smc", particles=2000, runs=8, random_state=1)
    # Four and a half standard errors, and the seed is fixed.
    assert abs(found.log_evidence - exact) < 4.5 * found.std_error
    assert found.std_error < 0.05
    assert polyurn.score("i -> k[2] -> j", TOY, method="vb", random_state=1).log_evidence < exact


def test_results_are_data_frames_plots_and_pages():
    import matplotlib

    matplotlib.use("Agg")
    score = polyurn.score("i -> k[2] -> j", TOY, method="smc", particles=100, runs=3, random_state=1)
    assert score.to_pandas()["log_marginal"] == score.log_evidence
    assert json.loads(score.json) == score.to_dict()
    assert len(score.plot().lines) == 2
    assert "ln evidence" in score._repr_html_() and "smc" in repr(score)
    ranking = polyurn.select("nmf(1..3)", TOY, columns=["i", "j"], random_state=1)
    frame = ranking.to_pandas()
    assert list(frame["k"]) == [model["sizes"]["k"] for model in ranking.models]
    assert frame["posterior_probability"].sum() == pytest.approx(1.0)
    assert ranking.plot().get_xlabel() == "k"
    page = ranking.report(title="Sizes of <k>")
    assert page.startswith("<!doctype html>") and "Sizes of &lt;k&gt;" in page
    assert page._repr_html_().startswith("<iframe")
    fit = polyurn.fit("i -> k[2] -> j", TOY, random_state=1)
    assert fit.to_pandas("k").shape == (3, 2)
    assert fit.report().startswith("<!doctype html>")
    assert len(fit.plot().lines[0].get_xdata()) == fit["iterations"]
    for result in (score, ranking, fit):
        assert "<table>" in result._repr_html_()


def test_a_report_is_written_where_one_says(tmp_path):
    page = polyurn.select("nmf(1..2)", TOY, random_state=1).report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_several_sizes_of_the_prior_are_a_curve():
    curve = polyurn.score("i -> k[2] -> j", TOY, a=[0.1, 1, 10])
    single = polyurn.score("i -> k[2] -> j", TOY, a=10)
    assert curve[2].log_evidence == single.log_evidence == curve.best.log_evidence
    assert list(curve.to_pandas()["a"]) == [0.1, 1, 10]
    ranking = polyurn.select("nmf(1..2)", TOY, a=[0.1, 10], random_state=1)
    assert {model["a"] for model in ranking.models} == {0.1, 10}


def test_weights_of_models_change_their_probabilities():
    even = polyurn.select("nmf(1..2)", TOY, random_state=1, sensitivity=[])
    odd = polyurn.select("nmf(1..2)", TOY, random_state=1, sensitivity=[], model_prior={1: 3, 2: 1})
    p_even = {model["sizes"]["k"]: model["posterior_probability"] for model in even.models}
    p_odd = {model["sizes"]["k"]: model["posterior_probability"] for model in odd.models}
    assert p_odd[1] / p_odd[2] == pytest.approx(3 * p_even[1] / p_even[2], rel=1e-12)
    with pytest.raises(ValueError, match="none of the models"):
        polyurn.select("nmf(1..2)", TOY, model_prior={1: 1, 2: 1, 7: 1})


def test_a_setting_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match='particles: method "exact" has no use for it'):
        polyurn.score("i -> k[2] -> j", TOY, method="exact", particles=10)
    with pytest.raises(TypeError, match="unknown setting 'particels'"):
        polyurn.score("i -> k[2] -> j", TOY, particels=10)
    with pytest.raises(ValueError, match="sweeps: method \"vb\""):
        polyurn.fit("i -> k[2] -> j", TOY, sweeps=10)
    with pytest.raises(ValueError, match="needs one"):
        polyurn.fit("i -> k[2] -> j", TOY, prior="none")
    with pytest.raises(ValueError, match="time_limit"):
        polyurn.score("i -> k[2] -> j", TOY, time_limit=-1)
    with pytest.raises(ValueError, match="method: expected"):
        polyurn.score("i -> k[2] -> j", TOY, method="magic")
    with pytest.raises(TypeError, match="select"):
        polyurn.compare("lca(2)", TOY)


def test_edges_may_have_numbers_for_names():
    assert polyurn.models.from_edges([(1, 2)], sizes={1: 3}) == "1[3]; 2; 1 -> 2"


def test_draws_go_to_arviz():
    fit = polyurn.fit("i -> k[2] -> j", TOY, method="gibbs", chains=2, sweeps=60, draws=10, random_state=1)
    data = fit.to_inferencedata()
    assert data.posterior["k"].shape == (1, 10, 3, 2)
    np.testing.assert_allclose(data.posterior["k"].sum("k_value"), 1.0)
    np.testing.assert_array_equal(data.posterior["j"].values[0, 3], fit.table("j", draw=3))
    with pytest.raises(ValueError, match="no draws"):
        polyurn.fit("i -> k[2] -> j", TOY, random_state=1).to_inferencedata()


def test_a_drawn_seed_repeats_the_run():
    first = polyurn.score("i -> k[2] -> j", TOY, method="smc", particles=50, runs=2)
    again = polyurn.score("i -> k[2] -> j", TOY, method="smc", particles=50, runs=2, random_state=first.seed)
    assert first.log_evidence == again.log_evidence
    generator = np.random.default_rng(1)
    seeds = {polyurn.score("i -> j", TOY, random_state=generator).seed for _ in range(3)}
    assert len(seeds) == 3


def test_data_can_be_used_again_and_again():
    data = polyurn.records(TOY)
    scores = {polyurn.score("i -> k[2] -> j", data).log_evidence for _ in range(2)}
    ranking = polyurn.select("i -> k[2..3] -> j", data, random_state=1)
    fit = polyurn.fit("i -> k[2] -> j", data, random_state=1)
    assert len(scores) == 1 and len(ranking) == 2 and fit["tokens"] == data.n_tokens == 9


def test_prior_spellings_agree():
    by_number = polyurn.score("i -> k[2] -> j", TOY, a=2.0)
    by_spec = polyurn.score("i -> k[2] -> j", TOY, prior={"kind": "bdeu", "size": 2.0}, shape=2.0)
    assert by_spec.log_evidence == by_number.log_evidence


def test_models_come_from_edges_and_files(tmp_path):
    text = polyurn.models.from_edges([("i", "k"), ("k", "j")], sizes={"k": 2})
    expected = polyurn.score("i -> k[2] -> j", TOY).log_evidence
    assert polyurn.score(text, TOY).log_evidence == expected
    nodes = [{"name": "i"}, {"name": "k", "card": 2}, {"name": "j"}]
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": [["i", "k"], ["k", "j"]]}))
    assert polyurn.score(str(path), TOY).log_evidence == expected
    with pytest.raises(ValueError, match="no node"):
        polyurn.models.from_edges([("a", "b")], sizes={"c": 2})
    tied = polyurn.models.from_edges([("r", "i"), ("r", "j")], sizes={"r": 2}, tied=[("i", "j")])
    symmetric = polyurn.score("r[2] -> i j; i ~ j", TOY).log_evidence
    assert polyurn.score(tied, TOY).log_evidence == symmetric
