# Sunhwa: `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# Sunhwa's functions, one folder each under functions/.
FUNCTIONS := start worker status apply comments sweeper
# ARCH is what `sam build` compiles for. The template's Architecture decides it: SAM
# runs infra/make/<Architecture>/Makefile, which sets it and includes this file.
ARCH ?= arm64
# lambda.norpc leaves out net/rpc, which a provided.al2023 function never uses
# (https://github.com/aws/aws-lambda-go#for-developers-on-linux).
BUILD := CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w"
INSTALL := infra/testkit/install.sh

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run one job from claim to published version and exit; INPUT=file (.json .jsonl .csv), OUT=file (.json)
	@CGO_ENABLED=0 go build -o bin/demo ./infra/local/demo
	@exec bin/demo $${INPUT:+-input "$$INPUT"} $${OUT:+-out "$$OUT"}

.PHONY: run
run: ## serve the API on 127.0.0.1:8080 until Ctrl-C; configured by the environment (see README)
	@CGO_ENABLED=0 go build -o bin/serve ./infra/local/serve
	@exec bin/serve

.PHONY: test
test: servers ## run every test with the race detector, on real servers; installs those it lacks
	go test -race -timeout 15m ./...

.PHONY: sam-test
sam-test: ## check the template, what sam build makes and, with a container engine, sam local
	@infra/samtest/run.sh

.PHONY: sam-servers
sam-servers: ## serve what sam local needs until Ctrl-C: redis-server and stand-ins (see README)
	@$(INSTALL) redis
	@CGO_ENABLED=0 go build -o bin/sam-servers ./infra/samtest/servers
	@exec bin/sam-servers

.PHONY: servers
servers: ## install the real servers that tests run on
	@$(INSTALL) redis valkey dynamo compiler curl

.PHONY: tools
tools: ## install everything tests and checks use: servers and linter
	@$(INSTALL)

.PHONY: lint
lint: ## run the linters
	@$(INSTALL) lint
	.tools/bin/golangci-lint run ./...

.PHONY: race
race: ## show that the usual way breaks and this one does not; ENGINE=valkey, REDIS_ADDR=host:port, SCENARIOS=n
	@case "$${REDIS_ADDR:+given}$${ENGINE:-redis}" in redis|valkey) $(INSTALL) $${ENGINE:-redis} >&2;; esac
	@CGO_ENABLED=0 go build -o bin/race ./infra/race
	@exec bin/race $${ENGINE:+-engine "$$ENGINE"} $${REDIS_ADDR:+-addr "$$REDIS_ADDR"} $${REDIS_MODE:+-mode "$$REDIS_MODE"} $${SCENARIOS:+-scenarios "$$SCENARIOS"}

.PHONY: verify
verify: ## walk every order of events on the real scripts, replay a sample on real servers, kill the mutants, check histories
	@$(INSTALL) redis valkey
	@CGO_ENABLED=0 go build -o bin/verify ./infra/race/verify
	bin/verify
	go test -count=1 ./infra/race/history

# Every fuzz target: package and name.
FUZZ := ./shared/job:FuzzParseID ./shared/jobstore:FuzzReply ./shared/handler:FuzzStartBody \
	./shared/handler:FuzzPathIDs ./shared/handler:FuzzEvent ./shared/rewrite:FuzzAnswer ./infra/local/llm:FuzzSoften

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (10s)
	@for t in $(FUZZ); do \
		echo "$$t"; \
		go test -run '^$$' -fuzz "^$${t#*:}\$$" -fuzztime $${FUZZTIME:-10s} "$${t%%:*}" || exit 1; \
	done

.PHONY: vuln
vuln: ## look for known vulnerabilities (needs the internet)
	@$(INSTALL) vuln
	.tools/bin/govulncheck ./...

.PHONY: fmt
fmt: ## format the code
	@$(INSTALL) lint
	.tools/bin/golangci-lint fmt

.PHONY: build
build: ## compile all functions for Lambda into bin/, for arm64 and amd64
	@for arch in arm64 amd64; do for f in $(FUNCTIONS); do \
		echo "bin/$$arch/$$f/bootstrap"; \
		GOARCH=$$arch $(BUILD) -o bin/$$arch/$$f/bootstrap ./functions/$$f || exit 1; \
	done; done

# What `sam build` calls for each function, with ARTIFACTS_DIR set.
.PHONY: build-StartFunction build-WorkerFunction build-StatusFunction build-ApplyFunction build-CommentsFunction build-SweeperFunction
build-StartFunction:
	GOARCH=$(ARCH) $(BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/start
build-WorkerFunction:
	GOARCH=$(ARCH) $(BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/worker
build-StatusFunction:
	GOARCH=$(ARCH) $(BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/status
build-ApplyFunction:
	GOARCH=$(ARCH) $(BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/apply
build-CommentsFunction:
	GOARCH=$(ARCH) $(BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/comments
build-SweeperFunction:
	GOARCH=$(ARCH) $(BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/sweeper

.PHONY: clean
clean: ## remove what was built (not the tools)
	rm -rf bin .aws-sam
