"""The A2A SDK's client: the card, messages whole and as a stream, tasks, questions of a waiting task."""

import httpx
from a2a.client import ClientConfig, create_client
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types.a2a_pb2 import GetTaskRequest, ListTasksRequest, Role, SendMessageRequest, TaskState
from checks import MODEL, RULES, SUM, check, contains, equal, run_checks
from google.protobuf.json_format import MessageToDict


def asking(text, room=None, **message):
    """A request with one message."""
    request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER, **message))
    if room is not None:
        request.message.metadata.update({"room": room})
    return request


async def talk(url, *requests, streaming=False):
    """The responses to each request, as lists."""
    async with (
        httpx.AsyncClient(timeout=30) as http,
        await create_client(url, ClientConfig(httpx_client=http, streaming=streaming)) as client,
    ):
        return [[one async for one in client.send_message(request)] for request in requests]


@check("message: answer, steps")
async def send() -> None:
    for url in (MODEL, RULES):
        ((response,),) = await talk(url, asking(SUM))
        equal(response.task.status.state, TaskState.TASK_STATE_COMPLETED)
        contains(get_artifact_text(response.task.artifacts[0]), "42")
        contains(str(MessageToDict(response.task.metadata)["stepgate"]["steps"]), "calculator")


@check("message: stream")
async def stream() -> None:
    (responses,) = await talk(MODEL, asking(SUM), streaming=True)
    states = [one.status_update.status.state for one in responses if one.HasField("status_update")]
    equal(states[-1], TaskState.TASK_STATE_COMPLETED)
    text = "".join(
        get_artifact_text(one.artifact_update.artifact) for one in responses if one.HasField("artifact_update")
    )
    contains(text, "42")


@check("a task that requires approval goes on")
async def approval() -> None:
    ((asked,),) = await talk(MODEL, asking(SUM, room="careful"))
    equal(asked.task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    contains(get_message_text(asked.task.status.message), "calculator")
    ((done,),) = await talk(MODEL, asking("approve", task_id=asked.task.id))
    equal(done.task.status.state, TaskState.TASK_STATE_COMPLETED)


@check("a task that asked a question goes on")
async def question() -> None:
    ((asked,),) = await talk(MODEL, asking("How many orders?"))
    equal(asked.task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    equal(get_message_text(asked.task.status.message), "Which quarter?")
    ((done,),) = await talk(MODEL, asking("the third quarter", task_id=asked.task.id))
    equal(done.task.id, asked.task.id)
    equal(done.task.status.state, TaskState.TASK_STATE_COMPLETED)
    contains(get_artifact_text(done.task.artifacts[0]), "17 orders")


@check("tasks: get and list")
async def tasks() -> None:
    ((response,),) = await talk(MODEL, asking(SUM))
    async with (
        httpx.AsyncClient(timeout=30) as http,
        await create_client(MODEL, ClientConfig(httpx_client=http)) as one,
    ):
        task = await one.get_task(GetTaskRequest(id=response.task.id))
        listed = await one.list_tasks(ListTasksRequest(context_id=response.task.context_id))
    equal(task.id, response.task.id)
    equal([one.id for one in listed.tasks], [response.task.id])


if __name__ == "__main__":
    run_checks()
