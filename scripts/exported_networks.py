#!/usr/bin/env python3
"""Exports networks of torchvision, timm and transformers with random weights, runs them with `tilewright` and ONNX Runtime, and compares both.

    python3 -m pip install torch torchvision timm transformers onnx onnxscript onnxruntime
    python3 scripts/exported_networks.py [--exporter script|dynamo] [NAME...]

Each network is exported by PyTorch's tracing exporter (`script`) and by its newer one (`dynamo`), with dynamic sizes, to `target/networks`, and run on inputs of
two sizes. A line has the largest difference of each output, relative to the output's largest number, and the median times of a call. Needs
`cargo build --release -p tilewright-cli`, or TILEWRIGHT with the path of the program. THREADS is 1 unless it is set.
"""

import argparse
import logging
import os
import pathlib
import sys
import warnings
from functools import partial

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
from exported_models import compare_file

# The tracing exporter does not know the fused form of attention.
torch.backends.mha.set_fastpath_enabled(False)

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "networks"
WORDS = {0: "batch", 1: "words"}
NETWORKS = {}


def network(make, name=None):
    NETWORKS[name or make.__name__] = make
    return make


class Flat(torch.nn.Module):
    """A module whose results are a tuple of tensors, with inputs by name."""

    def __init__(self, module, names, results=None, **options):
        super().__init__()
        self.module, self.names, self.results, self.options = module, names, results, options

    def forward(self, *inputs):
        found = self.module(**dict(zip(self.names, inputs)), **self.options)
        if isinstance(found, torch.Tensor):
            return found
        if self.results:
            return tuple(found[name] for name in self.results)
        values = found.to_tuple() if hasattr(found, "to_tuple") else tuple(found.values() if isinstance(found, dict) else found)
        return tuple(value for value in values if isinstance(value, torch.Tensor))


def image(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def ids(*shape, below=90):
    return torch.randint(1, below, shape, generator=torch.Generator().manual_seed(7))


def of_torchvision(name, sizes=((1, 3, 224, 224), (2, 3, 192, 256)), dynamic=True, **options):
    import torchvision

    module = torchvision.models.get_model(name, weights=None, **options)
    axes = {0: "batch", 2: "height", 3: "width"} if dynamic else {0: "batch"}
    return module, ["image"], [(image(*size),) for size in sizes], {"image": axes}


def of_timm(name, sizes=((1, 3, 224, 224), (2, 3, 224, 224)), **options):
    import timm

    return timm.create_model(name, pretrained=False, **options), ["image"], [(image(*size),) for size in sizes], {"image": {0: "batch"}}


for each in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "densenet121", "squeezenet1_1", "regnet_y_400mf", "mnasnet0_5"):
    network(partial(of_torchvision, each), each)
network(partial(of_torchvision, "googlenet", init_weights=False, aux_logits=False), "googlenet")
for each in ("vit_b_16", "swin_t", "convnext_tiny", "maxvit_t"):
    network(partial(of_torchvision, each, sizes=((1, 3, 224, 224), (2, 3, 224, 224)), dynamic=False), each)
for each in ("mobilevitv2_050", "ghostnet_100", "fastvit_t8", "edgenext_xx_small", "poolformer_s12", "levit_128s", "efficientformer_l1", "coat_tiny", "mixer_s32_224", "repvgg_a0", "hardcorenas_a", "tiny_vit_5m_224", "eca_nfnet_l0", "res2net50_26w_4s"):
    network(partial(of_timm, each), each)


@network
def deeplab():
    module = of_torchvision("deeplabv3_mobilenet_v3_large", aux_loss=False, weights_backbone=None)
    return Flat(module[0], ["x"], ["out"]), *module[1:]


@network
def lraspp():
    module = of_torchvision("lraspp_mobilenet_v3_large", weights_backbone=None)
    return Flat(module[0], ["input"], ["out"]), *module[1:]


@network
def ssdlite():
    import torchvision

    module = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)

    class Detector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            found = self.module([x])[0]
            return found["boxes"], found["scores"], found["labels"]

    return Detector(), ["image"], [(image(3, 240, 320).sigmoid(),)], {}


@network
def detr():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    backbone = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"])
    config = DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, d_model=64, encoder_layers=2, decoder_layers=2,
                        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_queries=20, num_labels=7)
    module = Flat(DetrForObjectDetection(config), ["pixel_values"], ["logits", "pred_boxes"])
    return module, ["image"], [(image(1, 3, 128, 160),), (image(2, 3, 96, 96),)], {"image": {0: "batch", 2: "height", 3: "width"}}


def of_words(module, results=None, lengths=((1, 17), (3, 40)), below=90, mask=True):
    names = ["input_ids", "attention_mask"] if mask else ["input_ids"]
    inputs = []
    for shape in lengths:
        words, keep = ids(*shape, below=below), torch.ones(shape, dtype=torch.int64)
        if shape[0] > 1:
            keep[1, shape[1] // 2 :] = 0
        inputs.append((words, keep) if mask else (words,))
    return Flat(module, names, results), names, inputs, {name: WORDS for name in names}


SMALL = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)


def of_transformers(config, model, results, options):
    import transformers

    settings = getattr(transformers, config)(**options)
    return of_words(getattr(transformers, model)(settings), results)


for each, arguments in {
    "bert": ("BertConfig", "BertForSequenceClassification", ["logits"], SMALL),
    "roberta": ("RobertaConfig", "RobertaForTokenClassification", ["logits"], {**SMALL, "max_position_embeddings": 130}),
    "distilbert": ("DistilBertConfig", "DistilBertForQuestionAnswering", None, dict(vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=128)),
    "albert": ("AlbertConfig", "AlbertModel", ["last_hidden_state"], {**SMALL, "embedding_size": 32}),
    "electra": ("ElectraConfig", "ElectraModel", ["last_hidden_state"], {**SMALL, "embedding_size": 32}),
    "deberta": ("DebertaV2Config", "DebertaV2Model", ["last_hidden_state"], {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16, "max_relative_positions": -1}),
    "mpnet": ("MPNetConfig", "MPNetModel", ["last_hidden_state"], SMALL),
    "modernbert": ("ModernBertConfig", "ModernBertModel", ["last_hidden_state"], {**SMALL, "pad_token_id": 0, "reference_compile": False}),
    "xlnet": ("XLNetConfig", "XLNetModel", ["last_hidden_state"], dict(vocab_size=100, d_model=64, n_layer=2, n_head=4, d_inner=128)),
    "funnel": ("FunnelConfig", "FunnelModel", ["last_hidden_state"], dict(vocab_size=100, d_model=64, n_head=4, d_head=16, d_inner=128, block_sizes=[1, 1], num_decoder_layers=1)),
    "llama": ("LlamaConfig", "LlamaForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "use_cache": False}),
    "qwen": ("Qwen2Config", "Qwen2ForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "use_cache": False}),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 1, "head_dim": 16, "use_cache": False}),
    "phi": ("PhiConfig", "PhiForCausalLM", ["logits"], {**SMALL, "use_cache": False}),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", ["logits"], dict(vocab_size=100, n_embd=64, n_layer=2, n_head=4, use_cache=False)),
    "opt": ("OPTConfig", "OPTForCausalLM", ["logits"], dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128, word_embed_proj_dim=64, use_cache=False)),
    "bloom": ("BloomConfig", "BloomForCausalLM", ["logits"], dict(vocab_size=100, hidden_size=64, n_layer=2, n_head=4, use_cache=False)),
    "mamba": ("MambaConfig", "MambaForCausalLM", ["logits"], dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, state_size=8, use_cache=False)),
    "t5_encoder": ("T5Config", "T5EncoderModel", ["last_hidden_state"], dict(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)),
}.items():
    network(partial(of_transformers, *arguments), each)


@network
def canine():
    from transformers import CanineConfig, CanineForSequenceClassification

    config = CanineConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, num_hash_functions=4)
    return of_words(CanineForSequenceClassification(config), ["logits"], lengths=((1, 160), (2, 256)), below=250)


@network
def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False, decoder_start_token_id=0)
    names = ["input_ids", "decoder_input_ids"]
    module = Flat(T5ForConditionalGeneration(config), names, ["logits"])
    return module, names, [(ids(1, 13), ids(1, 5)), (ids(2, 20), ids(2, 9))], {"input_ids": WORDS, "decoder_input_ids": {0: "batch", 1: "written"}}


@network
def llama_cached():
    """One step with earlier keys and values."""
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**SMALL, num_key_value_heads=2)

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = LlamaForCausalLM(config)

        def forward(self, words, mask, *past):
            cache = DynamicCache(list(zip(past[::2], past[1::2])))
            found = self.module(input_ids=words, attention_mask=mask, past_key_values=cache, use_cache=True)
            kept = found.past_key_values
            return (found.logits, *(tensor for layer in kept.layers for tensor in (layer.keys, layer.values)))

    names = ["input_ids", "attention_mask", "key_0", "value_0", "key_1", "value_1"]
    inputs = [(ids(1, new), torch.ones(1, old + new, dtype=torch.int64), *(image(1, 2, old, 16) for _ in range(4))) for old, new in ((7, 1), (12, 3))]
    axes = {"input_ids": WORDS, "attention_mask": {0: "batch", 1: "all"}, **{name: {0: "batch", 2: "past"} for name in names[2:]}}
    return Step(), names, inputs, axes


@network
def whisper_encoder():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, num_mel_bins=40, max_source_positions=100)
    return Flat(WhisperEncoder(config), ["input_features"], ["last_hidden_state"]), ["features"], [(image(1, 40, 200),), (image(2, 40, 200),)], {"features": {0: "batch"}}


@network
def wav2vec():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    config = Wav2Vec2Config(vocab_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=[32] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    return Flat(Wav2Vec2ForCTC(config), ["input_values"], ["logits"]), ["sound"], [(image(1, 8000),), (image(2, 12345),)], {"sound": {0: "batch", 1: "samples"}}


@network
def spectrogram_transformer():
    from transformers import ASTConfig, ASTForAudioClassification

    config = ASTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, max_length=128, num_mel_bins=64)
    return Flat(ASTForAudioClassification(config), ["input_values"], ["logits"]), ["features"], [(image(1, 128, 64),), (image(3, 128, 64),)], {"features": {0: "batch"}}


@network
def clip():
    from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

    text = CLIPTextConfig(**SMALL, eos_token_id=99, projection_dim=32)
    vision = CLIPVisionConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=16, projection_dim=32)
    module = CLIPModel(CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=32))
    names = ["input_ids", "pixel_values", "attention_mask"]
    inputs = [(ids(2, 11), image(3, 3, 64, 64), torch.ones(2, 11, dtype=torch.int64))]
    return Flat(module, names, ["logits_per_image", "text_embeds"]), names, inputs, {"input_ids": WORDS, "attention_mask": WORDS, "pixel_values": {0: "images"}}


@network
def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=64)
    return Flat(SegformerForSemanticSegmentation(config), ["pixel_values"], ["logits"]), ["image"], [(image(1, 3, 128, 128),), (image(2, 3, 96, 160),)], {"image": {0: "batch", 2: "height", 3: "width"}}


@network
def depth():
    from transformers import DPTConfig, DPTForDepthEstimation

    config = DPTConfig(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128, image_size=96, patch_size=16, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 64, 64], fusion_hidden_size=32, readout_type="project")
    return Flat(DPTForDepthEstimation(config), ["pixel_values"], ["predicted_depth"]), ["image"], [(image(1, 3, 96, 96),), (image(2, 3, 96, 96),)], {"image": {0: "batch"}}


@network
def super_resolution():
    from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution

    config = Swin2SRConfig(image_size=32, embed_dim=32, depths=[2, 2], num_heads=[2, 2], window_size=8)
    return Flat(Swin2SRForImageSuperResolution(config), ["pixel_values"], ["reconstruction"]), ["image"], [(image(1, 3, 32, 32),), (image(2, 3, 32, 32),)], {"image": {0: "batch"}}


@network
def voice():
    from transformers import VitsConfig, VitsModel

    config = VitsConfig(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64, flow_size=32, spectrogram_bins=65, upsample_initial_channel=32, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8], use_stochastic_duration_prediction=False, noise_scale=0.0, noise_scale_duration=0.0)
    return of_words(VitsModel(config), ["waveform"], lengths=((1, 17), (1, 31)), below=40)


@network
def tagger():
    """A bidirectional GRU over sequences of different lengths."""

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = torch.nn.Embedding(100, 32), torch.nn.Linear(96, 9)
            self.cells = torch.nn.GRU(32, 48, num_layers=2, bidirectional=True, batch_first=True)

        def forward(self, words, lengths):
            packed = torch.nn.utils.rnn.pack_padded_sequence(self.table(words), lengths, batch_first=True, enforce_sorted=False)
            states, _ = self.cells(packed)
            return self.out(torch.nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0])

    return Tagger(), ["words", "lengths"], [(ids(2, 12), torch.tensor([12, 7])), (ids(3, 20), torch.tensor([20, 3, 11]))], {"words": WORDS, "lengths": {0: "batch"}}


@network
def reader():
    """Convolutions, a bidirectional LSTM, and letters (CRNN)."""

    class Reader(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = lambda i, o, pool: [torch.nn.Conv2d(i, o, 3, padding=1), torch.nn.BatchNorm2d(o), torch.nn.ReLU(), torch.nn.MaxPool2d(pool)]
            self.features = torch.nn.Sequential(*layer(1, 16, 2), *layer(16, 32, 2), *layer(32, 64, (2, 1)), *layer(64, 64, (4, 1)))
            self.cells, self.out = torch.nn.LSTM(64, 48, bidirectional=True), torch.nn.Linear(96, 40)

        def forward(self, x):
            found = self.features(x).squeeze(2).permute(2, 0, 1)
            return self.out(self.cells(found)[0]).log_softmax(2)

    return Reader(), ["image"], [(image(1, 1, 32, 100),), (image(3, 1, 32, 170),)], {"image": {0: "batch", 3: "width"}}


@network
def yolo():
    """A detector with a feature pyramid, distributions of distances, and boxes in pixels."""

    def conv(i, o, k=1, s=1, g=1):
        return torch.nn.Sequential(torch.nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), torch.nn.BatchNorm2d(o), torch.nn.SiLU())

    class Split(torch.nn.Module):
        def __init__(self, i, o, n=1):
            super().__init__()
            self.first, self.last = conv(i, o), conv((2 + n) * o // 2, o)
            self.inner = torch.nn.ModuleList(torch.nn.Sequential(conv(o // 2, o // 2, 3), conv(o // 2, o // 2, 3)) for _ in range(n))

        def forward(self, x):
            parts = list(self.first(x).chunk(2, 1))
            for block in self.inner:
                parts.append(parts[-1] + block(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Pyramid(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = torch.nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), Split(32, 32))
            self.third, self.fourth, self.fifth = (torch.nn.Sequential(conv(c, 2 * c, 3, 2), Split(2 * c, 2 * c)) for c in (32, 64, 128))
            self.pool, self.joined = torch.nn.MaxPool2d(5, 1, 2), conv(1024, 256)
            self.up4, self.up3, self.down4 = Split(384, 128), Split(192, 64), Split(192, 128)
            self.down = conv(64, 64, 3, 2)
            self.boxes = torch.nn.ModuleList(torch.nn.Conv2d(c, 64, 1) for c in (64, 128, 256))
            self.classes = torch.nn.ModuleList(torch.nn.Conv2d(c, 11, 1) for c in (64, 128, 256))

        def forward(self, x):
            p3 = self.third(self.stem(x))
            p4 = self.fourth(p3)
            p5 = self.fifth(p4)
            pools = [p5]
            for _ in range(3):
                pools.append(self.pool(pools[-1]))
            p5 = self.joined(torch.cat(pools, 1))
            up = lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
            n4 = self.up4(torch.cat([up(p5), p4], 1))
            n3 = self.up3(torch.cat([up(n4), p3], 1))
            n4 = self.down4(torch.cat([self.down(n3), n4], 1))
            found, anchors, strides = [], [], []
            for level, (features, stride) in enumerate(zip((n3, n4, p5), (8, 16, 32))):
                h, w = features.shape[2:]
                y, x0 = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
                anchors.append(torch.stack([x0, y]).reshape(2, -1))
                strides.append(torch.full((1, h * w), float(stride)))
                found.append(torch.cat([self.boxes[level](features), self.classes[level](features)], 1).flatten(2))
            found, anchors, strides = torch.cat(found, 2), torch.cat(anchors, 1), torch.cat(strides, 1)
            boxes, classes = found.split((64, 11), 1)
            distances = (boxes.view(boxes.shape[0], 4, 16, -1).softmax(2) * torch.arange(16.0).view(1, 1, 16, 1)).sum(2)
            near, far = distances.chunk(2, 1)
            low, high = anchors - near, anchors + far
            return torch.cat([(low + high) / 2 * strides, (high - low) * strides, classes.sigmoid()], 1)

    return Pyramid(), ["image"], [(image(1, 3, 160, 192),), (image(2, 3, 224, 128),)], {"image": {0: "batch", 2: "height", 3: "width"}}


@network
def front_end():
    """From sound to the logarithms of mel energies, normalised."""

    class FrontEnd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(400))
            self.register_buffer("mel", torch.rand(257, 64, generator=torch.Generator().manual_seed(1)) / 50)

        def forward(self, sound):
            sound = torch.cat([sound[:, :1], sound[:, 1:] - 0.97 * sound[:, :-1]], 1)
            spectrum = torch.stft(sound, 512, 160, 400, self.window, center=True, pad_mode="reflect", return_complex=False)
            energy = (spectrum[..., 0] ** 2 + spectrum[..., 1] ** 2).transpose(1, 2) @ self.mel
            energy = torch.log(energy + 1e-6)
            return (energy - energy.mean(1, keepdim=True)) / (energy.std(1, keepdim=True) + 1e-5)

    return FrontEnd(), ["sound"], [(image(1, 16000),), (image(2, 23456),)], {"sound": {0: "batch", 1: "samples"}}


@network
def diffusion():
    """A network with time, attention and skipped connections."""

    class Block(torch.nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.norm, self.first, self.second = torch.nn.GroupNorm(8, i), torch.nn.Conv2d(i, o, 3, padding=1), torch.nn.Conv2d(o, o, 3, padding=1)
            self.time, self.skip = torch.nn.Linear(64, o), torch.nn.Conv2d(i, o, 1)

        def forward(self, x, t):
            h = self.first(torch.nn.functional.silu(self.norm(x))) + self.time(torch.nn.functional.silu(t))[:, :, None, None]
            return self.skip(x) + self.second(torch.nn.functional.silu(h))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.down, self.middle = torch.nn.Conv2d(4, 32, 3, padding=1), Block(32, 64), Block(64, 64)
            self.attention, self.norm = torch.nn.MultiheadAttention(64, 4, batch_first=True), torch.nn.LayerNorm(64)
            self.up, self.out, self.time = Block(96, 32), torch.nn.Conv2d(32, 4, 3, padding=1), torch.nn.Linear(64, 64)

        def forward(self, x, step):
            rates = torch.exp(torch.arange(32.0) * (-9.2 / 32))
            angles = step[:, None].float() * rates[None]
            t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
            first = self.stem(x)
            h = self.down(torch.nn.functional.avg_pool2d(first, 2), t)
            words = self.norm(h.flatten(2).transpose(1, 2))
            words = words + self.attention(words, words, words, need_weights=False)[0]
            h = self.middle(words.transpose(1, 2).reshape(h.shape), t)
            h = torch.nn.functional.interpolate(h, scale_factor=2.0, mode="bilinear", align_corners=False)
            return self.out(self.up(torch.cat([h, first], 1), t))

    return Net(), ["image", "step"], [(image(1, 4, 32, 32), torch.tensor([500])), (image(2, 4, 48, 32), torch.tensor([3, 999]))], {"image": {0: "batch", 2: "height", 3: "width"}, "step": {0: "batch"}}


def export(name, exporter):
    path = FOLDER / f"{name}-{exporter}.onnx"
    torch.manual_seed(1)
    module, names, inputs, axes = NETWORKS[name]()
    module = module.eval()
    for part in module.modules():
        # Statistics of a trained network: random weights with those of an untrained one give numbers that vanish or explode.
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_var is not None:
            part.running_var.uniform_(0.5, 1.5)
            part.running_mean.uniform_(-0.3, 0.3)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with torch.no_grad():
            if exporter == "script":
                torch.onnx.export(module, inputs[-1], path, input_names=names, dynamic_axes=axes, opset_version=17, dynamo=False)
            else:
                sizes = [{axis: torch.export.Dim.DYNAMIC for axis in axes.get(name, {})} for name in names]
                shapes = {"inputs": tuple(sizes)} if isinstance(module, Flat) else tuple(sizes)
                torch.onnx.export(module, inputs[-1], path, input_names=names, dynamic_shapes=shapes, dynamo=True, external_data=False, verbose=False)
    return path, [dict(zip(names, (value.numpy() for value in values))) for values in inputs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exporter", choices=["script", "dynamo"])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for name in arguments.names or NETWORKS:
        for exporter in [arguments.exporter] if arguments.exporter else ["script", "dynamo"]:
            try:
                path, inputs = export(name, exporter)
            except Exception as error:
                print(f"{name:24} {exporter:7} not exported: {' '.join(str(error).split())[:120]}", flush=True)
                continue
            compare_file(f"{name:24} {exporter:7}", path, inputs)


if __name__ == "__main__":
    main()
