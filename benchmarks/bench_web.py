"""The page against the verbs that do the same: first page, one level changed, and memory, as ratios.

    python benchmarks/bench_web.py [records]

`sfumato web` is started on a file of mixed records (`datasets.patients`) and asked by plain HTTP. CPU seconds
are those of the server and its desk together, from /proc; a verb is a process of its own, the least of three.

- First page (the three questions, from the start of the server): at most 2 × `sfumato inspect` of the file.
- One level changed at the desk and scored, the least of some: at most 1/10 of `sfumato risk -m k` at
  1,000,000 records. Once with the question of the verb (a step of rounding, k required), which is held to;
  and once with the requirements of a profile (mondrian; k, l, exact matches, linkage, regrouped records),
  which is shown.
- Memory of the desk: at most 1.3 × that of `sfumato risk -m k`.

What is compiled or rehearsed beside the desk is awaited before a change is timed.
Where all records would take more than a second the desk scores 2,000; how many it did is printed.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import ratios

SMALL = "3000"
TICKS = os.sysconf("SC_CLK_TCK")


def verb(*words, times=3):
    """CPU seconds, the least of some runs, and peak memory (MB) of a command."""
    found = []
    for _ in range(times):
        process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in {0, 1, 4}:  # 1, 4: a requirement is not met, or cannot be
            raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
        found.append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return min(found)


class Page:
    """A page that is served by a process of its own."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", "web", str(folder), "--no-browser"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "XDG_CONFIG_HOME": str(folder / "own")},
        )  # fmt: skip
        words = (word for line in self.process.stdout for word in line.split())
        address = next(word for word in words if word.startswith("http"))
        self.place, self.cookie = urllib.parse.urlsplit(address), ""
        self.process.stdout.readline()
        answer, _ = self.ask("GET", f"/?{self.place.query}")
        self.cookie = answer.getheader("set-cookie").partition(";")[0]

    def ask(self, way, path, form=None):
        for _ in range(100):
            try:
                connection = http.client.HTTPConnection(self.place.netloc, timeout=600)
                sent = {
                    "Origin": f"http://{self.place.netloc}", "Cookie": self.cookie,
                    "Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded",
                }  # fmt: skip
                connection.request(way, path, urllib.parse.urlencode(form or {}), sent)
                answer = connection.getresponse()
                return answer, answer.read()
            except ConnectionRefusedError:
                time.sleep(0.05)
        raise RuntimeError("the server did not start")

    def json(self, way, path, form=None):
        answer, data = self.ask(way, path, form)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {data[:300]!r}")
        return json.loads(data)

    def desks(self):
        return [
            int(child)
            for task in Path(f"/proc/{self.process.pid}/task").glob("*/children")
            for child in task.read_text().split()
        ]

    def cpu(self):
        """CPU seconds of the server and its desk up to now."""
        total = 0
        for process in (self.process.pid, *self.desks()):
            words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += int(words[11]) + int(words[12])
        return total / TICKS

    def settle(self):
        """Wait until nothing is done beside what is asked for."""
        before = -1.0
        while (now := self.cpu()) != before:
            before = now
            time.sleep(1)

    def memory(self):
        """Peak memory (MB) of the desk: of the largest child."""
        lines = [Path(f"/proc/{each}/status").read_text().splitlines() for each in self.desks()]
        return max(int(line.split()[1]) for each in lines for line in each if line.startswith("VmHWM")) / 1024


K_PLAN = """
[data]
path = "{name}"
{columns}
[[scenarios]]
name = "neighbour"
columns = ["age_yrs", "sex", "race"]
requirements = ["k-anonymity >= 3"]

[[steps]]
method = "rounding"
columns = ["los"]
[steps.parameters]
base = 2

[[steps]]
method = "rounding"
columns = ["age_yrs"]
[steps.parameters]
base = 5

[output]
path = "release.csv"
drop = {drop}
"""


def write_k_plan(folder, name, columns):
    """A plan that asks for what the verb asks for, of a file that was rounded twice."""
    keys = {"age_yrs", "sex", "race", "los"}
    text = "".join(
        f'[columns.{each["name"]}]\nkind = "{each["kind"]}"\nrole = "{each["role"] or "other"}"\n'
        for each in columns
    )
    drop = [each["name"] for each in columns if each["name"] not in keys]
    (folder / "k.toml").write_text(K_PLAN.format(name=name, columns=text, drop=json.dumps(drop)))


def change(page, session, step, setting, values):
    """CPU seconds of one change and its answer, the least of some, and the last answer."""
    page.json("GET", f"/desk/{session}")  # the first time the original is scored too, and kernels are loaded
    found = []
    for value in values:
        desk = page.json("GET", f"/desk/{session}")
        page.settle()
        before = page.cpu()
        form = {"action": "change-step", "step": step, "version": desk["version_id"], setting: value}
        page.json("POST", f"/desk/{session}", form)
        desk = page.json("GET", f"/desk/{session}")
        found.append(page.cpu() - before)
    return min(found), desk["results"]["score"]


def serve(folder, name):
    """CPU seconds of the first page and of one level of each plan, memory of the desk, and the answers."""
    page = Page(folder)
    try:
        session = page.json("POST", "/open", {"source": name})["next"].rpartition("/")[2]
        columns = page.json("GET", f"/questions/{session}")["overview"]["columns"]
        first = page.cpu()
        roles = {f"role:{each['name']}": each["role"] or "other" for each in columns}
        page.json("POST", f"/questions/{session}", {**roles, "then": "desk", "profile": "scientific"})
        profile = change(page, session, 0, "k", (5, 6, 7, 8))
        memory = page.memory()
        write_k_plan(folder, name, columns)
        session = page.json("POST", "/open", {"source": "k.toml"})["next"].rpartition("/")[2]
        level = change(page, session, 1, "base", (10, 4, 20, 3))
        return first, level, profile, max(memory, page.memory())
    finally:
        page.process.terminate()
        page.process.wait(20)
        page.process.stdout.close()


WRITE = """
import sys
from sfumato.datasets import patients
patients(int(sys.argv[1])).frame.write_csv(sys.argv[2])
"""


def main():
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "people.csv"
        subprocess.run([sys.executable, "-c", WRITE, str(records), str(file)], check=True)
        inspect, risk = verb("inspect", str(file)), verb("risk", str(file), "-m", "k")
        first, level, profile, memory = serve(file.parent, file.name)
    held = records >= 1_000_000
    print(f"{records:,} records; load {os.getloadavg()[0]:.1f}")
    fine = ratios.beside("first page", records, first, "sfumato inspect", inspect[0], at_most=2)
    claim = {"at_most": 0.1} if held else {}
    fine &= ratios.beside("one level", records, level[0], "sfumato risk -m k", risk[0], **claim)
    ratios.beside("one level of a profile", records, profile[0], "sfumato risk -m k", risk[0])
    print(
        f"    scored {', '.join(str(each[1]['sampled'] or each[1]['records']) for each in (level, profile))}"
    )
    print(f"    desk {memory:.0f} MB, sfumato risk -m k {risk[1]:.0f} MB (at most 1.3)")
    return 0 if fine and (not held or memory <= 1.3 * risk[1]) else 1


if __name__ == "__main__":
    sys.exit(main())
