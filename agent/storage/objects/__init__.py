"""Files by name, in a folder or in an S3-compatible store: what several machines must see of what users upload."""

from agent.storage.objects.port import ObjectInfo, ObjectStore, validate_object_name

__all__ = ["ObjectInfo", "ObjectStore", "validate_object_name"]
