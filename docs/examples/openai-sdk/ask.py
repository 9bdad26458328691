"""Asks a gateway by OpenAI's SDK, once as a whole and once as a stream."""

from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8010/v1", api_key="none")

answer = client.chat.completions.create(model="stepgate", messages=[{"role": "user", "content": "What is 17.5 * 240?"}])
print(answer.choices[0].message.content)
for step in answer.model_extra["steps"]:
    print(step["type"], step["title"], step["status"])

stream = client.chat.completions.create(
    model="stepgate", messages=[{"role": "user", "content": "What is 2 + 2?"}], stream=True
)
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)
print()
