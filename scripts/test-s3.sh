#!/usr/bin/env bash
# A real S3 server for the tests: @20minutes/s3rver, from npm. It checks signatures (the s3rver it
# was made from does not), knows multipart uploads and ranges, and runs on the Node that the tests run on. (Debian's rclone is built without its S3 server.)
#
#   scripts/test-s3.sh fetch                    prints where the server is; fetches it once
#   scripts/test-s3.sh serve PORT DIR BUCKET…   serves the directory on 127.0.0.1 until it is ended
#
# Its one account is S3RVER with the secret S3RVER. Nothing is installed but into the cache.
set -euo pipefail
version=4.0.4
cache="${AIDO_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aido-test}"
place="$cache/s3rver-$version"
library="$place/node_modules/@20minutes/s3rver"
say() { printf 'test-s3: %s\n' "$*" >&2; }

fetch() {
  if [ ! -e "$library" ]; then
    local work
    mkdir -p "$cache"
    # To a name of its own first, so that two runs at once do no harm.
    work=$(mktemp -d "$cache/s3rver.XXXXXX")
    if ! (cd "$work" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --no-save \
      --prefix "$work" "@20minutes/s3rver@$version" >"$work/log" 2>&1); then
      tail -n 5 "$work/log" >&2
      rm -rf "$work"
      say "s3rver cannot be fetched from npm"
      return 1
    fi
    mv -T "$work" "$place" 2>/dev/null || rm -rf "$work"
  fi
  echo "$library"
}

serve() {
  fetch >/dev/null
  exec node --no-deprecation -e '
    const [library, port, directory, ...buckets] = process.argv.slice(1);
    const S3rver = require(library);
    const configureBuckets = buckets.map((name) => ({ name }));
    new S3rver({ address: "127.0.0.1", port: Number(port), directory, silent: true, vhostBuckets: false, configureBuckets }).run();
  ' "$library" "$@"
}

case "${1:-}" in
  fetch) fetch ;;
  serve)
    shift
    serve "$@"
    ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
