"""The verbs of the API server, typed: get, create, replace, patch, delete.

A write gives back nothing unless a ``type`` is named; then the server is asked for the metadata
alone, and the answer is not decoded. How requests are fenced, tried again and counted is in
``transport``.
"""

from collections.abc import Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar, Unpack, cast, overload

import msgspec
import orjson

from gpu_scheduler.kube.media_types import JSON, MERGE_PATCH
from gpu_scheduler.kube.nesting import shallow
from gpu_scheduler.kube.transport import Param, RequestOptions, Transport

T = TypeVar("T")

_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

_DECODERS: dict[object, msgspec.json.Decoder[Any]] = {}


class BodyWrite(Protocol):
    """Writes a body to a path.

    Args:
        path: The collection, the object or its subresource.
        body: The object.
        type: What to decode the answer as; None: it is not decoded.
        dry_run: Run admission and validation, store nothing.
        strict: Refuse fields that the kind does not have; without it they are dropped.
        options: See ``RequestOptions``.
    """

    @overload
    def __call__(
        self,
        path: str,
        body: object,
        type: None = ...,
        *,
        dry_run: bool = ...,
        strict: bool = ...,
        **options: Unpack[RequestOptions],
    ) -> Coroutine[Any, Any, None]: ...

    @overload
    def __call__(
        self,
        path: str,
        body: object,
        type: type[T],
        *,
        dry_run: bool = ...,
        strict: bool = ...,
        **options: Unpack[RequestOptions],
    ) -> Coroutine[Any, Any, T]: ...


class Client(Transport):
    """A client for one API server; an async context manager. Arguments as for ``Transport``.

    Every method raises the ``ApiError`` for a refusal, Unavailable without an answer and, if it
    writes, NotLeader when the fence is closed. A body is anything that orjson encodes, or bytes
    that are JSON already.
    """

    @overload
    async def get(
        self, path: str, type: type[T], *, timeout_seconds: float | None = ..., **params: Param
    ) -> T: ...

    @overload
    async def get(
        self,
        path: str,
        type: None = ...,
        *,
        timeout_seconds: float | None = ...,
        **params: Param,
    ) -> dict[str, Any]: ...

    async def get(
        self,
        path: str,
        type: type[T] | None = None,
        *,
        timeout_seconds: float | None = None,
        **params: Param,
    ) -> T | dict[str, Any]:
        """Read an object or a list, decoded as ``type`` or, without one, as a dict.

        Raises:
            msgspec.DecodeError: the answer does not fit ``type``.
        """
        raw = await self.request("GET", path, params=params, timeout_seconds=timeout_seconds)
        if type is None:
            return cast("dict[str, Any]", orjson.loads(raw))
        return _decode(raw, type)

    @property
    def create(self) -> "BodyWrite":
        """POST to a collection or a subresource (binding, eviction).

        Raises:
            Conflict: the name is taken; with ``maybe_applied`` it may have been taken by an earlier
                attempt of this very call.
        """
        return cast("BodyWrite", partial(self._write, "POST"))

    @property
    def replace(self) -> "BodyWrite":
        """PUT a whole object; with metadata.resourceVersion, Conflict when that is stale."""
        return cast("BodyWrite", partial(self._write, "PUT"))

    @property
    def merge_patch(self) -> "BodyWrite":
        """PATCH ``body`` into an object or its status.

        A resourceVersion in its metadata must be the current one (else Conflict), a uid too (else
        Unprocessable).
        """
        return cast("BodyWrite", partial(self._write, "PATCH"))

    async def delete(
        self,
        path: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace_seconds: int | None = None,
        **options: Unpack[RequestOptions],
    ) -> None:
        """DELETE an object.

        Args:
            path: The object.
            uid: Only if it still is this one (else Conflict).
            resource_version: Only if it is unchanged (else Conflict).
            propagation: Background, Foreground or Orphan; empty: the kind's default.
            grace_seconds: For pods; None: as the pod says.
            options: See ``RequestOptions``.
        """
        body: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if uid or resource_version:
            body["preconditions"] = {k: v for k, v in preconditions.items() if v}
        if propagation:
            body["propagationPolicy"] = propagation
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        await self._write("DELETE", path, body, **options)

    async def _write(
        self,
        method: str,
        path: str,
        body: object,
        type: type[T] | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
        **options: Unpack[RequestOptions],
    ) -> T | None:
        params: dict[str, Param] = {"dryRun": "All"} if dry_run else {}
        if strict:
            params["fieldValidation"] = "Strict"
        raw = await self.request(
            method,
            path,
            params=params,
            body=body if isinstance(body, bytes) else orjson.dumps(body),
            content_type=MERGE_PATCH if method == "PATCH" else JSON,
            accept=_METADATA_ONLY if type is None else "",
            **options,
        )
        return None if type is None else _decode(raw, type)


def _decode(raw: bytes, type: type[T]) -> T:
    decoder = _DECODERS.get(type)
    if decoder is None:
        decoder = _DECODERS[type] = msgspec.json.Decoder(type)
    try:
        return cast("T", decoder.decode(raw))
    except RecursionError:
        return cast("T", decoder.decode(shallow(raw)))
