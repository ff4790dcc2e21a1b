"""Keep what people typed out of the log: errors are logged with their type and place, but without their message."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path


def describe(error: BaseException) -> str:
    """Return an error's traceback and type without its message."""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__} (message left out)"


def keep_text_out_of_tracebacks() -> None:
    """Make traceback.print_exc() omit messages: Gradio prints errors with it, and some messages quote the request."""
    traceback.print_exc = _print_exc


def keep_text_out_of_records() -> None:
    """Replace the messages of the mcp package's log records by the module's name: some quote malformed requests."""
    make_record = logging.getLogRecordFactory()

    def make_discreet(*args: object, **named: object) -> logging.LogRecord:
        record = make_record(*args, **named)
        if "mcp" in Path(record.pathname).parts:
            record.msg, record.args, record.exc_info = f"mcp, {record.module}: (message left out)", (), None
        return record

    logging.setLogRecordFactory(make_discreet)


def _print_exc(*_: object, **__: object) -> None:
    error = sys.exc_info()[1]
    if error is not None:
        print(describe(error), file=sys.stderr, flush=True)
