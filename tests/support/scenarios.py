"""Thirty things a task may be about, each with the properties its result must have: the parity check of `/tasks`."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    """A prompt, and what is expected of its result. `cites` are parts of the names of sources the answer must have;
    `entities` must be extracted; `causes` are words of a probable cause."""

    name: str
    prompt: str
    context: dict[str, str] = field(default_factory=dict)
    incident: bool = True
    priority: tuple[str, ...] = ("low", "medium", "high", "critical")
    entities: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()


URGENT = ("high", "critical")
CALM = ("low", "medium")

SCENARIOS = (
    Scenario("pictures", "P1 incident: user profile picture errors causing latency and failures.",
             {"service": "profile-media-api", "priority": "Major", "severity": "SEV2"},
             priority=URGENT, entities=("P1",), cites=("profile-media", "OPS-101"), causes=("image cache",)),
    Scenario("pictures, tersely", "profile picture error",
             {"service": "profile-media-api"}, cites=("profile-media", "OPS-101")),
    Scenario("pictures, by severity alone", "Users do not see their profile picture since the deploy.",
             {"severity": "P2"}, priority=URGENT, cites=("OPS-101",)),
    Scenario("payments down", "SEV1 outage: payments are failing with timeout errors in payments-gateway.",
             priority=("critical",), entities=("SEV1", "payments-gateway"), cites=("payments", "OPS-117"),
             causes=("connection pool",)),
    Scenario("payments slow", "High latency of the payments-gateway, connection pool exhausted, many timeouts.",
             entities=("payments-gateway",), cites=("payments", "OPS-117")),
    Scenario("payments, low", "A payment timeout error was seen once in staging, no hurry.",
             {"priority": "P4"}, priority=CALM, cites=("payments",)),
    Scenario("login", "Incident: nobody can log in, every login fails with error 401.",
             {"priority": "P1", "service": "auth-service"}, priority=("critical",), cites=("login", "OPS-123"),
             causes=("certificate",)),
    Scenario("login, expired", "Login outage of the auth-service after a certificate expired at 09:30 UTC.",
             priority=URGENT, entities=("auth-service",), cites=("OPS-123",)),
    Scenario("search", "Search latency rose to eight seconds on the search-index cluster after the migration.",
             entities=("search-index",), cites=("OPS-140",), causes=("missing index",)),
    Scenario("search, minor", "Minor incident: search is slow for some users.", cites=("OPS-140",)),
    Scenario("mails", "Duplicate mails are sent, error in the queue of the notification-worker.",
             entities=("notification-worker",), cites=("OPS-151",), causes=("lease",)),
    Scenario("mails, ticket", "Follow-up of OPS-151: the notification-worker sends mails twice again, SEV3.",
             entities=("OPS-151", "SEV3"), cites=("OPS-151",), priority=CALM),
    Scenario("escalation", "Severity question: whom do we page in a P1 outage of the payments-gateway?",
             entities=("P1", "payments-gateway"), cites=("severity-levels",)),
    Scenario("status page",
             "The login outage of the auth-service lasts two hours now; how often is the status page updated?",
             cites=("communication",)),
    Scenario("several things", "Outage: login fails with error 401 and payments time out. Ask Anna, who is on call.",
             {"priority": "P1"}, priority=("critical",), entities=("Anna",), cites=("OPS-117", "OPS-123")),
    Scenario("log with brackets", "Error in payments-gateway: [12] timeout, [13] timeout, [14] connection pool full",
             entities=("payments-gateway",), cites=("payments",)),
    Scenario("shell words", "Incident: ${HOME} and $s1 are in the error of profile-media-api, costs $5 an hour.",
             entities=("profile-media-api",), cites=("profile-media",)),
    Scenario("query syntax", 'error AND "profile picture" NEAR(latency*) OR -cache:full', cites=("OPS-101",)),
    Scenario("in capitals", "P1 OUTAGE!!! LOGIN FAILS FOR ALL USERS!!!", priority=("critical",), cites=("OPS-123",)),
    Scenario("markdown", "# Incident\n\n- service: payments-gateway\n- symptom: latency, errors\n\nPlease advise.",
             entities=("payments-gateway",), cites=("payments",)),
    Scenario("a long log", "Incident in payments-gateway. " + "Timeout after 30 s, connection pool full. " * 300,
             entities=("payments-gateway",), cites=("OPS-117",)),
    Scenario("praise", "The customer liked the new invoices, and Anna sent them.", incident=False, entities=("Anna",)),
    Scenario("minutes", "Minutes: Bert will order chairs by Friday. Anna pays the invoice INC0001234.",
             incident=False, entities=("INC0001234",)),
    Scenario("typo", "There is a typo on the start page, nice to have.", incident=False, priority=("low",)),
    Scenario("several customers", "Several customers asked about seven new colours.", incident=False),
    Scenario("question", "What would a second office in Malmö cost us a year?", incident=False),
    Scenario("a word", "Invoices", incident=False),
    Scenario("release", "Version 2.4.1 of checkout-web is released on 2026-12-01.", {"status": "Done"}, incident=False,
             entities=("2.4.1", "2026-12-01")),
    Scenario("mail address", "Please answer anna@example.org about the contract.", incident=False,
             entities=("anna@example.org",)),
    Scenario("many lines", "\n".join(f"{number}. Order item {number} for the office." for number in range(40)),
             incident=False),
)  # fmt: skip
