"""`OwnIds`: ids that nobody outside of this gateway can have chosen, and that it recognises again.

The client that names a conversation first chooses its id. A short answer such as `approve` may count by the id alone
only where this gateway has made it: others do not know these ids, and cannot make one that looks like them.
"""

import hashlib
import hmac
import secrets
from pathlib import Path

from agent.core.key_file import load_or_create_key

CONVERSATION_PREFIX = "conv_"
RANDOM_CHARS, TAG_CHARS = 32, 16
"""Hex digits: 128 random bits, and 64 bits of the tag. A tag can only be tried by asking the gateway."""


class OwnIds:
    """Makes and recognises ids with the secret in `key_file`, which all processes of a data folder share. The file is
    made at the first use. Methods raise `OSError` if it can be neither read nor made.
    """

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key = b""

    def make_conversation_id(self, owner: str) -> str:
        """The id of a new conversation of this owner."""
        random = secrets.token_hex(RANDOM_CHARS // 2)
        return f"{CONVERSATION_PREFIX}{random}{self._compute_tag(owner, random)}"

    def is_own_conversation(self, conversation_id: str, owner: str) -> bool:
        """Whether this gateway made the id, for this owner."""
        digits = conversation_id.removeprefix(CONVERSATION_PREFIX)
        if not conversation_id.startswith(CONVERSATION_PREFIX) or len(digits) != RANDOM_CHARS + TAG_CHARS:
            return False
        random, tag = digits[:RANDOM_CHARS], digits[RANDOM_CHARS:]
        return tag.isascii() and hmac.compare_digest(tag, self._compute_tag(owner, random))

    def derive(self, *parts: str) -> str:
        """32 hex digits that follow from these parts, the same each time. Others cannot compute them."""
        return self._sign("\x00".join(("derive", *parts)))[:32]

    def _compute_tag(self, owner: str, random: str) -> str:
        return self._sign(f"conversation\x00{owner}\x00{random}")[:TAG_CHARS]

    def _sign(self, text: str) -> str:
        self._key = self._key or load_or_create_key(self._key_file).encode("ascii")
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
