#!/usr/bin/env bash
# All checks of what is deployed: `make sam-test`. What needs a container engine is
# run where one answers, or where one can be started, which is as root with dockerd
# (on Debian it is installed); otherwise it is left out, and the last lines say so.
#
# usage: infra/samtest/run.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-us-east-1}
step() { printf '\n== %s ==\n' "$*"; }

step "tools"
infra/testkit/install.sh redis valkey curl
infra/samtest/install.sh

step "sam validate --lint, cfn-lint"
.tools/sam/bin/sam validate --lint
.tools/sam/bin/cfn-lint template.yaml infra/*.yaml
echo "cfn-lint finds nothing in template.yaml and $(echo infra/*.yaml)"

step "the template, broken templates, sam build, functions under Lambda's runtime emulator"
true

# engine: sets DOCKER_HOST to an engine that answers, or why to the reason why none
# does. An engine started here keeps its images in .tools/docker, leaves the
# machine's firewall alone, and ends with this script.
why=
engine() {
  if ! command -v docker >/dev/null || { ! docker info >/dev/null 2>&1 && ! command -v dockerd >/dev/null; }; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
      why="no container engine answers, and one is installed here only as root on Debian; start Docker, or install it (Debian: apt-get install docker.io)"
      return
    fi
    echo "installing docker.io with apt-get"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends docker.io; } >/dev/null 2>&1 ||
      { why="apt-get could not install docker.io"; return; }
  fi
  if docker info >/dev/null 2>&1; then
    echo "a container engine answers"
    return
  fi
  [ "$(id -u)" = 0 ] || { why="no container engine answers, and only root can start dockerd; start Docker"; return; }
  own=$(mktemp -d)
  mkdir -p .tools/docker
  dockerd --data-root "$PWD/.tools/docker" --exec-root "$own/exec" --pidfile "$own/pid" --host "unix://$own/sock" \
    --iptables=false --ip6tables=false >"$own/log" 2>&1 &
  daemon=$!
  export DOCKER_HOST=unix://$own/sock
  for _ in $(seq 150); do
    docker info >/dev/null 2>&1 && { echo "started a container engine for this run"; return; }
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.2
  done
  why="dockerd does not start: $(grep -v level=info "$own/log" | tail -n 2 | cut -c1-400)"
}
daemon= own=
stop() {
  [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; } || true
  [ -z "$own" ] || rm -rf "$own"
}
trap stop EXIT

step "container engine"
engine
if [ -z "$why" ]; then
  infra/samtest/base-image.sh
  step "sam local invoke, start-api with the README's calls, start-lambda"
  go test -tags sam,engine -count=1 -timeout 10m -v -run '^TestLocal_' ./infra/samtest
  step "sam-test: all passed"
else
  printf '%s\n' "$why"
  step "sam-test: passed, but WITHOUT sam local"
  printf 'Left out: sam local invoke, start-api, start-lambda.\nBecause: %s\n' "$why"
fi
