"""A small company for tests: policies, runbooks and earlier tickets, read in by the command line as a user would."""

import sys
from pathlib import Path

from tests.support.processes import start

KNOWLEDGE = {
    "policies/severity-levels.md": (
        "# Severity levels\n\n"
        "A P1 or SEV1 incident is an outage of a customer-facing service: page the on-call engineer at once "
        "and open a war room. A SEV2 degrades a service: notify the incident commander within 15 minutes. A "
        "SEV3 error has a workaround and is handled in working hours.\n"
    ),
    "policies/communication.md": (
        "# Communication policy\n\n"
        "During an outage or incident, post an update to the status page every 30 minutes. Escalate to the "
        "head of engineering when an incident lasts longer than two hours.\n"
    ),
    "runbooks/profile-media.md": (
        "# Runbook: profile-media-api\n\n"
        "Profile picture errors and latency are mostly caused by a full image cache. Check the hit rate of "
        "the image cache. Restart the image workers one by one. Purge the CDN cache for the affected paths.\n"
    ),
    "runbooks/payments.md": (
        "# Runbook: payments-gateway\n\n"
        "Timeouts and errors of the payments-gateway are often due to an exhausted connection pool. Increase "
        "the pool size. Fail over to the second provider when latency stays above two seconds.\n"
    ),
    "runbooks/login.md": (
        "# Runbook: auth-service\n\n"
        "Login failures and outages of the auth-service follow expired certificates or a slow directory. "
        "Verify the certificates. Restart the directory replicas.\n"
    ),
    "docs/architecture.md": (
        "# Architecture\n\n"
        "The checkout-web calls the payments-gateway and the auth-service. Search runs on the search-index "
        "cluster; mail is sent by the notification-worker queue.\n"
    ),
}

ISSUES = {
    "OPS-101.md": (
        "# OPS-101: profile picture doesn't display\n\n"
        "Priority: Major. Service: profile-media-api. Users see errors instead of their profile picture. Root "
        "cause: the image cache was full after a deploy. Resolution: purge the cache and restart the image "
        "workers.\n"
    ),
    "OPS-117.md": (
        "# OPS-117: payments time out\n\n"
        "Priority: P1. Service: payments-gateway. An outage of payments with high latency and timeout errors. "
        "Root cause: the connection pool was exhausted by a retry storm. Resolution: raise the pool size.\n"
    ),
    "OPS-123.md": (
        "# OPS-123: nobody can log in\n\n"
        "Priority: P1. Service: auth-service. Login outage: every login failed with error 401. Caused by an "
        "expired certificate. Resolution: renew the certificate.\n"
    ),
    "OPS-140.md": (
        "# OPS-140: search is slow\n\n"
        "Priority: Minor. Service: search-index. Search latency rose to eight seconds. Due to a missing index "
        "after the migration. Resolution: rebuild the index.\n"
    ),
    "OPS-151.md": (
        "# OPS-151: mails are sent twice\n\n"
        "Priority: Major. Service: notification-worker. Duplicate mails after an error in the queue. Root "
        "cause: the worker lost its lease. Resolution: lengthen the lease.\n"
    ),
}


def read_in(folder: Path, data_dir: Path, *, issues: bool = True) -> None:
    """Write the company's files below `folder` and ingest them; AssertionError with the output when that fails."""
    for name, files in (("company", KNOWLEDGE), *([("issues", ISSUES)] if issues else [])):
        for path, text in files.items():
            target = folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
        environment = {"AGENT_DATA_DIR": str(data_dir), "AGENT_SKILLS_DIRS": "none", "COLUMNS": "200"}
        command = [sys.executable, "-m", "gateway.cli", "ingest", str(folder / name), "--collection", name]
        process = start(command, environment=environment)
        assert process.wait(120) == 0, "\n".join(process.output)
