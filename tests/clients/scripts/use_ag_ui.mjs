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

const STUDIO = { forwardedProps: { room: "studio" } };
const PAIRS = {
  RUN_STARTED: [["RUN_FINISHED", "RUN_ERROR"], "runId"],
  STEP_STARTED: [["STEP_FINISHED"], "stepName"],
  TEXT_MESSAGE_START: [["TEXT_MESSAGE_END"], "messageId"],
  TOOL_CALL_START: [["TOOL_CALL_END"], "toolCallId"],
  REASONING_START: [["REASONING_END"], "messageId"],
  REASONING_MESSAGE_START: [["REASONING_MESSAGE_END"], "messageId"],
  SUBAGENT_STARTED: [["SUBAGENT_FINISHED", "SUBAGENT_ERROR"], "subagentRunId"],
};

/** Every start has exactly one end after it, ids are used once, and every tool call has its result. */
function balanced(events) {
  for (const [start, [ends, key]] of Object.entries(PAIRS)) {
    const begun = events.filter((event) => event.type === start);
    assert.equal(new Set(begun.map((event) => event[key])).size, begun.length, `${start}: an id is used twice`);
    for (const event of begun) {
      const after = events.slice(events.indexOf(event) + 1);
      const found = after.filter((one) => ends.includes(one.type) && (start === "RUN_STARTED" || one[key] === event[key]));
      assert.equal(found.length, 1, `${start} ${event[key]} has ${found.length} ends`);
    }
  }
  assert.ok(["RUN_FINISHED", "RUN_ERROR"].includes(events.at(-1).type), "nothing follows the end");
  return events.map((event) => event.type);
}

const toolsOf = (events) => events.filter((event) => event.type === "TOOL_CALL_START").map((event) => event.toolCallName);

async function decide(agent, decision) {
  assert.equal(agent.pendingInterrupts.length, 1);
  const interruptId = agent.pendingInterrupts[0].id;
  const resume = [{ interruptId, status: "resolved", payload: { decision } }];
  return listen(agent, { ...STUDIO, resume });
}

const rooms = async () => (await (await fetch(`${MODEL}/v1/rooms`)).json()).data.map((room) => room.id);

check("studio: a question, by one call and by a sub-agent's model", async () => {
  const agent = connect(MODEL);
  const { events, result } = await say(agent, "Which rooms are there?", STUDIO);
  const kinds = balanced(events);
  contains(result.newMessages.at(-1).content, "knowledge (shipped)");
  assert.ok(toolsOf(events).includes("rooms_list"), "the sub-agent's call is visible");
  assert.ok(kinds.indexOf("REASONING_START") < kinds.indexOf("TOOL_CALL_START"), "the intent is told before");
  assert.ok(kinds.includes("SUBAGENT_STARTED"));
  const compared = await say(connect(MODEL), "Compare the rooms.", STUDIO);
  balanced(compared.events);
  contains(compared.result.newMessages.at(-1).content, "They differ in their tools.");
});

check("studio: a room is made once a person has allowed it, not if they reject it", async () => {
  for (const decision of ["reject", "approve"]) {
    const agent = connect(MODEL);
    const asked = await say(agent, "Make a room called Support Team.", STUDIO);
    balanced(asked.events);
    assert.equal(asked.events.at(-1).outcome.type, "interrupt");
    assert.ok(!(await rooms()).includes("support-team"), "nothing is made before");
    const done = await decide(agent, decision);
    balanced(done.events);
    const said = done.result.newMessages.at(-1).content;
    contains(said, decision === "approve" ? "support-team" : "Nothing was changed");
    assert.equal((await rooms()).includes("support-team"), decision === "approve");
  }
});

check("studio: a tool that cannot be made, then one that is staged", async () => {
  for (const told of ["It could not be made.", "It is staged"]) {
    const agent = connect(MODEL);
    const { events, result } = await say(agent, "Write a tool that converts our part numbers.", STUDIO);
    balanced(events);
    assert.ok(toolsOf(events).includes("tool_generate"));
    const calls = events.filter((event) => event.type === "TOOL_CALL_START").map((event) => event.toolCallId);
    const results = events.filter((event) => event.type === "TOOL_CALL_RESULT").map((event) => event.toolCallId);
    assert.deepEqual(results.toSorted(), calls.toSorted(), "every call has its result");
    contains(result.newMessages.at(-1).content, told);
  }
});

await runChecks();
