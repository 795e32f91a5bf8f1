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

import ratios

import sfumato
from sfumato.data import table as tables
from sfumato.datasets import patients

SMALL = "3000"
MANY = 3_985_166
SAMPLED = ["dbrl", "rank-linkage", "permutation-distance"]


def usual(n):
    table = patients(n)
    release = sfumato.protect(table, "rank-swapping", seed=1)
    sfumato.assess(patients(500), sfumato.protect(patients(500), "rank-swapping", seed=1), SAMPLED, seed=1)
    slow, exact = ratios.least(lambda: sfumato.assess(table, release, SAMPLED, seed=1), times=1)
    quick, brief = ratios.least(lambda: sfumato.assess(table, release, SAMPLED, exact=False, seed=1), times=1)
    ratios.beside("usual risks in brief, sfumato.assess", n, quick, "the exact ones", slow, at_least=0)
    for name in SAMPLED:
        low, high = brief[name].interval or (brief[name].value,) * 2
        print(f"  {name:22s} exact {exact[name].value:.5g}, in brief between {low:.5g} and {high:.5g}")


def tuned(n):
    def search():
        table = patients(n)  # anew: it remembers nothing
        asked = {"methods": ["rank-swapping", "global-recoding", "mondrian"], "trials": 12, "minutes": None}
        return sfumato.tune(table, ["dbrl <= 0.2"], seed=1, **asked).plan.to_toml()

    search()
    shared, kept = ratios.least(search, times=1)
    tables._KEPT_BYTES = 0  # noqa: SLF001
    alone, again = ratios.least(search, times=1)
    ratios.beside("tune with what trials share", n, shared, "each for itself", alone, at_least=0)
    assert kept == again


def memory(n):
    table = patients(n)
    taken, release = ratios.least(lambda: sfumato.protect(table, "sorted-generalisation", seed=1), times=1)
    tell = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # noqa: E731
    ratios.beside("sorted-generalisation of patients", n, taken, memory=tell())
    for measure in ("column-emd", "dbrl"):
        of = ratios.least(lambda each=measure: sfumato.assess(table, release, [each], exact=False, seed=1), 1)
        ratios.beside(f"{measure} of its release", n, of[0], memory=tell())


def main():
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    if "--inside" in sys.argv:
        memory(sizes[0])
    elif "--memory" in sys.argv:
        subprocess.run([sys.executable, __file__, str(*sizes or [MANY]), "--inside"], check=True)
    else:
        usual(sizes[0] if sizes else 1_000_000)
        tuned(min(sizes[0] if sizes else 10_000, 10_000))
        subprocess.run([sys.executable, __file__, str(sizes[0] if sizes else MANY), "--inside"], check=True)


if __name__ == "__main__":
    main()
