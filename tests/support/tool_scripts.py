"""Replies of a scripted model that makes a tool: its tests, its code, its review."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.features.studio.engine.generated_tools.models import CodeReview, Manifest, ToolVersion, compute_sha256
from tests.support.script import Rule, says

WRITES_TESTS = "You specify a small tool"
WRITES_CODE = "You write the code of a small Python tool"
REVIEWS = "You review the Python code of a tool"

INTERFACE = '''
from pydantic import BaseModel, Field

class ConvertInput(BaseModel):
    number: str = Field(description="the part number, such as A-12")

class ConvertOutput(BaseModel):
    converted: str
    error: str | None = None

async def convert_part_number(args: ConvertInput) -> ConvertOutput:
    """Convert a part number of the old form (A-12) to the new one (12A)."""
    ...
'''
CODE = INTERFACE.replace(
    "    ...\n",
    """    letter, dash, digits = args.number.strip().partition("-")
    if not (dash and letter.isalpha() and digits.isdigit()):
        return ConvertOutput(converted="", error="expected the form A-12")
    return ConvertOutput(converted=digits + letter.upper())
""",
)
TESTS = (
    'r = await convert_part_number(ConvertInput(number="A-12"))\nassert r.converted == "12A"\nassert r.error is None',
    'r = await convert_part_number(ConvertInput(number="b-7"))\nassert r.converted == "7B"',
    'r = await convert_part_number(ConvertInput(number="nonsense"))\nassert r.error is not None',
)
APPROVED = {"approved": True, "issues": [], "suggestions": [], "severity": "none"}


@dataclass(frozen=True)
class ToolScript:
    """What a model replies while it makes one tool. `codes` are its attempts in order; the last is repeated."""

    name: str = "convert_part_number"
    interface: str = INTERFACE
    tests: tuple[str, ...] = TESTS
    codes: tuple[str, ...] = (CODE,)
    reviews: tuple[dict[str, Any], ...] = (APPROVED,)
    permissions: dict[str, Any] = field(default_factory=dict)
    own_tests: tuple[str, ...] = ()

    def rules(self) -> list[Rule]:
        """The rules of this tool."""
        tests = {
            "function_name": self.name,
            "interface": self.interface,
            "test_cases": self.tests,
            "permissions": self.permissions,
        }
        made = [
            {
                "function_name": self.name,
                "code": code,
                "description": f"Made: {self.name}.",
                "test_cases": self.own_tests,
            }
            for code in self.codes
        ]
        return [
            *_in_order(WRITES_TESTS, [json.dumps(tests)]),
            *_in_order(WRITES_CODE, [json.dumps(one) for one in made]),
            *_in_order(REVIEWS, [json.dumps(one) for one in self.reviews]),
        ]


def _in_order(about: str, texts: list[str]) -> list[Rule]:
    *first, last = texts
    return [*(says(text, to="tool", about=about, times=1) for text in first), says(last, to="tool", about=about)]


def make_version(owner: str = "local", **changed: Any) -> ToolVersion:
    """A staged version that was not stored yet."""
    manifest = changed.pop("manifest", Manifest())
    code = changed.pop("code", CODE)
    version = ToolVersion(
        owner=owner,
        name="convert_part_number",
        version=0,
        sha256=compute_sha256(code, manifest),
        code=code,
        tests=TESTS,
        manifest=manifest,
        review=CodeReview.model_validate(APPROVED),
        description="Convert part numbers.",
        tier="process",
        state="staged",
        created_at=0.0,
    )
    return replace(version, **changed)
