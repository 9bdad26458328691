// The Vercel AI SDK with both of its providers for endpoints of OpenAI's form.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, embedMany, generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import { MODEL, PERSON, RULES, SUM, TOOL_RESULT, WEATHER, assert, check, contains, runChecks } from "./checks.mjs";

const openai = createOpenAI({ baseURL: `${MODEL}/v1`, apiKey: "none" });
const compatible = createOpenAICompatible({
  name: "stepgate",
  baseURL: `${MODEL}/v1`,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const rules = createOpenAICompatible({ name: "stepgate", baseURL: `${RULES}/v1` });
const models = (room) => [openai(room), openai.chat(room), compatible(room)];
const weather = tool({
  description: "Returns the weather.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${TOOL_RESULT} in ${city}`,
});
const Person = z.object({ name: z.string(), age: z.number() });

check("generateText: answer, usage", async () => {
  for (const model of models("stepgate")) {
    const result = await generateText({ model, prompt: SUM });
    contains(result.text, "42");
    assert.ok(result.usage.totalTokens > 0);
    assert.deepEqual(result.warnings ?? [], []);
  }
  contains((await generateText({ model: rules("stepgate"), prompt: SUM })).text, "42");
});

check("streamText: pieces, usage", async () => {
  for (const model of models("stepgate")) {
    const result = streamText({ model, prompt: SUM });
    let text = "";
    for await (const piece of result.textStream) text += piece;
    contains(text, "42");
    assert.ok((await result.usage).totalTokens > 0);
    assert.equal(await result.finishReason, "stop");
  }
});

check("tools: loop, whole and streamed", async () => {
  for (const model of models("chat")) {
    const options = { model, prompt: WEATHER, tools: { get_weather: weather }, stopWhen: isStepCount(3) };
    const result = await generateText(options);
    contains(result.text, TOOL_RESULT);
    assert.equal(result.steps.length, 2);
    const streamed = streamText(options);
    await streamed.consumeStream();
    contains(await streamed.text, TOOL_RESULT);
  }
});

check("structured output", async () => {
  for (const model of models("chat")) {
    const result = await generateText({ model, prompt: PERSON, output: Output.object({ schema: Person }) });
    assert.deepEqual(result.output, { name: "Ada", age: 36 });
  }
});

check("embeddings", async () => {
  for (const model of [openai.embedding("default"), compatible.embeddingModel("default")]) {
    const { embeddings } = await embedMany({ model, values: ["a", "b"] });
    assert.deepEqual(embeddings[0], [1, 0.125, 0.5]);
  }
});

await runChecks();
