"""Shows where it runs. Try: ./aido run examples/hello.py"""

import os
import platform
import socket
from pathlib import Path


def network() -> str:
    with socket.socket() as probe:
        probe.settimeout(1)
        return "reachable" if probe.connect_ex(("192.0.2.1", 80)) == 0 else "none"


lines = [
    f"Hello from Python {platform.python_version()} in a sandbox",
    f"user      {os.getuid()}:{os.getgid()}",
    f"directory {Path.cwd()}",
    f"processes {sum(name.isdigit() for name in os.listdir('/proc'))}",
    f"network   {network()}",
]
print("\n".join(lines))

outputs = Path("/outputs")
if outputs.is_dir():
    report = outputs / "report.md"
    report.write_text("\n".join(lines) + "\n")
    print(f"wrote     {report}")
