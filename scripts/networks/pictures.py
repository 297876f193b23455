"""Networks that read pictures."""

from functools import partial

import torch

from .common import Flat, image, network, of_timm, of_torchvision

for each in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "densenet121", "squeezenet1_1", "regnet_y_400mf", "mnasnet0_5"):
    network(partial(of_torchvision, each), each)
network(partial(of_torchvision, "googlenet", init_weights=False, aux_logits=False), "googlenet")
for each in ("vit_b_16", "swin_t", "convnext_tiny", "maxvit_t"):
    network(partial(of_torchvision, each, sizes=((1, 3, 224, 224), (2, 3, 224, 224)), dynamic=False), each)
for each in ("mobilevitv2_050", "ghostnet_100", "fastvit_t8", "edgenext_xx_small", "poolformer_s12", "levit_128s", "efficientformer_l1", "coat_tiny", "mixer_s32_224", "repvgg_a0", "hardcorenas_a", "tiny_vit_5m_224", "eca_nfnet_l0", "res2net50_26w_4s"):
    network(partial(of_timm, each), each)
SIZES = {
    160: ("mobileone_s0", "mobilenetv4_conv_small", "efficientvit_b0", "fasternet_t0", "mixnet_s", "hgnetv2_b0", "dla34", "hrnet_w18_small", "ghostnetv3_100", "repvit_m1", "resnest14d", "skresnet18", "pvt_v2_b0", "swiftformer_xs", "csatv2"),
    224: ("efficientformerv2_s0", "xcit_nano_12_p16_224", "hiera_tiny_224", "sequencer2d_s", "mvitv2_tiny"),
    240: ("crossvit_9_240",),
    256: ("halonet26t", "lambda_resnet26t", "botnet26t_256"),
}
for side, names in SIZES.items():
    for each in names:
        network(partial(of_timm, each, sizes=((1, 3, side, side), (2, 3, side, side))), each)


def of_transformers(config, model, results, options, side=64):
    import transformers

    module = Flat(getattr(transformers, model)(getattr(transformers, config)(**options)), ["pixel_values"], results)
    return module, ["image"], [(image(1, 3, side, side),), (image(2, 3, side, side),)], {"image": {0: "batch"}}


PATCHES = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=16)
for each, arguments in {
    "dinov2": ("Dinov2Config", "Dinov2Model", ["last_hidden_state"], PATCHES),
    "siglip": ("SiglipVisionConfig", "SiglipVisionModel", ["last_hidden_state", "pooler_output"], PATCHES),
    "beit": ("BeitConfig", "BeitModel", ["last_hidden_state"], {**PATCHES, "use_relative_position_bias": True}),
    "yolos": ("YolosConfig", "YolosForObjectDetection", ["logits", "pred_boxes"], {**PATCHES, "image_size": [64, 64], "num_detection_tokens": 10}),
    "swinv2": ("Swinv2Config", "Swinv2Model", ["last_hidden_state"], dict(image_size=64, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4)),
    "glpn": ("GLPNConfig", "GLPNForDepthEstimation", ["predicted_depth"], dict(hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=32)),
    "mobilevit": ("MobileViTConfig", "MobileViTModel", ["last_hidden_state"], dict(hidden_sizes=[32, 48, 64], neck_hidden_sizes=[16, 16, 16, 32, 32, 48, 64], image_size=64)),
    "pvt": ("PvtConfig", "PvtModel", ["last_hidden_state"], dict(image_size=64, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 8])),
}.items():
    network(partial(of_transformers, *arguments), each)


@network
def deeplab():
    module = of_torchvision("deeplabv3_mobilenet_v3_large", aux_loss=False, weights_backbone=None)
    return Flat(module[0], ["x"], ["out"]), *module[1:]


@network
def lraspp():
    module = of_torchvision("lraspp_mobilenet_v3_large", weights_backbone=None)
    return Flat(module[0], ["input"], ["out"]), *module[1:]


class Detector(torch.nn.Module):
    """A detector of torchvision, for one picture."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        found = self.module([x])[0]
        return found["boxes"], found["scores"], found["labels"]


@network
def ssdlite():
    import torchvision

    module = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Detector(module), ["image"], [(image(3, 240, 320).sigmoid(),)], {}


@network
def fasterrcnn():
    import torchvision

    module = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None)
    return Detector(module), ["image"], [(image(3, 240, 320).sigmoid(),)], {}


@network
def detr():
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    backbone = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"])
    config = DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, d_model=64, encoder_layers=2, decoder_layers=2,
                        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_queries=20, num_labels=7)
    module = Flat(DetrForObjectDetection(config), ["pixel_values"], ["logits", "pred_boxes"])
    return module, ["image"], [(image(1, 3, 128, 160),), (image(2, 3, 96, 96),)], {"image": {0: "batch", 2: "height", 3: "width"}}


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


@network
def volumes():
    """Segmentation of volumes: convolutions in three dimensions, normalised by instance."""

    def block(i, o):
        layer = lambda i: [torch.nn.Conv3d(i, o, 3, padding=1), torch.nn.InstanceNorm3d(o, affine=True), torch.nn.LeakyReLU(0.01)]
        return torch.nn.Sequential(*layer(i), *layer(o))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.inner, self.last = block(1, 8), block(8, 16), block(24, 8)
            self.up, self.out = torch.nn.ConvTranspose3d(16, 16, 2, 2), torch.nn.Conv3d(8, 3, 1)

        def forward(self, x):
            first = self.first(x)
            inner = self.inner(torch.nn.functional.max_pool3d(first, 2))
            return self.out(self.last(torch.cat([self.up(inner), first], 1))).softmax(1)

    return Net(), ["volume"], [(image(1, 1, 16, 32, 32),), (image(2, 1, 24, 16, 40),)], {"volume": {0: "batch", 2: "depth", 3: "height", 4: "width"}}


@network
def flow():
    """Motion between two pictures, one of which is sampled where the other's elements came from."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.joined, self.out = torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.Conv2d(32, 16, 3, padding=1), torch.nn.Conv2d(16, 2, 3, padding=1)

        def forward(self, first, second):
            first, second = torch.tanh(self.features(first)), torch.tanh(self.features(second))
            n, _, h, w = first.shape
            y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            places, moved = torch.stack([x, y]).float()[None], torch.zeros(n, 2, h, w)
            for _ in range(2):
                at = (places + moved).permute(0, 2, 3, 1)
                at = torch.stack([2 * at[..., 0] / (w - 1) - 1, 2 * at[..., 1] / (h - 1) - 1], -1)
                sampled = torch.nn.functional.grid_sample(second, at, align_corners=True)
                moved = moved + self.out(torch.relu(self.joined(torch.cat([first, sampled], 1))))
            return moved

    axes = {0: "batch", 2: "height", 3: "width"}
    return Net(), ["first", "second"], [(image(1, 3, *size), image(1, 3, *size)) for size in ((48, 64), (32, 40))], {"first": axes, "second": axes}


@network
def enlarger():
    """Channels become pixels, beside a bicubic enlargement."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Conv2d(3, 32, 5, padding=2), torch.nn.Conv2d(32, 12, 3, padding=1)
            self.gate, self.shuffle = torch.nn.PReLU(32), torch.nn.PixelShuffle(2)

        def forward(self, x):
            larger = torch.nn.functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
            return (self.shuffle(self.second(self.gate(self.first(x)))) + larger).clamp(0, 1)

    return Net(), ["image"], [(image(1, 3, 48, 64),), (image(2, 3, 37, 51),)], {"image": {0: "batch", 2: "height", 3: "width"}}
