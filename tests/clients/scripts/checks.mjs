// What the scripts for Node.js share: each check runs with warnings as errors and prints one line of JSON.
import assert from "node:assert/strict";

export { assert };
export const MODEL = process.env.STEPGATE_URL;
export const RULES = process.env.STEPGATE_RULES_URL;
export const SUM = "What is 2*21?";
export const WEATHER = "What is the weather in Lund?";
export const TOOL_RESULT = "12 degrees";
export const PERSON = "Invent a person.";
export const ADA = "I am Ada-Marie.";

const checks = [];
let warnings = [];
process.on("warning", (warning) => warnings.push(String(warning)));
for (const name of ["warn", "error"]) console[name] = (...told) => warnings.push(told.map(String).join(" "));

export function check(title, run) {
  checks.push([title, run]);
}

export function contains(actual, expected) {
  assert.ok(actual?.includes(expected), `${JSON.stringify(expected)} is not in ${JSON.stringify(actual)}`);
}

export async function runChecks() {
  let failed = 0;
  for (const [title, run] of checks) {
    warnings = [];
    let problem = null;
    try {
      await run();
      await new Promise((resolve) => setImmediate(resolve)); // warnings are told in a later turn of the loop
      if (warnings.length > 0) problem = warnings.join("; ");
    } catch (error) {
      process.stderr.write(`${title}: ${error.stack}\n`);
      problem = String(error);
    }
    failed += problem === null ? 0 : 1;
    process.stdout.write(`${JSON.stringify({check: title, problem: problem?.slice(0, 600) ?? null })}\n`);
  }
  process.exit(failed > 0 ? 1 : 0);
}
