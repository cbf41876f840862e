#!/bin/sh
# The engine mounts the supervisor into sandboxes by its path on the host, where only the data directory is the same.
set -eu
export AIDO_AGENT_PATH="$AIDO_DATA_DIR/.aido-agent"
draft=$AIDO_AGENT_PATH.$$
cp /opt/aido/packages/aido/dist/aido-agent "$draft"
chmod 0755 "$draft"
mv -f "$draft" "$AIDO_AGENT_PATH"
exec node /opt/aido/packages/aido/dist/cli/main.js "$@"
