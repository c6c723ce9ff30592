"""Keras's losses are those of the package, on both backends, and train a model."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

SCRIPT = """
import keras, numpy as np, fitzpatrick as fp, fitzpatrick.keras as fk
rng = np.random.default_rng(0)
x, labels = rng.normal(size=(6, 4)).astype("float32"), np.array([0, 3, 1, 2, 2, 1])
y = rng.dirichlet(np.ones(4), size=6).astype("float32")
for name, tightness in (("fitzpatrick_logistic", 0.5), ("sparsemax", None), ("sigmoid", None)):
    loss, core = fk.FitzpatrickLoss(name, tightness), fp.get_loss(name, tightness)
    for target in (y,) if name == "sigmoid" else (labels, labels[:, None], y):
        expected = np.mean(core.value(target.reshape(6) if target is not y else y, x))
        expected = expected / 4 if name == "sigmoid" else expected
        found = float(keras.ops.convert_to_numpy(loss(target, x)))
        assert abs(found - expected) < 1e-5 * max(expected, 1), (name, found, expected)
try:
    fk.FitzpatrickLoss()(x, labels)
    raise AssertionError("swapped arguments passed")
except ValueError as error:
    assert "are the arguments swapped? Keras takes y_true first" in str(error), error
twin = keras.losses.deserialize(keras.losses.serialize(fk.FitzpatrickLoss("entmax15")))
assert twin.loss == "entmax15"
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
model.compile(keras.optimizers.Adam(0.1), fk.FitzpatrickLoss())
losses = model.fit(x, labels, epochs=20, verbose=0).history["loss"]
assert losses[-1] < losses[0]
"""


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras(backend):
    if find_spec("keras") is None or find_spec(backend) is None:  # an import chooses a backend
        pytest.skip("needs the packages keras and jax")
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", SCRIPT]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
