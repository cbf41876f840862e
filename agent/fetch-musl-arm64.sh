#!/bin/sh
# Unpacks Debian's musl for arm64 into build/musl-arm64. apt keeps its state in build/, so that the machine's own
# package lists and architectures stay as they are.
set -eu
cd "$(dirname "$0")"
version=1.2.3-1
sha256=55c2ca4bc3041c8ed8ac7dc3ef6080d9551a21650568b2fd7610b59eaf98a4f4
[ -e build/musl-arm64/usr/lib/aarch64-linux-musl/libc.a ] && exit 0

state=$PWD/build/apt
rm -rf "$state"
mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"
sources=/etc/apt/sources.list.d/debian.sources
[ -e "$sources" ] || sources=/etc/apt/sources.list
set -- -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$state" -o Dir::State::status="$state/status" \
  -o Dir::Cache="$state/cache" -o Dir::Etc::sourcelist="$sources" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root
apt-get "$@" update
cd "$state"
apt-get "$@" download "musl-dev=$version"
echo "$sha256  musl-dev_${version}_arm64.deb" | sha256sum --check --quiet
cd ../..
rm -rf build/musl-arm64.new
dpkg-deb --extract "$state/musl-dev_${version}_arm64.deb" build/musl-arm64.new
rm -rf "$state" build/musl-arm64
mv build/musl-arm64.new build/musl-arm64
