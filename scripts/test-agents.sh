#!/usr/bin/env bash
# Fetches the real coding agents that the tests run in sandboxes, once, into the tests' cache, and prints where
# their programs are. Nothing is installed and none of their code runs here.
#
#   scripts/test-agents.sh           prints the path of the claude program
#
# AIDO_TEST_CACHE is where they are kept.
set -euo pipefail
version=2.1.325
cache="${AIDO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aido-test}/agents"
case "$(uname -m)" in
  x86_64) platform=linux-x64 ;;
  aarch64) platform=linux-arm64 ;;
  *) echo "test-agents: there is no claude for $(uname -m)" >&2; exit 1 ;;
esac
target="$cache/claude-$version-$platform"
if [ ! -x "$target/claude" ]; then
  mkdir -p "$cache"
  # Written to a name of its own and renamed, so that two runs at once do no harm.
  scratch=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  (cd "$scratch" && npm pack --silent "@anthropic-ai/claude-code-$platform@$version" >/dev/null)
  mkdir "$scratch/out"
  tar -xzf "$scratch"/*.tgz -C "$scratch/out" --strip-components=1
  [ -f "$scratch/out/claude" ] || { echo "test-agents: the package holds no program: $(ls "$scratch/out")" >&2; exit 1; }
  chmod 755 "$scratch/out" "$scratch/out/claude"
  mv -T "$scratch/out" "$target" 2>/dev/null || [ -x "$target/claude" ]
fi
echo "$target/claude"
