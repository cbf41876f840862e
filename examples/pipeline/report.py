import json
import os

# Each step sees what the ones before it left in /work and /outputs.
with open("/outputs/totals.json") as file:
    totals = json.load(file)

with open("/outputs/report.md", "w") as report:
    report.write(f"# {os.environ['TITLE']}\n\n")
    for item, total in sorted(totals.items(), key=lambda entry: -entry[1]):
        report.write(f"- {item}: {total:.2f}\n")

print("report.md is written")
