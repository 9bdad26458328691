"""How a file of Google Drive may be named."""

import pytest

from gateway.features.documents.engine.ingest.connectors.drive_address import Reference, parse
from gateway.features.documents.engine.ingest.errors import ConnectorNotFoundError

ID = "1AbC_dEfGhIjKlMnOpQrStUvWxYz-0123456789"


@pytest.mark.parametrize(
    "identifier",
    [
        ID,
        f"  {ID}\n",
        f"gdrive:{ID}",
        f"https://drive.google.com/file/d/{ID}/view?usp=sharing",
        f"https://drive.google.com/file/d/{ID}",
        f"https://drive.google.com/file/u/1/d/{ID}/edit",
        f"https://drive.google.com/drive/folders/{ID}",
        f"https://drive.google.com/drive/u/0/folders/{ID}?usp=drive_link",
        f"https://drive.google.com/drive/mobile/folders/{ID}#top",
        f"https://drive.google.com/open?id={ID}&authuser=0",
        f"https://drive.google.com/uc?export=download&id={ID}",
        f"https://docs.google.com/document/d/{ID}/edit#heading=h.1",
        f"https://docs.google.com/spreadsheets/d/{ID}/edit?gid=0",
        f"https://docs.google.com/presentation/d/{ID}",
        f"https://docs.google.com/a/example.org/document/d/{ID}/edit",
        f"https://DRIVE.google.com/file/d/{ID}/view",
    ],
)
def test_ids_and_the_addresses_of_links_name_the_same(identifier: str) -> None:
    assert parse(identifier) == Reference(ID)


def test_a_resource_key_is_kept() -> None:
    assert parse(f"https://drive.google.com/file/d/{ID}/view?resourcekey=0-aB_c") == Reference(ID, "0-aB_c")
    assert parse(f"https://drive.google.com/file/d/{ID}/view?resourcekey=a,b/c%0d%0a") == Reference(ID)


@pytest.mark.parametrize(
    "identifier",
    [
        "",
        "root",
        "reports 2026",
        "../../etc/passwd",
        f"{ID}' or '1'='1",
        "x" * 201,
        f"http://drive.google.com/file/d/{ID}/view",
        f"https://drive.google.com.evil.example/file/d/{ID}/view",
        f"https://evil.example/file/d/{ID}/view",
        f"https://drive.google.com@evil.example/file/d/{ID}/view",
        f"https://docs.google.com/document/d/e/2PACX-{ID}/pub",
        "https://drive.google.com/drive/my-drive",
        "https://drive.google.com/open?id=a%2Fb%2Fc%2Fd%2Fe%2Ff",
        "https://[::1/file/d/",
        "file:///etc/passwd",
    ],
)
def test_what_names_nothing_in_drive_is_refused(identifier: str) -> None:
    with pytest.raises(ConnectorNotFoundError, match="give the id of a file or folder"):
        parse(identifier)
