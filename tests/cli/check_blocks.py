"""check_blocks.py BUILD SOURCE low|whole: every block of code in the documents is what it says it is.

  sh       runs, block by block, in one empty folder per document, and succeeds
  console  is run by test_docs.sh, which compares the output as well
  c        the blocks of a document, one after the other, are a source file that compiles without a warning
  json     is one JSON value; jsonl is one per line
  python   parses; `make check-torch` has tests of what it shows
  text     is for reading: pictures, and commands whose output differs from run to run; these run, nobody compares

Blocks without a kind are refused, and so are commands that are only indented, where nothing would run them. What cannot
run here stands in ELSEWHERE with the test or gate that covers it. "low": plans are made with low effort, whole minutes
faster, where a command does not say how; "whole": as printed.
"""
import ast
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

# First line of a block -> where it is covered.
ELSEWHERE = {
    "mpirun -n 4 tidemark train lenet --batch 64 --micro 8 --threads 1 --steps 20":
        "cli.test_ranks starts smaller ones, where Open MPI is installed",
    "mpirun -n 3 tidemark train lenet --batch 64 --micro 8 --threads 1 --budget 60% --lenders 1 --peer-budget 64MiB":
        "cli.test_lent starts smaller ones",
    "mpirun -n 2 --host first,second tidemark train lenet --batch 64 --micro 8 --threads 1":
        "net.test_namespaces runs it on two namespaces",
    "tidemark train lenet --batch 64 --micro 8 --threads 1 --supervise 4 --checkpoint run.safetensors --every 100":
        "cli.test_supervise kills ranks of smaller ones",
    "srun -n 2 --mpi=pmix tidemark train lenet --batch 64 --micro 8 --threads 1": "needs a cluster with Slurm",
    "make demo": "cli.test_tools trains the same three ways, with fewer steps",
    "make install PREFIX=/usr/local": "install.test_install installs into a folder of its own",
    "cmake --preset fuzz && cmake --build build/fuzz": "gate fuzz",
    "tidemark compare resnet50 --batch 64 --machine v100-16gb-pcie --policies liveness,dtr,autoswap,hybrid \\":
        "a minute of planning; cli.test_compare compares on a smaller model",
    "mkdir graphs && build/release/bench_plan_graphs --all --seeds 1-16 --ops 50,100 --write graphs":
        "an hour; plan.test_promises plans the same graphs, smaller ones",
    "LD_PRELOAD=/usr/local/lib/libtidemark-preload.so TIDEMARK_PRELOAD_STATS=- python train.py":
        "pool.test_preload puts it in front of real programs, the tests of PyTorch in front of a training",
    "make bench": "minutes; figures only, and bench programs are built by every build",
    "tidemark devices --measure -o here.json": "wants an idle machine; cli.test_devices measures for a moment",
}
# The command in front of the real one for "low".
LOW = """#!/bin/bash
case "$1 $*" in
*--effort*) ;;
"plan "* | "train "* | "compare "* | "report "*" --budget "*) set -- "$@" --effort low ;;
esac
exec '{command}' "$@"
"""
KINDS = {"sh", "console", "c", "json", "jsonl", "python", "text"}
COMMAND = re.compile(r"^\s*(\$ |(make|tidemark|cmake|cc|git|sudo|apt|pip|python3?|mkdir|cd) )")


def blocks_of(path):
    """(line, kind, text) of every fenced block; kind "indented" for commands that are only indented."""
    kind, lines, start = None, [], 0
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("```"):
                if kind is None:
                    kind, lines, start = line[3:].strip(), [], number
                else:
                    yield start, kind, "".join(lines)
                    kind = None
            elif kind is not None:
                lines.append(line)
            elif line.startswith("    ") and COMMAND.match(line):
                yield number, "indented", line
    assert kind is None, f"{path}: a block does not end"


class Document:
    def __init__(self, path, commands, source):
        self.path, self.commands, self.source = path, commands, source
        self.name = os.path.relpath(path, source)
        self.c, self.failures, self.ran = "", [], 0

    def fail(self, line, text):
        self.failures.append(f"{self.name}:{line}: {text}")

    def shell(self, line, text, folder):
        first = text.strip().split("\n")[0].split("  #")[0].strip()
        if first in ELSEWHERE:
            return
        environment = {**os.environ, "PATH": self.commands + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8",
                       "TIDEMARK": self.source}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.ran += 1
        if done.returncode:
            self.fail(line, f"exit code {done.returncode}:\n{text}---\n{done.stdout[-1500:]}")

    def parse(self, line, text, by_line):
        try:
            for part in text.splitlines() if by_line else [text]:
                json.loads(part)
        except ValueError as error:
            self.fail(line, f"not JSON: {error}")

    def parse_python(self, line, text):
        try:
            ast.parse(text)
        except SyntaxError as error:
            self.fail(line, f"not Python: {error}")

    def check(self, line, kind, text, folder):
        if kind not in KINDS:
            self.fail(line, "a command that nothing runs" if kind == "indented" else f'a block of kind "{kind}"')
        if kind == "sh":
            self.shell(line, text, folder)
        if kind == "c":
            self.c += f'#line {line + 1} "{self.name}"\n{text}'
        if kind in ("json", "jsonl"):
            self.parse(line, text, kind == "jsonl")
        if kind == "python":
            self.parse_python(line, text)
        if kind == "text":
            for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE):
                self.shell(line, command, folder)

    def compile(self, folder):
        if not self.c:
            return
        path = os.path.join(folder, "blocks.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.c)
        done = subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                               "-Wno-unused-function", "-Wno-unused-parameter", "-I", os.path.join(self.source, "include"), "-I",
                               os.path.join(self.source, "src"), path], stderr=subprocess.PIPE, text=True)
        self.ran += 1
        if done.returncode:
            self.fail(0, "its C does not compile:\n" + done.stderr[:3000])

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            for line, kind, text in blocks_of(self.path):
                self.check(line, kind, text, folder)
            self.compile(folder)
        return self.failures


def write_low(build, folder):
    path = os.path.join(folder, "tidemark")
    with open(path, "w", encoding="utf-8") as f:
        f.write(LOW.format(command=os.path.join(build, "tidemark")))
    os.chmod(path, 0o755)


def check_all(wanted, commands, source):
    failures, ran = [], 0
    for path in wanted:
        document = Document(os.path.abspath(path), commands, source)
        failures += document.run()
        ran += document.ran
    print("\n".join(failures) if failures else f"{ran} blocks of {len(wanted)} documents ran or compiled")
    return bool(failures)


def main():
    build, source = (os.path.abspath(p) for p in sys.argv[1:3])
    wanted = sys.argv[4:] or sorted(glob.glob(os.path.join(source, "*.md")) +
                                    glob.glob(os.path.join(source, "docs", "**", "*.md"), recursive=True))
    with tempfile.TemporaryDirectory() as folder:
        write_low(build, folder)
        sys.exit(check_all(wanted, {"low": folder + ":" + build, "whole": build}[sys.argv[3]], source))


if __name__ == "__main__":
    main()
