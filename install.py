"""Make an environment and install into it, in words: python3 install.py .venv requirements.txt   (as the Makefile does)

Runs on any Python 3, so that one that is too old is told so. Nothing is left that a second try would stumble over: an
environment whose installation was cut short is made anew.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
HERE = Path(__file__).resolve().parent
CONSTRAINTS = HERE / "constraints.txt"
UNDER_WAY = ".installing"  # in an environment that is being filled
UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|Max retries|"
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    r"Connection (?:refused|reset|broken|timed out)|Failed to establish a new connection|SSLError"
)


def refusal(version):
    """Why this Python (major, minor, ..) will not do, in words; None if it will."""
    if tuple(version[:2]) >= OLDEST:
        return None
    return (
        "Attention Atlas needs Python {}.{} or newer, and {} is {}.{}. Nothing was changed. Name another one, for "
        "instance: make app PYTHON=python3.12".format(*OLDEST, sys.executable, *version[:2])
    )


def explanation(output, where):
    """What pip's output says went wrong, in words, with what to do."""
    if "No space left on device" in output:
        return f"There is no space left on the disk of {where}. Make room, then run the same command again."
    if UNREACHABLE.search(output):
        return (
            "The package index could not be reached. Check the network, or name another index in PIP_INDEX_URL; "
            "then run the same command again."
        )
    lacking = re.search(r"No matching distribution found for (\S+)", output)
    if lacking:
        return (
            f"The package index has no {lacking[1]} for Python {sys.version_info[0]}.{sys.version_info[1]} on this "
            "machine. Without a network it looks the same. Try again, or with another PYTHON=..."
        )
    return "pip failed. The end of what it said:\n" + "\n".join(output.splitlines()[-15:])


def python_of(environment):
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def works(environment):
    """Whether it holds a Python that will do, with pip, and was not left while it was being filled."""
    if (environment / UNDER_WAY).exists() or not python_of(environment).exists():
        return False
    program = f"import pip, sys; sys.exit(sys.version_info < {OLDEST})"
    try:
        found = subprocess.run([str(python_of(environment)), "-c", program], stderr=subprocess.DEVNULL)
    except OSError:  # no program of this machine
        return False
    return found.returncode == 0


def names(requirements):
    """The distributions that a file of requirements names, those of the files that it includes among them."""
    found = []
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += names(requirements.parent / line[3:].strip())
        elif re.match(r"\w", line):
            found.append(re.match(r"[\w.-]+", line)[0])
    return found


def missing(environment, requirements):
    """Which of them the environment lacks."""
    program = (
        "import sys; from importlib.metadata import distributions\n"
        "there = {(d.metadata['Name'] or '').lower().replace('_', '-') for d in distributions()}\n"
        "print(*[n for n in sys.argv[1:] if n.lower().replace('_', '-') not in there])"
    )
    found = subprocess.run(
        [str(python_of(environment)), "-c", program, *names(requirements)], stdout=subprocess.PIPE, text=True
    )
    return found.stdout.split()


def is_ours(environment):
    """Whether it is an environment, or one that was begun here."""
    return (environment / "pyvenv.cfg").exists() or (environment / UNDER_WAY).exists()


def make(environment):
    """An empty environment in this place. An environment that was there goes; anything else is left alone, in words."""
    if environment.exists() and not is_ours(environment) and any(environment.iterdir()):
        sys.exit(f"{environment} is no environment of Python's, and not empty: name another place, as in VENV=.venv")
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Making an environment of Python {version} in {environment} ...", flush=True)
    if environment.exists():
        shutil.rmtree(str(environment))
    environment.mkdir(parents=True)
    (environment / UNDER_WAY).touch()
    done = subprocess.run(
        [sys.executable, "-m", "venv", str(environment)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        shutil.rmtree(str(environment), ignore_errors=True)
        sys.exit(
            "This Python cannot make an environment (on Debian and Ubuntu: apt install python3-venv). It said:\n"
            + done.stdout.strip()
        )


def install(environment, requirements):
    """Everything that the file names, at the versions of constraints.txt, saying what is fetched."""
    print(
        f"Installing what {requirements.name} names: the first time some hundred megabytes, a minute or two ...",
        flush=True,
    )
    (environment / UNDER_WAY).touch()
    pip = subprocess.Popen(
        [
            str(python_of(environment)),
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "-r",
            str(requirements),
            "-c",
            str(CONSTRAINTS),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = []
    for line in pip.stdout:
        output.append(line)
        if re.match(r"\s*Downloading .* \(.*MB\)|Installing collected", line):
            print("  " + line.strip()[:100], flush=True)
    if pip.wait():
        text = "".join(output)
        if "Installing collected" not in text:  # it failed before it changed anything
            (environment / UNDER_WAY).unlink()
        sys.exit(explanation(text, environment))
    (environment / UNDER_WAY).unlink()


def main(arguments):
    environment, requirements = Path(arguments[0]), Path(arguments[1])
    ready = works(environment)
    if not ready:
        reason = refusal(sys.version_info)
        if reason:
            sys.exit(reason)
        if is_ours(environment):
            print(f"{environment} is damaged or half-installed: it is made anew.", flush=True)
        make(environment)
    if "--mend" in arguments:
        lacking = missing(environment, requirements)
        if not lacking:
            return
        if ready:
            print(f"{environment} lacks {', '.join(lacking)}.", flush=True)
    install(environment, requirements)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command begins again.")
