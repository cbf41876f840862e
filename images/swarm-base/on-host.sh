#!/usr/bin/env bash
# Fetches on this machine what the swarm's base image is made of where there is no registry of images, and prints
# where it is. What was fetched before is taken as it is. Nothing that npm gives is run.
#
#   on-host.sh ground DIRECTORY    a root file system from Debian's packages, as a tar file; needs root and debootstrap
#   on-host.sh claude DIRECTORY    the Claude Code program, from the npm registry; needs npm
#   on-host.sh key ground|claude   what the answer depends on, without fetching anything
#
# AIDO_DEBIAN_MIRROR is the mirror to ask; debootstrap's own choice otherwise.
set -euo pipefail
cd "$(dirname "$0")"

suite=trixie
packages=nodejs,python3,python3-venv,python3-pip,git,openssh-client,curl,ca-certificates,procps
# Debian's own npm brings hundreds of packages.
from_npm="npm@10.9.9 pnpm@9.15.9 yarn@1.22.22"
claude_version=$(sed -n 's/^ARG CLAUDE_CODE_VERSION=//p' Dockerfile)
say() { printf 'swarm-base: %s\n' "$*" >&2; }
fail() { say "$1"; exit "${2:-1}"; }

platform() {
  case "$(uname -m)" in
    x86_64) echo linux-x64 ;;
    aarch64) echo linux-arm64 ;;
    *) fail "there is no Claude Code for $(uname -m)" 4 ;;
  esac
}

key() {
  case "$1" in
    ground) echo "$suite $packages $from_npm $(uname -m) 1" | sha256sum | cut -c1-16 ;;
    claude) echo "$claude_version-$(platform)" ;;
  esac
}

# A package of the registry, unpacked into a directory. npm pack runs no script of it.
fetch_package() {
  command -v npm >/dev/null || fail "npm is missing" 3
  mkdir -p "$scratch/pack" "$2"
  (cd "$scratch/pack" && npm pack --silent "$1" >/dev/null) || fail "the npm registry did not give $1"
  tar -xzf "$scratch"/pack/*.tgz -C "$2" --strip-components=1 --no-same-owner
  rm -r "$scratch/pack"
}

ground() {
  local root="$scratch/root" spec name
  command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap" 3
  [ "$(id -u)" = 0 ] || fail "debootstrap needs root" 3
  say "fetching Debian $suite with $packages"
  # What it mounts goes with its processes, however they end.
  # shellcheck disable=SC2086
  if ! unshare --mount --propagation private debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${AIDO_DEBIAN_MIRROR:-} \
    >"$scratch/debootstrap.log" 2>&1; then
    tail -n 20 "$scratch/debootstrap.log" >&2
    fail "debootstrap failed"
  fi
  for spec in $from_npm; do
    name=${spec%@*}
    say "fetching $spec"
    fetch_package "$spec" "$root/usr/local/lib/node_modules/$name"
  done
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
  ln -s ../lib/node_modules/pnpm/bin/pnpm.cjs "$root/usr/local/bin/pnpm"
  ln -s ../lib/node_modules/yarn/bin/yarn.js "$root/usr/local/bin/yarn"
  chmod 755 "$root"/usr/local/lib/node_modules/{npm/bin/npm-cli.js,npm/bin/npx-cli.js,pnpm/bin/pnpm.cjs,yarn/bin/yarn.js}
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/* "$root"/var/log/*
  # This machine's own answers do not belong into an image; the engine gives each container its own.
  rm -f "$root"/etc/resolv.conf "$root"/etc/hostname
  tar -C "$root" --numeric-owner --one-file-system --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
    -cf "$scratch/ground.tar" .
  mv "$scratch/ground.tar" "$1"
}

claude() {
  say "fetching Claude Code $claude_version"
  fetch_package "@anthropic-ai/claude-code-$(platform)@$claude_version" "$scratch/out"
  [ -f "$scratch/out/claude" ] || fail "the package holds no program: $(ls "$scratch/out")"
  chmod 755 "$scratch/out" "$scratch/out/claude"
  mv -T "$scratch/out" "$1" 2>/dev/null || [ -x "$1/claude" ]
}

what=${1:-} directory=${2:-}
case "$what" in
  key) key "$directory"; exit 0 ;;
  ground) target="$directory/ground-$(key ground).tar" answer=$target ;;
  claude) target="$directory/claude-$(key claude)" answer=$target/claude ;;
  *) fail "say ground or claude, and where" 2 ;;
esac
mkdir -p "$directory"
# One at a time; a run that was killed leaves its directory to the next one.
exec 9>>"$directory/.$what.lock"
flock -w 1500 9 || fail "another fetch takes too long"
if [ ! -e "$answer" ]; then
  rm -rf --one-file-system "$directory"/fetch-"$what".*
  scratch=$(mktemp -d "$directory/fetch-$what.XXXXXX")
  trap 'rm -rf --one-file-system "$scratch"' EXIT
  "$what" "$target"
fi
echo "$answer"
