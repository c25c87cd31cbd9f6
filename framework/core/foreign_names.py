"""Names and keywords that Paddle and torch programs use and the core has not, each with the line to write.

Everything that answers for an unknown name (layers, parameters, optimizers, arrays, `framework`, `framework.nn` and
its functionals) looks here last, so normal access pays nothing. What is raised is an AttributeError too: `hasattr`
and `getattr(x, name, default)` behave as for any name that is not there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping

from framework.core.errors import ForeignNameError, nearest

Hints = Mapping[str, str]

STEP = "loss, grads = nn.value_and_grad(layer, loss_fn)(x, y); optimizer.step(layer, grads)"
NO_TAPE = (
    f"the core records no gradients; write {STEP}. "
    "Programs with loss.backward() run as they are with `from framework import paddle`: docs/paddle.md"
)
_NEW_GRADS = "leave it out: nn.value_and_grad returns new gradients at each call and keeps none"
_O2 = 'parameters stay float32; write with framework.amp.auto_cast(level="O2", dtype="bfloat16"): …'
_FREEZE = "layer.freeze(pattern) stops the training of parameters; one parameter: parameter.trainable = False"
_NO_DATA_PARALLEL = "leave the wrapper out: a jitted step runs on all devices, see framework.distributed"


def _same(names: str, hint: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), hint)


def _numpy(names: str) -> dict[str, str]:
    return {name: f"jax.numpy.{name}" for name in names.split()}


LAYER: Hints = {
    "load_state_dict": "layer.set_state_dict(state), where state = framework.load(path)",
    "to": f'the device: framework.set_device("gpu") before arrays are made; the dtype: {_O2}',
    **_same("cuda xpu", 'framework.set_device("gpu") before arrays are made'),
    "cpu": 'framework.set_device("cpu") before arrays are made',
    **_same("half float16 bfloat16 astype", _O2),
    "float": "leave it out: parameters are float32",
    "double": "framework.enable_x64(), and dtype='float64' in create_parameter",
    **_same("requires_grad requires_grad_ stop_gradient", _FREEZE),
    **_same("zero_grad clear_gradients clear_grad", _NEW_GRADS),
    "backward": NO_TAPE,
    "modules": "layer.sublayers(include_self=True)",
    "named_modules": "layer.named_sublayers(include_self=True)",
    **_same("add_module register_module", "layer.add_sublayer(name, sublayer)"),
    "register_parameter": "layer.add_parameter(name, parameter)",
    "get_parameter": "dict(layer.named_parameters())[name]",
    "get_buffer": "dict(layer.named_buffers())[name]",
    **_same("get_sublayer get_submodule", "dict(layer.named_sublayers())[name]"),
    **_same("set_sublayer set_submodule", "setattr(parent, name, sublayer)"),
    "register_forward_hook": "layer.register_forward_post_hook(hook)",
    **_same(
        "register_backward_hook register_full_backward_hook",
        "framework.autograd.PyLayer, with its own backward",
    ),
    **_same("create_tensor create_variable", "layer.register_buffer(name, array)"),
    "to_static_state_dict": "layer.state_dict(); dict(layer.named_buffers()) has those that are not saved, too",
    "full_name": "type(layer).__name__; parameters are named by their path, see layer.named_parameters()",
}

PARAMETER: Hints = {
    **_same("requires_grad requires_grad_", "parameter.trainable = False, or layer.freeze(pattern)"),
    **_same(
        "grad clear_grad clear_gradient zero_grad", "grads[name], of loss, grads = nn.value_and_grad(…)(…)"
    ),
    "backward": NO_TAPE,
    **_same("data detach", "parameter.value, the array"),
    "numpy": "numpy.asarray(parameter.value)",
    **_same("copy_ fill_ zero_ normal_ uniform_", "parameter.set_value(array)"),
    "optimize_attr": "parameter.attr.learning_rate",
    "regularizer": "parameter.attr.regularizer",
    "need_clip": "parameter.attr.need_clip",
    "numel": "parameter.size",
    "name": "the path that layer.named_parameters() gives with it",
}

OPTIMIZER: Hints = {
    **_same("clear_grad clear_gradients zero_grad", _NEW_GRADS),
    **_same("minimize backward apply_gradients", NO_TAPE),
    **_same(
        "set_lr set_lr_scheduler",
        "dataclasses.replace(optimizer, learning_rate=…), or a schedule of optimizer.lr",
    ),
    "load_state_dict": "optimizer.set_state_dict(layer, state)",
    "add_param_group": "lr_multipliers={pattern: factor}, no_decay=(pattern, …)",
}

GRAD_SCALER: Hints = {
    **_same(
        "step minimize update unscale_",
        "grads, finite, state = scaler.unscale_and_update(grads, state); see its docstring",
    ),
    **_same(
        "state_dict load_state_dict set_state_dict",
        "the state is what scaler.init() returned; save it as it is",
    ),
}

ARRAY: Hints = {
    "backward": NO_TAPE,
    **_same(
        "grad gradient clear_grad clear_gradient",
        "grads, of loss, grads = nn.value_and_grad(…)(…), or jax.grad(fn)(x)",
    ),
    **_same("stop_gradient detach requires_grad requires_grad_", "jax.lax.stop_gradient(x)"),
    "numpy": "numpy.asarray(x)",
    "cpu": "numpy.asarray(x)",
    **_same("cuda to", 'x.astype(dtype); the device: framework.set_device("gpu") before arrays are made'),
    "cast": "x.astype(dtype)",
    **_same("float half bfloat16 long int", "x.astype(dtype)"),
    "unsqueeze": "jax.numpy.expand_dims(x, axis)",
    "permute": "x.transpose(0, 2, 3, 1)",
    "contiguous": "leave it out",
    "numel": "x.size",
    "dim": "x.ndim",
    "expand": "jax.numpy.broadcast_to(x, shape)",
    "tile": "jax.numpy.tile(x, repeats)",
    "register_hook": "framework.autograd.PyLayer, with its own backward",
    "set_value": "arrays do not change: assign a new one, or x = x.at[index].set(value)",
}

_LAYERS: Hints = {
    "Module": "nn.Layer",
    "ModuleList": "nn.LayerList",
    "ModuleDict": "nn.LayerDict",
    "SiLU": "nn.Silu",
    "init": "nn.initializer",
    "MultiheadAttention": "nn.MultiHeadAttention",
    "HuberLoss": "nn.SmoothL1Loss(delta=…)",
    "Tensor": "jax.Array",
    "Softmin": "nn.Softmax() of -x",
    "EmbeddingBag": "nn.Embedding, and .sum(1) of what it gives",
    "DataParallel": _NO_DATA_PARALLEL,
    **_same(
        "BeamSearchDecoder dynamic_decode",
        "a jax.lax.while_loop over a fixed length, and functional.gather_tree",
    ),
}

_FUNCTIONALS: Hints = {
    "logsigmoid": "functional.log_sigmoid",
    **{f"conv_transpose{n}d": f"functional.conv{n}d_transpose" for n in (1, 2, 3)},
    "huber_loss": "functional.smooth_l1_loss(delta=…)",
    "threshold": "functional.thresholded_relu",
    "softmin": "functional.softmax(-x)",
    **_same(
        "flash_attention flash_attn_qkvpacked flash_attn_varlen_qkvpacked flash_attention_v3_varlen "
        "flashmask_attention",
        "functional.scaled_dot_product_attention",
    ),
    "multi_head_attention_forward": "nn.MultiHeadAttention",
    "sparse_attention": "functional.scaled_dot_product_attention, with attn_mask",
    "class_center_sample": "functional.margin_cross_entropy over all classes: the size of a sample depends on labels",
    **_same(
        "moe_permute moe_unpermute", "jax.numpy.take of the tokens sorted by expert, and jax.lax.ragged_dot"
    ),
}

INITIALIZERS: Hints = {
    "set_global_initializer": "weight_attr=… of each layer: no setting of the process changes how layers are made",
}

AMP: Hints = {
    "decorate": 'leave it out: parameters stay float32, framework.amp.auto_cast(level="O2") reads them in 16 bits',
    "autocast": "framework.amp.auto_cast",
    "debugging": "framework.engine: a step with a value that is not finite stops the run and names its samples",
}

AUTOGRAD: Hints = {
    "backward": NO_TAPE,
    "Function": "framework.autograd.PyLayer",
    "saved_tensors_hooks": "nn.recompute: what is not kept is computed again",
}

OPTIMIZERS: Hints = {
    "LBFGS": "jax.scipy.optimize.minimize, or optax.lbfgs: a line search calls the loss, which a step does not have",
    "lr_scheduler": "framework.optimizer.lr",
}

_CLIP = "the optimizer clips: grad_clip=nn.{}"
UTILS: Hints = {
    **_same("clip_grad_norm_ clip_grad_norm", _CLIP.format("ClipGradByGlobalNorm(max_norm)")),
    "clip_grad_value_": _CLIP.format("ClipGradByValue(clip_value)"),
}

TOP: Hints = {
    **_numpy(  # what jax.numpy has under the same name, with the same first arguments
        "abs add all any arange argmax argmin argsort ceil clip concatenate cos cross cumprod cumsum diag "
        "diagonal diff divide dot einsum empty equal exp eye flip floor full full_like isfinite isinf isnan "
        "kron linspace log log10 log1p log2 matmul max maximum mean median meshgrid min minimum multiply "
        "nonzero ones ones_like outer pow prod reshape roll round sign sin sort sqrt square squeeze stack std "
        "subtract sum swapaxes take tan tanh tile trace transpose tril triu unique var where zeros zeros_like"
    ),
    **_same("to_tensor tensor as_tensor Tensor", "jax.numpy.asarray(x); arrays are jax.Array"),
    **_same("concat cat", "jax.numpy.concatenate(arrays, axis)"),
    "cast": "x.astype(dtype)",
    "unsqueeze": "jax.numpy.expand_dims(x, axis)",
    **_same("bmm mm", "x @ y"),
    "split": "jax.numpy.split(x, sections, axis)",
    **_same("gather index_select", "jax.numpy.take(x, index, axis)"),
    "gather_nd": "x[tuple(jax.numpy.moveaxis(index, -1, 0))]",
    "topk": "jax.lax.top_k(x, k), over the last axis",
    "masked_select": "x[mask], outside of jit; inside use jax.numpy.where",
    "scatter": "x.at[index].set(updates)",
    "add_n": "sum(arrays)",
    "flatten": "x.reshape(…)",
    "expand": "jax.numpy.broadcast_to(x, shape)",
    "shape": "x.shape",
    "numel": "x.size",
    "permute": "jax.numpy.transpose(x, axes)",
    **_same(
        "rand randn randint normal uniform randperm", "jax.random, with a key: framework.core.rng.next_key()"
    ),
    **_same(
        "no_grad enable_grad set_grad_enabled",
        "leave it out: only what nn.value_and_grad calls is differentiated",
    ),
    "grad": "jax.grad(fn)(x), or framework.autograd",
    "get_default_dtype": '"float32"',
    "set_default_dtype": "framework.enable_x64(), or dtype= where arrays are made",
    "is_compiled_with_cuda": "framework.device_list()",
    "device": "framework.set_device(name), framework.get_device()",
    "cuda": "framework.device_list()",
    "manual_seed": "framework.seed(n)",
    "ParamAttr": "framework.nn.ParamAttr",
    "create_parameter": "layer.create_parameter(shape)",
    "DataParallel": _NO_DATA_PARALLEL,
    "optim": "framework.optimizer",
    "utils": "torch.utils.data is framework.io",
    "regularizer": "framework.optimizer.L2Decay(coeff), or weight_decay=coeff",
    "callbacks": "framework.engine",
    "linalg": "jax.numpy.linalg",
    "fft": "jax.numpy.fft",
    "static": "framework.jit.InputSpec, framework.jit.to_static, framework.jit.save",
    **_same(
        "enable_static disable_static in_dynamic_mode",
        "leave it out: framework.jit.to_static compiles a layer",
    ),
}

# Arguments of constructors that Paddle or torch has and ours has not.
LAYER_KEYWORDS: Hints = {
    "bias": "bias_attr=False",
    "eps": "epsilon=…",
    "inplace": "leave it out: arrays do not change in place",
    "affine": "weight_attr=False, bias_attr=False",
    "elementwise_affine": "weight_attr=False, bias_attr=False",
    "track_running_stats": "use_global_stats=…",
    "device": 'framework.set_device("gpu") before the layer is made',
    "dtype": _O2,
    "name": "leave it out: a layer is named by the attribute that holds it",
    "dim": "axis=…",
    "batch_first": "time_major=False, which is the default",
    "bidirectional": 'direction="bidirect"',
    "param_attr": "weight_attr=…",
    "num_channels": "num_features=…",
    "data_layout": 'data_format="NHWC": activations are channels-last',
    **_same("is_test trainable_statistics", "layer.eval(), or use_global_stats=True"),
    **_same("moving_mean_name moving_variance_name", "leave it out: the buffers are _mean and _variance"),
    "act": "a layer of its own behind it, such as nn.ReLU()",
}

OPTIMIZER_KEYWORDS: Hints = {
    "lr": "learning_rate=…",
    "params": "parameters=layer.parameters(), or leave it out: opt.step(layer, grads) names the layer",
    "betas": "beta1=…, beta2=…",
    "eps": "epsilon=…",
    "nesterov": "use_nesterov=True",
    "parameter_list": "parameters=layer.parameters()",
    "regularization": "weight_decay=…",
    **_same(
        "lazy_mode use_multi_tensor foreach fused capturable", "leave it out: updates are dense and compiled"
    ),
    "amsgrad": "leave it out: the core has no such variant",
    "rescale_grad": "divide the loss",
    "apply_decay_param_fun": "no_decay=(pattern, …)",
}


def foreign_name(owner: str, name: str, hints: Hints) -> ForeignNameError | None:
    """The error for a name of another framework, or None when `hints` does not know it."""
    if name not in hints:
        return None
    return ForeignNameError(f"{owner} has no {name!r}", fix=hints[name])


def find_layer_hint(name: str, known: Iterable[str]) -> str | None:
    """What to write for a class of torch: its spelling `Conv2d`, `ConvTranspose2d` is `Conv2D`, `Conv2DTranspose`."""
    names = set(known)
    spelled = re.sub(r"(\d)d$", r"\1D", re.sub(r"^(Lazy)?ConvTranspose(\d)d$", r"Conv\2DTranspose", name))
    if spelled != name and spelled in names:
        return f"nn.{spelled}"
    return _LAYERS.get(name)


def find_functional_hint(name: str, known: Iterable[str]) -> str | None:
    """What to write for a function of torch, or for one of Paddle that changes its argument, such as `relu_`."""
    if name.endswith("_") and name[:-1] in set(known):
        return f"x = functional.{name[:-1]}(x): arrays do not change in place"
    return _FUNCTIONALS.get(name)


def module_error(
    module: str, name: str, known: Iterable[str], find: Callable[[str, Iterable[str]], str | None]
) -> AttributeError:
    """The error of a module's `__getattr__`: with the line to write, or with the nearest name that it has."""
    public = [word for word in known if not word.startswith("_")]
    if hint := find(name, public):
        return ForeignNameError(f"module {module!r} has no {name!r}", fix=hint)
    close = nearest(name, public)
    return AttributeError(
        f"module {module!r} has no attribute {name!r}" + (f"; did you mean {close!r}?" if close else "")
    )


def constructor_arguments(cls: type) -> dict[str, inspect.Parameter]:
    """What a class takes, by name. Pythons differ in what `inspect.signature` says of a class that inherits both
    `__new__` and `__init__`; here it is `__init__`, or the `__signature__` that the class sets."""
    if getattr(cls, "__signature__", None) is not None:
        return dict(inspect.signature(cls).parameters)
    return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])  # without self
