#!/bin/sh
# The API's history with plain curl, as its documentation prints the calls; only the ids are taken from the answers.
set -eu

CONTAINER_ID=$(curl -s -X POST http://localhost:3000/api/sandbox \
  -H "Content-Type: application/json" \
  -d '{
    "image": "node:18-alpine",
    "options": {
      "timeout": 120000,
      "memoryLimit": "256m"
    }
  }' | jq -r '.containerId')

echo "Container ID: $CONTAINER_ID"

curl -s -X POST http://localhost:3000/api/sandbox/exec \
  -H "Content-Type: application/json" \
  -d '{
    "containerId": "'"$CONTAINER_ID"'",
    "files": {
      "index.js": "console.log(\"Version 1\");"
    },
    "command": ["node", "index.js"]
  }'
echo

curl -s -X POST http://localhost:3000/api/sandbox/exec \
  -H "Content-Type: application/json" \
  -d '{
    "containerId": "'"$CONTAINER_ID"'",
    "files": {
      "index.js": "console.log(\"Version 2\");\nconsole.log(\"New feature added!\");"
    },
    "command": ["node", "index.js"]
  }'
echo

HISTORY=$(curl -s -X GET http://localhost:3000/api/sandbox/$CONTAINER_ID/history \
  -H "Content-Type: application/json")
echo "$HISTORY"
SECOND=$(echo "$HISTORY" | jq -r '.history[0].id')
FIRST=$(echo "$HISTORY" | jq -r '.history[1].id')

curl -s -X POST http://localhost:3000/api/sandbox/$CONTAINER_ID/diff \
  -H "Content-Type: application/json" \
  -d '{
    "fromExecId": "'"$FIRST"'",
    "toExecId": "'"$SECOND"'"
  }'
echo

curl -s -X POST http://localhost:3000/api/sandbox/$CONTAINER_ID/rollback \
  -H "Content-Type: application/json" \
  -d '{
    "executionId": "'"$FIRST"'"
  }'
echo

curl -s -X POST http://localhost:3000/api/sandbox/exec \
  -H "Content-Type: application/json" \
  -d '{
    "containerId": "'"$CONTAINER_ID"'",
    "command": ["node", "index.js"]
  }'
echo
