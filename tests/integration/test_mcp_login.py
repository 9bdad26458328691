"""Foreign MCP servers that want to know who we are: a real authorization server, named credentials, refusals."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from agent.core.errors import ConfigError, ToolError
from agent.core.settings import Settings
from agent.tools import ToolContext
from gateway.cli import mcp_servers, mcp_servers_login
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpServer
from mcp_tools.client.oauth_flow import log_in
from mcp_tools.client.oauth_tokens import LoginFile
from tests.support.mcp_client import hub_with, until
from tests.support.oauth_server import Authority, guarded

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")


def entry(url: str, **options: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({"url": url, "timeout": 20, **options})


async def agreeing(url: str) -> None:
    """A browser whose person agrees: it goes where it is sent, and comes back."""
    async with httpx.AsyncClient(follow_redirects=True) as browser:
        assert (await browser.get(url)).status_code == 200


async def logged_in(folder: Path, config: McpServerConfig) -> None:
    LoginFile(folder, "srv").write(await log_in("srv", config, agreeing))


async def echo(server: McpServer) -> str:
    return (await server._registration._registry.get("srv__echo").call({"text": "x"}, CONTEXT)).text


@pytest.mark.row("Scard-02")
async def test_after_a_login_the_tools_are_there_and_the_tokens_are_renewed(tmp_path: Path) -> None:
    authority = Authority(life_s=3600)
    async with guarded(authority) as url:
        config = entry(url, auth="oauth")
        async with hub_with(tmp_path, config) as server:
            await until(lambda: server.status == "down")
            assert server.reason == "no login is stored: run `stepgate mcp-servers login srv`"
            await logged_in(tmp_path, config)
            await until(lambda: server.status == "ready")
            assert await echo(server) == "echo: x"
            authority.good.clear()  # taken back at the server: only its 401 tells
            assert await echo(server) == "echo: x"
        authority.life_s = 1  # those that are issued from now on end at once
        authority.good.clear()
        async with hub_with(tmp_path, config) as again:
            await until(lambda: again.status == "ready")
            await asyncio.gather(*(echo(again) for _ in range(3)))
    assert authority.grants[:2] == ["authorization_code", "refresh_token"]
    assert set(authority.grants[2:]) == {"refresh_token"}, "a restart needs no person"
    kept = tmp_path / "logins" / "srv.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_two_processes_renew_one_login_one_after_the_other(tmp_path: Path) -> None:
    authority = Authority()
    async with guarded(authority) as url:
        config = entry(url, auth="oauth")
        await logged_in(tmp_path, config)
        async with hub_with(tmp_path, config) as one, hub_with(tmp_path, config) as other:
            await until(lambda: one.status == other.status == "ready")
            authority.good.clear()
            assert set(await asyncio.gather(echo(one), echo(other))) == {"echo: x"}
    assert authority.grants.count("refresh_token") == 1, "the refresh token is good for once"


async def test_a_login_that_ends_is_told_with_what_to_do(tmp_path: Path) -> None:
    authority = Authority()
    async with guarded(authority) as url:
        config = entry(url, auth="oauth")
        await logged_in(tmp_path, config)
        async with hub_with(tmp_path, config) as server:
            await until(lambda: server.status == "ready")
            authority.good.clear()
            authority.knows_tokens = False
            with pytest.raises(
                ToolError, match=r"rejects our credential with HTTP 401 \(who\?\): run `stepgate mcp-servers login srv`"
            ):
                await echo(server)
            authority.knows_tokens = True
            await logged_in(tmp_path, config)
            assert await echo(server) == "echo: x"


async def test_a_login_is_never_sent_to_another_server(tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    async with guarded(authority) as url, guarded(other) as elsewhere:
        await logged_in(tmp_path, entry(url, auth="oauth"))
        async with hub_with(tmp_path, entry(elsewhere, auth="oauth")) as server:
            await until(lambda: server.status == "down")
            assert "no login is stored" in server.reason
    assert not other.seen


async def test_a_login_with_a_client_that_was_registered_by_hand(tmp_path: Path) -> None:
    authority = Authority(registers=False, clients={"by-hand": "hush"})
    async with guarded(authority) as url:
        config = entry(url, auth={"CLIENT_ID": "by-hand", "CLIENT_SECRET": "hush"})
        await logged_in(tmp_path, config)
        authority.good.clear()
        async with hub_with(tmp_path, config) as server:
            await until(lambda: server.status == "ready")
    assert authority.grants == ["authorization_code", "refresh_token"]


async def test_what_goes_wrong_with_a_login_is_said(tmp_path: Path) -> None:
    authority = Authority(agrees=False)
    async with guarded(authority) as url:
        with pytest.raises(ConfigError, match="the authorization server rejected the login: she said no"):
            await log_in("srv", entry(url, auth="oauth"), agreeing)
        authority.agrees = True

        async def meddling(address: str) -> None:
            back = httpx.URL(address).params["redirect_uri"]
            async with httpx.AsyncClient() as stranger:
                for query in ("code=x", "code=x&state=y", ""):
                    assert (await stranger.get(f"{back}?{query}")).status_code == 404
            await agreeing(address)

        login = await log_in("srv", entry(url, auth="oauth"), meddling)
    assert login.resource == url
    assert login.access_token not in repr(login)


async def test_an_authorization_server_in_somebodys_network_is_not_asked(tmp_path: Path) -> None:
    authority = Authority()
    async with guarded(authority) as url:
        for address, told in (("http://10.0.0.1", "has no TLS"), ("https://10.0.0.1", "not a public address")):
            authority.url = address
            with pytest.raises(ConfigError, match=told):
                await log_in("srv", entry(url, auth="oauth"), agreeing)


async def test_a_login_server_of_ones_own_network_can_be_allowed(tmp_path: Path) -> None:
    authority = Authority()
    async with guarded(authority) as url:
        authority.resource = url.replace("127.0.0.1", "localhost")  # another host than the login server
        config = entry(authority.resource, auth="oauth")
        with pytest.raises(ConfigError, match="AGENT_FETCH_ALLOW_HOSTS"):
            await log_in("srv", config, agreeing)
        assert (await log_in("srv", config, agreeing, ["127.0.0.1"])).access_token in authority.good


async def test_a_named_credential_is_read_anew_and_a_refusal_is_told(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"

    def keep(token: str) -> None:
        path.write_text(json.dumps({"notes": {"type": "bearer", "token": token}}))
        path.chmod(0o600)

    keep("old")
    authority = Authority(good={"old": 2**40})
    async with guarded(authority) as url, hub_with(tmp_path, entry(url, credential="notes"), path) as server:
        await until(lambda: server.status == "ready")
        authority.good = {"new": 2**40}
        with pytest.raises(
            ToolError,
            match=r"rejects our credential with HTTP 401 \(who\?\): check `headers` or `credential` of its entry",
        ):
            await echo(server)
        keep("new")
        assert await echo(server) == "echo: x"
        path.unlink()
        with pytest.raises(ToolError, match="there is no credential 'notes'"):
            await echo(server)


async def test_a_server_that_wants_a_login_says_so_where_none_is_configured(tmp_path: Path) -> None:
    async with guarded(Authority()) as url, hub_with(tmp_path, entry(url)) as server:
        await until(lambda: server.status == "down")
    assert "it rejects our credential with HTTP 401" in server.reason
    assert 'set "auth": "oauth" and run `stepgate mcp-servers login srv`' in server.reason


async def test_the_command_line_logs_in_and_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path)
    for module in (mcp_servers, mcp_servers_login):
        monkeypatch.setattr(module, "load_command_settings", lambda: settings)
    loop = asyncio.get_running_loop()
    browsers: list[Any] = []

    def browse(url: str) -> bool:
        browsers.append(asyncio.run_coroutine_threadsafe(agreeing(url), loop))
        return True

    monkeypatch.setattr("webbrowser.open", browse)

    async def invoke(*words: str) -> str:
        result = await asyncio.to_thread(CliRunner().invoke, mcp_servers.app, words)
        return result.output if result.exit_code == 0 else f"{result.exception}"

    async with guarded(Authority()) as url:
        assert "Log in: stepgate mcp-servers login srv" in await invoke("add", "srv", url, "--oauth")
        assert "run `stepgate mcp-servers login srv`" in await invoke("test", "srv")
        told = await invoke("login", "srv")
        assert "srv: logged in" in told
        assert "/agree?" in told
        assert "srv: ready, 1 tool" in await invoke("test", "srv")
        assert "srv: logged out" in await invoke("logout", "srv")
        assert "nobody is logged in" in await invoke("logout", "srv")
        await invoke("add", "plain", url)
        assert '"auth": "oauth"' in await invoke("login", "plain")
    assert len(browsers) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"auth": "user"}, "a caller's token is never forwarded"),
        ({"auth": "sk-secret-token"}, "auth must be static or oauth"),
        ({"auth": "oauth", "url": "http://notes.test/mcp"}, "must start with https://"),
        ({"credential": "notes", "url": "http://notes.test/mcp"}, "must start with https://"),
        ({"auth": "oauth", "credential": "notes"}, "cannot be combined"),
        ({"auth": "oauth", "headers": {"authorization": "Bearer x"}}, "cannot be combined"),
        ({"auth": "oauth", "url": "", "command": "x"}, "pass keys to a `command` by `env`"),
    ],
)
def test_an_entry_that_would_not_keep_its_secret_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        McpServerConfig.model_validate({"url": "https://notes.test/mcp", **options})
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [{}, {"type": "sse"}])
async def test_a_login_at_an_older_server_gives_its_tools(tmp_path: Path, kind: dict[str, str]) -> None:
    async with guarded(Authority(), is_sse=True) as url:
        config = entry(url, auth="oauth", **kind)
        await logged_in(tmp_path, config)
        async with hub_with(tmp_path, config) as server:
            await until(lambda: server.status == "ready")
            assert await echo(server) == "echo: x"
