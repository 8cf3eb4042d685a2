"""Functions and their results."""

import json
import pickle
import warnings

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
    axes = ranking.plot()
    assert axes.get_xlabel() == "k" and all(tick == round(tick) for tick in axes.get_xticks())
    page = ranking.report(title="Sizes of <k>")
    assert page.startswith("<!doctype html>") and "Sizes of &lt;k&gt;" in page
    assert page._repr_html_().startswith("<iframe")
    fit = polyurn.fit("i -> k[2] -> j", TOY, random_state=1)
    assert fit.to_pandas("k").shape == (3, 2)
    assert fit.report().startswith("<!doctype html>")
    with pytest.raises(ValueError, match="no sweeps to plot"):
        polyurn.fit("i -> j", TOY, method="exact").plot()
    assert len(fit.plot().lines[0].get_xdata()) == fit["iterations"]
    for result in (score, ranking, fit):
        assert "<table>" in result._repr_html_()
    assert [model["model"] for model in ranking] == [model["model"] for model in ranking.models] and ranking[0] is ranking.models[0]


def test_scores_have_pages_too():
    score = polyurn.score("i -> k[2] -> j", TOY, method="smc", particles=100, runs=3, random_state=1)
    page = score.report()
    assert "Polyurn score: the evidence of a model" in page and "effective particles" in page and "Best of" not in page
    assert "<h1>i -&gt; k[2] -&gt; j</h1>" in page
    curve = polyurn.score("i -> k[2] -> j", TOY, a=[0.1, 1, 10])
    page = curve.report(title="Three priors")
    assert "Three priors" in page and "a = 0.1" in page and curve.warnings == []
    # The best comes first.
    assert page.index("a = 10<") < page.index("a = 0.1<")
    bound = polyurn.score("i -> k[2] -> j", TOY, method="vb", random_state=1).report()
    assert "ELBO" in bound or "bound" in bound


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
    wrong = {
        "init": (3, {"k": "no numbers"}, {"k": [[1, 2], [3]]}),
        "max_iter": ("many", 1.5, -1, True), "n_init": (0.5, "1"), "tol": ("small", float("nan")),
        "maximise": (3, [3]), "trials": (-1,), "update": (3,), "mode": (1,),
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name}: "):
                polyurn.fit("i -> k[2] -> j", TOY, method="em", **{name: value})
            with pytest.raises(ValueError, match=f"^{name}: "):
                own = {name: value} if name in ("max_iter", "n_init", "tol") else {"engine": {name: value}}
                polyurn.AllocationModel("i -> k[2] -> j", method="em", **own).fit({"i": list("ab"), "j": list("cd")})
    scoring = {
        "particles": ("few", 2.5, -3), "runs": ([1],), "rejuvenate": (-1,), "heat": ("hot",), "cooling": (1.5,), "order": (3,),
        "resample": (3, "sometimes"), "ess": ([1], "now and then", 2), "split_merge": ("x",),
    }
    for name, values in scoring.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name}"):
                polyurn.score("i -> k[2] -> j", TOY, method="smc", **{name: value})
    with pytest.raises(ValueError, match="models: there is none"):
        polyurn.compare([], TOY)
    for tokens in (-3, "many", 1.5):
        with pytest.raises(ValueError, match="^tokens: expected a whole number"):
            polyurn.simulate("a[2]", tokens)
    shared = {
        "a": ("large", -1, 0, float("nan"), []), "b": ("x", -1), "shape": (0,), "prior": (3, "nothing", {"kind": "odd"}),
        "pseudo_count": (3, {"j": "x"}), "tied_prior": (2, "thrice"), "time_limit": ("long", 0), "max_memory": ("much", -1, 0, [1]),
        "columns": (3, [1, 2]), "random_state": ("x", 1.5, -1, 2**64), "n_jobs": (0, "x", 2.0, True),
    }
    for name, values in shared.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name}"):
                polyurn.score("i -> k[2] -> j", TOY, **{name: value})
    with pytest.raises(TypeError, match="select"):
        polyurn.compare("lca(2)", TOY)


def test_edges_may_have_numbers_for_names():
    assert polyurn.models.from_edges([(1, 2)], sizes={1: 3}) == "1[3]; 2; 1 -> 2"


def test_draws_go_to_arviz_chain_by_chain():
    fit = polyurn.fit("i -> k[2] -> j", TOY, method="gibbs", chains=2, sweeps=60, draws=11, random_state=1)
    data = fit.to_inferencedata()
    # Eleven draws, in turn from two chains: as many of each as both have.
    assert data.posterior["k"].shape == (2, 5, 3, 2)
    np.testing.assert_allclose(data.posterior["k"].sum("k_value"), 1.0)
    runs = fit["draw_runs"]
    assert len(runs) == 11 and set(runs) == {0, 1}
    for chain in (0, 1):
        own = [ix for ix, run in enumerate(runs) if run == chain]
        np.testing.assert_array_equal(data.posterior["j"].values[chain, 3], fit.table("j", draw=own[3]))
    again = polyurn.Fit._of(fit._core).to_inferencedata()
    np.testing.assert_array_equal(again.posterior["j"].values, data.posterior["j"].values)
    # Draws of particles are independent of each other, whatever run they are from.
    particles = polyurn.fit("i -> k[2] -> j", TOY, method="smc", particles=50, runs=3, draws=6, random_state=1)
    assert particles.to_inferencedata().posterior["k"].shape == (1, 6, 3, 2)
    # And so are the estimates of runs: draws of one chain, of which ArviZ has nothing to complain.
    score = polyurn.score("i -> k[2] -> j", TOY, method="smc", particles=50, runs=3, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stats = score.to_inferencedata().sample_stats
    assert stats["log_evidence"].values.tolist() == [score["run_log_marginals"]]
    with pytest.raises(ValueError, match="no draws"):
        polyurn.fit("i -> k[2] -> j", TOY, random_state=1).to_inferencedata()


def test_every_result_is_text_json_and_a_table():
    table = {"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"]}
    fit = polyurn.fit("class[2] -> a b", table, random_state=1)
    docs = polyurn.fit("doc -> t[2] -> w", {"doc": list("ddee"), "w": list("uvvv")}, random_state=1)
    impossible = {"doc": ["n", None, "n"], "w": ["u", "v", None]}
    results = [
        polyurn.score("i -> k[2] -> j", TOY),
        polyurn.score("i -> k[2] -> j", TOY, a=[0.1, 1]),
        polyurn.score("class[2] -> a b", table, heldout=table, random_state=1),
        polyurn.select("nmf(1..2)", TOY, random_state=1),
        fit,
        fit.predict({"a": ["x", None], "b": [None, "v"]}, impute=True),
        docs.predict(impossible),
        polyurn.records(table),
        polyurn.simulate("r[2] -> i[3] j[4]", 20, seen=["i", "j"], random_state=1),
        polyurn.tensor([[0, 1], [0, 1]], [3, np.nan], (2, 2)),
    ]
    for result in results:
        assert json.loads(result.json, parse_constant=pytest.fail) == result.to_dict(), type(result)
        assert not str(result).startswith("<") and len(str(result).splitlines()) > 1, type(result)
        assert repr(result).startswith("<") and "<table>" in result._repr_html_()
        assert len(result.to_pandas()) > 0
        assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()
    assert "0.1" in str(results[1]) and "perplexity" in str(results[2]) and "class" in str(results[5])
    # A row of a new document has no probability of its own.
    assert results[6].to_dict()["log_probability"][0] is None


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
    for edges in ("ab", ["ab"], [("a", "b", "c")], [3]):
        with pytest.raises(ValueError, match="edges: expected pairs"):
            polyurn.models.from_edges(edges)
    tied = polyurn.models.from_edges([("r", "i"), ("r", "j")], sizes={"r": 2}, tied=[("i", "j")])
    symmetric = polyurn.score("r[2] -> i j; i ~ j", TOY).log_evidence
    assert polyurn.score(tied, TOY).log_evidence == symmetric
