"""An app of its own process to which one does what goes wrong around it, and others who ask it meanwhile."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from bench.load import ROOT, SENTENCES, Caller, wait_until_served
from bench.ports import free_port

# Moves what the system says the time is, by as many seconds as stand in a file; what measures spans stays as it is.
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long *step;
__attribute__((constructor)) static void find(void) {
  int file = open(getenv("ATLAS_CLOCK"), O_RDONLY);
  step = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
}
int clock_gettime(clockid_t clock, struct timespec *found) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int code = real(clock, found);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) found->tv_sec += *step;
  return code;
}
int gettimeofday(struct timeval *restrict found, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  found->tv_sec = now.tv_sec, found->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return found ? *found = now.tv_sec : now.tv_sec;
}
"""


@dataclass
class App:
    """The app as a process of its own. clock: the file that its clock is set by."""

    port: int
    process: subprocess.Popen
    clock: Path | None = None

    def limit(self, kind: int, most: int) -> None:
        """Of this kind (resource.RLIMIT_..) it may have no more from now on; -1 lifts it."""
        resource.prlimit(self.process.pid, kind, (most, resource.RLIM_INFINITY))

    def set_clock(self, seconds: int) -> None:
        with open(self.clock, "r+b") as file:  # never shorter than what the app has mapped: that would end it
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


@contextlib.contextmanager
def running(options: list[str], folder: Path) -> Iterator[App]:
    """The app with these options, and with a clock that can be set where there is a C compiler. folder: for files."""
    port, clock, library = free_port(), folder / "clock", folder / "clock.so"
    environment = {**os.environ, "TMPDIR": str(folder)}
    with contextlib.suppress(FileNotFoundError):
        compiler = ["cc", "-shared", "-fPIC", "-O1", "-o", library, "-x", "c", "-", "-ldl"]
        subprocess.run(compiler, input=CLOCK.encode(), check=True, capture_output=True)
        clock.write_bytes(bytes(8))
        environment |= {"LD_PRELOAD": str(library), "ATLAS_CLOCK": str(clock)}
    command = [sys.executable, "app.py", "--host", "127.0.0.1", "--port", str(port), *options]
    with open(folder / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment)
    try:
        wait_until_served(port, process)
        yield App(port, process, clock if clock.exists() else None)
    finally:
        process.kill()
        process.wait(20)


@dataclass
class Others:
    """A program whose questions are sound. wrong: other words than without a fault; failed: no answer at all."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    failed: int = 0

    def figures(self) -> dict[str, float]:
        return {
            "answers to others": len(self.seconds),
            "slowest (s)": round(max(self.seconds, default=float("nan")), 2),
            "wrong": self.wrong,
            "failed": self.failed,
        }


@contextlib.contextmanager
def others(port: int, *, most: int = 2) -> Iterator[Others]:
    """So many of them, for as long as the context lasts; at least one answer is waited for."""
    found, ended = Others(), threading.Event()
    expected = Caller(port).call("translate", [SENTENCES[0]])["translation"]

    def ask() -> None:
        while not ended.is_set():
            began = time.monotonic()
            try:
                answer = Caller(port).call("translate", [SENTENCES[0]])
                found.seconds.append(time.monotonic() - began)
                found.failed += answer["status"] != "ok"
                found.wrong += answer.get("translation", expected) != expected
            except (ValueError, OSError, HTTPException):
                found.failed += 1
            ended.wait(0.05)

    with ThreadPoolExecutor(most) as pool:
        asked = [pool.submit(ask) for _ in range(most)]
        try:
            yield found
            ask_until = time.monotonic() + 60
            while not found.seconds and time.monotonic() < ask_until:
                time.sleep(0.05)
        finally:
            ended.set()
        for one in asked:
            one.result(120)
