"""The package's own cases and graders, in the environment of `tests/bench/peer.py`. Imports nothing of Stepgate.

`python -m tests.bench.function_calls.checker cases CATEGORY ...` prints one case a line; `... grade CATEGORY ...` reads
answers as JSON lines and prints a grade for each. The conversion to tools, the prompt of the prompting mode, the
decoder of its replies and the checker of calls are the package's. What its runner does around them is repeated here,
because the runner imports the SDK of every provider.

Its decoder evaluates sums that stand in a reply (`f(x=2*3)`), so that only models you trust belong here.
"""

import copy
import json
import os
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from typing import Any

NATIVE, PROMPTED = "native", "prompted"
"""The two forms of an answer: the calls of a message, or its text. In native names "." is replaced by "_"."""


def import_package() -> types.SimpleNamespace:
    """The functions of the package that are used, imported without the SDKs of providers."""
    # The package makes folders for results as it is imported.
    os.environ.setdefault("BFCL_PROJECT_ROOT", tempfile.mkdtemp(prefix="bfcl-"))
    # The checker reads one flag of a model's entry in this table. The real one imports some twenty SDKs, and PyTorch.
    table = types.ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = {  # type: ignore[attr-defined]
        NATIVE: types.SimpleNamespace(underscore_to_dot=True),
        PROMPTED: types.SimpleNamespace(underscore_to_dot=False),
    }
    sys.modules[table.__name__] = table

    from bfcl_eval import utils  # type: ignore[import-not-found]
    from bfcl_eval.constants.enums import Language, ModelStyle  # type: ignore[import-not-found]
    from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI  # type: ignore[import-not-found]
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]
    from bfcl_eval.model_handler import utils as handling  # type: ignore[import-not-found]

    return types.SimpleNamespace(
        load_cases=utils.load_dataset_entry,
        load_truth=utils.load_ground_truth_entry,
        is_call_list=utils.is_function_calling_format_output,
        is_empty=utils.is_empty_output,
        decode_text=handling.default_decode_ast_prompting,
        add_prompt=handling.system_prompt_pre_processing_chat_model,
        build_tools=lambda functions: handling.convert_to_tool(
            functions, GORILLA_TO_OPENAPI, ModelStyle.OPENAI_COMPLETIONS
        ),
        check_calls=lambda functions, calls, truth, category, form: ast_checker(
            functions, calls, truth, Language.PYTHON, category, form
        ),
    )


def list_cases(package: types.SimpleNamespace, categories: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields each case with its messages, its tools, and the messages of the prompting mode."""
    for category in categories:
        for entry in package.load_cases(category):
            [messages] = entry["question"]
            yield {
                "id": entry["id"],
                "family": category,
                "messages": messages,
                "tools": package.build_tools(entry["function"]),
                "prompted": package.add_prompt(copy.deepcopy(messages), entry["function"], entry["id"]),
            }


def load_truth(package: types.SimpleNamespace, categories: Sequence[str]) -> dict[str, Any]:
    """The right calls by the id of a case; cases that must not be answered by a call have none."""
    checked = [category for category in categories if not category.endswith("relevance")]
    return {entry["id"]: entry["ground_truth"] for category in checked for entry in package.load_truth(category)}


def grade(package: types.SimpleNamespace, answer: dict[str, Any], functions: Any, truth: Any) -> str:
    """Says what is wrong with an answer; "" if it is right.

    `answer` has `family`, `form`, and `calls` (pairs of a name and JSON text) or `text`.
    """
    try:
        decoded = decode(package, answer)
    except Exception as error:  # noqa: BLE001 - the package's decoder raises this class itself
        decoded, fault = None, f"no calls: {type(error).__name__}: {error}"[:300]
    else:
        fault = "no list of calls"
    category = answer["family"]
    if category.endswith("relevance"):
        is_called = decoded is not None and not package.is_empty(decoded)
        wants_call = not category.endswith("irrelevance")
        return "" if is_called == wants_call else ("no call" if wants_call else "a call where none fits")
    if decoded is None or not package.is_call_list(decoded):
        return fault
    result = package.check_calls(functions, decoded, truth, category, answer["form"])
    return "" if result["valid"] else f"{result['error_type']}: {result['error']}"[:300]


def decode(package: types.SimpleNamespace, answer: dict[str, Any]) -> Any:
    """The calls of an answer as the checker takes them: `[{name: arguments}]`. Raises what the decoder raises."""
    if answer["form"] == PROMPTED:
        return package.decode_text(answer["text"])
    if not answer["calls"]:
        raise ValueError("the model answered with text")
    return [{name: json.loads(arguments)} for name, arguments in answer["calls"]]


def main(command: str, categories: Sequence[str]) -> None:
    """Prints cases, or grades the answers on stdin."""
    package = import_package()
    if command == "cases":
        for case in list_cases(package, categories):
            print(json.dumps(case))
        return
    functions = {entry["id"]: entry["function"] for category in categories for entry in package.load_cases(category)}
    truth = load_truth(package, categories)
    for line in sys.stdin:
        answer = json.loads(line)
        fault = grade(package, answer, functions[answer["id"]], truth.get(answer["id"]))
        print(json.dumps({"column": answer["column"], "id": answer["id"], "fault": fault}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
