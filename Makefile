# `make help` lists the targets. ./test builds, checks and tests the project; ./test --all is what CI runs.
.DEFAULT_GOAL := help
SHELL := /bin/bash
# With -trimpath the build cache does not depend on the folder, so that clones share it.
export GOFLAGS := -trimpath $(GOFLAGS)
FUZZTIME ?= 20s
SEEDS ?= 10000
CYCLES ?= 200

.PHONY: help build check test testall first-run race lint fuzz soak gen bench bench-compare conformance agents latest temporal temporalexample e2e screenshots release image releasetest

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

build: ## build the lathe binary into the current folder
	go build -o lathe ./cmd/lathe

check: ## before a commit: format, vet and the short tests
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "gofmt would change:"; echo "$$bad"; exit 1; }
	go vet ./...
	go test -short -vet=off ./...

test: ## before a merge: lint, tests with the race detector, an agent, an SDK, databases and a browser
	./test

testall: ## everything that CI runs, every test at its full length
	./test --all

first-run: ## README's first command with an empty HOME and empty caches: seconds, CPU seconds, megabytes
	@d=$$(mktemp -d); trap 'chmod -R u+w "$$d"; rm -rf "$$d"' EXIT; unset GOFLAGS GOCACHE GOMODCACHE GOPATH; \
	  export GOPROXY="$$(go env GOPROXY)" GOSUMDB="$$(go env GOSUMDB)" HOME="$$d" XDG_CACHE_HOME= TIMEFORMAT='%R seconds, %U CPU seconds of programs, %S of the system'; \
	  time go run ./cmd/lathe run "What is 7 + 35, and what time is it in Tokyo?" || exit 1; \
	  size() { du -sm "$$@" | awk '{n += $$1} END {print n}'; }; \
	  echo "$$(size "$$d"/go/pkg/mod/cache/download) MB downloaded, $$(size "$$d") MB in Go's caches"

race: ## tests under the race detector
	go test -race ./...

lint: ## the linters of .golangci.yml
	./test --lint

gen: ## write the generated documents and golden files again
	go test ./internal/config -run '^TestReferenceIsWritten$$' -update
	go test ./internal/config ./preset ./internal/destination ./internal/gateway/console ./internal/wire/openai ./internal/wire/uistream -update
	go test ./event -run '^TestSchemasAreWritten$$' -update
	go test ./lab/doctor -run '^TestDocument$$' -update
	go test ./server -run '^TestMixedTurnOnEachWire$$' -update
	go test ./cmd/lathe -run '^TestDialectsPageListsEveryDialect$$' -update

fuzz: ## each fuzz target for FUZZTIME (default 20s)
	@for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

soak: ## SEEDS simulated histories (10000), CYCLES killed processes (200), each fault at each step; prints what was promised
	LATHE_TEST=all LATHE_SOAK_SEEDS=$(SEEDS) LATHE_SOAK_CYCLES=$(CYCLES) go test -count=1 -v -timeout 120m \
	  -run '^(TestSimulatedRunsSurvive|TestSimulatedRunsSurviveOnPostgres|TestEachStepMayFail|TestF21_.*|TestF1_ServeKilledUnderLoad|TestF3_NodesStoppedUnderLoad|TestF4_DatabaseKilledUnderLoad|TestF5_StandbyTakesOverUnderLoad|TestF6_StandbyThatLacksEventsUnderLoad|TestF7_.*|TestF9_NodesCutOffUnderLoad)$$' ./engine ./loop ./cmd/lathe

bench: ## loop, assembly and decode beside their peers; prints a table with ratios
	cd bench && go run . -all

bench-compare: ## OLD (main) and the working tree in alternation, by benchstat, after the noise of the machine; allocations and instructions with the baseline
	cd bench && go run ./compare -old "$(or $(OLD),main)" $(COMPAREFLAGS)

conformance: ## official clients against `lathe sim serve`
	cd internal/conformance && go test ./...

agents: ## nine coding agents from npm (2.5 GB) against `lathe serve`; writes the tables of docs/internals/agents.md
	cd internal/conformance && go run ./agents/install -all && go test -count=1 -v -timeout 60m ./agents -agents

latest: ## the newest official clients and coding agents (3 GB, up to an hour) instead of the pinned ones; prints a table, fails only if nothing ran
	cd internal/conformance && go run ./latest $(LATESTFLAGS)

# The server is built once for each version of it, with as few resources as possible, into the cache of the user.
TEMPORALDEV = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lathe/temporaldev/$(shell cat internal/temporaldev/go.sum internal/temporaldev/*.go | cksum | tr -s ' ' -)/temporaldev

temporal: ## engine/temporal on a real Temporal server, which is built once (7 to 20 min, 150 MB); the tests take 6 to 10 min
	@test -x "$(TEMPORALDEV)" || { echo "building a Temporal server: $(TEMPORALDEV)"; cd internal/temporaldev && \
	  GOMAXPROCS=2 nice -n 15 go build -p 2 -ldflags='-s -w' -o "$(TEMPORALDEV)" .; }
	cd engine/temporal && LATHE_TEMPORAL_SERVER="$(TEMPORALDEV)" go test -count=1 -v -timeout 30m -run '^TestReal(Server|ServerConforms|Gateway)$$' . ./cmd/lathe-temporal

temporalexample: ## the TypeScript worker of engine/temporal, with its packages from npm (290 MB)
	cd engine/temporal/examples/typescript && npm ci --ignore-scripts
	cd engine/temporal && go test -count=1 -v -run '^(TestContractOfQueueTools|TestTypeScriptExample|TestPythonExampleIsPython)$$' .

release: ## VERSION=v0.x.y: archives, SBOMs, image and SHA256SUMS in dist/VERSION; -twice compares two builds of each binary
	@test -n "$(VERSION)" || { echo "make release VERSION=v0.x.y"; exit 2; }
	@mkdir -p dist
	cd internal/release && go run . -version "$(VERSION)" -out "../../dist/$(VERSION)" $(RELEASEFLAGS)

image: ## the container image alone, for linux on amd64 and arm64, in dist/image: no container engine is needed
	@mkdir -p dist
	cd internal/release && go run . -version "$(or $(VERSION),v0.0.0-devel)" -out ../../dist/image -platforms linux/amd64,linux/arm64

releasetest: ## a release for one platform, built twice, run from its image, and installed from a module proxy of the tree
	cd internal/release && LATHE_RELEASE_FULL=1 go test -count=1 -v -timeout 60m ./...

e2e: ## screens of the console in Chromium, with every view; needs npm and Chromium
	cd internal/gateway/console/web && npm ci --ignore-scripts && npm run check && npm run e2e

screenshots: ## the pictures of docs/images; needs npm and Chromium
	cd internal/gateway/console/web && npm ci --ignore-scripts && node screenshots.mjs
