"""Reads a person's reply to an approval question."""

APPROVE_WORDS = frozenset({"approve", "approved", "yes", "ok", "okay", "godkänn", "ja"})
REJECT_WORDS = frozenset({"reject", "rejected", "no", "avslå", "nej"})


def parse_decision(text: str) -> tuple[str, str]:
    """Parses a person's reply into (`approved`, ""), (`rejected`, reason) or (`answered`, text).

    Only a single word or the commands `/approve` and `/reject REASON` decide. A word within a sentence does not: "do
    not do it" contains "do it".
    """
    said = text.strip()
    command, _, rest = said.partition(" ")
    if command.lower() == "/approve" and not rest.strip():
        return "approved", ""
    if command.lower() == "/reject":
        return "rejected", rest.strip()
    word = said.strip(" .!\n\t").casefold()
    if word in APPROVE_WORDS:
        return "approved", ""
    if word in REJECT_WORDS:
        return "rejected", ""
    return "answered", said
