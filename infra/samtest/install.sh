#!/usr/bin/env bash
# Installs what the checks of the template use: the SAM CLI and cfn-lint in a
# Python environment of their own, .tools/sam, and Lambda's runtime interface
# emulator in .tools/bin. Safe to run again: what is there already is left alone.
#
# usage: infra/samtest/install.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/.tools

sam_version=1.170.0
cfn_lint_version=1.58.0
emulator=github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie
emulator_version=v0.0.0-20261030222936-bef5c4ba774d

say() { printf 'sam-tools: %s\n' "$*"; }
fail() {
  printf 'sam-tools: %s\nsam-tools: run: %s\n' "$1" "$2" >&2
  exit 1
}

want="aws-sam-cli==$sam_version cfn-lint==$cfn_lint_version"
if [ "$(cat "$tools/sam/.version" 2>/dev/null)" = "$want" ] && [ -x "$tools/sam/bin/sam" ]; then
  say "SAM CLI $sam_version and cfn-lint $cfn_lint_version are there"
else
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] ||
      fail "Python 3 with venv is not installed" "apt-get install python3 python3-venv  # or your system's like"
    say "installing python3-venv with apt-get"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3 python3-venv; } >/dev/null ||
      fail "apt-get could not install python3-venv" "apt-get install python3 python3-venv"
  fi
  say "installing the SAM CLI $sam_version and cfn-lint $cfn_lint_version into .tools/sam (a minute or two, once)"
  rm -rf "$tools/sam"
  python3 -m venv "$tools/sam"
  # shellcheck disable=SC2086 # two words
  "$tools/sam/bin/pip" install --quiet --disable-pip-version-check $want ||
    fail "pip could not install them" "$tools/sam/bin/pip install $want"
  echo "$want" >"$tools/sam/.version"
  say "installed: $(SAM_CLI_TELEMETRY=0 "$tools/sam/bin/sam" --version)"
fi

if [ -x "$tools/bin/aws-lambda-rie" ] && [ "$(cat "$tools/bin/.aws-lambda-rie" 2>/dev/null)" = "$emulator_version" ]; then
  say "Lambda's runtime interface emulator is there"
else
  command -v go >/dev/null || fail "Go is not installed" "bash .ci/run  # installs Go too, on Debian"
  say "building Lambda's runtime interface emulator into .tools/bin"
  mkdir -p "$tools/bin"
  (cd "$tools" && GOFLAGS='' GOBIN="$tools/bin" go install "$emulator@$emulator_version") ||
    fail "the emulator could not be built" "GOBIN=\$PWD/.tools/bin go install $emulator@$emulator_version"
  echo "$emulator_version" >"$tools/bin/.aws-lambda-rie"
fi
