"""How the package behaves: locks, interrupts, progress, errors and warnings."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import polyurn
import pytest

@pytest.fixture
def counts():
    return np.random.default_rng(0).poisson(3, size=(30, 30))


def test_importing_is_quick_and_light():
    code = "import time; t = time.perf_counter(); import polyurn; print(time.perf_counter() - t)"
    code += "; import sys; print([m for m in ('sklearn', 'scipy', 'pandas', 'matplotlib', 'arviz') if m in sys.modules])"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(3)]
    assert all(run.splitlines()[1] == "[]" for run in runs)
    # The best of three: others may be at work.
    assert min(float(run.splitlines()[0]) for run in runs) < 0.3


def test_other_threads_go_on_while_the_library_works(counts):
    n_steps = 0
    done = threading.Event()

    def count():
        nonlocal n_steps
        while not done.is_set():
            n_steps += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        polyurn.score("lda(8)", counts, method="smc", particles=100, runs=2, random_state=1, n_jobs=1)
    seconds = time.perf_counter() - start
    done.set()
    other.join()
    assert seconds > 0.2, "too short to tell"
    # A thread that waits for the lock would hardly move; one that does not takes some 500 steps a second or more.
    assert n_steps > 50 * seconds


def interrupted(body):
    """Runs a program, sends it an interrupt a second after it says so, and gives back what it printed and how long it took."""
    code = textwrap.dedent(
        """
        import numpy as np, polyurn, time, sys, warnings
        counts = np.random.default_rng(0).poisson(3, size=(30, 30))
        # With scikit-learn, whose import may take longer than the wait.
        polyurn.LDA
        print("ready", flush=True)
        """
    ) + textwrap.dedent(body)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    start = time.perf_counter()
    out, err = child.communicate(timeout=30)
    return out, err, time.perf_counter() - start


def test_an_interrupt_is_heard_within_a_second():
    out, err, seconds = interrupted(
        """
        try:
            polyurn.score("lda(8)", counts, method="smc", particles=20000, runs=200, random_state=1, progress=False)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert out == "interrupted\n", err
    assert seconds < 1.0


def test_an_interrupt_gives_back_what_is_finished():
    out, err, seconds = interrupted(
        """
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = polyurn.score("lda(2)", counts[:6], method="smc", particles=20, runs=1000000, random_state=1, n_jobs=1, progress=False)
        print(found["runs"] > 0, found["runs"] < 1000000, polyurn.InterruptedWarning in [one.category for one in said])
        """
    )
    assert out == "True True True\n", err
    assert seconds < 1.0
    out, err, seconds = interrupted(
        """
        warnings.simplefilter("ignore")
        model = polyurn.LDA(20, tol=0, max_iter=10**9, n_init=1, random_state=1)
        try:
            model.fit(counts)
        except KeyboardInterrupt:
            print(model.n_iter_ > 10, model.n_iter_ < 10**9)
        """
    )
    assert out == "True True\n", err
    assert seconds < 1.0


def test_an_interrupt_ends_a_search():
    out, err, seconds = interrupted(
        """
        from sklearn.model_selection import GridSearchCV
        warnings.simplefilter("ignore")
        model = polyurn.LDA(20, tol=0, max_iter=10**9, n_init=1, random_state=1)
        try:
            GridSearchCV(model, {"n_components": [10, 20]}, cv=2).fit(counts)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert out == "interrupted\n", err
    assert seconds < 1.0


def test_predictions_are_interrupted_too():
    out, err, seconds = interrupted(
        """
        # Rows of new documents take some milliseconds each.
        wide = np.random.default_rng(1).poisson(0.5, size=(4000, 600))
        model = polyurn.LDA(40, max_iter=2, n_init=1, random_state=1).fit(wide[:60])
        print("predicting", flush=True)
        try:
            while True:
                model.transform(wide)
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert out == "predicting\ninterrupted\n", err
    assert seconds < 1.0


def test_an_interrupt_ends_a_curve():
    out, err, seconds = interrupted(
        """
        warnings.simplefilter("ignore")
        found = polyurn.score("lda(2)", counts[:6], a=[1, 2, 3], method="smc", particles=20, runs=10**6, random_state=1, progress=False)
        print(len(found))
        """
    )
    assert out == "1\n", err
    assert seconds < 1.0


def test_reading_many_records_is_interrupted_too():
    out, err, seconds = interrupted(
        """
        # Not in ascending order, which would take no time.
        codes = np.arange(40_000_000, dtype=np.int32)[::-1]
        print("reading", flush=True)
        try:
            polyurn.tensor([codes, codes], np.ones(len(codes), dtype=np.uint64))
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert out == "reading\ninterrupted\n", err
    assert seconds < 1.0


def test_reading_a_file_is_interrupted_too(tmp_path):
    path = tmp_path / "long.csv"
    block = "".join(f"{row % 37},{row % 29}\n" for row in range(100_000))
    with open(path, "w") as out:
        out.write("a,b\n")
        for _ in range(600):
            out.write(block)
    # With bins a file is read twice, and the wait ends while cuts are looked for.
    for call in ("read({!r})", "score('a -> b', {!r})", "read({!r}, bins='a=3')"):
        out, err, seconds = interrupted(
            f"""
            try:
                polyurn.{call.format(str(path))}
            except KeyboardInterrupt:
                print("interrupted")
            """
        )
        assert out == "interrupted\n", err
        assert seconds < 1.0


def test_an_interrupted_stream_keeps_what_it_has_taken():
    out, err, seconds = interrupted(
        """
        warnings.simplefilter("ignore")
        codes = np.random.default_rng(1).integers(0, 50, size=(200_000, 2))
        batch = {"i": codes[:, 0], "j": codes[:, 1]}
        stream = polyurn.Stream("i[50] -> k[8] -> j[50]", b=0.01, random_state=1, n_jobs=1)
        stream.update(batch)
        print(0 < stream.n_tokens < 200_000, np.isfinite(stream.log_evidence))
        """
    )
    assert out == "True True\n", err
    assert seconds < 1.0
    out, err, seconds = interrupted(
        """
        warnings.simplefilter("ignore")
        codes = np.random.default_rng(1).integers(0, 50, size=(20_000, 2))
        batch = {"i": codes[:, 0], "j": codes[:, 1]}
        fit = polyurn.fit("k[8] -> i[50] j[50]", batch, method="svb", tokens=20_000, batch=100, passes=10**6, random_state=1)
        print(fit["batches"] > 1, any(one["kind"] == "stream_cut" for one in fit.warnings))
        """
    )
    assert out == "True True\n", err
    assert seconds < 1.0


def test_an_interrupted_ranking_has_the_models_that_are_scored():
    out, err, seconds = interrupted(
        """
        warnings.simplefilter("ignore")
        found = polyurn.select("lda(1..8)", counts, random_state=1, n_jobs=1, progress=False)
        print(found.interrupted, 0 < len(found) <= 8)
        """
    )
    assert out == "True True\n", err
    assert seconds < 1.0


def test_progress_is_shown_when_asked_for_and_not_otherwise(counts, capfd):
    settings = dict(method="smc", particles=100, runs=2, random_state=1, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        polyurn.score("lda(8)", counts, progress=False, **settings)
        assert time.perf_counter() - start > 0.6, "too short for a bar"
        assert capfd.readouterr().err == ""
        # Nobody looks at a captured stream.
        polyurn.score("lda(8)", counts, **settings)
        assert capfd.readouterr().err == ""
        polyurn.score("lda(8)", counts, progress=True, **settings)
        assert "%" in capfd.readouterr().err


def test_bars_in_a_notebook_are_bars_and_nothing_else():
    """Where the widgets of notebooks are missing too: tqdm has a warning about that."""
    code = """
        import sys, time, types
        for name in ("ipykernel", "ipykernel.zmqshell", "IPython"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules["IPython"].get_ipython = lambda: None
        sys.modules["ipywidgets"] = None
        from polyurn._progress import Progress
        start = time.monotonic()
        with Progress(None) as bar:
            for step in range(400):
                time.sleep(0.004)
                bar.watcher("a stage", step / 400)
        print(time.monotonic() - start)
        assert "tqdm.notebook" in sys.modules and Progress(False).watcher is None
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0 and "a stage" in done.stderr and "Warning" not in done.stderr, done.stderr
    # Notebooks keep every look at a bar: there are ten in a second.
    assert done.stderr.count("a stage") <= float(done.stdout) / 0.1 + 1


def test_errors_have_pythons_names_and_the_librarys_words(counts, tmp_path):
    with pytest.raises(ValueError, match="is not closed") as caught:
        polyurn.score("doc -> topic[3 -> word", counts)
    assert str(caught.value).splitlines()[-1].strip() == "^"
    with pytest.raises(polyurn.TooCostlyError) as caught:
        polyurn.score("lda(8)", counts, method="exact")
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(TimeoutError, match="time limit"):
        polyurn.score("lda(8)", counts, time_limit=0.05, method="smc", particles=100_000, runs=4)
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        polyurn.read(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="random_state"):
        polyurn.score("lda(2)", counts, random_state=-1)
    with pytest.raises(ValueError, match="n_jobs"):
        polyurn.score("lda(2)", counts, n_jobs=0)


def test_warnings_are_of_our_own_classes_and_point_at_the_caller(counts):
    with pytest.warns(polyurn.NotConvergedWarning, match="still moving") as said:
        polyurn.fit("lda(4)", counts, max_iter=3, random_state=1, n_init=1)
    assert [one for one in said if one.filename == __file__]
    with pytest.warns(polyurn.DataWarning, match="left out"):
        polyurn.score("a -> b", {"a": [0, 1], "b": [0, 1], "c": [0, 0]})
    with pytest.warns(polyurn.PriorWarning):
        polyurn.score("a -> b", {"a": [0, 1], "b": [0, 1]}, pseudo_count={"b": 1.0})
    # Those of rankings have the name of the model in front, and the same classes.
    with pytest.warns(polyurn.PolyurnWarning) as said:
        polyurn.select("lda(2..3)", counts, method="vb", max_iter=3, random_state=1, n_init=1)
    assert "still moving" in str(said[0].message) and {one.category for one in said} == {polyurn.NotConvergedWarning}
    for name in ("DataWarning", "EstimateWarning", "LabelWarning", "TimeWarning", "InterruptedWarning"):
        assert issubclass(getattr(polyurn, name), polyurn.PolyurnWarning)


def test_a_watcher_that_fails_stops_the_run(counts):
    from polyurn import _core
    from polyurn._data import as_dataset
    from polyurn._settings import request

    def fail(stage, share):
        raise RuntimeError("no more")

    asked = request(model="lda(8)", seed=1, threads=1, method="smc", particles=20_000, runs=200)
    start = time.perf_counter()
    with pytest.raises(RuntimeError, match="no more"):
        _core.score(as_dataset(counts, fractions=False), asked, True, fail)
    assert time.perf_counter() - start < 2.0


def test_a_fault_of_ours_is_a_runtime_error(counts):
    """Not the end of the interpreter, nor an exception that nobody catches."""
    from polyurn import _core
    from polyurn._data import as_dataset
    from polyurn._settings import request

    with pytest.raises(RuntimeError, match="broke an invariant of its own"):
        _core.rank(False, as_dataset(counts, fractions=False), [], None, request(seed=1, threads=1), True, None)


def test_python_adds_less_than_a_twentieth_to_a_fit_of_a_second():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(300, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        polyurn.LDA(10, random_state=1, n_init=1, max_iter=2).fit(X)
        start = time.perf_counter()
        model = polyurn.LDA(10, random_state=1, n_init=1, max_iter=400, tol=0, n_jobs=1).fit(X)
        total = time.perf_counter() - start
    inside = model.fit_.seconds
    assert inside > 0.3, "too short to tell"
    # Reading the matrix, labels and factors included; seconds of the library leave out reading, too.
    assert total - inside < 0.05 * max(inside, 1.0), (total, inside)
