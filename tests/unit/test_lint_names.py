"""The check of names and prose in `make lint` finds what it is meant to find."""

from pathlib import Path

import pytest

from tests.lint_names import check_file


def find_messages(folder: Path, text: str, name: str = "module.py") -> list[str]:
    path = folder / name
    path.write_text(text, "utf-8")
    return [violation.message for violation in check_file(path)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("def told() -> None: ...\n", "participle"),
        ("class _Found: ...\n", "participle"),
        ("class KeyPurse: ...\n", "contains 'purse'"),
        ("def start(begun_from: str) -> None: ...\n", "contains 'begun'"),
        ("def _locked_error() -> CollectionLockedError: ...\n", "begin with a verb"),
        ('def passages() -> "Iterator[Passage] | None": ...\n', "begin with a verb"),
        ('def start() -> None:\n    """Leaves it to whoever comes next."""\n', "phrase 'whoever'"),
        ("x = 1  # None for what is none\n", "phrase"),
    ],
)
def test_private_words_are_found(tmp_path: Path, text: str, part: str) -> None:
    messages = find_messages(tmp_path, text)
    assert any(part in message for message in messages), messages


def test_a_banned_module_name_is_found(tmp_path: Path) -> None:
    assert find_messages(tmp_path, "", "custody.py") == ["module name 'custody'"]


def test_documents_are_checked_too(tmp_path: Path) -> None:
    assert find_messages(tmp_path, "# Page\n\nThe key of whoever asks.\n", "page.md") == ["phrase 'whoever'"]


def test_plain_code_passes(tmp_path: Path) -> None:
    text = '''"""Reads keys."""\n\n\ndef find_key(found: str) -> str:\n    """Returns the key."""\n    return found\n'''
    assert find_messages(tmp_path, text) == []
    text = "class Key:\n    @property\n    def owner(self) -> Owner: ...\n    def claim(self) -> Claim: ...\n"
    assert find_messages(tmp_path, text) == []
