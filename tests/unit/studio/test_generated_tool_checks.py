"""The deterministic checks of a generated tool: names, rules, models, tests. Nothing here runs the code."""

import pytest

from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.generated_tools.identifiers import sanitize_identifier
from gateway.features.studio.engine.generated_tools.manifests import check_manifest
from gateway.features.studio.engine.generated_tools.models import CodeReview, Manifest
from gateway.features.studio.engine.generated_tools.validation import ToolValidationPipeline, check_test_case
from tests.support.hostile_tools import ENDED, REFUSED
from tests.support.tool_scripts import CODE, TESTS

NAME = "convert_part_number"


def stages(code: str, name: str = NAME, manifest: Manifest | None = None) -> list[str]:
    """The stages of all errors, each once."""
    tool = ToolValidationPipeline().check(name, code, manifest or Manifest())
    assert all(error.message.startswith(f"{error.stage}: ") for error in tool.errors)
    return list(dict.fromkeys(error.stage for error in tool.errors))


@pytest.mark.row("S002-32")
@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("convert", "convert"),
        ("convert-part-number", "convert_part_number"),
        ("Convert Part Number", "convert_part_number"),
        ("convertPartNumber", "convert_part_number"),
        ("  spaced  ", "spaced"),
        ("_private_", "private"),
        ("v2", "v2"),
        ("CRC", "crc"),
        ("".join(chr(ord(letter) + 0xFEE0) for letter in "convert"), "convert"),  # full width
        ("a" * 48, "a" * 48),
    ],
)
def test_a_name_is_spelled_as_an_identifier(name: str, plain: str) -> None:
    assert sanitize_identifier(name) == plain


@pytest.mark.row("S002-32")
@pytest.mark.parametrize(
    "name",
    [
        "", "   ", "\n", "2fast", "class", "async", "None", "match", "a" * 49, "a" * 300, "a" * 100_000, "über",
        "преобразовать", "変換", "a;b", "a.b", "a\x00b", "../etc", "!", "_", "rm -rf $HOME", "a\u202eb", "()",
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        sanitize_identifier(name)
    assert (caught.value.stage, caught.value.recoverable) == ("identifier", True)
    assert len(caught.value.message) < 300


def test_the_code_of_a_capable_model_passes() -> None:
    tool = ToolValidationPipeline().check(NAME, CODE, Manifest())
    assert tool.errors == []
    assert tool.description == "Convert a part number of the old form (A-12) to the new one (12A)."
    assert tool.input_schema["properties"] == {
        "number": {"description": "the part number, such as A-12", "type": "string"}
    }
    assert "$defs" not in tool.input_schema


@pytest.mark.row("S002-10", "S002-15", "S002-17", "S002-33", "S002-34")
@pytest.mark.parametrize(
    ("changed", "stage"),
    [
        (
            CODE.replace('    """Convert a part number of the old form (A-12) to the new one (12A)."""\n', ""),
            "docstring",
        ),
        (CODE.replace("async def", "def"), "async"),
        (CODE.replace("-> ConvertOutput", "-> dict"), "return_type"),
        (CODE.replace("-> ConvertOutput", ""), "return_type"),
        (CODE.replace("args: ConvertInput", "args"), "parameters"),
        (CODE.replace("args: ConvertInput", "args: ConvertInput, more: int"), "parameters"),
        (CODE.replace("args: ConvertInput", "*args: ConvertInput"), "parameters"),
        (CODE.replace("async def convert_part_number", "async def other"), "function"),
        (CODE.replace("async def convert_part_number", "convert_part_number = 3\nasync def other"), "callable"),
        (CODE.replace("async def convert_part_number", "class convert_part_number: pass\nasync def other"), "callable"),
        (CODE + CODE[CODE.index("async def") :], "function"),
        (
            CODE.replace("    return ConvertOutput(converted=digits", "    yield ConvertOutput(converted=digits"),
            "compile",
        ),
        ("def broken(:", "syntax"),
        ("", "function"),
        ("\x00", "syntax"),
        ("x" * 30_000, "syntax"),
        ("(" * 5_000, "syntax"),
        ("-" * 10_000 + "1", "syntax"),
        ("return 1", "compile"),
        ("import os\n" + CODE, "import"),
        ("from os import system\n" + CODE, "import"),
        (CODE.replace("digits + letter", "eval(digits) + letter"), "security"),
        (CODE.replace("digits + letter", "digits.__class__ + letter"), "security"),
        (CODE.replace("digits + letter", "digts + letter"), "names"),
        (CODE.replace("digits + letter", "open(digits).read() + letter"), "security"),
        (CODE + "\nfor x in range(3):\n    pass\n", "construct"),
        (CODE.replace("converted: str", "converted: object"), "schema"),
        (CODE.replace("converted: str", "converted: list"), "schema"),
        (CODE.replace("converted: str", "model_x: str"), "schema"),
        (CODE.replace("converted: str", "converted: 'ConvertOutput'"), "schema"),
        (CODE.replace("converted: str", "converted: str = Field(default_factory=open)"), "schema"),
        (CODE.replace("converted: str", "converted: str = Field(pattern='(')"), "schema"),
        (CODE.replace('error="expected', 'error=await http_get("http://a") + "expected'), "manifest"),
    ],
)
def test_each_rule_refuses_its_sample(changed: str, stage: str) -> None:
    assert stage in stages(changed)


@pytest.mark.row("S002-38")
async def test_all_errors_are_collected() -> None:
    code = "import os\n" + CODE.replace("async def", "def").replace("(A-12) to the new one (12A).", "").replace(
        '"""Convert a part number of the old form """', "pass"
    ).replace("digits + letter", "exec(digits)")
    errors = await ToolValidationPipeline().validate("convert part number", code)
    assert {error.stage for error in errors} >= {"identifier", "import", "security"}
    errors = await ToolValidationPipeline().validate(NAME, code)
    assert [error.stage for error in errors] == ["import", "security", "docstring", "async"]


@pytest.mark.row("S002-17")
@pytest.mark.parametrize("attack", list(REFUSED))
def test_a_hostile_program_is_refused(attack: str) -> None:
    found = stages(REFUSED[attack], "attack")
    assert found, "nothing was refused"


def test_programs_that_only_waste_are_left_to_the_sandbox() -> None:
    assert [name for name, code in ENDED.items() if stages(code, "attack")] == []


@pytest.mark.row("S002-16")
def test_soft_rules_warn() -> None:
    tool = ToolValidationPipeline().check(
        NAME,
        CODE[: CODE.index("    letter, dash")] + "    raise ValueError(args.number)\n",
        Manifest(),
    )
    assert tool.errors == []
    assert [warning.split(";")[0] for warning in tool.warnings] == [
        "errors are raised", "the input is not checked before it is used",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ("assert True", "does not call"),
        ('await convert_part_number(ConvertInput(number="x"))', "asserts nothing"),
        ("assert (await convert_part_number(", "cannot be parsed"),
        ("import os\nassert await convert_part_number(ConvertInput(number=os.name))", "cannot be imported"),
        ('r = await convert_part_number(ConvertInput(number="x"))\nassert r.__class__', "internal"),
    ],
)
def test_a_useless_test_is_refused(case: str, problem: str) -> None:
    tool = ToolValidationPipeline().check(NAME, CODE, Manifest())
    assert problem in "; ".join(error.message for error in check_test_case(case, tool, 1))


def test_a_test_keeps_its_texts() -> None:
    tool = ToolValidationPipeline().check(NAME, CODE, Manifest())
    case = 'text = """a\n  b"""\nr = await convert_part_number(ConvertInput(number=text))\nassert r.error'
    assert check_test_case(case, tool, 1) == []
    assert all(check_test_case(case, tool, 1) == [] for case in TESTS)


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (Manifest(hosts=("https://example.com",)), "is not a host"),
        (Manifest(hosts=("*",)), "is not a host"),
        (Manifest(hosts=("",)), "is not a host"),
        (Manifest(folders=("/etc",)), "is not a folder"),
        (Manifest(folders=("a/../..",)), "is not a folder"),
        (Manifest(tools=("nonsense",)), "there is no tool"),
        (Manifest(hosts=("b.example",)), "are not allowed"),
    ],
)
def test_a_manifest_is_checked(manifest: Manifest, problem: str) -> None:
    found = check_manifest(manifest, ["calculator"], Manifest(hosts=("a.example",), folders=("x",)))
    assert any(problem in one for one in found), found


def test_a_wider_manifest_is_named() -> None:
    narrow = Manifest(hosts=("a.example",), seconds=1)
    wide = Manifest(hosts=("a.example", "b.example"), tools=("calculator",), seconds=2)
    assert wide.list_wider(narrow) == ["hosts b.example", "tools calculator", "2 seconds", "112 MB of memory"][:3]
    assert narrow.list_wider(wide) == []


@pytest.mark.row("S002-12")
def test_a_blocker_is_a_veto_whatever_the_review_says() -> None:
    assert CodeReview(approved=True, severity="blocker").is_veto
    assert CodeReview(approved=False, severity="none").is_veto
    assert not CodeReview(approved=True, severity="minor").is_veto


@pytest.mark.parametrize(
    "line",
    [
        "x = 'a\u202e\u2066# check\u2069 \u2066'",
        "x = 1  # \u200b",
        "x = 'a\u200db'",
        "x = '\u00ad'",
        "x\u3164 = 1",
        "x = '\u2800'",
        "x = '\U000e0041'",
        "x = '\ufe0f'",
        "x\u00a0= 1",
        "x = 1\x0c",
        "x = 1  # \x1b[2J",
        "x = 1" + " " * 200 + "; y = 2",
        "# " + "x" * 200,
        "sc\u043ere = 1",
        "x = f'{sc\u043ere}'",
        "x = f'{n.sc\u043ere}'",
        "x = f'{f(sc\u043ere=1)}'",
        "\uff45val = 1",
        "\u0131 = 1",
    ],
)
def test_code_that_does_not_show_what_it_does_is_refused(line: str) -> None:
    assert "visibility" in stages(CODE + "\n" + line + "\n")
    tool = ToolValidationPipeline().check(NAME, CODE, Manifest())
    (problem, *_) = check_test_case(line + "\nassert await convert_part_number(None)", tool, 1)
    assert "line 1: " in problem.message or "cannot be parsed" in problem.message


def test_text_in_other_alphabets_is_shown() -> None:
    line = "LABEL = 'Größe, размер, 大きさ, מידה, e\u0301'  # " + "x" * 100
    assert stages(CODE + "\n" + line + "\n") == []
