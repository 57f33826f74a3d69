"""Letters made of noisy gradients: ServerGD, FedAvg, DP-SGD and DP-ADMM."""

from __future__ import annotations

from typing import Any

from tacita.algorithm import DPADMM, DPSGD, FedAvg, ServerGD
from tacita.privacy.letters.question import (
    NoisyGradients,
    mixes_letters,
    noisy_gradients,
    present_noise,
    state_is_public,
    with_noise,
)
from tacita.trees import replace


@noisy_gradients.register(ServerGD)
@noisy_gradients.register(DPSGD)
@noisy_gradients.register(DPADMM)
def _(algorithm: Any) -> NoisyGradients:
    # DP-ADMM's letter is an affine function of one gradient with its noise.
    return NoisyGradients(1, present_noise(algorithm, algorithm.noise_std))


@noisy_gradients.register
def _(algorithm: FedAvg) -> NoisyGradients:
    return NoisyGradients(
        algorithm.local_steps, present_noise(algorithm, algorithm.noise_std)
    )


@with_noise.register(ServerGD)
@with_noise.register(FedAvg)
@with_noise.register(DPSGD)
@with_noise.register(DPADMM)
def _(algorithm: Any, noise_std: Any) -> Any:
    return replace(algorithm, noise_std=noise_std)


@mixes_letters.register(ServerGD)
@mixes_letters.register(DPSGD)
def _(algorithm: Any) -> bool:
    return True


@mixes_letters.register
def _(algorithm: FedAvg) -> bool:
    # The noise of earlier local steps passes through later gradients.
    return algorithm.local_steps == 1


@state_is_public.register(ServerGD)
@state_is_public.register(FedAvg)
@state_is_public.register(DPSGD)
@state_is_public.register(DPADMM)
def _(algorithm: Any) -> bool:
    # They start from the broadcast; DP-ADMM's w~_i and lambda_i follow from letters
    # and broadcasts.
    return True
