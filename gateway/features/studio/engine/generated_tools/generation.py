"""Makes one tool: tests, code, checks, tests in the sandbox, review; at most three rounds.

Nothing is stored here. What fails is fed back: failures first, opinions only about code that works.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.generated_tools.errors import ReflectionFailed, SandboxMissingError
from gateway.features.studio.engine.generated_tools.identifiers import sanitize_identifier
from gateway.features.studio.engine.generated_tools.manifests import check_manifest
from gateway.features.studio.engine.generated_tools.models import (
    MAX_TEST_CASES,
    Candidate,
    CodeReview,
    GeneratedCode,
    Manifest,
    SandboxTier,
    ToolRequest,
    ToolTests,
)
from gateway.features.studio.engine.generated_tools.producer import ToolProducer, UnreadableReplyError
from gateway.features.studio.engine.generated_tools.tool_runner import TestFailure, ToolRunner
from gateway.features.studio.engine.generated_tools.validation import (
    CheckedTool,
    ToolValidationPipeline,
    build_stub,
    check_test_case,
)

MAX_ROUNDS = 3
"""Attempts at the code, and at the tests before that."""
MIN_TELLING_TESTS = 2
"""Tests that must fail for a function without logic."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    stage: str
    problems: tuple[str, ...]


class ToolGeneration:
    """Makes one tool with one model. `tool_names` are the tools that it may be allowed to call."""

    def __init__(
        self,
        producer: ToolProducer,
        runner: ToolRunner,
        tool_names: Collection[str],
        report: Callable[[str], None],
    ) -> None:
        self._producer = producer
        self._runner = runner
        self._tool_names = tool_names
        self._report = report
        self._pipeline = ToolValidationPipeline()

    async def run(self, request: ToolRequest) -> Candidate:
        """Code that passed everything. Raises `ReflectionFailed`, `SandboxMissingError`, and what the model's
        calls raise.
        """
        if not self._runner.tiers:
            raise SandboxMissingError("this machine has no sandbox for generated tools; `stepgate doctor` says why")
        self._report("writing the tests")
        tests = await self._write_tests(request)
        refusal = _Refusal("producer", ())
        for number in range(1, MAX_ROUNDS + 1):
            self._report(f"writing the code of {tests.function_name}, round {number}")
            outcome = await self._try_code(request, tests, refusal.problems, number)
            if isinstance(outcome, Candidate):
                return outcome
            refusal = outcome
            self._report(f"refused ({refusal.stage}): {refusal.problems[0][:200]}")
        raise ReflectionFailed(
            f"no usable code for {tests.function_name!r} after {MAX_ROUNDS} rounds; the last was refused: "
            f"{'; '.join(refusal.problems)[:2_000]}",
            refusal.stage,
            refusal.problems,
            MAX_ROUNDS,
        )

    async def _write_tests(self, request: ToolRequest) -> ToolTests:
        """Tests that can fail. Raises `ReflectionFailed` if no attempt is usable."""
        problems: tuple[str, ...] = ()
        for _ in range(MAX_ROUNDS):
            try:
                tests = await self._producer.write_tests(
                    request.name, request.earlier_code, request.permissions, problems
                )
            except UnreadableReplyError as error:
                problems = (str(error),)
                continue
            problems = tuple(await self._find_test_problems(tests, request))
            if not problems:
                return tests
        raise ReflectionFailed(
            f"no usable tests after {MAX_ROUNDS} attempts: {'; '.join(problems)[:2_000]}", "tests", problems, MAX_ROUNDS
        )

    async def _find_test_problems(self, tests: ToolTests, request: ToolRequest) -> list[str]:
        name = request.name or tests.function_name
        if tests.function_name != name:
            return [f"identifier: the function must be named {name!r}"]
        try:
            if sanitize_identifier(name) != name:
                return [f"identifier: name the function {sanitize_identifier(name)!r}"]
        except ValidationError as error:
            return [error.message]
        stub = self._pipeline.check(name, tests.interface, tests.permissions)
        problems = [error.message for error in stub.errors]
        problems += check_manifest(tests.permissions, self._tool_names, request.permissions)
        if stub.output_name in stub.models.types:
            for number, case in enumerate(tests.test_cases, start=1):
                problems += [error.message for error in check_test_case(case, stub, number)]
        if not problems:
            problems += await self._find_vacuous_tests(build_stub(stub), tests)
        return problems

    async def _find_vacuous_tests(self, stub: CheckedTool, tests: ToolTests) -> list[str]:
        """Finds tests that a function passes which always returns an empty result: they would say
        nothing about the code. A single one may: an empty result can be right.
        """
        tier = self._runner.tiers[0]
        failures = await self._runner.run_tests(stub, tier, tests.permissions, tests.test_cases)
        if len(failures) >= MIN_TELLING_TESTS:
            return []
        return [
            f"tests: only {len(failures)} of {len(tests.test_cases)} tests fail for a function that returns "
            f"{stub.models.build_empty(stub.output_name)} whatever it is given; assert on results"
        ]

    async def _try_code(
        self, request: ToolRequest, tests: ToolTests, feedback: Sequence[str], number: int
    ) -> Candidate | _Refusal:
        try:
            made = await self._producer.write_code(tests, request.earlier_code, feedback)
        except UnreadableReplyError as error:
            return _Refusal("producer", (str(error),))
        if made.function_name != tests.function_name:
            return _Refusal("function", (f"function: the function must be named {tests.function_name!r}",))
        tool = self._pipeline.check(tests.function_name, made.code, tests.permissions)
        if tool.errors:
            return _Refusal(tool.errors[0].stage, tuple(error.message for error in tool.errors))
        manifest = _narrow(tests.permissions, tool)
        cases = (*tests.test_cases, *self._select_own_tests(made, tool, tests))
        tier, failures = await self._find_tier(tool, manifest, cases)
        if tier is None:
            return _Refusal("tests", tuple(failure.describe() for failure in failures[:5]))
        review = await self._review(made.code, tests, tool)
        if isinstance(review, _Refusal):
            return review
        return Candidate(
            name=tool.name,
            code=made.code,
            tests=cases,
            manifest=manifest,
            review=review,
            description=made.description or tool.description,
            tier=tier,
            warnings=tuple(tool.warnings),
            rounds=number,
        )

    def _select_own_tests(self, made: GeneratedCode, tool: CheckedTool, tests: ToolTests) -> list[str]:
        """The tests of the code's author that are usable and new. They can only make it harder for the code."""
        room = MAX_TEST_CASES - len(tests.test_cases)
        usable = [
            case for case in made.test_cases if not check_test_case(case, tool, 0) and case not in tests.test_cases
        ]
        return usable[:room]

    async def _find_tier(
        self, tool: CheckedTool, manifest: Manifest, cases: Sequence[str]
    ) -> tuple[SandboxTier | None, list[TestFailure]]:
        """The first tier in which all tests pass, or None with the failures of the last one."""
        failures: list[TestFailure] = []
        for tier in self._runner.tiers:
            failures = await self._runner.run_tests(tool, tier, manifest, cases)
            if not failures:
                return tier, []
        return None, failures

    async def _review(self, code: str, tests: ToolTests, tool: CheckedTool) -> CodeReview | _Refusal:
        """The review, or why the code is refused. An unreadable review is asked for once more."""
        self._report("reviewing the code")
        for attempt in (1, 2):
            try:
                review = await self._producer.review(code, tests, tool.warnings)
            except UnreadableReplyError as error:
                if attempt == 2:
                    return _Refusal("review", (f"review: {error}",))
                continue
            if review.is_veto:
                reasons = review.issues or review.suggestions or [f"the review found it {review.severity}"]
                return _Refusal("review", tuple(f"review ({review.severity}): {issue}" for issue in reasons))
            return review
        raise AssertionError("one of two attempts returns")


def _narrow(manifest: Manifest, tool: CheckedTool) -> Manifest:
    """The manifest without the permissions that the code does not use."""
    return manifest.model_copy(
        update={
            "hosts": manifest.hosts if "http_get" in tool.host_functions else (),
            "folders": manifest.folders if "read_file" in tool.host_functions else (),
            "tools": manifest.tools if "call_tool" in tool.host_functions else (),
        }
    )
