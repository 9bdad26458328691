# One entry for people: `make` lists what there is. Nothing but Python 3.11+, git and make is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# The site's generator has bounds of its own.
DOCS_VENV := .venv-docs
DEV_STAMP := $(VENV)/.installed-dev
# Python compiles what it imports; compiling all 130 packages would take a third of the time and 170 MB.
PIP := $(BIN)/python -B -m pip install --quiet --disable-pip-version-check --no-compile
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
# All extras but `eval`, whose dependencies' bounds contradict the others'
# (gateway/features/evaluation/requirements.overrides).
DEV_EXTRAS := build dev all
# What the image has besides requirements.lock: the queue, PostgreSQL, S3, the second reader, the interpreter, Bedrock.
SERVER_PACKAGES := asgiref boto3 botocore jmespath kreuzberg obstore procrastinate psycopg psycopg-binary psycopg-pool \
	pydantic-monty pydantic-monty-client pydantic-monty-runtime s3transfer
# Tests wait more than they compute: one worker more than there are processors. WORKERS=0 runs them one after another.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# Commands and workers are started hundreds of times by the tests: where no bytecode may be kept, each is compiled anew.
unexport PYTHONDONTWRITEBYTECODE

FUZZ_CASES ?= 100
FUZZ_SEED ?= $(shell date +%s)
SOAK_MINUTES ?= 30
SOAK_KILLS ?= 200
UPGRADE_FROM ?= HEAD~1

.DEFAULT_GOAL := help
.PHONY: help run dev test run-tests compile-tests format lint type unit bench bench-fleet bench-injection bench-reading bench-search check-browser check-clients check-examples check-open-webui check-image check-long check-model check-sandbox eval eval-answers eval-bfcl eval-chat eval-degraded eval-model eval-peers eval-relevance eval-retrieval fuzz soak soak-cluster soak-ingest soak-upgrade docs lock clean check-page eval-talks requirements

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

run: $(STAMP) ## Start the gateway on http://127.0.0.1:8010 (no key and no server needed)
	@$(BIN)/stepgate serve

dev: $(DEV_STAMP) ## Install the optional parts and the development tools too

test: $(DEV_STAMP) ## Format check, lint, strict types, then the whole test suite
	@$(MAKE) --no-print-directory -j2 type run-tests

# The type check needs one processor only, for minutes on a clean clone. It takes what the tests leave, which wait often.
run-tests: compile-tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

unit: $(DEV_STAMP) ## The quick tests only
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/unit tests/contract

lint: $(DEV_STAMP) ## Check formatting, lint, import contracts, names and prose
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.lint_names
	@$(BIN)/python -m tests.lint_english

# pytest compiles each test file for itself, to explain its assertions. The type check needs one processor only, so that
# the other has time for this on a clean clone; else each worker would compile all files, at the same time as the others.
# What cannot be collected is reported by the tests.
compile-tests: lint
	@test -n "$$(find tests -name '*-pytest-*.pyc' -print -quit)" || \
		$(BIN)/python -m pytest -n0 --collect-only -qq > /dev/null 2>&1 || true

format: $(DEV_STAMP) ## Format the code and apply safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

type: $(DEV_STAMP) ## Strict types, tests included
	@nice -n 10 $(BIN)/mypy

bench: $(DEV_STAMP) ## Print the benchmark tables (not part of the tests)
	@$(BIN)/python -m tests.bench

bench-injection: $(DEV_STAMP) ## Print what injections achieve on AgentDojo, with a scripted model (INJECTION_OPTIONS, e.g. --sample 20); hours if whole
	@$(BIN)/python -m tests.bench.injection $(INJECTION_OPTIONS)

bench-fleet: $(DEV_STAMP) ## Print what several workers on one PostgreSQL do, also when they die (FLEET_OPTIONS, e.g. --short); ten minutes
	@$(BIN)/python -m tests.bench.fleet $(FLEET_OPTIONS)

eval: $(DEV_STAMP) ## Run the evaluation's tasks against the configured model (EVAL_OPTIONS; docs/evaluation.md)
	@$(BIN)/stepgate eval $(EVAL_OPTIONS)

eval-model: $(DEV_STAMP) ## Print the tables of both sets of docs/evaluation.md with the configured model, beside rules and the model alone; hours
	@$(BIN)/stepgate eval --beside rules --beside model --resume data/eval/model.jsonl $(EVAL_OPTIONS)
	@$(BIN)/stepgate eval --set held-out --beside rules --beside model --resume data/eval/model-held-out.jsonl $(EVAL_OPTIONS)

eval-peers: $(DEV_STAMP) ## Print the same tasks answered by other frameworks' own loops, beside the gateway (PEER_OPTIONS, e.g. --sample 20); hours
	@$(BIN)/python -m tests.bench.native_loops --resume data/eval/model.jsonl $(PEER_OPTIONS)

eval-bfcl: $(DEV_STAMP) ## Print right calls of the public set of bfcl-eval, through the gateway and bare (BFCL_OPTIONS, e.g. --limit 40); hours
	@$(BIN)/python -m tests.bench.function_calls --resume data/eval/bfcl.jsonl $(BFCL_OPTIONS)

eval-chat: $(DEV_STAMP) ## Print checks and first tokens of 40 everyday turns beside the bare model's; writes a blind sheet (CHAT_OPTIONS)
	@$(BIN)/python -m tests.bench.everyday_chat --resume data/eval/chat.jsonl $(CHAT_OPTIONS)

check-model: $(DEV_STAMP) ## Try the engine with a real model at AGENT_LLM_BASE_URL: contract tests, then 20 sampled tasks
	@$(BIN)/python -m pytest -n0 -v -s -m model -o faulthandler_timeout=1500 tests/model
	@$(BIN)/stepgate eval --sample 20 $(EVAL_OPTIONS)

eval-degraded: $(DEV_STAMP) ## Print right answers against the rate of damage, with a scripted model; ten minutes
	@$(BIN)/python -m tests.bench.degraded

eval-relevance: $(DEV_STAMP) ## Print how many labelled questions with and without an answer find passages, without a model
	@$(BIN)/python -m pytest -n0 -q -s tests/integration/test_relevance_labelled.py

eval-retrieval: $(DEV_STAMP) ## Print nDCG, recall and times of each retrieval mode (RETRIEVAL_MODE, EVAL_DATASET)
	@$(BIN)/python -m tests.bench.retrieval

bench-reading: $(DEV_STAMP) ## Print how much of each file is read beside other readers, and write it into docs/retrieval.md
	@$(BIN)/python -m tests.bench.reading

bench-search: $(DEV_STAMP) ## Print times and sizes of search by words among many passages (BENCH_PASSAGES, BENCH_STORE)
	@$(BIN)/python -m tests.bench.search_scale

requirements: $(DEV_STAMP) ## Run the tests of each requirement and list the rows without one (REQUIREMENTS=S001-18; half an hour for all; needs chromium)
	@$(BIN)/python -m tests.requirements $(REQUIREMENTS)

eval-talks: $(DEV_STAMP) ## Ask the labelled conversations about documents, by rules and with the configured model if any
	@$(BIN)/python -m tests.bench.talk_questions

eval-answers: $(DEV_STAMP) ## Print precision and recall of the checks of claims, with the configured model if any
	@$(BIN)/python -m tests.bench.answers

check-long: $(DEV_STAMP) ## Run the tests that are too long for `make test`, one after another; ten minutes
	@$(BIN)/python -m pytest -n0 -v -m long

check-browser: $(DEV_STAMP) ## Use the web page in a real Chromium, and attack the gateway from foreign pages (needs chromium)
	@$(BIN)/python -m pytest -n0 -v -m browser tests/e2e

check-page: $(DEV_STAMP) ## Go through the web page as three people do, in a real Chromium; pictures into docs/images (needs chromium)
	@PAGE_PICTURES=docs/images $(BIN)/python -m pytest -n0 -v -m browser tests/page

check-examples: $(DEV_STAMP) ## Run the commands of docs/examples beside a gateway each; names those whose package is missing
	@$(BIN)/python -m pytest -n0 -v -rs -m 'long or not long' tests/examples

check-sandbox: $(DEV_STAMP) ## Run what needs namespaces: programs, generated tools, attacks on both sandboxes; ten minutes
	@$(BIN)/python -m pytest -n0 -m sandbox tests/unit tests/integration tests/abuse

fuzz: $(DEV_STAMP) ## Send made-up requests to every door (FUZZ_CASES each, FUZZ_SEED to repeat); minutes, not a test
	@FUZZ_CASES=$(FUZZ_CASES) FUZZ_SEED=$(FUZZ_SEED) $(BIN)/python -m pytest -n0 -s tests/integration/test_fuzz.py

check-clients: $(DEV_STAMP) ## Try other projects' clients against a gateway, and write docs/clients.md (CLIENTS to choose; needs npm)
	@$(BIN)/python -m tests.clients $(CLIENTS)

check-open-webui: $(DEV_STAMP) ## Use stock Open WebUI in a real Chromium before a gateway (installs gigabytes once)
	@$(BIN)/python -m tests.clients.open_webui

soak: $(DEV_STAMP) ## Kill a gateway under load again and again, and judge it (SOAK_MINUTES, SOAK_SEED to repeat)
	@$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

soak-cluster: $(DEV_STAMP) ## Kill the workers of a fleet on a PostgreSQL of its own again and again (SOAK_KILLS, SOAK_SEED)
	@$(BIN)/python -m tests.soak.cluster --kills $(SOAK_KILLS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

soak-ingest: $(DEV_STAMP) ## Share an ingestion by three processes, kill the one that has it (INGEST_OPTIONS, e.g. --source crawl)
	@$(BIN)/python -m tests.bench.shared_ingestion $(INGEST_OPTIONS)

soak-upgrade: $(DEV_STAMP) ## Upgrade a fleet from an older commit under load, process by process, and judge it (UPGRADE_FROM, SOAK_SEED)
	@$(BIN)/python -m tests.soak.upgrade --from $(UPGRADE_FROM) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

check-image: ## Build the image without a registry, start it read-only, ask it a question (Debian, root; four minutes)
	@tests/deploy/check_image.sh

docs: $(DEV_STAMP) ## Write the settings table and the failure table into docs/
	@$(BIN)/python -m gateway.reference_pages docs

docs-site: $(DOCS_VENV)/.installed ## Build the documentation as a site in build/site, and check its links
	@$(PYTHON) docs/site/prepare.py build/docs
	@$(DOCS_VENV)/bin/zensical build --clean --strict

$(DOCS_VENV)/.installed: docs/site/requirements.lock
	@test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

lock: $(DEV_STAMP) ## Resolve pyproject.toml into the lock files, with hashes
	@$(LOCK) --override requirements.overrides --extra build pyproject.toml -o requirements.lock
	@$(LOCK) $(DEV_EXTRAS:%=--extra %) -c requirements.lock pyproject.toml -o requirements-dev.lock
	@printf '%s\n' $(SERVER_PACKAGES) | $(LOCK) --no-deps -c requirements-dev.lock - -o requirements-scale.lock
	@echo zensical==0.0.73 | $(LOCK) - -o docs/site/requirements.lock
	@$(LOCK) --extra eval --override gateway/features/evaluation/requirements.overrides -c requirements-dev.lock pyproject.toml -o gateway/features/evaluation/requirements.lock

clean: ## Remove the environment and caches (your data folder stays)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Stepgate needs Python 3.11 or newer, this is %d.%d; set PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what running needs into $(VENV) (once; about a minute)"
	@# The locks are complete, so nothing has to be resolved; Python before 3.12 puts setuptools into environments, and
	@# all of them compile pip.
	@$(PIP) --no-deps --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -B -m pip uninstall --quiet --yes setuptools 2> /dev/null
	@find $(VENV)/lib -path '*/pip/*' -name __pycache__ -prune -exec rm -rf {} +
	@touch $@

$(DEV_STAMP): requirements-dev.lock gateway/features/evaluation/requirements.lock $(STAMP)
	@echo "Installing the optional parts and the development tools into $(VENV) (once)"
	@$(PIP) --no-deps --require-hashes -r requirements-dev.lock
	@$(PIP) --no-deps --require-hashes -r gateway/features/evaluation/requirements.lock
	@touch $@
