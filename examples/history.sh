#!/bin/sh
# The history of a sandbox over HTTP: run two versions of a program, compare them, go back to the first.
#
#   ./aido serve &                  # on http://localhost:3000
#   examples/history.sh             # AIDO_URL, AIDO_API_KEY and AIDO_IMAGE are optional
#
# Needs curl and jq.
set -eu

url=${AIDO_URL:-http://localhost:3000}
image=${AIDO_IMAGE:-node:18-alpine}

# Asks the server; prints its answer, and ends the script when it is an error.
api() {
  method=$1 path=$2
  shift 2
  if [ -n "${AIDO_API_KEY:-}" ]; then set -- -H "Authorization: Bearer $AIDO_API_KEY" "$@"; fi
  answer=$(curl -sS -X "$method" "$url$path" -H 'Content-Type: application/json' "$@")
  if printf '%s' "$answer" | jq -e 'has("error") and (.error | type == "object")' >/dev/null; then
    printf '%s\n' "$answer" >&2
    return 1
  fi
  printf '%s\n' "$answer"
}

echo '# Create a sandbox; its history begins with it'
container=$(api POST /api/sandbox -d '{
  "image": "'"$image"'",
  "options": { "timeout": 120000, "memoryLimit": "256m" }
}' | jq -r .containerId)
echo "Container ID: $container"
trap 'api DELETE "/api/sandbox/$container" >/dev/null' EXIT

echo '# First execution'
first=$(api POST /api/sandbox/exec -d '{
  "containerId": "'"$container"'",
  "files": { "index.js": "console.log(\"Version 1\");\n" },
  "command": ["node", "index.js"]
}')
printf '%s' "$first" | jq '{id, status, stdout}'

echo '# Second execution, with another version of the file'
second=$(api POST /api/sandbox/exec -d '{
  "containerId": "'"$container"'",
  "files": { "index.js": "console.log(\"Version 2\");\nconsole.log(\"New feature added!\");\n" },
  "command": ["node", "index.js"]
}')
printf '%s' "$second" | jq '{id, status, stdout}'

echo '# History, newest first'
api GET "/api/sandbox/$container/history" | jq .

echo '# What changed between the two'
api POST "/api/sandbox/$container/diff" -d '{
  "fromExecId": "'"$(printf '%s' "$first" | jq -r .id)"'",
  "toExecId": "'"$(printf '%s' "$second" | jq -r .id)"'"
}' | jq -r '.diff[]'

echo '# Back to the first'
api POST "/api/sandbox/$container/rollback" -d '{
  "executionId": "'"$(printf '%s' "$first" | jq -r .id)"'"
}' | jq .

echo '# The program is the first version again'
api POST /api/sandbox/exec -d '{
  "containerId": "'"$container"'",
  "command": ["node", "index.js"]
}' | jq -r .stdout
