# Two commands matter: `make demo` and `make test`. Each sets up everything it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
NOTEBOOK ?= example_notebooks/01_quickstart.ipynb
EXECUTED = $(wildcard example_notebooks/executed/$(notdir $(NOTEBOOK)))
SOURCES := pyproject.toml constraints.txt labextension/package.json labextension/yarn.lock $(shell find labextension/widgets labextension/src labextension/style labextension/schema -name '*.ts' -o -name '*.tsx' -o -name '*.css' -o -name '*.json')

PARALLEL := --numprocesses 5 --dist loadscope --no-loadscope-reorder

.PHONY: demo lab test test-all test-browser test-cluster test-unit soak corpus check format bench golden pictures docs dist clean

demo: $(VENV)/.demo  ## train from a real notebook, end to end, headless
	$(BIN)/python example_notebooks/run.py $(NOTEBOOK)

lab: $(VENV)/.demo  ## open the quickstart in JupyterLab, as `make demo` left it
	$(BIN)/jupyter lab $(or $(EXECUTED),$(NOTEBOOK))

test: $(VENV)/.test  ## every test; those in a browser are skipped where there is no Chromium and none can be had
	sh .ci/chromium
	sh .ci/ssh
	sh .ci/slurm
	sh .ci/podman
	sh .ci/mpi $(VENV)
	$(BIN)/python -m pytest $(PARALLEL)

test-browser: $(VENV)/.test  ## a real JupyterLab in a real Chromium
	sh .ci/chromium
	$(BIN)/python -m pytest tests/browser

test-all: $(VENV)/.test  ## the tests of `make test` with the whole matrix of each: several hours
	sh .ci/ray $(VENV)
	AUTOTRAIN_LONG_TESTS=1 $(BIN)/python -m pytest $(PARALLEL) --timeout 3600

test-cluster: $(VENV)/.test  ## on the cluster that KUBECONFIG names, each test in a namespace of its own
	@test -n "$$KUBECONFIG" || { \
	  echo 'KUBECONFIG names no cluster. One to test on, which needs Docker or Podman and kind:'; \
	  echo '  kind create cluster --name autotrain --kubeconfig kind.kubeconfig'; \
	  echo '  KUBECONFIG=$$PWD/kind.kubeconfig make test-cluster'; \
	  echo 'Trials run in python:3.12; AUTOTRAIN_TEST_IMAGE and AUTOTRAIN_TEST_PYTHON name another image and its Python.'; \
	  exit 1; }
	$(BIN)/python -m pytest tests/kubernetes -m cluster

test-unit: $(VENV)/.test
	$(BIN)/python -m pytest $(PARALLEL) --numprocesses 2 tests/unit  # which wait for nothing: more processes collect more often

soak: $(VENV)/.test  ## a thousand trials under idle exits, kills and pauses, compared point by point (15 minutes)
	$(BIN)/python tests/soak/soak.py
	AUTOTRAIN_SOAK=1 $(BIN)/python -m pytest -p no:xdist -m soak -s --timeout 3600 tests/services/test_soak.py
	AUTOTRAIN_FUZZ_TIMES=5 $(BIN)/python -m pytest tests/fuzz tests/patterns/test_histories.py --timeout 1200
	sh .ci/ssh
	sh .ci/slurm
	AUTOTRAIN_LONG_TESTS=1 $(BIN)/python -m pytest tests/ssh tests/slurm --timeout 1200
	JUPYTER_AUTOTRAIN_PORTABLE=1 $(BIN)/python -m pytest tests/contract tests/fault --timeout 1200
	sh .ci/chromium
	AUTOTRAIN_LONG_TESTS=1 $(BIN)/python -m pytest tests/browser/test_memory.py tests/browser/test_panel_speed.py --timeout 3600

corpus: $(VENV)/.test  ## FOLDER of public notebooks: each cell that trains is run here and as a trial, and compared (not in CI)
	$(BIN)/python tests/corpus/run.py $(FOLDER)

check: $(VENV)/.test  ## what people and CI run alike
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/corpus tests/labs
	$(BIN)/lint-imports
	$(BIN)/python .ci/dense_expressions.py jupyter_autotrain tests
	! grep -nE 'https?://' labextension/yarn.lock constraints.txt
	cd labextension && ../$(BIN)/jlpm lint && ../$(BIN)/jlpm format:check && ../$(BIN)/jlpm typecheck && ../$(BIN)/jlpm test

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cd labextension && ../$(BIN)/jlpm format

bench: $(VENV)/.test $(VENV)/.peer  ## figures against peers and limits, appended to benchmarks/RESULTS.md
	sh .ci/chromium
	$(BIN)/python benchmarks/run_all.py --peer-python $(VENV)/peer/bin/python --mindspore-python $(VENV)/mindspore/bin/python

golden: $(VENV)/.test  ## rewrite the golden files after a wanted change
	$(BIN)/python -m pytest tests/unit -k golden --golden-update

pictures: $(VENV)/.test  ## the pictures of README and site, from a real JupyterLab
	sh .ci/chromium
	$(BIN)/python example_notebooks/pictures.py
	$(BIN)/python example_notebooks/moving_picture.py

docs: $(VENV)/.docs  ## the documentation site, in site/: warnings are errors, links are checked, nothing is fetched
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist:  ## build sdist and wheel, and run the quickstart with the wheel alone
	PYTHON=$(PYTHON) .ci/dist

clean:
	rm -rf $(VENV) build dist site labextension/node_modules labextension/.yarn labextension/lib jupyter_autotrain/static jupyter_autotrain/labextension artifacts

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# torch comes first and pinned: a build for CPUs that is there already stays, and nothing can pull in another (CONTRIBUTING.md).
$(VENV)/.demo: $(VENV)/.venv $(SOURCES)
	sh .ci/node
	$(PIP) torch
	$(PIP) --editable '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(PIP) --editable '.[test]'
	touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(PIP) --editable '.[docs]'
	touch $@

# Peers to measure against, apart from everything of ours and from each other.
$(VENV)/.peer: $(VENV)/.venv
	$(PYTHON) -m venv $(VENV)/peer
	$(VENV)/peer/bin/python -m pip install --quiet --disable-pip-version-check nni==3.0
	$(PYTHON) -m venv $(VENV)/mindspore
	$(VENV)/mindspore/bin/python -m pip install --quiet --disable-pip-version-check mindspore==2.10.0
	touch $@
