# Sunhwa: `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# Sunhwa's functions, one folder each under functions/.
FUNCTIONS := start worker status apply comments sweeper
# ARCH is what `sam build` compiles for; it must be the template's architecture.
ARCH ?= arm64
# lambda.norpc leaves out net/rpc, which a provided.al2023 function never uses
# (https://github.com/aws/aws-lambda-go#for-developers-on-linux).
BUILD := CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w"
INSTALL := infra/testkit/install.sh

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
