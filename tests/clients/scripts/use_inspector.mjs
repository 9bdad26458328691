// The command line of the MCP Inspector: lists, calls, prompts, resources, and its check of schemas.
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { MODEL, RULES, SUM, assert, check, contains, runChecks } from "./checks.mjs";

const program = join(process.env.CLIENT_FOLDER, "node_modules", ".bin", "mcp-inspector");
const home = mkdtempSync(join(tmpdir(), "inspector-"));
const env = { ...process.env, HOME: home, PATH: `${join(process.execPath, "..")}:${process.env.PATH}` };

const run = (url, ...options) =>
  promisify(execFile)(program, ["--cli", url.includes("/mcp/") ? url : `${url}/mcp`, "--transport", "http", ...options], { env });

async function inspect(url, ...options) {
  const { stdout, stderr } = await run(url, ...options);
  assert.equal(stderr, "");
  return JSON.parse(stdout);
}

check("tools/list --strict", async () => {
  const { tools } = await inspect(RULES, "--method", "tools/list", "--strict");
  assert.ok(tools.some((tool) => tool.name === "agent_run"));
});

check("tools/call in both eras: a tool, the agent", async () => {
  for (const era of ["legacy", "modern"]) {
    const call = ["--protocol-era", era, "--method", "tools/call", "--tool-name"];
    const sum = await inspect(`${RULES}/mcp/all`, ...call, "calculator", "--tool-arg", "expression=2*21");
    assert.equal(sum.structuredContent.value, "42");
    const report = await inspect(MODEL, ...call, "agent_run", "--tool-arg", `task=${SUM}`);
    assert.equal(report.structuredContent.status, "complete");
    contains(report.structuredContent.response, "42");
  }
});

check("resources/list, resources/read", async () => {
  const { resources } = await inspect(RULES, "--method", "resources/list");
  const { contents } = await inspect(RULES, "--method", "resources/read", "--uri", resources[0].uri);
  assert.ok(contents[0].text ?? contents[0].blob);
});

check("prompts/list", async () => {
  assert.ok(Array.isArray((await inspect(RULES, "--method", "prompts/list")).prompts));
});

check("skills/list --verify", async () => {
  const { stdout } = await run(RULES, "--protocol-era", "modern", "--method", "skills/list", "--verify");
  assert.ok(stdout.includes("skill://"));
});

await runChecks();
