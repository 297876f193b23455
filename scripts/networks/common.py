"""How networks are described: a module, the names of its inputs, inputs of two sizes, and the dimensions that are dynamic."""

import torch

WORDS = {0: "batch", 1: "words"}
NETWORKS = {}
SMALL = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)


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


def of_words(module, results=None, lengths=((1, 17), (3, 40)), below=90, mask=True):
    names = ["input_ids", "attention_mask"] if mask else ["input_ids"]
    inputs = []
    for shape in lengths:
        words, keep = ids(*shape, below=below), torch.ones(shape, dtype=torch.int64)
        if shape[0] > 1:
            keep[1, shape[1] // 2 :] = 0
        inputs.append((words, keep) if mask else (words,))
    return Flat(module, names, results), names, inputs, {name: WORDS for name in names}


def of_transformers(config, model, results, options):
    import transformers

    settings = getattr(transformers, config)(**options)
    return of_words(getattr(transformers, model)(settings), results)
