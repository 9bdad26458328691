"""Requests made up from the OpenAPI document, sent to a gateway in this process, and what must hold of every answer.

Schemathesis makes the requests and knows whether an answer is what the document promises. It would run the app in a
loop of its own, where our stores are not; so the requests are drawn first and sent by httpx in the test's loop.
"""

import asyncio
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, cast

import httpx
import requests
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.render.errors import is_openai_path

AnyCase = Case[Any]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BASE = "http://127.0.0.1"
ANSWER_SECONDS = 20.0
_LEAKED = re.compile(r"Traceback|File \\?\"|\.py\\?\", line \d|0x[0-9a-f]{9,}")
_REACHES_OUT = ("web", "google_drive")


class Fuzzer:
    """Made-up requests to every operation of an app. `known` are names of things that exist, by parameter: every other
    request uses them, so that it gets past the first 404."""

    def __init__(self, app: FastAPI, known: Mapping[str, Any], *, cases: int, number: int) -> None:
        self._known = known
        self._cases = cases
        self._number = number
        schema = schemathesis.openapi.from_dict(app.openapi())
        self._operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE)
        self.statuses: dict[str, set[int]] = {}
        """The statuses seen of each operation."""
        self.sent = 0

    async def run(self) -> list[str]:
        """Send everything; a line for each answer that is not as it must be."""
        wrong: list[str] = []
        for operation in self._operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                for case in self._drawn(operation, mode):
                    wrong += await self._send(operation.label, case)
        await self._client.aclose()
        return wrong

    def _drawn(self, operation: Any, mode: GenerationMode) -> list[AnyCase]:
        drawn: list[AnyCase] = []
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
            return drawn  # any text is a path: there is nothing to get wrong, and the search for it takes a second

        @seed(self._number)
        @settings(
            max_examples=self._cases, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def draw(case: AnyCase) -> None:
            drawn.append(case)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Hypothesis', of strategies that are not ours
            draw()
        return drawn

    async def _send(self, label: str, case: AnyCase) -> Iterator[str]:
        if self.sent % 2:
            for given in (case.path_parameters, case.body):
                if isinstance(given, dict):
                    given.update({name: value for name, value in self._known.items() if name in given})
        if isinstance(case.body, dict) and case.body.get("source_type") in _REACHES_OUT:
            case.body["source_type"] = "local"  # a test asks nobody else on the net
        self.sent += 1
        prepared = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
        async with asyncio.timeout(ANSWER_SECONDS):
            body = prepared.body.encode() if isinstance(prepared.body, str) else cast("bytes | None", prepared.body)
            headers = cast("dict[str, str]", dict(prepared.headers))
            response = await self._client.request(
                str(prepared.method), str(prepared.url), content=body, headers=headers
            )
        self.statuses.setdefault(label, set()).add(response.status_code)
        faults = list(faults_of(response))
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            faults += [" ".join(f"{type(one).__name__}: {one}".split())[:300] for one in group.exceptions]
        shown = (body or b"")[:300]
        return iter([f"{prepared.method} {prepared.url} {shown!r} -> {response.status_code}: {f}" for f in faults])


def faults_of(response: httpx.Response) -> Iterator[str]:
    """What is wrong with an answer, whatever was asked: the promises every door makes."""
    path = response.request.url.path
    if not response.headers.get("x-request-id"):
        yield "no x-request-id"
    if response.status_code >= 500:
        yield f"a 5xx: {response.text[:300]}"
    if response.status_code < 400 or response.request.method == "HEAD":
        return
    if _LEAKED.search(response.text):
        yield f"a traceback leaks: {response.text[:300]}"
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        yield f"an error in no shape of ours: {response.text[:300]}"
        return
    known = {"message", "type", "param", "code"} if is_openai_path(path) else {"agent_id", "error_code", "message"}
    if path.startswith("/mcp"):
        known = {"code", "message"}
    if not known <= set(error):
        yield f"not the error shape of this door: {json.dumps(error)[:300]}"
    elif not str(error["message"]).strip():
        yield "an error without a message"
