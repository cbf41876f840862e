import { BlockList, isIP } from "node:net";

/** What IANA sets aside: this machine, private networks, carriers, link-local with the clouds' metadata, tests, multicast. */
const RESERVED_IPV4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const;

/** Beneath 2000::/3, which holds all public addresses: tunnels that carry an IPv4 address, documentation, tests. */
const RESERVED_IPV6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

const reserved = new BlockList();
for (const [network, bits] of RESERVED_IPV4) reserved.addSubnet(network, bits, "ipv4");
for (const [network, bits] of RESERVED_IPV6) reserved.addSubnet(network, bits, "ipv6");
const global = new BlockList();
global.addSubnet("2000::", 3, "ipv6");

/** Whether anybody on the internet could reach it. Mapped and translated IPv4 addresses are not of that kind. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !reserved.check(address, "ipv4");
    case 6:
      return global.check(address, "ipv6") && !reserved.check(address, "ipv6");
    default:
      return false;
  }
}
