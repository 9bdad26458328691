// The official SDK for JavaScript: chat completions, responses, embeddings, models and errors.
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { ADA, MODEL, PERSON, RULES, SUM, TOOL_RESULT, WEATHER, assert, check, contains, runChecks } from "./checks.mjs";

const connect = (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const client = connect(MODEL);
const user = (content) => [{ role: "user", content }];
const Person = z.object({ name: z.string(), age: z.number() });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const chatTool = { type: "function", function: { name: "get_weather", description: "Returns the weather.", parameters } };
const tool = { type: "function", name: "get_weather", description: "Returns the weather.", parameters, strict: false };

check("chat: answer, steps, metadata, usage", async () => {
  for (const one of [client, connect(RULES)]) {
    const done = await one.chat.completions.create({ model: "stepgate", messages: user(SUM), metadata: { mine: "1" } });
    contains(done.choices[0].message.content, "42");
    contains(JSON.stringify(done.steps), "calculator");
    assert.equal(done.metadata.mine, "1");
    assert.equal(done.stepgate.tool_results[0].output.value, "42");
    assert.ok(done._request_id);
  }
});

check("chat: stream with usage, stream helper", async () => {
  const options = { model: "stepgate", messages: user(SUM), stream: true, stream_options: { include_usage: true } };
  const chunks = [];
  for await (const chunk of await client.chat.completions.create(options)) chunks.push(chunk);
  contains(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "42");
  assert.ok(chunks.at(-1).usage.total_tokens > 0);
  const helper = client.chat.completions.stream({ model: "stepgate", messages: user(SUM) });
  contains(await helper.finalContent(), "42");
});

check("chat: tools, loop by the SDK", async () => {
  const first = await client.chat.completions.create({ model: "chat", messages: user(WEATHER), tools: [chatTool] });
  assert.equal(first.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(first.choices[0].message.tool_calls[0].function.arguments), { city: "Lund" });
  const called = [];
  const run = (args) => {
    called.push(args);
    return TOOL_RESULT;
  };
  for (const stream of [false, true]) {
    const runner = client.chat.completions.runTools({
      model: "chat",
      messages: user(WEATHER),
      tools: [{ type: "function", function: { ...chatTool.function, parse: JSON.parse, function: run } }],
      ...(stream ? { stream } : {}),
    });
    contains(await runner.finalContent(), TOOL_RESULT);
  }
  assert.deepEqual(called, [{ city: "Lund" }, { city: "Lund" }]);
});

check("chat: structured output", async () => {
  const done = await client.chat.completions.parse({
    model: "chat",
    messages: user(PERSON),
    response_format: zodResponseFormat(Person, "person"),
  });
  assert.deepEqual(done.choices[0].message.parsed, { name: "Ada", age: 36 });
});

check("responses: answer, items, usage", async () => {
  const response = await client.responses.create({ model: "stepgate", input: SUM });
  contains(response.output_text, "42");
  assert.deepEqual(response.output.map((item) => item.type), ["reasoning", "mcp_call", "message"]);
  assert.ok(response.usage.total_tokens > 0);
  const read = await client.responses.retrieve(response.id);
  assert.deepEqual(read.output, response.output);
  const items = [];
  for await (const item of client.responses.inputItems.list(response.id)) items.push(item);
  assert.equal(items.length, 1);
  await client.responses.delete(response.id);
  await assert.rejects(client.responses.retrieve(response.id), OpenAI.NotFoundError);
});

check("responses: stream", async () => {
  const kinds = [];
  for await (const event of await client.responses.create({ model: "stepgate", input: SUM, stream: true })) {
    kinds.push(event.type);
  }
  assert.deepEqual([kinds[0], kinds.at(-1)], ["response.created", "response.completed"]);
  assert.ok(kinds.includes("response.mcp_call.completed"));
  const stream = client.responses.stream({ model: "stepgate", input: SUM });
  contains((await stream.finalResponse()).output_text, "42");
});

check("responses: structured output", async () => {
  const response = await client.responses.parse({
    model: "chat",
    input: PERSON,
    text: { format: zodTextFormat(Person, "person") },
  });
  assert.deepEqual(response.output_parsed, { name: "Ada", age: 36 });
});

check("responses: tools, previous_response_id", async () => {
  const asked = await client.responses.create({ model: "chat", input: WEATHER, tools: [tool] });
  const call = asked.output[0];
  assert.deepEqual([call.type, JSON.parse(call.arguments)], ["function_call", { city: "Lund" }]);
  const input = [{ type: "function_call_output", call_id: call.call_id, output: TOOL_RESULT }];
  const done = await client.responses.create({ model: "chat", input, previous_response_id: asked.id, tools: [tool] });
  contains(done.output_text, TOOL_RESULT);
  const first = await client.responses.create({ model: "chat", input: ADA });
  const next = { model: "chat", input: "Who am I?", previous_response_id: first.id };
  contains((await client.responses.create(next)).output_text, "Ada-Marie");
});

check("responses: background, resume, cancel, approval", async () => {
  const started = await client.responses.create({ model: "stepgate", input: SUM, background: true });
  const kinds = [];
  for await (const event of await client.responses.retrieve(started.id, { stream: true, starting_after: 0 })) {
    kinds.push(event.type);
  }
  assert.equal(kinds.at(-1), "response.completed");
  const slow = await client.responses.create({ model: "chat", input: "Answer slowly.", background: true });
  assert.equal((await client.responses.cancel(slow.id)).status, "cancelled");
  const asked = await client.responses.create({ model: "careful", input: SUM });
  const approval_request_id = asked.output.at(-1).id;
  const input = [{ type: "mcp_approval_response", approval_request_id, approve: true }];
  const done = await client.responses.create({ model: "careful", input, previous_response_id: asked.id });
  contains(done.output_text, "42");
});

check("conversations: create, use, items, delete", async () => {
  const conversation = await client.conversations.create({ metadata: { topic: "names" } });
  await client.responses.create({ model: "chat", input: ADA, conversation: conversation.id });
  const second = await client.responses.create({ model: "chat", input: "Who am I?", conversation: conversation.id });
  contains(second.output_text, "Ada-Marie");
  const items = [];
  for await (const item of client.conversations.items.list(conversation.id)) items.push(item);
  assert.equal(items.length, 4);
  assert.deepEqual((await client.conversations.retrieve(conversation.id)).metadata, { topic: "names" });
  await client.conversations.delete(conversation.id);
});

check("embeddings, models, older completions", async () => {
  const rooms = [];
  for await (const model of client.models.list()) rooms.push(model.id);
  assert.ok(rooms.includes("chat"));
  const vectors = await client.embeddings.create({ model: "default", input: ["a", "b"] });
  assert.deepEqual(vectors.data[0].embedding, [1, 0.125, 0.5]);
  const old = await client.completions.create({ model: "chat", prompt: "Say hello." });
  assert.equal(old.choices[0].text, "Hello from the model.");
});

check("errors: typed, with param and code", async () => {
  const none = client.chat.completions.create({ model: "none", messages: user("x") });
  await assert.rejects(none, { name: "Error", status: 404, code: "model_not_found" });
  const two = client.chat.completions.create({ model: "chat", messages: user("x"), n: 2 });
  await assert.rejects(two, { status: 400, param: "n", code: "unsupported_parameter" });
});

await runChecks();
