// Shows where it runs. Try: ./aido run examples/hello.js
async function main() {
  const { existsSync, readdirSync, writeFileSync } = await import("node:fs");
  const { networkInterfaces } = await import("node:os");
  const lines = [
    `Hello from Node ${process.versions.node} in a sandbox`,
    `user      ${process.getuid()}:${process.getgid()}`,
    `directory ${process.cwd()}`,
    `processes ${readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length}`,
    `network   ${Object.keys(networkInterfaces()).join(" ") || "none"}`,
  ];
  console.log(lines.join("\n"));

  if (existsSync("/outputs")) {
    writeFileSync("/outputs/report.md", `${lines.join("\n")}\n`);
    console.log("wrote     /outputs/report.md");
  }
}

void main();
