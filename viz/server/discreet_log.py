"""Errors in the log without what people typed: an exception's message may quote it, its type and place cannot."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path


def describe(error: BaseException) -> str:
    """The error's type and where it was raised, without its message."""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__} (message left out)"


def keep_text_out_of_tracebacks() -> None:
    """Make traceback.print_exc() leave messages out: Gradio prints errors with it, and some quote the call."""
    traceback.print_exc = _print_exc


def keep_text_out_of_records() -> None:
    """Make log records of the mcp package say only where they come from: its warnings quote malformed calls."""
    make = logging.getLogRecordFactory()

    def make_discreet(*args: object, **named: object) -> logging.LogRecord:
        record = make(*args, **named)
        if "mcp" in Path(record.pathname).parts:
            record.msg, record.args, record.exc_info = f"mcp, {record.module}: (message left out)", (), None
        return record

    logging.setLogRecordFactory(make_discreet)


def _print_exc(*_: object, **__: object) -> None:
    error = sys.exc_info()[1]
    if error is not None:
        print(describe(error), file=sys.stderr, flush=True)
