"""Instructions: sentences that ask somebody to do something, by the verb that they start with."""

import re

_VERBS = """
acknowledge add adjust alert answer apply approve archive ask assign attach audit back backup block book bring bump
call cancel capture change check clean clear close collect communicate compare configure confirm contact coordinate copy
create declare delete deliver deploy describe disable disconnect document download drain email enable engage ensure
escalate estimate evaluate examine execute export failover file find finish fix flush follow gather generate
give hold identify implement include increase inform initiate inspect install investigate invite isolate keep
kill limit link list lock log look lower make mark merge migrate mitigate monitor move notify open order
organise organize page patch pause pay pin plan post prepare prevent publish purge push put raise read rebuild
reboot record recover redeploy redirect reduce refresh reject release remind remove rename renew repair replace
replay reply report reproduce request rerun reset resize resolve restart restore resume retry return revert
review revoke roll rotate route run scale schedule search secure select send set share shift ship shut skip
start stop submit suspend switch sync tag take tell terminate test throttle trace track triage trigger turn
uninstall unblock update upgrade upload use validate verify wait warm watch write
"""
"""Verbs that start an instruction. A closed list, so that "Errors rise" is none."""
INSTRUCTION_VERBS = frozenset(_VERBS.split())
_POLITE = re.compile(
    r"^(?:please|kindly|then|next|first|finally|also|now|immediately|and|can you|could you|would you|let'?s|"
    r"(?:don['\u2019]?t\sforget|remember|be\ssure)\sto|"
    r"(?:you|we|somebody|someone)\s(?:must|should|need(?:s)?\sto|have\sto|will|can))[\s,:]+",
    re.IGNORECASE,
)


def is_instruction(text: str) -> bool:
    """Whether a sentence starts with an instruction verb, after polite words."""
    while (polite := _POLITE.match(text)) is not None:
        text = text[polite.end() :]
    first = re.match(r"[A-Za-z]+", text)
    return first is not None and first[0].lower() in INSTRUCTION_VERBS
