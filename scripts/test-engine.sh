#!/usr/bin/env bash
# A Docker engine for the tests: the one that answers, or an own one where none does.
#
#   scripts/test-engine.sh start    says which engine it is; starts one when none answers (as root)
#   scripts/test-engine.sh stop     stops the engine that `start` started, and no other
#   scripts/test-engine.sh runsc    prints where gVisor's runsc is; fetches it from Debian's packages when needed
#
# Nothing is installed: runsc is unpacked into the cache, with a package configuration of its own.
set -euo pipefail
cache="${AIDO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aido-test}"
state="${AIDO_TEST_ENGINE_STATE:-/run/aido-test-engine}"
say() { printf 'test-engine: %s\n' "$*" >&2; }

# Prints the path, or fails. gVisor in Debian's stable release is too old for today's kernels.
runsc() {
  local own="$cache/runsc/runsc"
  if type -P runsc; then return 0; fi
  if [ -x "$own" ]; then
    echo "$own"
    return 0
  fi
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  # From wherever this machine gets its packages.
  local work mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 -E '/debian/?$') || return 1
  work=$(mktemp -d "${TMPDIR:-/tmp}/aido-test-runsc.XXXXXX")
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$cache/runsc"
  printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' \
    "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg >"$work/backports.sources"
  local options=(
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o "Dir::Etc::SourceList=$work/backports.sources"
    -o Dir::Etc::SourceParts=/dev/null -o "APT::Sandbox::User=$(id -un)" -qq
  )
  local status=0
  {
    apt-get "${options[@]}" update &&
      (cd "$work" && apt-get "${options[@]}" download runsc) &&
      dpkg-deb -x "$work"/runsc_*.deb "$work/unpacked" &&
      mv "$work/unpacked/usr/bin/runsc" "$own.$$" && mv "$own.$$" "$own"
  } >"$work/log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 5 "$work/log" >&2
    say "runsc cannot be fetched"
  fi
  rm -rf "$work"
  [ "$status" -eq 0 ] && echo "$own"
}

start() {
  if docker version --format '{{.Server.Version}}' >/dev/null 2>&1; then
    say "using the engine that answers: $(docker version --format '{{.Server.Version}}')"
    return 0
  fi
  if [ -n "${DOCKER_HOST:-}" ]; then
    say "nothing answers at DOCKER_HOST=$DOCKER_HOST"
    return 1
  fi
  if [ "$(id -u)" -ne 0 ] || ! command -v dockerd >/dev/null; then
    say "no engine answers, and starting one takes root and dockerd (apt-get install docker.io iptables)"
    return 1
  fi
  mkdir -p "$state" "$cache"
  [ -e /sys/class/net/docker0 ] || touch "$state/own-bridge"
  local binary runtimes='{}'
  if binary=$(runsc); then
    runtimes=$(printf '{"runsc":{"path":"%s","runtimeArgs":["--network=none"]}}' "$binary")
  fi
  printf '{"runtimes":%s}\n' "$runtimes" >"$state/daemon.json"
  setsid dockerd --config-file "$state/daemon.json" --data-root "$cache/docker" --exec-root "$state/exec" \
    --pidfile "$state/docker.pid" --host unix:///var/run/docker.sock >"$state/log" 2>&1 </dev/null &
  echo "$!" >"$state/pid"
  local deadline=$((SECONDS + 60))
  until docker version >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$(cat "$state/pid")" 2>/dev/null; then
      tail -n 20 "$state/log" >&2
      say "dockerd did not start"
      stop
      return 1
    fi
    sleep 0.2
  done
  say "started an own engine: $(docker version --format '{{.Server.Version}}')"
}

# One that ended and waits for its parent is not.
is_alive() {
  grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null
}

stop() {
  local pid deadline
  [ -e "$state/pid" ] || return 0
  pid=$(cat "$state/pid")
  # A number that was given to another process since is not ours to end.
  if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]; then
    # Its bridge would stay on the machine.
    docker network rm aido-sandboxes >/dev/null 2>&1 || true
    kill "$pid"
    deadline=$((SECONDS + 60))
    while is_alive "$pid" && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.1; done
    say "stopped the own engine"
    if [ -e "$state/own-bridge" ]; then ip link delete docker0 2>/dev/null || true; fi
  fi
  # dockerd leaves the network namespace of its containers without one mounted.
  umount "$state"/exec/netns/* 2>/dev/null || true
  rm -rf --one-file-system "$state"
}

case "${1:-}" in
  start | stop | runsc) "$1" ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
