"""Writes a GGUF's weights, dequantised by transformers, as an ordinary float32 checkpoint.

`python convert_gguf.py MODEL.gguf FOLDER`, for engines that read no GGUF.
"""
from __future__ import annotations

import os
import sys

import torch
import transformers


def convert(path: str, folder: str) -> None:
    source, name = os.path.split(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=name,
                                                              dtype=torch.float32)
    # It takes the model for quantised, although its weights are plain numbers by now.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)


if __name__ == "__main__":
    convert(*sys.argv[1:])
