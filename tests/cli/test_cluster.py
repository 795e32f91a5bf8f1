"""A cluster as a site starts it: scheduler and workers as processes of their own, which speak TLS."""

import datetime as dt
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.errors import DataError

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # dask leaves sockets to the garbage collector when a scheduler is gone
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

SEED = 98765432109876


def certificate(folder):
    """A certificate for this machine, signed by itself: authority, server and client in one."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    names = ("CA_FILE", "SCHEDULER__CERT", "WORKER__CERT", "CLIENT__CERT")
    keys = ("SCHEDULER__KEY", "WORKER__KEY", "CLIENT__KEY")
    files = dict.fromkeys(names, folder / "cert.pem") | dict.fromkeys(keys, folder / "key.pem")
    return {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(path) for name, path in files.items()}


@contextmanager
def process(log, environment, *arguments):
    with log.open("wb") as file:
        made = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=file, stderr=file, env=environment
        )
    try:
        yield made
    finally:
        made.kill()
        made.wait()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """An address, the scheduler, its workers, and where they log."""
    for name, path in certificate(tmp_path).items():
        monkeypatch.setenv(name, path)
    import dask

    dask.config.refresh()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, environment = f"tls://127.0.0.1:{port}", {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    quiet = ("--no-dashboard",)
    with ExitStack() as stack:
        options = ("scheduler", "--host", address, *quiet)
        scheduler = stack.enter_context(process(tmp_path / "scheduler.log", environment, *options))
        workers = [
            stack.enter_context(
                process(
                    tmp_path / f"worker{i}.log", environment, "worker", address, "--nthreads", "1", "--no-nanny",
                    "--memory-limit", "0", "--local-directory", str(tmp_path / f"local{i}"), *quiet,
                )
            )
            for i in range(2)
        ]  # fmt: skip
        wait_for_workers(address, 2)
        yield address, scheduler, workers, tmp_path
    for name in list(os.environ):
        if name.startswith("DASK_DISTRIBUTED__COMM__TLS"):
            monkeypatch.delenv(name)
    dask.config.refresh()


def wait_for_workers(address, number):
    from distributed import Client, Security

    with Client(
        address, security=Security(require_encryption=True), timeout=60, set_as_default=False
    ) as client:
        client.wait_for_workers(number, timeout=60)


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(5), 70_000
    frame = pl.DataFrame({
        "x": rng.normal(size=n), "y": rng.lognormal(3, 1, n), "word": rng.choice(["zanzibar", "quito", None], n)
    })  # fmt: skip
    return sfumato.read(frame, roles=dict.fromkeys(frame.columns, "key"))


def protect(table):
    noisy = sfumato.protect(table, "correlated-noise", columns=["x", "y"], seed=SEED)
    return sfumato.protect(noisy.table, "pram", columns=["word"], seed=SEED).table.digest


def test_the_same_bytes_and_nothing_told(cluster, table, tmp_path, monkeypatch):
    address, _, workers, folder = cluster
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("sfumato.engines.cluster._RECORDS_PER_TASK", 1)
    alone = protect(table)
    with sfumato.engine(address, scratch=scratch):
        assert protect(table) == alone
        workers[0].send_signal(signal.SIGKILL)  # a worker that is gone: the other one does it
        assert protect(table) == alone
    assert not list(scratch.iterdir())
    logs = b"".join(path.read_bytes() for path in folder.glob("*.log"))
    own = re.escape(os.fsencode(f'File "{Path(sfumato.__file__).parent}'))  # dask tells of a lost connection
    assert not re.search(rb"zanzibar|quito|98765432109876|" + own, logs)


def test_workers_that_are_all_lost_are_a_sentence(cluster, table, tmp_path, monkeypatch):
    address, _, workers, _ = cluster
    monkeypatch.setattr("sfumato.engines.cluster._SECONDS_WITHOUT_WORKERS", 1.0)
    with sfumato.engine(address, scratch=tmp_path):
        for each in workers:
            each.kill()
        with pytest.raises(DataError, match="workers that did this were killed"):
            protect(table)


def test_a_scheduler_that_is_lost_is_a_sentence(cluster, table, tmp_path):
    address, scheduler, _, _ = cluster
    with sfumato.engine(address, scratch=tmp_path):
        scheduler.kill()
        scheduler.wait()
        with pytest.raises(DataError, match=r"scheduler|connection"):
            protect(table)


def test_other_versions_are_refused(table, tmp_path, monkeypatch):
    from sfumato.engines.cluster import carry_out_task
    from sfumato.engines.parcel import Parcel

    answer = carry_out_task(Parcel(str(tmp_path / "none")), str(tmp_path), ("polars 0.1",))
    assert "differs from this machine" in answer.message
    from sfumato.engines.cluster import fingerprint

    answer = carry_out_task(Parcel(str(tmp_path / "none")), str(tmp_path), fingerprint())
    assert "does not see the scratch folder" in answer.message
    parcel = Parcel.pack((_fail, [1]), tmp_path)
    answer = carry_out_task(parcel, str(tmp_path), fingerprint())
    assert "KeyError" in answer.message
    assert "zanzibar" not in str(answer)


def _fail(_item):
    raise KeyError("zanzibar")
