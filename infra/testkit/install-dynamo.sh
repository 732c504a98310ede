#!/usr/bin/env bash
# Installs the two DynamoDB stand-ins that tests run on, by package name, under
# .tools: dynalite (npm; needs node) and moto (PyPI; needs python3 with venv).
# Safe to run again: what is there in the right version is left alone.
set -euo pipefail

dynalite_version=4.0.0
moto_version=5.2.1

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/.tools

say() { printf 'tools: %s\n' "$*"; }

# fail REASON COMMAND: why it cannot go on, and the one command that helps.
fail() {
  printf 'tools: %s\ntools: run: %s\n' "$1" "$2" >&2
  exit 1
}

# system PACKAGE...: installs packages of the system where that can be done unasked.
system() {
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "installing with apt-get: $*"
    { apt-get install -y -q --no-install-recommends "$@" ||
      { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; }; } >/dev/null
  else
    fail "needs $*" "sudo apt-get install -y $*  # or your system's packages of these names"
  fi
}

install_dynalite() {
  local package=$tools/npm/node_modules/dynalite/package.json
  if [ -x "$tools/npm/node_modules/.bin/dynalite" ] && grep -q "\"version\": \"$dynalite_version\"" "$package"; then
    say "dynalite is there: $dynalite_version"
    return
  fi
  command -v npm >/dev/null && command -v node >/dev/null || system nodejs npm
  say "installing dynalite $dynalite_version (npm) into .tools/npm"
  npm install --prefix "$tools/npm" --no-package-lock --no-audit --no-fund --loglevel=error \
    --save-exact "dynalite@$dynalite_version" >/dev/null ||
    fail "npm could not install dynalite" "npm install --prefix .tools/npm --no-package-lock dynalite@$dynalite_version"
}

install_moto() {
  local venv=$tools/moto
  # The stamp is written last, so half an installation is made anew.
  if [ -x "$venv/bin/moto_server" ] && [ "$(cat "$venv/.version" 2>/dev/null)" = "$moto_version" ]; then
    say "moto is there: $moto_version"
    return
  fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || system python3 python3-venv
  say "installing moto[server] $moto_version (PyPI) into .tools/moto; this takes a minute or two, once"
  rm -rf "$venv"
  python3 -m venv "$venv" || fail "python3 could not make a virtual environment" "python3 -m venv .tools/moto"
  "$venv/bin/pip" install --quiet "moto[server]==$moto_version" ||
    fail "pip could not install moto" ".tools/moto/bin/pip install 'moto[server]==$moto_version'"
  echo "$moto_version" >"$venv/.version"
}

mkdir -p "$tools"
install_dynalite
install_moto
