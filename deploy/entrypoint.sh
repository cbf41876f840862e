#!/bin/sh
# The engine mounts the supervisor into sandboxes by its path on the host, where only the data directory is the same.
set -eu
export AIDO_AGENT_PATH="$AIDO_DATA_DIR/.aido-agent"
draft=$AIDO_AGENT_PATH.$$
if [ ! -w "$AIDO_DATA_DIR" ]; then
  echo "aido: user $(id -u) cannot write $AIDO_DATA_DIR" >&2
  echo "hint: on the host, type: install -d -o $(id -u) -g $(id -g) -m 0700 $AIDO_DATA_DIR" >&2
  exit 1
fi
cp /opt/aido/packages/aido/dist/aido-agent "$draft"
chmod 0755 "$draft"
mv -f "$draft" "$AIDO_AGENT_PATH"
exec node /opt/aido/packages/aido/dist/cli/main.js "$@"
