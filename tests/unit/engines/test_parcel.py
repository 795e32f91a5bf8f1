"""What travels: data in a file, secrets apart from it."""

import pickle

import numpy as np

from sfumato.core.run import Run
from sfumato.engines.parcel import Parcel, Secret


def test_secrets_are_in_no_file(tmp_path):
    key = Run(seed=7).random_key("noise")
    parcel = Parcel.pack((key, np.arange(5), [key]), tmp_path)
    content = (tmp_path / parcel.path).read_bytes()
    assert bytes(key.key) not in content
    assert oct((tmp_path / parcel.path).stat().st_mode)[-3:] == "600"
    again, numbers, (other,) = parcel.open()
    assert again.rng().random() == key.rng().random()
    assert isinstance(other.key, Secret)
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert repr(parcel.secrets[0]) not in repr(parcel)
    parcel.remove()
    parcel.remove()
    assert not list(tmp_path.iterdir())


def test_a_secret_is_not_shown_and_travels_in_messages():
    secret = Secret(b"abc")
    assert "abc" not in repr(secret)
    assert pickle.loads(pickle.dumps(secret)) == b"abc"
