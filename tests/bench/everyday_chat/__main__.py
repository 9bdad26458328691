"""Compares everyday answers of the gateway and of the bare model: `python -m tests.bench.everyday_chat`.

Prints what a program can check and the times of first tokens, and writes a blind sheet for readers with its key.
`--writer` asks one of the two: a fair figure of first tokens needs a server of the model that was started for each.
`--read SHEET` (repeated for more readers) prints instead how readers judged, from their filled copies of the sheet.
"""

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.core.settings.loading import load_settings
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.report import ERROR_STATUS
from gateway.features.evaluation.task_files import sample_tasks
from tests.bench.endpoint import (
    MAX_TOKENS,
    ChatReply,
    Endpoint,
    build_body,
    describe_subject,
    format_heading,
    read_endpoint,
    start_gateway,
    stream,
)
from tests.bench.everyday_chat.chats import Chat, ChatAnswer, load_chats
from tests.bench.everyday_chat.checks import AnswerChecker, Failures
from tests.bench.everyday_chat.sheet import Key, count_verdicts, make_sheet, read_verdicts
from tests.bench.everyday_chat.table import format_checks, format_failures, format_times

GATEWAY, BARE = "gateway", "bare"
WORSE_AIM = 4
"""Most chats in which a reader may find the gateway's answer worse."""
DEFAULT_SEED = 7
WARM_UP = [{"role": "user", "content": "Hello"}]

Answers = dict[str, dict[str, ChatAnswer]]


def main(arguments: Sequence[str]) -> int:
    """Asks what is missing in the file of results, prints the tables and writes the sheet. Returns an exit code."""
    options = _parse_options(arguments)
    if options.read:
        return _print_verdicts(options.read, options.out / "key.json")
    settings = load_settings()
    endpoint = read_endpoint(settings)
    chats = load_chats()
    if options.limit:
        chats = tuple(sample_tasks(chats, options.limit, options.seed))
    progress = (
        ProgressFile(options.resume, describe_subject(endpoint), ChatAnswer) if options.resume is not None else None
    )
    writers = (options.writer,) if options.writer else (GATEWAY, BARE)
    answers = asyncio.run(ask(writers, chats, settings, endpoint, progress))
    if options.writer:
        print(
            f"{options.writer} is asked. Start the model's server again before the other: its cache holds these texts."
        )
        return 0
    checked, missing_sandbox = asyncio.run(_check_all(chats, answers))
    print(format_heading(shlex.join(["make", "eval-chat", *arguments]), endpoint))
    print(f"{len(chats)} chats, replies of at most {MAX_TOKENS} tokens, one after another\n")
    print(f"{format_checks(chats, checked)}\n\n{format_times(chats, answers)}")
    if missing_sandbox:
        print(f"\nfunctions were only compiled: {missing_sandbox}")
    print(f"\nNot passed:\n{format_failures(chats, checked)}", file=sys.stderr)
    _write_sheet(chats, answers, options.out, options.seed)
    return 0


def _parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make eval-chat", description=__doc__)
    parser.add_argument("--limit", type=int, help="this many chats in all, as many of each kind")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="chooses chats, and the order in the sheet")
    parser.add_argument("--writer", choices=(GATEWAY, BARE), help="ask only this one, without tables; needs --resume")
    parser.add_argument("--resume", type=Path, help="keep each answer in this file as it comes, and go on from it")
    parser.add_argument("--out", type=Path, default=Path("data/eval/chat"), help="folder of sheet.md and key.json")
    parser.add_argument("--read", type=Path, action="append", help="a filled sheet: print its reader's verdicts")
    options = parser.parse_args(arguments)
    if options.writer and not options.resume:
        parser.error("--writer keeps its answers in a file: name one with --resume")
    return options


async def ask(
    names: Sequence[str],
    chats: Sequence[Chat],
    settings: Settings,
    endpoint: Endpoint,
    progress: ProgressFile[ChatAnswer] | None,
) -> Answers:
    """The named writers' answers. One writer answers all chats before the other: in turns, each would find the other's
    prompts in the model's cache, which nobody does who uses one of them. The second still finds some of the first's.
    """
    answers = {}
    for name in names:
        with start_gateway(settings) if name == GATEWAY else nullcontext() as url:
            writer = endpoint if url is None else Endpoint(f"{url}/v1", settings.default_room)
            answers[name] = await _ask(name, writer, chats, progress)
    return answers


async def _ask(
    name: str, writer: Endpoint, chats: Sequence[Chat], progress: ProgressFile[ChatAnswer] | None
) -> dict[str, ChatAnswer]:
    answers = {chat.id: progress.find(name, chat.id) if progress is not None else None for chat in chats}
    async with writer.open_client() as client:
        if not all(answers.values()):
            await stream(client, build_body(writer.model, WARM_UP))
        for chat in chats:
            if answers[chat.id] is None:
                answer = build_chat_answer(chat, await stream(client, build_body(writer.model, chat.messages)))
                answers[chat.id] = answer
                if progress is not None:
                    progress.add(name, answer)
                print(f"{name} {chat.id} {answer.seconds:.1f} s {answer.error[:120]}", file=sys.stderr, flush=True)
    return {chat_id: answer for chat_id, answer in answers.items() if answer is not None}


def build_chat_answer(chat: Chat, reply: ChatReply) -> ChatAnswer:
    """What is kept of a reply."""
    status = "answered"
    if reply.error:
        status = "refused" if 400 <= reply.http_status < 500 else ERROR_STATUS
    return ChatAnswer(
        id=chat.id,
        status=status,
        text=reply.text,
        seconds=round(reply.seconds, 3),
        first_token_seconds=None if reply.first_token_seconds is None else round(reply.first_token_seconds, 3),
        error=reply.error,
    )


async def _check_all(chats: Sequence[Chat], answers: Answers) -> tuple[dict[str, dict[str, Failures]], str]:
    """What was checked, by writer and chat, and why functions could not be run here."""
    checker = AnswerChecker()
    try:
        checked = {
            name: {chat.id: await checker.check(chat, written[chat.id].text) for chat in chats}
            for name, written in answers.items()
        }
    finally:
        await checker.aclose()
    return checked, checker.missing_sandbox


def _write_sheet(chats: Sequence[Chat], answers: Answers, folder: Path, seed: int) -> None:
    texts = {name: {chat.id: written[chat.id].text for chat in chats} for name, written in answers.items()}
    sheet, key = make_sheet(chats, texts, seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sheet.md").write_text(sheet, "utf-8")
    (folder / "key.json").write_text(json.dumps(key, indent=1) + "\n", "utf-8")
    print(f"\nFor readers: {folder / 'sheet.md'}, a copy for each. Afterwards: --read COPY --read COPY")


def _print_verdicts(sheets: Sequence[Path], key_file: Path) -> int:
    """Prints one line for each reader. Raises `ConfigError` for a sheet or key that cannot be read."""
    try:
        key: Key = {chat_id: (first, second) for chat_id, (first, second) in json.loads(key_file.read_text()).items()}
        texts = {sheet: sheet.read_text("utf-8") for sheet in sheets}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"the sheet or its key cannot be read: {error}") from error
    for sheet, text in texts.items():
        counts = count_verdicts(read_verdicts(text), key, GATEWAY)
        verdict = "met" if counts.worse <= WORSE_AIM else "missed"
        print(
            f"{sheet.name}: the gateway's answer is better in {counts.better}, worse in {counts.worse}, as good in "
            f"{counts.same}; aim: worse in at most {WORSE_AIM}: {verdict}"
        )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ConfigError as error:
        sys.exit(f"eval-chat: {error}")
