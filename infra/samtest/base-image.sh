#!/usr/bin/env bash
# Makes a stand-in for the image in which `sam local` runs provided.al2023 functions,
# where it cannot be pulled. A Go bootstrap needs next to nothing of it: CA
# certificates, the folders that Lambda has, and a shell with the few commands that
# SAM uses when it adds its runtime emulator. The shell is Debian's busybox-static.
#
# It is no Amazon Linux: what runs in it shows that a function starts, is configured
# and answers, not that it would find a library there. An image that is there already
# under the name is left alone.
#
# usage: infra/samtest/base-image.sh     needs: a container engine that answers
set -euo pipefail

case $(uname -m) in
  x86_64) arch=x86_64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) echo "base-image: knows no image for $(uname -m)" >&2; exit 1 ;;
esac
image=public.ecr.aws/lambda/provided:al2023-$arch

if docker image inspect "$image" >/dev/null 2>&1; then
  echo "base-image: $image is there"
  exit 0
fi

busybox=$(command -v busybox || true)
if [ -z "$busybox" ] || ! LC_ALL=C ldd "$busybox" 2>&1 | grep -q 'not a dynamic executable'; then
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "base-image: needs a statically linked busybox; run: apt-get install busybox-static" >&2
    exit 1
  fi
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends busybox-static; } >/dev/null
  busybox=$(command -v busybox)
fi
certificates=/etc/ssl/certs/ca-certificates.crt
[ -r "$certificates" ] || { echo "base-image: no $certificates; run: apt-get install ca-certificates" >&2; exit 1; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
install -d "$tree"/{bin,etc,opt,var/task,var/runtime,var/rapid}
install -d -m 1777 "$tree/tmp"
install -D -m 644 "$certificates" "$tree$certificates"
install -m 755 "$busybox" "$tree/bin/busybox"
for command in sh chmod mv; do ln -s busybox "$tree/bin/$command"; done
printf 'root:x:0:0:root:/root:/bin/sh\n' >"$tree/etc/passwd"

tar -c -C "$tree" --owner=0 --group=0 . | docker import \
  --change 'WORKDIR /var/task' \
  --change 'ENV PATH=/bin LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime' \
  - "$image" >/dev/null
docker tag "$image" "${image%-*}"
echo "base-image: made $image and ${image%-*}, stand-ins"
