# The same commands that CI runs. `make test-rust` needs nothing but Rust and the package registry; `make test` builds the wheel
# of the Python package and tests it, with other tools from PyPI beside it, and opens reports in a browser, for which it
# installs Selenium, and as root Chromium.
CARGO ?= cargo
VENV := target/venv
# The command line that `cargo test` builds.
PROGRAM = $$(realpath $${CARGO_TARGET_DIR:-target}/debug/polyurn)
# What the Python package works with, and what it is compared with.
BESIDE := numpy scipy pandas polars pyarrow sparse scikit-learn matplotlib arviz tqdm
PEERS := pgmpy pyttb stepmix

.PHONY: test test-rust test-browser test-python test-install test-notebooks test-long mutants lint bench bench-files bench-trials bench-ranks bench-sweeps bench-gibbs bench-anneal bench-bdeu bench-peers bench-memory doc deny advisories fuzz dist test-dist test-parquet

test: test-rust test-python test-browser

test-rust:
	$(CARGO) test --workspace --all-targets
	$(CARGO) test --workspace --doc

# Reports in a headless Chromium; pictures of the pages are left in target/screenshots.
test-browser:
	CARGO="$(CARGO)" tests/browser/run

# Long statistical suites: everything, also the tests marked as ignored, with optimisation; the notebooks; and `pip install .`.
test-long: test-notebooks test-install
	$(CARGO) test --workspace --release -- --include-ignored

# Parquet and Arrow IPC, which are not in other builds: two to four minutes more to compile.
test-parquet: $(VENV)/python-tests
	CARGO="$(CARGO)" tests/parquet

# `pip install .` in a clean environment from a clean clone of what is committed.
test-install:
	tests/install

# Runs docs/notebooks as they are, with the wheel that test-python installs. They assert what they say.
test-notebooks: test-python $(VENV)/notebooks
	for notebook in docs/notebooks/*.ipynb; do \
		$(VENV)/bin/jupyter execute $$notebook || exit 1; \
	done

$(VENV)/notebooks: $(VENV)/bin/python Makefile
	$(VENV)/bin/python -m pip install --quiet nbclient ipykernel
	touch $@

# The Python package, as the wheel that is built here: its tests, its types, the examples in its docstrings, and its numbers beside those of
# scikit-learn, pgmpy, pyttb and StepMix. Then fit files and exports as Python reads them, and what is seen on a terminal. The wheel
# has the optimisation of the other tests, so that nothing is built twice.
test-python: $(VENV)/python-tests
	$(CARGO) test --workspace --all-targets --no-run --quiet
	rm -rf target/wheels
	$(VENV)/bin/maturin build --profile dev --quiet --out target/wheels
	$(VENV)/bin/python -m pip install --quiet --force-reinstall --no-deps target/wheels/polyurn-*.whl
	POLYURN="$(PROGRAM)" $(VENV)/bin/python -m pytest --quiet
	POLYURN="$(PROGRAM)" $(VENV)/bin/python -W ignore -m unittest discover -s tests/python

$(VENV)/python-tests: $(VENV)/bin/python Makefile
	$(VENV)/bin/python -m pip install --quiet maturin pytest mypy $(BESIDE) $(PEERS)
	touch $@

# Breaks the particle engine in known ways, one at a time, and names the test that goes red. Needs Python 3 as well.
mutants:
	CARGO=$(CARGO) scripts/mutants

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# Licences, sources and forbidden crates of all dependencies; `advisories` asks for their known faults as well, which are fetched.
deny:
	CARGO="$(CARGO)" scripts/deny

advisories:
	CARGO="$(CARGO)" scripts/deny advisories

# Every target of the fuzzer for ten minutes each: some two and a half hours. Needs a nightly compiler; see docs/reliability.md.
fuzz:
	scripts/fuzz

# A static Linux program and the wheel, with their digests, in target/dist; and both in an environment that has nothing else.
dist:
	CARGO="$(CARGO)" scripts/dist

test-dist: dist
	tests/dist again

# Programs that print times and ratios of one run; see docs/benchmarks.md.
bench: $(VENV)/peers
	$(CARGO) run --release -p polyurn-bench --bin exact
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin read
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin smc
	$(MAKE) bench-sweeps bench-gibbs bench-anneal bench-bdeu

# Everything that is compared with other tools, as one table: docs/peers.md, and the README. About eight minutes on two idle cores.
bench-peers: $(VENV)/peers
	$(CARGO) build --release -p polyurn-bench --bins
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin peers

# Memory that the Python package adds while it takes up ten million records, with the wheel that test-python installs.
bench-memory: test-python
	$(VENV)/bin/python bench/memory.py

# What the settings of sequential Monte Carlo are worth: the tables of docs/smc.md, about ten minutes.
bench-trials:
	$(CARGO) run --release -p polyurn-bench --bin smc_trials

# How often the evidence finds the true rank, and agrees with fifty times the work: about an hour on two idle cores.
# Goes on where it stopped, and keeps what the longer runs found; remove the file when the engine has changed.
bench-ranks:
	$(CARGO) run --release -p polyurn-bench --bin smc_ranks -- 120 50 bench/ranks-longer.csv

# Variational Bayes and EM against the tools people use now, installed from PyPI.
bench-sweeps: $(VENV)/peers
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin sweeps
	$(CARGO) run --release -p polyurn-bench --bin scale

# A gigabyte of CSV and tensors of ten million entries, read by us and by others; needs 1.8 GB of room, and `taskset`.
bench-files: $(VENV)/peers
	$(CARGO) build --release -p polyurn-bench --bin read_big
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python target/release/read_big $$(mktemp -d)

# Collapsed Gibbs chains against tomotopy, installed from PyPI.
bench-gibbs: $(VENV)/peers
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin gibbs

# Brackets of annealing, how many topics a corpus has, and the sparse toy: about twelve minutes on two idle cores.
bench-anneal: $(VENV)/peers
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin anneal

# Scores of fully observed networks against pgmpy, installed from PyPI.
bench-bdeu: $(VENV)/peers
	POLYURN_BENCH_PYTHON=$(VENV)/bin/python $(CARGO) run --release -p polyurn-bench --bin bdeu

$(VENV)/peers: $(VENV)/bin/python Makefile
	$(VENV)/bin/python -m pip install --quiet scikit-learn scipy lda tomotopy pyttb stepmix pgmpy pandas polars
	touch $@

# A virtual environment with what the benchmarks compare against.
$(VENV)/bin/python:
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet numpy

doc:
	$(CARGO) doc --workspace --no-deps --open
