"""Trains a small network to tell three spirals apart, and says how well it did.

The data is made here, so nothing is downloaded; with CuPy installed it runs on the GPU, otherwise
on the CPU in about a second. Parameters come as options; the defaults are not good ones.
"""

import argparse
import sys

import numpy
from report import report, result

try:
    import cupy as xp

    xp.cuda.runtime.getDeviceCount()
except Exception:  # no CuPy, or no GPU
    xp = numpy

ARMS, POINTS = 3, 200


def spirals(seed):
    """Points in the plane and the number of the arm that each lies on."""
    random = numpy.random.default_rng(seed)
    radius = numpy.tile(numpy.linspace(0.1, 1, POINTS), ARMS)
    arm = numpy.repeat(numpy.arange(ARMS), POINTS)
    angle = 2 * numpy.pi * arm / ARMS + 4 * radius + random.normal(0, 0.2, ARMS * POINTS)
    points = numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], axis=1)
    return xp.asarray(points), xp.asarray(arm)


def forward(weights, points):
    """Hidden values and the probability of each arm."""
    w1, b1, w2, b2 = weights
    hidden = xp.tanh(points @ w1 + b1)
    scores = hidden @ w2 + b2
    scores = xp.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def loss_and_accuracy(weights, points, arm):
    """Mean cross entropy, and the share of points on the right arm."""
    _, guess = forward(weights, points)
    right = guess[xp.arange(len(arm)), arm]
    return float(-xp.log(right + 1e-12).mean()), float((guess.argmax(axis=1) == arm).mean())


def gradients(weights, points, arm, decay):
    """Of the mean cross entropy plus weight decay."""
    w1, _, w2, _ = weights
    hidden, guess = forward(weights, points)
    guess[xp.arange(len(arm)), arm] -= 1
    guess /= len(arm)
    back = (guess @ w2.T) * (1 - hidden**2)
    return (
        points.T @ back + decay * w1,
        back.sum(axis=0),
        hidden.T @ guess + decay * w2,
        guess.sum(axis=0),
    )


def main():
    """Train, report every epoch, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--decay", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()

    points, arm = spirals(seed=1)
    held_out = spirals(seed=2)
    random = numpy.random.default_rng(0)
    weights = [
        xp.asarray(random.normal(0, 1, (2, options.hidden))),
        xp.zeros(options.hidden),
        xp.asarray(random.normal(0, 1, (options.hidden, ARMS)) / options.hidden**0.5),
        xp.zeros(ARMS),
    ]
    speed = [xp.zeros_like(weight) for weight in weights]
    for epoch in range(options.epochs):
        order = random.permutation(len(arm))
        for first in range(0, len(order), options.batch):
            batch = xp.asarray(order[first : first + options.batch])
            slope = gradients(weights, points[batch], arm[batch], options.decay)
            for weight, pace, step in zip(weights, speed, slope, strict=True):
                pace *= options.momentum
                pace -= options.lr * step
                weight += pace
        loss, accuracy = loss_and_accuracy(weights, *held_out)
        if report(epoch, val_loss=loss):
            sys.exit(0)
    result(val_loss=loss, accuracy=accuracy)


if __name__ == "__main__":
    main()
