"""Mailboxes, and parts of mails with names."""


def mailbox(*mails: str, line_end: str = "\n") -> bytes:
    """A file of several mails (RFC 4155)."""
    lines = "".join(f"From ann@example.org Mon Jan  5 10:0{place}:00 2026\n{one}\n" for place, one in enumerate(mails))
    return lines.replace("\r\n", "\n").replace("\n", line_end).encode()


def named_part(kind: str, name: str, *fields: str) -> str:
    """A part of a mail that is a file."""
    return "\r\n".join(
        [f'Content-Type: {kind}; name="{name}"', *fields, "Content-Transfer-Encoding: base64", "", "AAAA"]
    )
