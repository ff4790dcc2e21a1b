"""Rebuild the shipped checkpoints from a data folder: python -m recipes.checkpoints --help

Each checkpoint is made in the stages of its file in recipes/stages. A stopped run continues where it was, also within a
stage. With --minutes it stops after that time.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from attention_atlas.model.program import CommandLine, refuse_existing, run_program
from recipes import parts
from recipes.recipe import CHECKPOINT, Stage, all_recipes, commands, in_order

SHIPPED = ("de-en", "en-de-fr", "gru-de-en")
DONE = "done"
UNFINISHED = 3  # the exit code when the minutes are over
WIDTH = 116  # of a command's lines


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.join:
        parts.join(args.join, args.out or Path("checkpoints"))
        return
    for name in args.names if args.out and not args.commands else ():
        refuse_existing(args.out / name, args.replace)
    ends = time.monotonic() + 60 * args.minutes if args.minutes else None
    for name in args.names:
        stages = in_order(name)
        if args.commands:
            print("\n".join(line for stage in stages for line in written(stage, args.data, args.work)))
            continue
        for number, stage in enumerate(stages, start=1):
            print(f"{name}: stage {number} of {len(stages)}, {stage.path}", file=sys.stderr, flush=True)
            if not finish(stage, args, ends):
                print(f"{stage.path} is not done: start again to go on", file=sys.stderr)
                sys.exit(UNFINISHED)
        if args.out:
            shutil.copytree(args.work / stages[-1].path / CHECKPOINT, args.out / name, dirs_exist_ok=True)
    if args.parts and args.out:
        parts.split(args.out, args.parts)


def finish(stage: Stage, args: argparse.Namespace, ends: float | None) -> bool:
    """Run the remaining programs of a stage. Returns False if the time is over before; raises ValueError if a program
    fails."""
    folder = args.work / stage.path
    if (folder / DONE).exists():
        return True
    folder.mkdir(parents=True, exist_ok=True)
    for command in commands(stage, args.data, args.work):
        left = None if ends is None else ends - time.monotonic()
        if (left is not None and left <= 0) or not run(command, folder, args, left):
            return False
    (folder / DONE).touch()
    return True


def run(command: list[str], folder: Path, args: argparse.Namespace, seconds: float | None) -> bool:
    """Run or resume one program. Returns False if it was stopped because the time is over."""
    files = {}
    while len(command) > 2 and command[-2] in ("<", ">"):
        *command, sign, path = command
        files[sign] = path
    if ">" in files and Path(files[">"]).exists():
        return True
    training = command[0] == "recipes.train"
    if training:
        command = [
            *command,
            *(["--resume", "--replace"] if (folder / "run" / "state.safetensors").exists() else []),
            *(["--device", args.device] if args.device else []),
        ]
    program = [sys.executable, "-m"]
    if training and args.processes > 1:
        program += ["torch.distributed.run", "--standalone", f"--nproc_per_node={args.processes}", "-m"]
    partial = Path(files[">"] + ".partial") if ">" in files else None
    with open(files.get("<", os.devnull)) as given, open(partial or os.devnull, "w") as taken:
        try:
            done = subprocess.run(
                [*program, *command],
                stdin=given,
                stdout=taken if partial else None,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:  # whatever it had saved is whole
            return False
    if done.returncode:
        raise ValueError(f"{command[0]} ended with code {done.returncode} in {folder}")
    if partial:
        partial.rename(files[">"])
    return True


def written(stage: Stage, data: Path, work: Path) -> list[str]:
    """Return a stage's commands for a shell, wrapped, as the cards show them."""
    shell_lines = []
    for command in commands(stage, data, work):
        module, *words = command
        lines = ["attention-atlas" if module == "attention_atlas" else f"python -m {module}"]
        for word in (word if word in ("<", ">") else shlex.quote(word) for word in words):
            if len(lines[-1]) + len(word) > WIDTH:
                lines[-1] += " \\"
                lines.append("   ")
            lines[-1] += " " + word
        shell_lines.append("\n".join(lines))
    return shell_lines


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m recipes.checkpoints", __doc__)
    add = parser.add_argument
    add("names", nargs="*", help=f"which: {', '.join(all_recipes())}; default: the shipped ones")
    add("--data", type=Path, default=Path("data"), help="folder with the corpora")
    add("--work", type=Path, default=Path("runs"), help="folder for what the stages leave")
    add("--out", type=Path, help="folder to copy the finished checkpoints into")
    add("--replace", action="store_true", help="write over checkpoints that are there")
    add("--parts", type=Path, help="also write the finished checkpoints there, in parts of 15 MiB")
    add("--join", type=Path, help="instead of anything else, put such parts together into --out")
    add("--minutes", type=float, help="stop after so many minutes; start again to go on")
    add("--device", help="cpu, cuda or mps")
    add("--processes", type=int, default=1, help="train with so many processes (torchrun)")
    add("--commands", action="store_true", help="print the commands instead of running them")
    args = parser.parse_args(argv)
    args.names = args.names or list(SHIPPED)
    return args


if __name__ == "__main__":
    run_program(main)
