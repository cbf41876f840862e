import csv
import json

with open("/inputs/orders.csv", newline="") as file:
    totals = {row["item"]: int(row["quantity"]) * float(row["price"]) for row in csv.DictReader(file)}

with open("/outputs/totals.json", "w") as file:
    json.dump(totals, file, indent=2)

print(f"{len(totals)} items, {sum(totals.values()):.2f} in all")
