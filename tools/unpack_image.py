#!/usr/bin/env python3
"""Unpacks a container image (an OCI archive) into a folder and says how it is to be run, one fact a line:

  user 10001:10001
  folder /data
  env NAME=VALUE          any number
  word /usr/bin/chimere   entry point and command, word by word

usage: unpack_image.py IMAGE.oci.tar FOLDER
"""

import json
import pathlib
import sys
import tarfile
import tempfile


def main():
    image, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(image) as archive:
            archive.extractall(work)

        def blob(descriptor):
            return pathlib.Path(work) / "blobs" / descriptor["digest"].replace(":", "/")

        index = json.loads((pathlib.Path(work) / "index.json").read_text())
        manifest = json.loads(blob(index["manifests"][0]).read_text())
        config = json.loads(blob(manifest["config"]).read_text())["config"]
        for layer in manifest["layers"]:
            with tarfile.open(blob(layer)) as archive:
                archive.extractall(folder, numeric_owner=True)
    print("user", config["User"])
    print("folder", config["WorkingDir"])
    for setting in config.get("Env", []):
        print("env", setting)
    for word in config["Entrypoint"] + config["Cmd"]:
        print("word", word)


if __name__ == "__main__":
    main()
