// AG-UI's client, which verifies every event of a run.
import { HttpAgent } from "@ag-ui/client";
import { MODEL, RULES, SUM, assert, check, contains, runChecks } from "./checks.mjs";

const connect = (url) => new HttpAgent({ url: `${url}/v1/ag-ui` });

async function say(agent, text, options = {}) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
  return listen(agent, options);
}

async function listen(agent, options) {
  const events = [];
  const result = await agent.runAgent(options, { onEvent: ({ event }) => void events.push(event) });
  return { events, result };
}

check("a run: verified events, messages, state", async () => {
  for (const url of [MODEL, RULES]) {
    const agent = connect(url);
    const { events, result } = await say(agent, SUM);
    contains(result.newMessages.at(-1).content, "42");
    const kinds = events.map((event) => event.type);
    assert.deepEqual([kinds[0], kinds.at(-1)], ["RUN_STARTED", "RUN_FINISHED"]);
    assert.ok(events.some((event) => event.toolCallName === "calculator"));
  }
});

check("a thread of several turns", async () => {
  const agent = connect(MODEL);
  await say(agent, "I am Ada-Marie.", { forwardedProps: { room: "chat" } });
  const { result } = await say(agent, "Who am I?", { forwardedProps: { room: "chat" } });
  contains(result.newMessages.at(-1).content, "Ada-Marie");
});

check("an interrupt that is resumed", async () => {
  const agent = connect(MODEL);
  const options = { forwardedProps: { room: "careful" } };
  await say(agent, SUM, options);
  assert.equal(agent.pendingInterrupts.length, 1);
  const interruptId = agent.pendingInterrupts[0].id;
  const resume = [{ interruptId, status: "resolved", payload: { decision: "approve" } }];
  const { result } = await listen(agent, { ...options, resume });
  contains(result.newMessages.at(-1).content, "42");
});

await runChecks();
