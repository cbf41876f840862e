#!/usr/bin/env bash
# Fetches the real coding agents that the tests run in sandboxes, once, into the tests' cache, and prints where
# their programs are. Nothing is installed and none of their code runs here.
#
#   scripts/test-agents.sh           prints the path of the claude program
#
# AIDO_TEST_CACHE is where they are kept.
set -euo pipefail
cache="${AIDO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aido-test}"
exec "$(dirname "$0")/../images/swarm-base/on-host.sh" claude "$cache"
