"""OpenVINO's scaled dot product attention, fused with its own cache. One request goes over all
layers, as in a model.

Every step stores one more token for each of its queries. A single query's token gets no weight, so
that the answer stays the same; with a mask, the mask hides the new tokens. Once the cache is one
per cent too long, its state is set again, untimed.
"""

import numpy as np

from kvbench.peers.interface import Peer, stated

_BITS = stated("f32 32, f16 16, bf16 16, i8 8")
_AWAY = 60.0  # a score this far below the others has no weight
_MORE = 0.01  # of the tokens
_SCALES = 8  # bytes of a scale and a zero point, for each row of 8 bits


class OpenVino(Peer):
    formats = stated("f32 1e-4, f16 0.01, bf16 0.02, i8 0.1")
    package, install = "openvino", "pip install 'kvbench[peers]'"
    sealed = True
    takes = "q_len window kept v_dim alibi v_dtype"
    engine = "libopenvino_intel_cpu_plugin.so"
    function = "ScaledDotProductAttention, fused with its cache"
    whole = True

    def setup(self, shape, k, v):
        import openvino

        self._shape, self._v, self._masks = shape, openvino, {}
        self._dtypes = self.dtype, shape.v_dtype or self.dtype
        kinds = ["u8" if _BITS[each] == 8 else each for each in self._dtypes]
        how = {
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": "f32",
            "KEY_CACHE_PRECISION": kinds[0],
            "VALUE_CACHE_PRECISION": kinds[1],
        }
        core = openvino.Core()
        self._compiled = core.compile_model(_model(shape, len(k)), "CPU", how)
        self._found = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        self._request = self._compiled.create_infer_request()
        self._states = {state.name: state for state in self._request.query_state()}
        self._kept = {
            f"{side}{n}": each[n] for side, each in (("k", k), ("v", v)) for n in range(len(k))
        }
        dims = {
            "q": (1, shape.q_heads, shape.q_len, shape.head_dim),
            "k": (1, shape.kv_heads, shape.q_len, shape.head_dim),
            "v": (1, shape.kv_heads, shape.q_len, shape.width_of_v),
        }
        self._inputs = {
            f"{side}{n}": np.zeros(own, np.float32)
            for side, own in dims.items()
            for n in range(len(k))
        }
        for name, array in self._inputs.items():
            self._request.set_tensor(f"new_{name}", openvino.Tensor(array, shared_memory=True))
        self._request.set_tensor("beam", openvino.Tensor(np.zeros(1, np.int32)))

    def ask(self, q):
        shape = self._shape
        self._more = np.inf
        for n, one in enumerate(q):
            to = self._inputs[f"q{n}"]
            to[:] = shape.by_head(one).reshape(to.shape)
            if _is_masked(shape):
                continue
            grouped = one.reshape(shape.kv_heads, shape.group, shape.head_dim).astype(float)
            wanted = np.full((shape.kv_heads, shape.group, 1), -_AWAY * shape.head_dim**0.5)
            self._inputs[f"k{n}"][0, :, 0] = (np.linalg.pinv(grouped) @ wanted)[..., 0]

    def rest(self):
        if self._more > max(1, _MORE * self._shape.context):
            for name, state in self._states.items():
                state.state = self._v.Tensor(np.ascontiguousarray(self._kept[name][None]))
            self._more = 0

    def step(self, layer):
        self._more += self._shape.q_len
        if _is_masked(self._shape):
            self._request.set_tensor("mask", self._mask(self._more))
        self._request.infer()

    def _mask(self, more):
        """The mask [1, heads or 1, queries, tokens], added to scores: -inf for tokens that a query
        does not attend to.
        """
        if more not in self._masks:
            wide = ((0, 0), (0, 0), (0, more))
            found = np.pad(self._shape.bias, wide, constant_values=-np.inf)
            self._masks[more] = self._v.Tensor(np.ascontiguousarray(found[None], np.float32))
        return self._masks[more]

    def output(self, layer):
        return self._shape.by_query(self._request.get_tensor(f"out{layer}").data)

    def bytes(self):
        dims = self._shape.head_dim, self._shape.width_of_v
        row = sum(
            dim * int(_BITS[dtype]) // 8 + (_SCALES if _BITS[dtype] == 8 else 0)
            for dim, dtype in zip(dims, self._dtypes, strict=True)
        )
        return self._shape.kv_heads * self._shape.context * row

    def flags(self):
        given = ("INFERENCE_PRECISION_HINT", "KEY_CACHE_PRECISION", "VALUE_CACHE_PRECISION")
        hints = [f"{name}={self._compiled.get_property(name).to_string()}" for name in given]
        return f"{', '.join(hints)}; {' '.join(self._found)}"


def _is_masked(shape):
    return shape.is_masked or shape.alibi > 0


def _model(shape, layers):
    """Build the model as optimum-intel exports a decoder, which the CPU plug-in knows how to
    fuse.
    """
    from openvino import Model, PartialShape, Type, op
    from openvino import opset13 as ov
    from openvino.op.util import Variable, VariableInfo

    beam = _input(ov, "beam", [-1], np.int32)
    each = shape.q_heads if shape.alibi else 1
    mask = [_input(ov, "mask", [-1, each, -1, -1])] if _is_masked(shape) else []
    inputs, outputs, sinks = [beam, *mask], [], []
    dims = {"q": shape.head_dim, "k": shape.head_dim, "v": shape.width_of_v}
    for n in range(layers):
        new = {}
        for side, heads in (("q", shape.q_heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
            new[side] = _input(ov, f"new_{side}{n}", [-1, heads, -1, dims[side]])
            inputs.append(new[side])
        joined = {}
        for side in ("k", "v"):
            info = VariableInfo()
            info.data_shape, info.data_type = (
                PartialShape([-1, shape.kv_heads, -1, dims[side]]),
                Type.f32,
            )
            info.variable_id = f"{side}{n}"
            variable = Variable(info)
            start = ov.constant(np.zeros((1, shape.kv_heads, 0, dims[side]), np.float32))
            past = op.read_value(start, variable)
            joined[side] = ov.concat(
                [ov.gather(past, beam, ov.constant(0, np.int64)), new[side]], 2
            )
            sinks.append(op.assign(joined[side], variable))
        out = ov.scaled_dot_product_attention(
            new["q"],
            *(_repeated(ov, joined[side], shape, dims[side]) for side in ("k", "v")),
            *mask,
            causal=False,
        )
        found = ov.result(out, name=f"out{n}")
        found.output(0).set_names({f"out{n}"})
        outputs.append(found)
    return Model(outputs, sinks, inputs, "decode")


def _input(ov, name, dims, kind=np.float32):
    found = ov.parameter(dims, kind, name=name)
    found.output(0).set_names({name})
    return found


def _repeated(ov, rows, shape, dim):
    """Repeat KV heads to one for each query head; the fused operation does not do that."""
    if shape.group == 1:
        return rows
    wide = ov.unsqueeze(rows, ov.constant(2, np.int64))
    sizes = ov.shape_of(rows, "i64")
    parts = [
        ov.gather(sizes, ov.constant([n], np.int64), ov.constant(0, np.int64)) for n in range(4)
    ]
    group = ov.constant([shape.group], np.int64)
    wide = ov.broadcast(
        wide,
        ov.concat([parts[0], parts[1], group, parts[2], parts[3]], 0),
        broadcast_spec="BIDIRECTIONAL",
    )
    return ov.reshape(wide, ov.constant([0, shape.q_heads, -1, dim], np.int64), True)
