"""Which processes see the files of a job."""

from pathlib import Path

import pytest

from agent.storage.objects.folder import FolderObjectStore
from agent.storage.objects.s3 import S3ObjectStore
from gateway.features.documents.engine.ingest.file_locations import describe_folder, describe_objects, is_visible


def test_a_folder_is_seen_below_the_roots_as_long_as_it_is_the_same(tmp_path: Path) -> None:
    docs = tmp_path / "roots" / "docs"
    docs.mkdir(parents=True)
    (docs / "a.md").write_text("a")
    nowhere = FolderObjectStore(tmp_path / "not made yet")
    place = describe_folder(docs)
    assert describe_folder(docs / "a.md") == place
    assert is_visible(place, nowhere, [tmp_path / "roots"])
    assert is_visible(place, nowhere, [tmp_path / "not there", docs])
    assert not is_visible(place, nowhere, [tmp_path / "roots" / "other"])
    assert not is_visible(place, nowhere, [])
    docs.rename(tmp_path / "roots" / "moved")
    assert not is_visible(place, nowhere, [tmp_path / "roots"])
    docs.mkdir()
    assert not is_visible(place, nowhere, [tmp_path / "roots"]), "it is another folder of the same name"
    with pytest.raises(OSError, match="No such file"):
        describe_folder(tmp_path / "nothing")


def test_a_store_of_objects_is_seen_by_those_that_use_it(tmp_path: Path) -> None:
    own, other = FolderObjectStore(tmp_path / "own"), FolderObjectStore(tmp_path / "other")
    own.check()
    assert is_visible(describe_objects(own), own, [])
    assert not is_visible(describe_objects(own), other, [])
    bucket = S3ObjectStore("bucket", "a", region="us-east-1")
    assert describe_objects(bucket) == "s3://bucket/a"
    assert is_visible("s3://bucket/a", bucket, [])
    assert not is_visible("s3://bucket/a", S3ObjectStore("bucket", "b", region="us-east-1"), [])
    assert not is_visible("s3://bucket/a", own, [tmp_path])
