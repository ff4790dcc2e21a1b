"""Check that attention_atlas/app.py and viz/ use Gradio only through its documented interface.

There are two exceptions. viz/server/discreet_log.py replaces traceback.print_exc, with which Gradio prints errors
that quote what was typed. viz/shell.py hands `demo.server`, uvicorn's server, to viz/server/guard.py, which closes
connections on which no request arrives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import gradio as gr
import pytest

from tests import ROOT

SOURCES = sorted([ROOT / "attention_atlas" / "app.py", *ROOT.glob("viz/**/*.py")])
NAMES = {
    "Blocks",
    "Button",
    "Column",
    "Dropdown",
    "HTML",
    "I18n",
    "Request",
    "Row",
    "Tab",
    "Tabs",
    "Textbox",
    "api",
    "on",
    "themes",
}
OF_DEMO = {"queue", "launch", "close"}
OF_APP = {"state"}  # the Starlette application that launch() returns
METHODS = {"__init__", "preprocess", "postprocess", "api_info"}  # that a custom component may define
INSIDE = {
    "_queue", "blocks_config", "default_config", "event_ids_to_events", "fns", "get_blocks", "get_block_name",
    "get_config", "iterators", "mcp_server_obj", "pending_messages_per_session", "process_api", "server_app",
    "session_data", "set_event_trigger", "space_id", "state_holder",
}  # fmt: skip
PACKAGE = re.compile(r"gradio([./]|$)|.*site-packages")
EXCEPTIONS = {
    "viz/shell.py: demo.server",
    "viz/server/discreet_log.py: traceback.print_exc is replaced",
}


def violations(source: str) -> Iterator[str]:
    """Yield the undocumented uses of Gradio in a module."""
    tree = ast.parse(source)
    modules = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.startswith(("gradio.", "gradio_client")):
                        yield f"import {alias.name}"
                    elif alias.name == "gradio" and alias.asname != "gr":
                        yield "import gradio under another name than gr"
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in ("gradio", "gradio_client"):
                yield f"from {module} import"
            case ast.Attribute(value=ast.Name("gr"), attr=name) if name not in NAMES:
                yield f"gr.{name}"
            case ast.Attribute(value=owner, attr=name) if name in INSIDE or (
                name not in {"demo": OF_DEMO, "app": OF_APP}.get(_last_name(owner), {name})
            ):
                yield f"{_last_name(owner)}.{name}"
            case ast.ClassDef(bases=bases, body=body) if any(map(_is_of_gradio, bases)):
                defined = {method.name for method in body if isinstance(method, ast.FunctionDef)}
                yield from (f"{node.name} defines {name}" for name in sorted(defined - METHODS))
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(module), attr=name)]) if module in modules:
                yield f"{module}.{name} is replaced"
            case ast.Call(func=ast.Name("setattr" | "getattr" as name), args=[ast.Name("gr" | "demo" as owner), *_]):
                yield f"{name}({owner}, ..)"
            case ast.Call(args=arguments):
                for argument in arguments:
                    text = argument.value if isinstance(argument, ast.Constant) else None
                    if isinstance(text, str) and PACKAGE.match(text):
                        yield f"Gradio's files: {text}"


def _last_name(node: ast.expr) -> str:
    """Return the last name of an object: `demo` for demo, page.demo and pages["demo"]."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(str(name))):
            return name
    return ""


def _is_of_gradio(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and _last_name(node.value) == "gr"


def test_only_documented_names_of_gradio_are_used() -> None:
    uses = {
        f"{path.relative_to(ROOT).as_posix()}: {use}"
        for path in SOURCES
        for use in violations(path.read_text(encoding="utf-8"))
    }
    assert len(SOURCES) > 60 and uses == EXCEPTIONS


def test_every_option_is_documented() -> None:
    """Gradio makes its documentation from docstrings: each keyword of a call must be in the docstring of the
    function."""
    documented = {"launch": gr.Blocks.launch, "queue": gr.Blocks.queue}
    checked, unknown = 0, []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner, name = _last_name(node.func.value), node.func.attr
            called = getattr(gr, name) if owner == "gr" else documented.get(name) if owner == "demo" else None
            if called is None:
                continue
            text = (called.__init__ if isinstance(called, type) else called).__doc__ or ""
            options = [keyword.arg for keyword in node.keywords if keyword.arg]
            checked += len(options)
            unknown += [
                f"{path}: {name}({option}=)" for option in options if f"{option}:" not in text and called is not gr.I18n
            ]
    assert checked > 40 and not unknown


@pytest.mark.parametrize(
    ("source", "violation"),
    [
        ("from gradio.queueing import Queue", "from gradio.queueing import"),
        ("import gradio.blocks", "import gradio.blocks"),
        ("import gradio", "import gradio under another name than gr"),
        ("gr.State()", "gr.State"),
        ("open(gr.__file__)", "gr.__file__"),
        ("page.demo._queue.max_size = 3", "demo._queue"),
        ("demo.config", "demo.config"),
        ("scope['app'].get_blocks()", "app.get_blocks"),
        ("x.state_holder", "x.state_holder"),
        ("importlib.util.find_spec('gradio')", "Gradio's files: gradio"),
        ("Path('gradio/templates')", "Gradio's files: gradio/templates"),
        ("import gradio as gr\ngr.HTML = Own", "gr.HTML is replaced"),
        ("class Own(gr.HTML):\n  def get_config(self): ...", "Own defines get_config"),
        ("setattr(demo, 'queue', None)", "setattr(demo, ..)"),
    ],
)
def test_undocumented_uses_are_detected(source, violation) -> None:
    assert violation in set(violations(source))
