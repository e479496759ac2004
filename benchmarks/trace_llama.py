"""Trace Llama-3-8B from its configuration: target below 20 s and 2 GB resident.

Run: `python benchmarks/trace_llama.py [layers] [width]` (defaults 32 and 4096; 80 8192 is the 70B configuration).
"""

import json
import resource
import sys
import time

import torch
import transformers
from transformers.initialization import no_init_weights

from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import TensorKind
from jupyter_autotrain.parallel.graph.prepare import fold
from jupyter_autotrain.parallel.trace import trace

LIMIT_S, LIMIT_MB = 20.0, 2000.0


def main(layers: int, width: int) -> dict[str, float]:
    torch.set_num_threads(1)
    config = transformers.LlamaConfig(
        hidden_size=width,
        intermediate_size=width * 7 // 2,
        num_hidden_layers=layers,
        num_attention_heads=width // 128,
        num_key_value_heads=8,
        vocab_size=128256,
        dtype="bfloat16",
    )
    with torch.device("meta"), no_init_weights():
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        ids = torch.zeros(8, 8192, dtype=torch.long)
    wall, cpu = time.perf_counter(), time.process_time()
    graph = trace(model, {"input_ids": ids, "labels": ids})
    figures = {"trace_s": time.perf_counter() - wall, "trace_cpu_s": time.process_time() - cpu}
    fused = fold(fuse(graph))
    return {
        **figures,
        "parameters": sum(t.numel for t in graph.tensors if t.kind is TensorKind.PARAMETER),
        "ops": len(graph.ops),
        "fused_ops": len(fused.ops),
        "layers_in_run": fused.repeated_blocks[0].count,
        "ops_per_layer": fused.repeated_blocks[0].length,
        "flops": sum(op.flops_forward + op.flops_backward for op in graph.ops),
        "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    sizes = [int(argument) for argument in sys.argv[1:]]
    figures = main(*(sizes or (32, 4096)))
    print(json.dumps(figures, indent=2))
    time_ratio, memory_ratio = figures["trace_s"] / LIMIT_S, figures["resident_mb"] / LIMIT_MB
    print(f"of the limits {LIMIT_S:g} s and {LIMIT_MB:g} MB: {time_ratio:.2f} and {memory_ratio:.2f}")
