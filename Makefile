# Everything a developer does, by name. The work is in hack/, tools/ and in the Python packages; this file
# only says what depends on what. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

STARTED := $(shell date +%s)
VENV := .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.requirements
export PYTHONPATH := $(CURDIR)/operator:$(CURDIR)/hack:$(CURDIR)/tools
export PYTHONDONTWRITEBYTECODE ?=

CHART := charts/gpu-scheduler
IMAGE ?= gpu-scheduler:dev

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## Everything that development needs, on a Debian or Ubuntu with Python (quick the second time)

$(STAMP): requirements/dev.txt requirements/setup.txt hack/setup.sh
	@hack/setup.sh $(VENV)
	@touch $@

.PHONY: tools
tools: setup ## Fetch Kubernetes, helm and the rest, or build them from source, once per user
	@$(PYTHON) -m cluster build core node check

.PHONY: demo
demo: setup ## A cluster, the operator, and two jobs on one GPU, shown as bars
	@STARTED=$(STARTED) $(PYTHON) -m demo

.PHONY: demo-dashboard
demo-dashboard: setup ## The demo's dashboard in a browser, until Ctrl-C (OPTIONS=--no-browser, --print-token)
	@$(PYTHON) -m demo dashboard $(OPTIONS)

.PHONY: down
down: setup ## Stop the demo's cluster and clean up after it
	@$(PYTHON) -m demo down

.PHONY: test
test: setup ## All tiers: unit, long, native, chart, dashboard, api, e2e (the last one needs root)
	@hack/test.sh

.PHONY: test-unit test-long test-native test-chart test-dashboard test-api test-e2e
test-unit test-long test-native test-chart test-dashboard test-api test-e2e: setup ## One tier, for example make test-unit
	@hack/test.sh $(patsubst test-%,%,$@)

SINCE ?= main
.PHONY: test-quick
test-quick: setup ## The unit tests that what differs from SINCE=main can affect, by the imports
	@hack/test.sh quick $(SINCE)

.PHONY: test-record
test-record: setup ## State the times of the last runs as those that later ones are compared with
	@$(PYTHON) -m tests.suite.summary --record

.PHONY: prove
prove: ## What CI runs, in a clean clone, RUNS=5 times, beside BUSY=0 loops that never sleep
	@hack/prove.sh $(or $(RUNS),5) $(or $(BUSY),0)

.PHONY: explore
explore: setup ## Generated tests with fresh seeds for MINUTES=30; each failure comes with its seed
	@hack/explore.sh $(or $(MINUTES),30)

.PHONY: defects
defects: setup ## Twenty small defects put in one after the other: does a test find each? (OPTIONS=--help)
	@$(PYTHON) -m tests.defects $(OPTIONS)

HISTORIES ?= 20000
HISTORIES_ORDERS ?= 3000
HISTORIES_SEED ?= 1
.PHONY: histories
histories: setup ## Generated histories in a long setting: HISTORIES=20000 HISTORIES_ORDERS=3000 HISTORIES_SEED=1
	@HISTORIES=$(HISTORIES) HISTORIES_ORDERS=$(HISTORIES_ORDERS) HISTORIES_CLOCKS=400 HISTORIES_SEED=$(HISTORIES_SEED) $(PYTHON) -m pytest -q -n auto tests/unit/generated/test_histories.py tests/unit/generated/test_sharing.py tests/unit/generated/test_any_order.py tests/unit/generated/test_clock_steps.py
	@HISTORIES_OF_WORK=$(HISTORIES) HISTORIES_OF_COUNTS=$(HISTORIES_ORDERS) $(PYTHON) -m pytest -q -n auto tests/unit/generated/test_running_work.py tests/unit/generated/test_exact_counts.py

KILLS ?= 200
.PHONY: kills
kills: setup ## A real leader killed between a place and its pod: KILLS=200 times
	@KILLS=$(KILLS) $(PYTHON) -m pytest -q -n0 tests/api/test_kills_between.py

CHANGES ?= 200
.PHONY: leader-changes
leader-changes: setup ## Another leader, CHANGES=200 times, beside a Job controller that stops: GPUS=200 JOBS=400
	@CHANGES=$(CHANGES) GPUS=$(or $(GPUS),200) JOBS=$(or $(JOBS),400) $(PYTHON) -m pytest -q -n0 tests/api/test_leader_changes.py

SLIPS ?= 3000
SLIPS_SEED ?= 1
.PHONY: slips
slips: setup ## One thing wrong anywhere in a GPUJob, on a real API server: SLIPS=3000 SLIPS_SEED=1
	@SLIPS=$(SLIPS) SLIPS_SEED=$(SLIPS_SEED) $(PYTHON) -m pytest -q -s -n0 tests/api/test_slips.py

.PHONY: test-versions
test-versions: setup ## The core of the api tier on Kubernetes before the newest, which the other tests are on
	@hack/versions.sh

.PHONY: policies
policies: setup ## Every list that an admission policy walks, as long as the API server takes it
	@$(PYTHON) -m pytest -q -n0 tests/api/admission/largest_requests.py

ADVICE ?= 50
ADVICE_SEED ?= 1
.PHONY: advice
advice: setup ## Kinds of work at random, ADVICE=50 of each from ADVICE_SEED=1, and what they are advised
	@ADVICE=$(ADVICE) ADVICE_SEED=$(ADVICE_SEED) $(PYTHON) -m pytest -q -s -n0 tests/unit/usage/advice/confusion.py

AFTER ?= 0
.PHONY: advice-applied
advice-applied: setup ## A job changed as advised, on the real node: 40 minutes, AFTER=1 for 40 more (needs root)
	@AFTER=$(AFTER) $(PYTHON) -m pytest -q -s -n0 tests/e2e/advice_applied.py

RESOURCE_PODS ?= 200
.PHONY: resources
resources: setup ## Pods that ask for what the real node has little of: RESOURCE_PODS=200 (needs root)
	@RESOURCE_PODS=$(RESOURCE_PODS) $(PYTHON) -m pytest -q -s -n0 tests/e2e/test_countable_resources.py

PLANS ?= 30000
PLANS_SEED ?= 1
.PHONY: plans
plans: setup ## Random work played through the planner, and its evictions judged: PLANS=30000 PLANS_SEED=1
	@PLANS=$(PLANS) PLANS_SEED=$(PLANS_SEED) $(PYTHON) -m pytest -q -s -n0 tests/unit/core/properties/test_room.py

.PHONY: in-vain
in-vain: setup ## Random work with jobs that can never start: nobody is evicted for them twice. PLANS=3000 PLANS_SEED=1
	@PLANS_IN_VAIN=$(if $(filter file,$(origin PLANS)),3000,$(PLANS)) PLANS_SEED=$(PLANS_SEED) $(PYTHON) -m pytest -q -s -n0 tests/unit/generated/test_in_vain.py

.PHONY: lint
lint: setup ## Formatting, types, import directions, chart, shell scripts, structure
	@hack/lint.sh

.PHONY: format
format: setup ## Rewrite the Python sources as ruff would have them
	@$(VENV)/bin/ruff check --fix --quiet . || true
	@$(VENV)/bin/ruff format .

.PHONY: crds
crds: setup ## Generate crds/ and the chart's copy of it from the pydantic models
	@$(PYTHON) -m gpu_scheduler.api.crd
	@mkdir -p $(CHART)/files/crds
	@rm -f $(CHART)/files/crds/*.yaml
	@cp crds/*.yaml $(CHART)/files/crds/

.PHONY: reference
reference: setup ## Write docs/reference from the code: commands, CRDs, values, settings, metrics, reasons
	@$(PYTHON) -m reference

.PHONY: boards
boards: setup ## Write the chart's boards for Grafana from hack/boards
	@$(PYTHON) -m boards

.PHONY: docs
docs: setup ## Build the docs site into build/site; every defect of it is an error
	@$(PYTHON) -m docs_site

.PHONY: docs-look
docs-look: docs ## Every page of it in Chromium, light and dark, wide and narrow, and every name searched (OPTIONS=)
	@hack/dashboard.sh docs $(OPTIONS)

# Node.js 20.19 or later is enough for these; the folders are in dashboard/README.md.
.PHONY: dashboard dashboard-test dashboard-real dashboard-look dashboard-cost dashboard-cost-real dashboard-oidc dashboard-run dashboard-types
dashboard: ## Build the dashboard's front end into dashboard/dist; nothing when nothing of it changed
	@hack/dashboard.sh build

dashboard-test: ## Its functions, and all its pages in Chromium on a server of made-up clusters
	@hack/dashboard.sh test

dashboard-real: setup ## Its pages in Chromium, on a real operator and control plane (OPTIONS=: to Playwright, --stay)
	@$(PYTHON) -m tests.dashboard $(OPTIONS)

dashboard-look: ## A picture of each page and state into docs/pictures/dashboard (PICTURES=folder)
	@hack/dashboard.sh look

dashboard-cost: ## What 1,000 GPUs and 10,000 jobs that change cost the reader's browser
	@hack/dashboard.sh cost

dashboard-cost-real: setup ## The same on a real operator with agents (OPTIONS='--part 0.1 --seconds 60', --help)
	@$(PYTHON) -m tests.dashboard.cost $(OPTIONS)

dashboard-oidc: setup ## It behind a real oauth2-proxy, which is built, with an OIDC issuer of the tests
	@hack/dashboard.sh oauth2-proxy
	@hack/dashboard.sh build
	@$(PYTHON) -m pytest -q tests/unit/web/dashboard/test_behind_oauth2_proxy.py

dashboard-run: ## The dashboard on made-up clusters, anew at each change of its sources
	@hack/dashboard.sh run

dashboard-types: setup ## Write its types from the operator's schema
	@$(PYTHON) -m dashboard_types

# Some 900 MB of npm packages, so it stands beside the landing; the folders are in headlamp/README.md.
.PHONY: headlamp headlamp-look headlamp-types
headlamp: ## Check, test and build the plugin for Headlamp into headlamp/dist; nothing when nothing changed
	@hack/headlamp.sh check

headlamp-look: ## A picture of each of its pages by its Storybook into docs/pictures/headlamp
	@hack/headlamp.sh look

headlamp-types: setup ## Write its types from crds/
	@$(PYTHON) -m headlamp_types

.PHONY: bench
bench: setup ## Throughput and latency against the stock scheduler; writes docs/benchmarks.md
	@$(PYTHON) -m tests.perf

# A machine with a GPU is often bare: the standard library of any python3 is enough.
.PHONY: gpu-check
gpu-check: ## Do memory caps hold on this machine's NVIDIA driver? Needs no setup (OPTIONS=--help)
	@python=$(PYTHON); [ -x $$python ] || python=python3; $$python -m gpu_check $(OPTIONS)

.PHONY: bench-ports
bench-ports: setup ## What strangers at its ports cost the operator: scrapes, idle connections, floods, dear logs
	@$(PYTHON) -m tests.perf.bench_ports

.PHONY: bench-memory
bench-memory: setup ## What the operator keeps in memory of jobs, pods and namespaces (OPTIONS=--help)
	@$(PYTHON) -m tests.perf.bench_memory $(OPTIONS)

.PHONY: bench-signals
bench-signals: setup ## What signals cost the operator at 1,000 GPUs, with agents that are no good too (OPTIONS=--help)
	@$(PYTHON) -m tests.perf.bench_signals $(OPTIONS)

.PHONY: bench-dashboard
bench-dashboard: setup ## What 50 open pages and 20 what-ifs at once cost the operator (OPTIONS=--help)
	@$(PYTHON) -m tests.perf.bench_dashboard $(OPTIONS)

.PHONY: bench-commands
bench-commands: setup ## What `kubectl gpu` costs who types it, on a cluster with 1,000 jobs
	@$(PYTHON) -m tests.perf.bench_commands

.PHONY: bench-start
bench-start: setup ## How long a newcomer waits for the picture, programs from a local mirror (OPTIONS=--help; root)
	@$(PYTHON) -m tests.perf.bench_start $(OPTIONS)

.PHONY: bench-packing
bench-packing: setup ## How well GPUs are packed on a public trace, against published results; writes docs/packing.md
	@$(PYTHON) -m tests.perf.bench_packing

.PHONY: bench-sharing
bench-sharing: setup ## What evictions cost: work of several projects by several rules; writes docs/sharing.md
	@$(PYTHON) -m tests.perf.bench_sharing

.PHONY: replay
replay: setup ## Play a trace of pods by one or several packing policies (OPTIONS='--nodes FILE --pods FILE', --help)
	@$(PYTHON) -m tests.perf.replay $(OPTIONS)

.PHONY: sharing
sharing: setup ## Play work of several projects by several rules of eviction (OPTIONS='random --load 0.96', --help)
	@$(PYTHON) -m tests.perf.sharing $(OPTIONS)

.PHONY: soak
soak: setup ## Random work, hostile objects and faults for MINUTES=60, with a checker of its own
	@$(PYTHON) -m tests.soak --minutes $(or $(MINUTES),60) $(OPTIONS)

.PHONY: attack
attack: setup ## A tenant with `edit` does its worst, all at once, for MINUTES=15 (needs root; OPTIONS=--help)
	@$(PYTHON) -m tests.attack --minutes $(or $(MINUTES),15) $(OPTIONS)

.PHONY: native-sanitized
native-sanitized: setup ## The native tests with AddressSanitizer and UBSan, and with ThreadSanitizer
	@$(MAKE) -C native sanitize tsan
	@for build in sanitize tsan; do \
	  echo "$$build:"; NATIVE_BUILD=native/build/$$build $(PYTHON) -m pytest -q tests/native || exit 1; done

.PHONY: fuzz
fuzz: setup ## Random programs under libgpucap for MINUTES=60, a third of it with each sanitizer
	@$(MAKE) -C native all sanitize tsan
	@for build in build build/sanitize build/tsan; do \
	  echo "$$build:"; NATIVE_BUILD=native/$$build $(PYTHON) -m tests.native.fuzz \
	    --seconds $$(( $(or $(MINUTES),60) * 20 )) $(OPTIONS) || exit 1; done

.PHONY: caps-programs
caps-programs: setup ## Random programs under libgpucap against a model of a driver's accounting: PROGRAMS=5000, SEED=1
	@$(PYTHON) -m tests.native.caps_programs --count $(or $(PROGRAMS),5000) --seed $(or $(SEED),1) $(OPTIONS)

.PHONY: clients clients-large
clients: setup ## What small clients of the driver get and see in a capped container, on the pretended driver
	@$(PYTHON) -m tests.native.clients

clients-large: setup ## How far CuPy, PyTorch and TensorFlow get there; installs some 8 GB, once
	@$(PYTHON) -m tests.native.large_clients

.PHONY: unlucky
unlucky: setup ## Wrong and unlucky jobs on a real kubelet, and what kubectl says of each: JOBS=300 (needs root)
	@$(PYTHON) -m tests.unlucky --jobs $(or $(JOBS),300) $(OPTIONS)

.PHONY: image
image: setup ## Build the operator's image, with Docker where there is one (IMAGE=name:tag)
	@hack/image.sh $(IMAGE)

.PHONY: release release-check version
release: setup ## Wheel, images, chart, krew archive, bills of materials, checksums in dist/ (ALLOW_DIRTY=1)
	@$(PYTHON) -m release build

release-check: setup ## The release twice, in different folders: are all files equal?
	@$(PYTHON) -m release check

version: setup ## State the version of gpu_scheduler/__init__.py where it is repeated
	@$(PYTHON) -m release version

.PHONY: requirements
requirements: ## Pin requirements/*.txt anew from pyproject.toml (needs uv)
	@hack/requirements.sh
