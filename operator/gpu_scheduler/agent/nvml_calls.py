"""Calls of NVML: each of its errors becomes one of ours, and what is not supported None."""

from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

from gpu_scheduler.agent.driver import (
    DeviceLostError,
    DriverError,
    NothingFoundError,
    UnsupportedError,
)

T = TypeVar("T")

_LOST = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED})
_UNSUPPORTED = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_DEPRECATED,
    }
)


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Call NVML.

    Raises:
        DeviceLostError: the device is gone.
        UnsupportedError: not on this driver or device.
        NothingFoundError: there is nothing of what was asked for.
        DriverError: anything else.
    """
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        code = error.value
        kind = DeviceLostError if code in _LOST else DriverError
        kind = NothingFoundError if code == pynvml.NVML_ERROR_NOT_FOUND else kind
        kind = UnsupportedError if code in _UNSUPPORTED else kind
        raise kind(str(error)) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DriverError(f"NVML's answer cannot be read: {error}") from None


def optional(function: Callable[..., T], *arguments: Any) -> T | None:
    """Call NVML; None when that is not supported.

    Raises:
        DriverError: it is supported and failed.
    """
    try:
        return call(function, *arguments)
    except UnsupportedError:
        return None


def told(function: Callable[..., T], *arguments: Any) -> T | None:
    """Call NVML for a gauge that nobody depends on; None when it does not answer.

    Raises:
        DeviceLostError: the device is gone.
    """
    try:
        return call(function, *arguments)
    except DeviceLostError:
        raise
    except DriverError:
        return None
