"""Writes OCI image archives from folders: enough of the image layout for containerd, and reproducible."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path


def _clean(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _layer(root: Path) -> bytes:
    """An uncompressed layer: unpacking it in a guest costs less than inflating it would."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, arcname=str(path.relative_to(root)), recursive=False, filter=_clean)
    return buffer.getvalue()


def write_archive(root: Path, archive: Path, name: str, command: Sequence[str], env: Sequence[str] = ()) -> None:
    """Writes folder `root` as the image `name` (with its tag) to `archive`, atomically."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, media: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{media}", "digest": f"sha256:{digest}", "size": len(content)}

    layer = blob(_layer(root), "layer.v1.tar")
    config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": list(command), "Env": list(env)},
              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(json.dumps(config).encode(), "config.v1+json"), "layers": [layer]}
    reference = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    reference["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [reference]}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode(),
             **{f"blobs/sha256/{digest}": content for digest, content in blobs.items()}}
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_name(f".{archive.name}.{os.getpid()}")
    with tarfile.open(unfinished, "w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    unfinished.rename(archive)
