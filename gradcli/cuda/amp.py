"""`torch.cuda.amp`: mixed precision on a GPU. Without one, both classes are disabled with a warning."""

from __future__ import annotations

from typing import Any

from gradcli import amp


class GradScaler(amp.GradScaler):
    """`amp.GradScaler` for the device "cuda"."""

    def __init__(self, *settings: Any, **named: Any) -> None:
        super().__init__("cuda", *settings, **named)


class autocast(amp.autocast):
    """`amp.autocast` for the device "cuda"."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)
