"""What is shared and what is sampled: the same question with and without, in one run.

    python benchmarks/bench_usual.py [n] [--memory]

Prints processor seconds and their ratio: the usual risks of `patients` in brief against the exact ones by
name; and a search for a recipe whose trials share what was made of the original against one in which each
makes it again (same trials, same answer). With `--memory`: the most memory that algorithm S2 of Sánchez,
Martínez and Domingo-Ferrer (2016) and the usual measures of its release take, in a process of its own, at
3,985,166 records or n.
"""

import resource
import subprocess
import sys
import time

import sfumato
from sfumato.data import table as tables
from sfumato.datasets import patients

SAMPLED = ["dbrl", "rank-linkage", "permutation-distance"]


def timed(function):
    began = time.process_time()
    return function(), time.process_time() - began


def usual(n):
    table = patients(n)
    release = sfumato.protect(table, "rank-swapping", seed=1)
    sfumato.assess(patients(500), sfumato.protect(patients(500), "rank-swapping", seed=1), SAMPLED, seed=1)
    exact, slow = timed(lambda: sfumato.assess(table, release, SAMPLED, seed=1))
    brief, quick = timed(lambda: sfumato.assess(table, release, SAMPLED, exact=False, seed=1))
    print(f"usual risks, {n:,} records: exact {slow:.1f} s, in brief {quick:.1f} s: {slow / quick:.1f} times")
    for name in SAMPLED:
        low, high = brief[name].interval or (brief[name].value,) * 2
        print(f"  {name:22s} exact {exact[name].value:.5g}, in brief between {low:.5g} and {high:.5g}")


def tuned(n):
    def search():
        table = patients(n)  # anew: it remembers nothing
        asked = {"methods": ["rank-swapping", "global-recoding", "mondrian"], "trials": 12, "minutes": None}
        return sfumato.tune(table, ["dbrl <= 0.2"], seed=1, **asked).plan.to_toml()

    search()
    kept, shared = timed(search)
    tables._KEPT_BYTES = 0  # noqa: SLF001
    again, alone = timed(search)
    print(f"tune, {n:,} records: alone {alone:.1f} s, shared {shared:.1f} s: {alone / shared:.1f} times")
    assert kept == again


def memory(n):
    table = patients(n)
    release = sfumato.protect(table, "sorted-generalisation", seed=1)
    sfumato.assess(table, release, seed=1)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"S2 and the usual measures, {n:,} records: {most:.2f} GB")


def main():
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    if "--inside" in sys.argv:
        memory(sizes[0])
    elif "--memory" in sys.argv:
        subprocess.run([sys.executable, __file__, str(*sizes or [3_985_166]), "--inside"], check=True)
    else:
        usual(sizes[0] if sizes else 1_000_000)
        tuned(min(sizes[0] if sizes else 10_000, 10_000))


if __name__ == "__main__":
    main()
