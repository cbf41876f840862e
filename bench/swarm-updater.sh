#!/bin/bash
# The same as swarm-updater.mjs in the way of a shell: the lock, jq into a new file, and that in place of the old one.
set -eu
cd "$1/.aimi"
name=$2 total=$3
for ((completed = 1; completed <= total; completed++)); do
  (
    flock -x 9
    printf -v now '%(%Y-%m-%dT%H:%M:%S.000Z)T' -1
    jq --arg name "$name" --arg now "$now" --argjson total "$total" --argjson completed "$completed" '
      .updatedAt = $now | (.containers[] | select(.containerName == $name)) |= (
        .updatedAt = $now | .storyProgress =
          { total: $total, completed: $completed, failed: 0, inProgress: 0, pending: ($total - $completed) }
      )' swarm-state.json >"swarm-state.json.$$"
    mv "swarm-state.json.$$" swarm-state.json
  ) 9>>.state.lock
done
