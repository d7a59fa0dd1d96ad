"""Put a trained draft model where specdemo looks for it, with the checksums that are tested before every load.

python release.py --draft FOLDER --into ../../assets/models/smollm2-135m-instruct-draft
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path

FILES = ("config.json", "model.safetensors", "training.json")
LIMIT = 25_000_000
"""Bytes of the whole folder."""


def main() -> None:
    """Copy, sum up, refuse what is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True)
    args = parser.parse_args()
    size = sum((args.draft / name).stat().st_size for name in FILES)
    if size > LIMIT:
        raise SystemExit(f"{size / 1e6:.1f} MB are too much; the limit is {LIMIT / 1e6:.0f} MB. Train a thinner shape.")
    args.into.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(args.draft / name, args.into / name)
    digests = {name: hashlib.sha256((args.into / name).read_bytes()).hexdigest() for name in FILES}
    (args.into / "manifest.json").write_text(json.dumps({"sha256": digests}, indent=1) + "\n", encoding="utf-8")
    print(f"{size / 1e6:.1f} MB written to {args.into}")


if __name__ == "__main__":
    main()
