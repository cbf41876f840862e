"""Drives a program on a real terminal: reads a script as JSON on stdin, prints what happened as JSON."""

import fcntl, json, os, select, signal, struct, subprocess, sys, termios, time

script = json.load(sys.stdin)
master, slave = os.openpty()


def resize(rows, cols):
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def take_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


resize(24, 80)
before = termios.tcgetattr(slave)
child = subprocess.Popen(
    script["argv"], stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal, cwd=script["cwd"]
)
output = b""
seen = 0


def pump(seconds):
    global output
    if select.select([master], [], [], seconds)[0]:
        output += os.read(master, 65536)
        return True
    return False


failure = None
deadline = time.monotonic() + script.get("seconds", 60)
for step in script["steps"]:
    if "send" in step:
        os.write(master, step["send"].encode())
    elif "resize" in step:
        resize(*step["resize"])
        os.kill(child.pid, signal.SIGWINCH)
    elif "signal" in step:
        os.kill(child.pid, getattr(signal, step["signal"]))
    elif "expect" in step:
        wanted = step["expect"].encode()
        while wanted not in output[seen:]:
            if time.monotonic() > deadline or (child.poll() is not None and not pump(0.2)):
                failure = "no " + step["expect"]
                break
            pump(0.1)
        if failure:
            break
        seen = output.index(wanted, seen) + len(wanted)

while child.poll() is None and time.monotonic() < deadline:
    pump(0.1)
if child.poll() is None:
    child.kill()
    child.wait()
    failure = failure or "it did not end"
while pump(0.1):
    pass
after = termios.tcgetattr(slave)
print(
    json.dumps(
        {
            "output": output.decode("utf8", "replace"),
            "code": child.returncode,
            "restored": before == after,
            "failure": failure,
        }
    )
)
