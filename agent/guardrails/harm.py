"""Hate and code that does harm, where a pattern is enough to say so. Precise rather than complete: whoever needs more
puts a moderation service behind the `Guardrail` protocol.
"""

import re
from typing import Final

from agent.guardrails.models import Finding, Guarded, GuardrailsInput

_WHO: Final = (
    r"(?:(?:the |these |those |all |die |alle )?(?:jews?|muslims?|christians?|hindus"
    r"|immigrants?|migrants?|refugees?|foreigners?"
    r"|blacks|whites|asians|arabs|africans|mexicans|gypsies|roma"
    r"|gays?|lesbians?|homosexuals?|trans(?:gender)?(?: people)?|women"
    r"|disabled(?: people)?|juden|muslime|migranten|flüchtlinge|ausländer|schwule|behinderte|frauen))"
)
_VERMIN: Final = (
    r"(?:vermin|sub-?human|rats|cockroaches|parasites|animals|scum|filth|a (?:plague|disease|cancer)|ungeziefer|"
    r"untermenschen|parasiten|abschaum|dreck)"
)
_Form = tuple[Guarded, str, str, str]
_WORDED: Final[tuple[_Form, ...]] = (
    ("hate_speech", "violence", rf"\b(?:kill|exterminate|gas|shoot|hang|burn|lynch|vernichtet|tötet|erschießt|vergast) "
     rf"{_WHO}\b", "calls for violence against a group of people"),
    ("hate_speech", "violence", rf"\b{_WHO} (?:should|must|deserve to|need to|sollten|müssen) (?:all )?"
     r"(?:die|be (?:killed|shot|gassed|hanged|exterminated)|sterben|verrecken|vernichtet werden)\b",
     "calls for violence against a group of people"),
    ("hate_speech", "dehumanising", rf"\b{_WHO} (?:are|sind) (?:all |alle |nothing but |nur )?{_VERMIN}\b",
     "denies a group of people that they are human"),
    ("hate_speech", "hatred", rf"\b(?:i|we|ich|wir) (?:hate|despise|hasse|hassen) (?:all |alle ){_WHO}\b",
     "expresses hatred of a group of people"),
    ("malicious_code", "reverse_shell", r"\b(?:ba|z|k)?sh -i\b[^\n]{0,80}/dev/(?:tcp|udp)/"
    r"|/dev/tcp/[\w.-]{1,80}/\d{1,5}[^\n]{0,40}0?[<>]&1"
     r"|\bnc(?:at)?\b[^\n]{0,60} -[a-z]{0,4}e ?/?(?:bin/)?(?:ba)?sh|\bos\.dup2\([^\n]{0,60}fileno\(\)|"
     r"mkfifo /tmp/\w{1,20} ?;[^\n]{0,80}\bnc\b", "opens a shell to another machine"),
    ("malicious_code", "destruction", r"\brm\s+(?:-{1,2}[\w-]{1,20}\s+){1,4}(?:/\*?|~/?\*?|\$HOME)(?:[\s;&|\"']|\Z)"
     r"|:\(\)\s?\{\s?:\s?\|\s?:\s?&\s?\}\s?;\s?:|\bdd\s+if=/dev/(?:zero|u?random)\s+of=/dev/(?:sd|nvme|vd|hd)\w"
     r"|\bmkfs(?:\.\w{2,6})?\s+(?:-\w\s+){0,3}/dev/(?:sd|nvme|vd|hd)\w|\bformat\s+c:\s*/[qy]\b"
     r"|\bvssadmin(?:\.exe)?\s+delete\s+shadows", "destroys a machine's files"),
    ("malicious_code", "dropper", r"\b(?:iex|invoke-expression)\b[^\n]{0,80}(?:downloadstring|net\.webclient|\biwr\b)"
     r"|\bpowershell(?:\.exe)?\b[^\n]{0,80} -e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{40,}"
     r"|\b(?:eval|assert|exec)\s?\(\s?(?:gzinflate\s?\(\s?)?(?:base64_decode|base64\.b64decode|atob)\s?\(",
     "fetches or unpacks code and runs it unseen"),
    ("malicious_code", "credential_theft", r"\b(?:invoke-)?mimikatz\b[^\n]{0,80}|sekurlsa::logonpasswords"
    r"|\blsass\.dmp\b"
     r"|\bprocdump\b[^\n]{0,40}\blsass\b", "steals the credentials of a machine"),
    ("malicious_code", "test_virus", r"X5O!P%@AP\[4\\PZX54\(P\^\)7CC\)7\}\$EICAR", "is the anti-virus test file"),
)  # fmt: skip
_FORMS: Final = tuple(
    (category, kind, re.compile(pattern, re.IGNORECASE), says) for category, kind, pattern, says in _WORDED
)


class HarmDetector:
    """Finds hate and malicious code."""

    categories: frozenset[Guarded] = frozenset({"hate_speech", "malicious_code"})

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """The findings, one for each pattern that fits."""
        return [
            Finding(category=category, kind=kind, start=match.start(), end=match.end(), detail=f"this part {says}")
            for category, kind, pattern, says in _FORMS
            for match in pattern.finditer(request.content)
        ]
