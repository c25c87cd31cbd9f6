"""Which names of Paddle are not here, why, and what to do instead: for messages and docs/paddle_api.md."""

from __future__ import annotations

import re

# The first pattern that matches a full name (paddle.nn.Layer) counts.
_REASONS: tuple[tuple[str, str], ...] = (
    (
        r"paddle\.(quantization\.imperative|nn\.quant\.(lsq|quant_layers|quantized_linear)|static\.quantization)\b.*"
        r"|paddle\.quantization\.(Imperative.*|.*Quantizer|PTQ(Config|Registry)|default_ptq_config)"
        r"|paddle\.nn\.quant\.(weight_.*|llm_int8_linear|QuantStub)",
        "older interfaces of quantisation, and kernels of one GPU: paddle.quantization has QuantConfig, QAT and PTQ",
    ),
    (r"paddle\.onnx\b.*", "not yet: paddle.jit.save writes an artifact that runs here"),
    (
        r"paddle\.Tensor\.(block|create_parameter|dist_attr|get_map_tensor|get_selected_rows|num_shard|placements|process_mesh"
        r"|rows|set_string_list|set_vocab)",
        "internals of Paddle's static graphs and of its tensors in several processes",
    ),
    (r"paddle\.static\.nn\.data_norm", "not yet: paddle.nn.BatchNorm1D"),
    (r"paddle\.sparse\b.*", "not yet: make it dense with to_dense(), then use paddle.nn"),
    (
        r"paddle\.incubate\.nn\b.*",
        "kernels fused by hand for one GPU: use the layers of paddle.nn, XLA fuses them",
    ),
    (r"paddle\.incubate\b.*", "not yet: an experiment of Paddle's"),
    (
        r"paddle\.distributed\.(fleet\.)?(.*PS.*|.*Dataset|.*RoleMaker.*|Role|UtilBase)(\..*)?",
        "parameter servers: QueueDataset and InMemoryDataset read data, tables lie in the workers",
    ),
    (r"paddle\.distributed\b(?!\.io$).*", "not here yet: of training on several machines, its helpers"),
    (
        r"paddle\.static\.nn\.(StaticRNN|row_conv|multi_box_head)",
        "works on LoD Tensors, which are gone from Paddle 3: pad the sequences and use paddle.nn",
    ),
    (
        r"paddle\.static\.(npu_.*|mlu_.*|WeightNormParamAttr|ctr_metric_bundle)",
        "for a device or a service that XLA has not",
    ),
)


def reason(full_name: str) -> str | None:
    """Why a name of Paddle is not here, and what to do; None where nothing is known of it."""
    return next((why for pattern, why in _REASONS if re.fullmatch(pattern, full_name)), None)
