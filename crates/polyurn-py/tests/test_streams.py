"""The evidence of a stream: the numbers of the command line, however it is cut, and states that go both ways."""

import csv
import json
import os
import pickle
import subprocess
import time

import numpy as np
import pandas as pd
import polars as pl
import polyurn
import pytest

MODEL = "class[2] -> a[2] b[2] c[2]"
SETTINGS = {"particles": 40, "runs": 3, "rejuvenate": 5}
FLAGS = ["--particles", 40, "--runs", 3, "--rejuvenate", 5]


@pytest.fixture
def gaps(survey):
    """Answers some of which are missing."""
    columns = {name: list(column) for name, column in survey.items()}
    for name, row in [("a", 3), ("b", 3), ("c", 17), ("a", 41)]:
        columns[name][row] = None
    return columns


@pytest.fixture
def csv_file(tmp_path, gaps):
    path = tmp_path / "survey.csv"
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(gaps)
        writer.writerows(zip(*gaps.values()))
    return path


def batches(columns, n):
    size = len(next(iter(columns.values())))
    for start in range(0, size, n):
        yield {name: column[start : start + n] for name, column in columns.items()}


def lines(*words):
    done = subprocess.run([os.environ["POLYURN"], *map(str, words), "--json", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def plain(found):
    return {name: value for name, value in found.items() if name not in ("seconds", "batch")}


@pytest.mark.parametrize("order", ["given", "random"])
def test_a_stream_has_the_numbers_of_the_command_line(csv_file, gaps, order):
    words = ["score", "--stream", "--model", MODEL, "--data", csv_file, "--b", 0.01, "--seed", 7, "--batch", 20, "--order", order]
    *theirs, last = lines(*words, *FLAGS)
    stream = polyurn.Stream(MODEL, b=0.01, random_state=7, order=order, **SETTINGS)
    for batch in batches(gaps, 20):
        stream.update(batch)
    assert [plain(line) for line in stream.history] == [plain(line) for line in theirs]
    assert plain(stream.to_dict()) == plain(last)
    assert stream.log_evidence == last["log_marginal"] and stream.std_error == last["std_error"]


def test_it_does_not_matter_how_tokens_are_cut_or_held(gaps):
    found = set()
    for n in (1, 7, 60):
        for form in (dict, pd.DataFrame, pl.DataFrame):
            stream = polyurn.Stream(MODEL, b=0.01, random_state=7, **SETTINGS)
            for batch in batches(gaps, n):
                stream.update(form(batch))
            found.add((stream.log_evidence, stream.n_tokens))
    assert len(found) == 1 and next(iter(found))[1] == 60
    counted = polyurn.Stream("a[2] -> b[2]", b=0.1)
    counted.update({"a": ["x", "y"], "b": ["u", "v"], "count": [3, 2]})
    single = polyurn.Stream("a[2] -> b[2]", b=0.1)
    single.update({"a": ["x"] * 3 + ["y"] * 2, "b": ["u"] * 3 + ["v"] * 2})
    assert counted.log_evidence == single.log_evidence and counted.n_tokens == 5
    exact = polyurn.score("a[2] -> b[2]", {"a": ["x", "y"], "b": ["u", "v"], "count": [3, 2]}, b=0.1)
    assert counted.log_evidence == pytest.approx(exact.log_evidence, rel=1e-12) and counted.std_error is None


def test_arrays_of_counts_are_batches_too():
    X = np.array([[2, 0, 1], [0, 1, 3]])
    stream = polyurn.Stream("i[4] -> k[2] -> j[3]", b=0.1, seen=["i", "j"], random_state=1, **SETTINGS)
    stream.update(X)
    stream.update((([3], [2]), [5], (4, 3)))
    assert stream.n_tokens == 12
    exact = polyurn.score("i[4] -> k[2] -> j[3]", (([0, 0, 1, 1, 3], [0, 2, 1, 2, 2]), [2, 1, 1, 3, 5], (4, 3)), b=0.1, columns=["i", "j"], method="exact")
    # Four and a half standard errors, and the seed is fixed.
    assert abs(stream.log_evidence - exact.log_evidence) < 4.5 * stream.std_error


def test_a_stream_goes_on_from_its_state_and_from_a_pickle(csv_file, gaps, tmp_path):
    whole = polyurn.Stream(MODEL, b=0.01, random_state=7, **SETTINGS)
    first, second = batches(gaps, 30)
    whole.update(first)
    whole.save(tmp_path / "state")
    copy = pickle.loads(pickle.dumps(whole))
    assert copy.n_tokens == 30 and copy.history == whole.history
    whole.update(second)
    assert copy.update(second).log_evidence == whole.log_evidence
    again = polyurn.Stream(MODEL, b=0.01, **SETTINGS).load(tmp_path / "state")
    assert again.seed == 7 and again.update(second).log_evidence == whole.log_evidence
    # The command line goes on from it, and Python from that of the command line.
    rest = tmp_path / "rest.csv"
    rest.write_text("\n".join([csv_file.read_text().splitlines()[0], *csv_file.read_text().splitlines()[31:]]) + "\n")
    words = ["score", "--stream", "--model", MODEL, "--data", rest, "--b", 0.01, "--seed", 7, "--state", tmp_path / "state"]
    assert lines(*words, *FLAGS)[-1]["log_marginal"] == whole.log_evidence
    theirs = polyurn.Stream(MODEL, b=0.01, **SETTINGS).load(tmp_path / "state")
    assert (theirs.n_tokens, theirs.log_evidence) == (60, whole.log_evidence)
    with pytest.raises(ValueError, match="another model, prior, seed or setting"):
        polyurn.Stream(MODEL, b=0.02, **SETTINGS).load(tmp_path / "state")
    (tmp_path / "odd").write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no checkpoint"):
        polyurn.Stream(MODEL, b=0.01).load(tmp_path / "odd")


def test_a_stream_prints_and_plots(gaps):
    import matplotlib

    matplotlib.use("Agg")
    stream = polyurn.Stream(MODEL, b=0.01, random_state=7, **SETTINGS)
    for batch in batches(gaps, 20):
        assert stream.update(batch) is stream
    assert list(stream.to_pandas()["tokens"]) == [20, 40, 60]
    assert "60 tokens" in repr(stream) and "smc" in str(stream) and "<table>" in stream._repr_html_()
    assert stream.plot().get_xlabel() == "tokens"


def test_a_batch_that_is_wrong_is_not_taken():
    stream = polyurn.Stream("class[2] -> a[2] b[2]", b=0.1, random_state=1)
    stream.update({"a": ["x", "y"], "b": ["u", "v"]})
    before = stream.log_evidence
    with pytest.raises(ValueError, match="line 2, column a: `z` is one label more than the declared size 2"):
        stream.update({"a": ["x", "z"], "b": ["u", "v"]})
    with pytest.raises(ValueError, match="needs whole ones"):
        stream.update({"a": ["x"], "b": ["u"], "count": [1.5]})
    with pytest.raises(ValueError, match="have lost their order"):
        stream.update(polyurn.records({"a": ["x"], "b": ["u"]}))
    assert stream.log_evidence == before and stream.n_tokens == 2
    with pytest.raises(ValueError, match="has no default; give b$"):
        polyurn.Stream("class[2] -> a[2] b[2]")
    with pytest.raises(TypeError, match="unknown setting 'sweeps'"):
        polyurn.Stream("class[2] -> a[2]", b=1, sweeps=3)
    with pytest.raises(ValueError, match="comes as it comes"):
        polyurn.Stream("class[2] -> a[2]", b=1, order="by:a")
    with pytest.warns(polyurn.DataWarning, match="left out"):
        stream.update({"a": ["x"], "b": ["u"], "z": [1]})


DOCS = "doc[12] -> topic[2] -> word[8]"


@pytest.fixture
def corpus(matrix, tmp_path):
    """A long table of documents, one after another, and the same in a file."""
    docs, words = np.nonzero(matrix)
    table = {"doc": [f"d{doc}" for doc in docs], "word": [f"w{word}" for word in words], "count": matrix[docs, words]}
    path = tmp_path / "corpus.csv"
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(table)
        writer.writerows(zip(*table.values()))
    return table, path, int(matrix.sum())


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
@pytest.mark.parametrize("passes", [1, 3])
def test_fits_of_streams_are_those_of_the_command_line(command, corpus, passes):
    table, path, n_tokens = corpus
    words = ["fit", "--method", "svb", "--model", DOCS, "--data", path, "--seen", "doc,word", "--tokens", n_tokens]
    theirs = command(*words, "--seed", 5, "--batch", 20, "--passes", passes, "--kappa", 0.8, "--tau", 2)
    settings = dict(method="svb", tokens=n_tokens, seen=["doc", "word"], random_state=5, batch=20, passes=passes, kappa=0.8, tau=2)
    tables = theirs.pop("tables")
    for X in (path, table, pd.DataFrame(table), pl.DataFrame(table)):
        ours = polyurn.fit(DOCS, X, **settings)
        drop = ("seconds", "command_line", "data", "warnings")
        assert {k: v for k, v in ours.to_dict().items() if k not in drop} == {k: v for k, v in theirs.items() if k not in drop}
        assert [one["kind"] for one in ours.warnings] == [one["kind"] for one in theirs["warnings"]]
        for one in tables:
            rows = np.array([row["mean"] for row in one["rows"]])
            np.testing.assert_array_equal(ours.table(one["node"]).reshape(rows.shape), rows)


@pytest.mark.filterwarnings("ignore::polyurn.PolyurnWarning")
def test_a_stream_of_batches_is_learned_from_one_by_one(corpus):
    table, _, n_tokens = corpus
    frame = pd.DataFrame(table)
    parts = [frame[frame["doc"].isin([f"d{doc}" for doc in docs])] for docs in (range(6), range(6, 12))]
    settings = dict(method="svb", tokens=n_tokens, seen=["doc", "word"], random_state=5)
    from_list = polyurn.fit(DOCS, parts, **settings)
    from_generator = polyurn.fit(DOCS, (part for part in parts), **settings)
    assert from_list["batches"] == 2
    np.testing.assert_array_equal(from_list.table("word"), from_generator.table("word"))
    np.testing.assert_allclose(from_list.table("topic").sum(axis=-1), 1.0)
    prediction = from_list.predict({"doc": ["d0", "new"], "word": ["w1", "w1"]})
    assert prediction.new_values == ["new"]
    wrong = [
        (dict(tokens=None), "tokens: method .svb. needs the number"),
        (dict(passes=2), "only once"),
        (dict(batch=0), "from 1 on"),
        (dict(kappa=0.3), "kappa is 0.3"),
        (dict(kappa="x"), "kappa: expected a number"),
        (dict(local=["topic"]), "local"),
        (dict(local="nobody"), "local: the model has no node"),
        (dict(checkpoint="file"), "checkpoint: method"),
    ]
    for other, why in wrong:
        with pytest.raises(ValueError, match=why):
            polyurn.fit(DOCS, iter(parts), **{**settings, **other})
    with pytest.raises(TypeError, match="unknown setting 'particles'"):
        polyurn.fit(DOCS, parts, particles=3, **settings)
    with pytest.raises(ValueError, match="have lost their order"):
        polyurn.fit(DOCS, polyurn.records(table), **settings)


def test_a_time_limit_holds_for_all_batches_of_a_stream_together(corpus):
    table, _, n_tokens = corpus
    start = time.perf_counter()
    with pytest.warns(polyurn.TimeWarning):
        fit = polyurn.fit(DOCS, table, method="svb", tokens=n_tokens, seen=["doc", "word"], passes=10**6, time_limit=0.5, random_state=1)
    assert 0.5 <= time.perf_counter() - start < 2.0 and fit["batches"] > 1
