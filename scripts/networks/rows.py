"""Networks that read rows of numbers: series, graphs, points, categories."""

import torch

from .common import Flat, image, network


def integers(below, *shape):
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(3))


@network
def series():
    """Convolutions in time with growing dilation, which look at the past alone."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layers = [torch.nn.Conv1d(16 if level else 4, 16, 3, padding=2 * 2**level, dilation=2**level) for level in range(5)]
            self.layers, self.out = torch.nn.ModuleList(torch.nn.utils.parametrizations.weight_norm(layer) for layer in layers), torch.nn.Linear(16, 7)

        def forward(self, x):
            for level, layer in enumerate(self.layers):
                found = torch.relu(layer(x)[..., : -2 * 2**level])
                x = x + found if level else found
            return self.out(x[..., -1])

    return Net(), ["series"], [(image(1, 4, 50),), (image(3, 4, 77),)], {"series": {0: "batch", 2: "time"}}


@network
def patches():
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    config = PatchTSTConfig(num_input_channels=3, context_length=64, patch_length=8, patch_stride=8, d_model=32, num_attention_heads=4, num_hidden_layers=2, ffn_dim=64, prediction_length=12)
    return Flat(PatchTSTForPrediction(config), ["past_values"], ["prediction_outputs"]), ["past_values"], [(image(1, 64, 3),), (image(4, 64, 3),)], {"past_values": {0: "batch"}}


@network
def neighbours():
    """Two layers of a network on graphs: means over the nodes with an edge to a node."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

        def forward(self, x, edges):
            count = torch.zeros(x.shape[0]).index_add(0, edges[1], torch.ones(edges.shape[1])).clamp(min=1)

            def layer(linear, x):
                x = linear(x)
                return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]) / count[:, None]

            return layer(self.second, torch.relu(layer(self.first, x))).log_softmax(1)

    inputs = [(image(nodes, 8), integers(nodes, 2, edges)) for nodes, edges in ((10, 30), (40, 200))]
    return Net(), ["nodes", "edges"], inputs, {"nodes": {0: "nodes"}, "edges": {1: "edges"}}


@network
def recommender():
    """Sums of rows of tables, and the products of all pairs of them."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = torch.nn.ModuleList(torch.nn.EmbeddingBag(50, 16, mode="sum") for _ in range(4))
            self.below = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU())
            self.above = torch.nn.Sequential(torch.nn.Linear(26, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

        def forward(self, dense, sparse):
            dense = self.below(dense)
            rows = torch.stack([dense] + [table(sparse[:, place]) for place, table in enumerate(self.tables)], 1)
            pairs, (i, j) = torch.bmm(rows, rows.transpose(1, 2)), torch.tril_indices(5, 5, -1)
            return torch.sigmoid(self.above(torch.cat([dense, pairs[:, i, j]], 1)))

    inputs = [(image(batch, 13), integers(50, batch, 4, 3)) for batch in (4, 9)]
    return Net(), ["dense", "sparse"], inputs, {"dense": {0: "batch"}, "sparse": {0: "batch"}}


@network
def field():
    """Colours and densities of points in space, from sines and cosines of their places."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.out = torch.nn.ModuleList(torch.nn.Linear(size, 64) for size in (63, 64, 127)), torch.nn.Linear(64, 4)

        def forward(self, points):
            angles = (points[:, None, :] * (2.0 ** torch.arange(10.0))[None, :, None]).flatten(1)
            known = torch.cat([points, angles.sin(), angles.cos()], 1)
            found = torch.relu(self.layers[1](torch.relu(self.layers[0](known))))
            found = self.out(torch.relu(self.layers[2](torch.cat([found, known], 1))))
            return torch.cat([found[:, :3].sigmoid(), torch.nn.functional.softplus(found[:, 3:])], 1)

    return Net(), ["points"], [(image(100, 3),), (image(1031, 3),)], {"points": {0: "points"}}


@network
def cloud():
    """A class for each point, from itself and the largest features of all points."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = lambda i, o: [torch.nn.Conv1d(i, o, 1), torch.nn.BatchNorm1d(o), torch.nn.ReLU()]
            self.features, self.out = torch.nn.Sequential(*layer(3, 32), *layer(32, 64)), torch.nn.Conv1d(128, 10, 1)

        def forward(self, points):
            found = self.features(points)
            return self.out(torch.cat([found, found.max(2, keepdim=True)[0].expand_as(found)], 1)).log_softmax(1)

    return Net(), ["points"], [(image(1, 3, 100),), (image(2, 3, 257),)], {"points": {0: "batch", 2: "points"}}
