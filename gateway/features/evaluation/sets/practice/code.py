"""The server `code`: issues, pull requests and pipeline runs of a code host."""

from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Inputs

SLOW_REPO = "lumen/atlas-mobile"
UNAVAILABLE_CALLS = 2
"""Lists of pipeline runs of `SLOW_REPO` that fail before one is returned."""
Label = Literal["bug", "feature", "browser", "docs", "needs-info", "urgent"]
IssueState = Literal["open", "closed"]


class IssueQuery(Inputs):
    """Conditions, joined with AND; what is left out does not matter."""

    state: IssueState | None = None
    label: Label | None = None
    assignee: str | None = Field(default=None, description="a user name; 'none' for issues of nobody")
    text: str | None = Field(default=None, description="words of the title or the body")


class IssueChanges(Inputs):
    """What changes; what is left out stays."""

    state: IssueState | None = None
    title: str | None = None
    assignee: str | None = None
    add_labels: list[Label] = Field(default=[])
    remove_labels: list[Label] = Field(default=[])


def build_code(file: StateFile) -> MCPServer:
    """Builds the server of a code host."""
    server = MCPServer("code")
    _add_issues(server, file)
    _add_pull_requests(server, file)
    _add_pipelines(server, file)
    return server


def _add_issues(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of issues."""

    @server.tool(annotations=READ)
    def search_issues(repo: str, query: IssueQuery | None = None) -> list[dict[str, Any]]:
        """Search the issues of a repository, such as lumen/billing. The text is returned by get_issue."""
        where = query or IssueQuery()
        return [
            {"number": int(key), **{name: value for name, value in issue.items() if name != "body"}}
            for key, issue in _find_issues(file.load(), repo).items()
            if _matches(issue, where)
        ]

    @server.tool(annotations=READ)
    def get_issue(repo: str, number: int) -> dict[str, Any]:
        """Get an issue with its text."""
        return {"number": number, **find_record(_find_issues(file.load(), repo), str(number), "issue")}

    @server.tool(annotations=EFFECT)
    def create_issue(repo: str, title: str, body: str = "", labels: list[Label] | None = None) -> int:
        """Open an issue. Returns its number."""
        with file.change() as state:
            issues = _find_issues(state, repo)
            number = 1 + max(map(int, issues))
            issues[str(number)] = {
                "title": title, "state": "open", "labels": " ".join(sorted(labels or ())), "assignee": "none",
                "body": body,
            }  # fmt: skip
        return number

    @server.tool(annotations=WRITE)
    def update_issue(repo: str, number: int, changes: IssueChanges) -> str:
        """Close or open an issue, assign it to a user, or change its title and labels."""
        with file.change() as state:
            issue = find_record(_find_issues(state, repo), str(number), "issue")
            if changes.assignee is not None:
                find_record(state["code"]["users"], changes.assignee, "user")
            simple = changes.model_dump(exclude_none=True, include={"state", "title", "assignee"})
            labels = {*issue["labels"].split(), *changes.add_labels} - set(changes.remove_labels)
            issue.update({**simple, "labels": " ".join(sorted(labels))})
        return f"#{number} {issue['title']}: {issue['state']}, {issue['assignee']}, labels {issue['labels'] or 'none'}"


def _add_pull_requests(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of pull requests."""

    @server.tool(annotations=READ)
    def list_pull_requests(
        repo: str, state: Literal["open", "merged", "closed"] | None = None, author: str | None = None
    ) -> list[dict[str, Any]]:
        """List pull requests with author, branch, state of the checks and number of approving reviews."""
        return [
            {"number": int(key), **request}
            for key, request in _find_repo(file.load(), repo)["pull_requests"].items()
            if state in (None, request["state"]) and author in (None, request["author"])
        ]

    @server.tool(annotations=EFFECT)
    def merge_pull_request(repo: str, number: int, method: Literal["merge", "squash", "rebase"] = "merge") -> str:
        """Merge an open pull request. Its checks must have passed, and somebody must have approved it."""
        with file.change() as state:
            request = find_record(_find_repo(state, repo)["pull_requests"], str(number), "pull request")
            if request["state"] != "open":
                raise ToolError(f"pull request {number} is {request['state']} already")
            if request["checks"] != "passed":
                raise ToolError(f"not merged: the checks of pull request {number} have {request['checks']}")
            if not request["approvals"]:
                raise ToolError(f"not merged: nobody has approved pull request {number}")
            request.update(state="merged", method=method)
        return f"pull request {number} is merged ({method})"


def _add_pipelines(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of pipeline runs."""

    @server.tool(annotations=READ)
    def list_pipeline_runs(
        repo: str, branch: str | None = None, status: Literal["passed", "failed", "running"] | None = None
    ) -> list[dict[str, Any]]:
        """List the pipeline runs of a repository, newest first, with branch, status, failed job and minutes."""
        runs = _find_repo(file.load(), repo)["runs"]
        if repo == SLOW_REPO:
            file.fail_first_calls("list_pipeline_runs", UNAVAILABLE_CALLS)
        return [
            {"run_id": key, **run}
            for key, run in runs.items()
            if branch in (None, run["branch"]) and status in (None, run["status"])
        ]

    @server.tool(annotations=EFFECT)
    def retry_pipeline_run(repo: str, run_id: str) -> str:
        """Start a failed pipeline run again."""
        with file.change() as state:
            run = find_record(_find_repo(state, repo)["runs"], run_id, "run")
            if run["status"] != "failed":
                raise ToolError(f"{run_id} is {run['status']}: only failed runs can be started again")
            run["status"] = "running"
        return f"{run_id} is running"


def _find_repo(state: State, repo: str) -> dict[str, Any]:
    record: dict[str, Any] = find_record(state["code"]["repositories"], repo, "repository")
    return record


def _find_issues(state: State, repo: str) -> dict[str, Any]:
    issues: dict[str, Any] = _find_repo(state, repo)["issues"]
    return issues


def _matches(issue: dict[str, Any], where: IssueQuery) -> bool:
    text = f"{issue['title']} {issue['body']}".casefold()
    return (
        where.state in (None, issue["state"])
        and (where.label is None or where.label in issue["labels"].split())
        and where.assignee in (None, issue["assignee"])
        and all(word in text for word in (where.text or "").casefold().split())
    )
