"""The recipes of the shipped checkpoints: one declarative file for each, and the commands that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attention_atlas.model.files import read_json
from attention_atlas.model.training import options
from recipes.train import MIXED

RECIPES = Path(__file__).with_name("stages")
KINDS = ("train", "translate", "judge")
CHECKPOINT = "checkpoint"  # what a stage that trains leaves in its folder
SOURCE, TARGET = "source.txt", "target.txt"  # what a stage that translates leaves there
MARKS = "marks.txt"  # what a stage that judges leaves there


@dataclass(frozen=True)
class Stage:
    """One step: of kind train (options of recipes.train by name), translate (what is translated, and with what)
    or judge (which corpora, and by what)."""

    recipe: str
    name: str
    kind: str
    settings: dict

    @property
    def path(self) -> str:
        """The name by which other stages refer to it, such as "de-en/second"."""
        return f"{self.recipe}/{self.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the stages it depends on."""
        names = ("init", "with", "synthetic")
        return (*(self.settings[name] for name in names if name in self.settings), *self.settings.get("without", ()))


def read_recipe(name: str, folder: Path = RECIPES) -> tuple[Stage, ...]:
    """Return the stages of a recipe. Raises ValueError for an unknown recipe, kind or setting."""
    path = folder / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"there is no recipe {name!r}: {', '.join(all_recipes(folder))}")
    known = {
        "train": {
            *options.TRAIN,
            *MIXED.added,
            *options.MODEL,
            "init",
            "directions",
            "tokenizer_directions",
            "corpora",
            "repeat",
            "bf16",
            "synthetic",
            "without",
            "probes",
            "updates_before",
            "family",
            "no_attention",
        },
        "translate": {"with", "direction", "captions", "everyday_of"},
        "judge": {"with", "direction", "corpora", "drop"},
    }
    stages = []
    for values in read_json(path)["stages"]:
        kind = next((kind for kind in KINDS if kind in values), None)
        unknown = sorted(set(values[kind]) - known[kind]) if kind else sorted(values)
        if kind is None or unknown:
            raise ValueError(f"{path}: stage {values.get('name')!r} has {', '.join(unknown)}, which is not known")
        stages.append(Stage(name, values["name"], kind, values[kind]))
    return tuple(stages)


def all_recipes(folder: Path = RECIPES) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json") if not path.stem.startswith("probes"))


def in_order(name: str, folder: Path = RECIPES) -> list[Stage]:
    """Return the stages that a recipe's last one depends on, in order. Raises ValueError for a cycle or a missing
    stage."""
    ordered: dict[str, Stage] = {}

    def add(path: str, above: tuple[str, ...]) -> None:
        if path in above:
            raise ValueError(f"stages need each other in a circle: {' -> '.join((*above, path))}")
        if path in ordered:
            return
        recipe = path.split("/")[0]
        stage = next((stage for stage in read_recipe(recipe, folder) if stage.path == path), None)
        if stage is None:
            raise ValueError(f"the recipe {recipe} has no stage {path!r}")
        for needed in stage.needs:
            add(needed, (*above, path))
        ordered[path] = stage

    add(read_recipe(name, folder)[-1].path, ())
    return list(ordered.values())


def commands(stage: Stage, data: Path, work: Path) -> list[list[str]]:
    """Return the commands of a stage, each as arguments of `python -m`. ">" redirects the output to the following file,
    "<" the input from it."""
    return {"train": _train, "translate": _translate, "judge": _judge}[stage.kind](stage, data, work)


def _train(stage: Stage, data: Path, work: Path) -> list[list[str]]:
    folder, settings = work / stage.path, dict(stage.settings)
    command = [
        "recipes.train",
        "--run-dir",
        str(folder / "run"),
        "--out",
        str(folder / CHECKPOINT),
        "--data",
        str(data),
    ]
    if "init" in settings:
        command += ["--init", str(work / settings.pop("init") / CHECKPOINT)]
    if "synthetic" in settings:
        made = work / settings.pop("synthetic")
        command += ["--synthetic", settings["directions"][0], str(made / SOURCE), str(made / TARGET)]
    if "without" in settings:
        command += ["--without", *(str(work / judged / MARKS) for judged in settings.pop("without"))]
    if "probes" in settings:
        command += ["--probes", str(RECIPES.relative_to(RECIPES.parents[1]) / settings.pop("probes"))]
    for corpus, times in settings.pop("repeat", {}).items():
        command += ["--repeat", corpus, str(times)]
    for name, value in settings.items():
        command.append("--" + name.replace("_", "-"))
        command += [] if value is True else [*map(str, value)] if isinstance(value, list) else [str(value)]
    return [command]


def _translate(stage: Stage, data: Path, work: Path) -> list[list[str]]:
    # Back-translation: the real sentences become the target side, what the model wrote the source side.
    folder, settings = work / stage.path, stage.settings
    read, _ = settings["direction"].split("-")
    collect = [
        "recipes.collect",
        "--data",
        str(data),
        "--language",
        read,
        "--captions",
        str(settings["captions"]),
    ]
    if "everyday_of" in settings:
        collect += ["--everyday-of", settings["everyday_of"], "--unlike", settings["direction"].split("-")[1]]
    translate = [
        "attention_atlas",
        "translate",
        "--checkpoint",
        str(work / settings["with"] / CHECKPOINT),
        "--direction",
        settings["direction"],
        "--batch-size",
        "128",
    ]
    return [[*collect, ">", str(folder / TARGET)], [*translate, "<", str(folder / TARGET), ">", str(folder / SOURCE)]]


def _judge(stage: Stage, data: Path, work: Path) -> list[list[str]]:
    settings = stage.settings
    command = ["recipes.judge", "--data", str(data), "--corpora", *settings["corpora"]]
    command += ["--checkpoint", str(work / settings["with"] / CHECKPOINT), "--direction", settings["direction"]]
    command += ["--drop", str(settings["drop"])] if "drop" in settings else []
    return [[*command, ">", str(work / stage.path / MARKS)]]
