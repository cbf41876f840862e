import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DRIVERS, Range } from "./range.ts";

const reach = (hosts: readonly string[], port: number, abstractName: string) => `
import socket
for host in ${JSON.stringify(hosts)}:
    for port in (${port}, 22, 53, 80, 2375):
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        s.settimeout(1)
        try:
            s.connect((host, port))
            print("REACHED", host, port)
        except OSError: pass
        s.close()
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    s = socket.socket(socket.AF_UNIX, kind)
    try:
        s.connect(chr(0) + ${JSON.stringify(abstractName)})
        print("REACHED abstract")
    except OSError: pass
for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW), (40, 1), (38, 5)):
    try:
        socket.socket(family, kind, 1)
        if family != 40: print("MADE", family, kind)
    except OSError: pass
print("done")
`;
const LISTEN = `
import socket, time
tcp = socket.socket()
tcp.bind(("0.0.0.0", 4567)); tcp.listen(8)
unix = socket.socket(socket.AF_UNIX)
unix.bind(chr(0) + "aido-neighbour"); unix.listen(8)
print("listening", flush=True)
time.sleep(600)
`;
const OWN_ADDRESS = `
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(socket.inet_ntoa(fcntl.ioctl(s.fileno(), 0x8915, struct.pack("256s", b"eth0"))[20:24]))
`;
const connectTo = (address: string) => `
import socket
s = socket.socket(); s.settimeout(2)
try:
    s.connect((${JSON.stringify(address)}, 4567))
    print("REACHED")
except OSError: print("refused")
`;
const LOOK_AROUND = `
import os, socket
def connect(family, address):
    s = socket.socket(family); s.settimeout(1)
    try: s.connect(address)
    except OSError: return
    print("REACHED", address)
for host in ("127.0.0.1", "0.0.0.0", socket.gethostname()):
    try: connect(socket.AF_INET, (host, 4567))
    except OSError: pass
connect(socket.AF_UNIX, chr(0) + "aido-neighbour")
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: words = open("/proc/%s/cmdline" % pid).read()
    except OSError: continue
    if "aido-neighbour" in words and int(pid) not in (os.getpid(), os.getppid(), 1): print("SAW", pid)
for folder in ("/tmp", "/dev/shm", "/run", "/var/tmp", "/dev/mqueue"):
    try: names = os.listdir(folder)
    except OSError: continue
    if "left-by-neighbour" in names: print("FOUND", folder)
print("done")
`;

for (const driver of DRIVERS) {
  describe(`attacks through the network from ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });

    test("S0-80 S3-32 S3-70 neither the host's loopback nor any of its addresses nor its abstract sockets are reached", async () => {
      await using target = await range.sandbox();
      const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
      const hosts = [
        "127.0.0.1",
        "::1",
        "172.17.0.1",
        "169.254.169.254",
        ...own.map(({ address }) => address),
      ];
      const script = reach(hosts, range.canaries.port, range.canaries.abstractName);
      expect((await target.attack(script)).stdout).toBe("done\n");
    });

    test("S3-40 another sandbox is neither reached nor seen", async () => {
      await using one = await range.sandbox();
      await using two = await range.sandbox();
      const leave = "for d in /tmp /dev/shm /var/tmp; do echo x > $d/left-by-neighbour; done";
      await one.attack("", { argv: ["sh", "-c", leave] });
      await one.begun(LISTEN, "listening");
      expect((await two.attack(LOOK_AROUND)).stdout).toBe("done\n");
    });

    test.runIf(driver === "docker")(
      "S3-40 with a way out there is still none to another sandbox",
      async () => {
        await using one = await range.sandbox({ network: "bridge" });
        await using two = await range.sandbox({ network: "bridge" });
        await one.begun(LISTEN, "listening");
        const address = (await one.attack(OWN_ADDRESS)).stdout.trim();
        expect((await one.attack(connectTo(address))).stdout).toBe("REACHED\n");
        expect((await two.attack(connectTo(address))).stdout).toBe("refused\n");
      },
    );
  });
}
