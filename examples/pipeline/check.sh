# Ends with an error, and with it the pipeline, when the input is not what the next steps expect.
set -eu
read -r header < /inputs/orders.csv
if [ "$header" != "item,quantity,price" ]; then
  echo "unexpected columns: $header" >&2
  exit 1
fi
echo "the columns are right"
