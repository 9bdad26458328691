"""Instructor: typed answers by tools, by JSON schema and by JSON mode, whole and streamed."""

from typing import Any

import instructor
from checks import MODEL, PERSON, check, equal, run_checks
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

ADDRESS: dict[str, Any] = {"base_url": f"{MODEL}/v1", "api_key": "none", "max_retries": 0}
USER: list[Any] = [{"role": "user", "content": PERSON}]


class Person(BaseModel):
    """A person."""

    name: str
    age: int


ADA = {"name": "Ada", "age": 36}
MODES = (instructor.Mode.JSON_SCHEMA, instructor.Mode.JSON, instructor.Mode.MD_JSON)


@check("typed answer in three modes")
def typed() -> None:
    for mode in MODES:
        client = instructor.from_openai(OpenAI(**ADDRESS), mode=mode)
        person = client.chat.completions.create(model="chat", messages=USER, response_model=Person)
        equal(person.model_dump(), ADA)


@check("typed answer beside the whole completion")
def whole() -> None:
    client = instructor.from_openai(OpenAI(**ADDRESS), mode=instructor.Mode.JSON_SCHEMA)
    person, completion = client.chat.completions.create_with_completion(
        model="chat", messages=USER, response_model=Person
    )
    equal((person.model_dump(), completion.choices[0].finish_reason), (ADA, "stop"))


@check("typed answer, streamed in parts")
def partial() -> None:
    client = instructor.from_openai(OpenAI(**ADDRESS), mode=instructor.Mode.JSON_SCHEMA)
    parts = list(client.chat.completions.create_partial(model="chat", messages=USER, response_model=Person))
    equal(parts[-1].model_dump(), ADA)


@check("asynchronous")
async def asynchronous() -> None:
    client = instructor.from_openai(AsyncOpenAI(**ADDRESS), mode=instructor.Mode.JSON_SCHEMA)
    person = await client.chat.completions.create(model="chat", messages=USER, response_model=Person)
    equal(person.model_dump(), ADA)


if __name__ == "__main__":
    run_checks()
