"""Builds `attention_atlas` from what lies at the repository's top: model/, viz/, app.py and checkpoints/.

A Space and a checkout want those where they are. In somebody's environment a module called `model` would meet another
one, so the build lays them into one package and writes its name in front of their imports: what is installed are
attention_atlas.model, attention_atlas.viz and attention_atlas.app, ordinary modules of one name each.
"""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PACKAGE = "attention_atlas"
REWRITTEN = {".py", ".json"}  # words are found by their English text, and some of it names a program
IMPORT = re.compile(r"^(\s*(?:>>> |\.\.\. )?)from (model|viz)(\.[\w.]+)? import ", re.MULTILINE)
WHOLE = re.compile(r"^(\s*(?:>>> |\.\.\. )?)import (model|viz)\b(?!\.)", re.MULTILINE)
PROGRAM = re.compile(r"python -m (?=(?:model|viz)\.)")


def renamed(text: str) -> str:
    """The text of a module or a table with the package's name in front of its imports and of its programs."""
    text = IMPORT.sub(rf"\1from {PACKAGE}.\2\3 import ", text)
    text = WHOLE.sub(rf"\1from {PACKAGE} import \2", text)
    return PROGRAM.sub(f"python -m {PACKAGE}.", text)


class BuildPackage(build_py):
    def run(self) -> None:
        if self.editable_mode:
            raise SystemExit(
                "An editable install would put modules called model and viz into your environment. Work in the "
                "checkout itself (make app), or install it: pip install ."
            )
        super().run()
        built = Path(self.build_lib) / PACKAGE
        shutil.copy("app.py", built / "app.py")
        shutil.copytree("checkpoints", built / "checkpoints", dirs_exist_ok=True)
        for path in built.rglob("*"):
            inside = path.relative_to(built).parts[0]
            if path.suffix in REWRITTEN and inside != "checkpoints":
                text = path.read_text(encoding="utf-8")
                path.write_text(renamed(text), encoding="utf-8")


if __name__ == "__main__":
    parts = find_packages(include=["model", "model.*", "viz", "viz.*"])
    setup(
        packages=[PACKAGE, *(f"{PACKAGE}.{part}" for part in parts)],
        package_dir={PACKAGE: PACKAGE, f"{PACKAGE}.model": "model", f"{PACKAGE}.viz": "viz"},
        include_package_data=True,
        cmdclass={"build_py": BuildPackage},
    )
