#!/usr/bin/env bash
# Makes the images that the tests use, without any registry: aido-test:busybox, aido-test:static,
# aido-test:python, aido-test:node and aido-test:swarm-worker. Images that exist are left alone, but for the last one,
# which is made anew when the adapter in it has changed; root file systems are cached, so that a second run takes seconds.
#
#   scripts/test-images.sh                   all of them
#   scripts/test-images.sh busybox static    only these
#   scripts/test-images.sh --tar NAME FILE   writes an image's root file system instead of importing it
#
# DOCKER_HOST says which engine. AIDO_TEST_CACHE is where root file systems are kept.
set -euo pipefail
cd "$(dirname "$0")/.."
cache="${AIDO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aido-test}"
suite=bookworm
packages=python3-minimal,nodejs
say() { printf 'test-images: %s\n' "$*" >&2; }
need() {
  command -v "$1" >/dev/null || { say "$1 is missing: apt-get install $2"; exit 1; }
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/aido-test-images.XXXXXX")
trap 'wait; rm -rf --one-file-system "$scratch"' EXIT
mkdir -p "$cache"

# Everything below writes to a name of its own and renames, so that two runs at once do no harm.
busybox_tar() {
  need busybox busybox-static
  local root="$scratch/busybox"
  mkdir -p "$root"/{bin,etc,tmp,root}
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  "$root/bin/busybox" --list | while read -r applet; do
    [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000::/tmp:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nsandbox:x:1000:\n' >"$root/etc/group"
  tar -C "$root" --numeric-owner --owner=0 --group=0 -cf "$1" .
}

static_tar() {
  need musl-gcc musl-tools
  mkdir -p "$scratch/static"
  musl-gcc -static -Os -s -o "$scratch/static/probe" images/test/probe.c
  tar -C "$scratch/static" --numeric-owner --owner=0 --group=0 -cf "$1" probe
}

debian_tar() {
  local key file root="$scratch/debian"
  key=$(printf '%s %s %s' "$suite" "$packages" "$(dpkg --print-architecture)" | sha256sum | cut -c1-16)
  file="$cache/debian-$key.tar"
  if [ ! -e "$file" ]; then
    need debootstrap debootstrap
    say "debootstrap $suite with $packages (about a minute, once)"
    if ! debootstrap --variant=minbase --include="$packages" "$suite" "$root" >"$scratch/debootstrap.log" 2>&1; then
      tail -n 20 "$scratch/debootstrap.log" >&2
      exit 1
    fi
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/* "$root"/var/log/*
    tar -C "$root" --numeric-owner --one-file-system --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
      -cf "$file.$$" .
    mv "$file.$$" "$file"
  fi
  cp --reflink=auto "$file" "$1"
}

tar_of() {
  case "$1" in
    busybox) busybox_tar "$2" ;;
    static) static_tar "$2" ;;
    python | node) debian_tar "$2" ;;
    *) say "no image named $1; there are busybox static python node swarm-worker"; exit 2 ;;
  esac
}

# The base image of swarms, as `aido image build --swarm` makes it, on Debian's packages and with the agents of the tests.
swarm_worker() {
  local base=images/swarm-base context="$scratch/swarm-worker" ground image=aido-test:swarm-worker key old
  mkdir -p "$context"
  cp $base/install-* "$context"
  cp packages/aido/dist/acp-adapter.cjs "$context/acp-adapter" 2>/dev/null || {
    say "the adapter is not built; aido-test:swarm-worker gets one that fails"
    printf '#!/usr/bin/env node\nconsole.error("the adapter was not built");\nprocess.exit(1);\n' >"$context/acp-adapter"
  }
  chmod 755 "$context/acp-adapter"
  ground="aido-test:swarm-ground-$($base/on-host.sh key ground)"
  sed "s|^FROM .*|FROM $ground|" $base/Dockerfile >"$context/Dockerfile"
  key=$({ cat "$context"/*; $base/on-host.sh key claude; } | sha256sum | cut -c1-16)
  [ "$(docker image inspect --format '{{index .Config.Labels "dev.aido.test-key"}}' "$image" 2>/dev/null)" = "$key" ] && return
  if ! docker image inspect "$ground" >/dev/null 2>&1; then
    docker import "$($base/on-host.sh ground "$cache")" "$ground" >/dev/null
  fi
  old=$(docker images --quiet "$image")
  mkdir "$context/fetched"
  cp --reflink=auto "$(bash scripts/test-agents.sh)" "$context/fetched/claude"
  if ! docker build --network none --label "dev.aido.test-key=$key" --tag "$image" "$context" >"$scratch/build.log" 2>&1; then
    tail -n 20 "$scratch/build.log" >&2
    exit 1
  fi
  # Still used by a container, it stays.
  [ -z "$old" ] || docker rmi "$old" >/dev/null 2>&1 || true
  say "made $image"
}

if [ "${1:-}" = --tar ]; then
  tar_of "$2" "$3"
  exit 0
fi

need docker docker.io
[ "$#" -gt 0 ] || set -- busybox static python node swarm-worker
# What takes longest comes meanwhile. Whoever needs it waits at its lock, and says why when it did not come.
case " $* " in
  *" swarm-worker "*)
    images/swarm-base/on-host.sh ground "$cache" >/dev/null 2>&1 &
    bash scripts/test-agents.sh >/dev/null 2>&1 &
    ;;
esac
imported=""
for name in "$@"; do
  image="aido-test:$name"
  if [ "$name" = swarm-worker ]; then
    swarm_worker
    continue
  fi
  docker image inspect "$image" >/dev/null 2>&1 && continue
  case "$name:$imported" in
    python:*" node"* | node:*" python"*)
      docker tag "aido-test:$([ "$name" = python ] && echo node || echo python)" "$image"
      ;;
    *)
      tar_of "$name" "$scratch/$name.tar"
      docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        "$scratch/$name.tar" "$image" >/dev/null
      rm -f "$scratch/$name.tar"
      ;;
  esac
  imported="$imported $name"
  say "made $image"
done
