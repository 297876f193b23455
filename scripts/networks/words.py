"""Networks that read words."""

from functools import partial

import torch

from .common import SMALL, WORDS, Flat, ids, image, network, of_transformers, of_words

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
    "bart": ("BartConfig", "BartForConditionalGeneration", ["logits"], dict(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, use_cache=False, pad_token_id=1)),
    "fnet": ("FNetConfig", "FNetModel", ["last_hidden_state"], dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, intermediate_size=128, use_tpu_fourier_optimizations=False)),
    "longformer": ("LongformerConfig", "LongformerModel", ["last_hidden_state"], {**SMALL, "attention_window": [8, 8]}),
    "big_bird": ("BigBirdConfig", "BigBirdModel", ["last_hidden_state"], {**SMALL, "attention_type": "original_full"}),
    "squeezebert": ("SqueezeBertConfig", "SqueezeBertModel", ["last_hidden_state"], {**SMALL, "embedding_size": 64}),
    "mobilebert": ("MobileBertConfig", "MobileBertModel", ["last_hidden_state"], {**SMALL, "embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32}),
    "convbert": ("ConvBertConfig", "ConvBertModel", ["last_hidden_state"], {**SMALL, "embedding_size": 32}),
    "roformer": ("RoFormerConfig", "RoFormerModel", ["last_hidden_state"], {**SMALL, "embedding_size": 64}),
    "esm": ("EsmConfig", "EsmModel", ["last_hidden_state"], {**SMALL, "position_embedding_type": "rotary", "pad_token_id": 0, "mask_token_id": 5}),
    "xlm": ("XLMConfig", "XLMModel", ["last_hidden_state"], dict(vocab_size=100, emb_dim=64, n_layers=2, n_heads=4)),
    "falcon": ("FalconConfig", "FalconForCausalLM", ["logits"], {**SMALL, "alibi": False, "new_decoder_architecture": False, "use_cache": False}),
    "mistral": ("MistralConfig", "MistralForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "sliding_window": 8, "use_cache": False}),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "use_cache": False}),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "use_cache": False}),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0, "eos_token_id": 5, "use_cache": False}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "use_cache": False}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", ["logits"], {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "use_cache": False}),
    "gpt_neo": ("GPTNeoConfig", "GPTNeoForCausalLM", ["logits"], dict(vocab_size=100, hidden_size=64, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8, use_cache=False)),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", ["logits"], {**SMALL, "use_cache": False}),
    "gptj": ("GPTJConfig", "GPTJForCausalLM", ["logits"], dict(vocab_size=100, n_embd=64, n_layer=2, n_head=4, rotary_dim=8, use_cache=False)),
    "mpt": ("MptConfig", "MptForCausalLM", ["logits"], dict(vocab_size=100, d_model=64, n_layers=2, n_heads=4, use_cache=False)),
    "rwkv": ("RwkvConfig", "RwkvForCausalLM", ["logits"], dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, attention_hidden_size=64, intermediate_size=128, use_cache=False)),
    "mamba2": ("Mamba2Config", "Mamba2ForCausalLM", ["logits"], dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, state_size=8, num_heads=8, head_dim=16, chunk_size=8, n_groups=1, use_cache=False)),
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
def clip():
    from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

    text = CLIPTextConfig(**SMALL, eos_token_id=99, projection_dim=32)
    vision = CLIPVisionConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=16, projection_dim=32)
    module = CLIPModel(CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=32))
    names = ["input_ids", "pixel_values", "attention_mask"]
    inputs = [(ids(2, 11), image(3, 3, 64, 64), torch.ones(2, 11, dtype=torch.int64))]
    return Flat(module, names, ["logits_per_image", "text_embeds"]), names, inputs, {"input_ids": WORDS, "attention_mask": WORDS, "pixel_values": {0: "images"}}


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
def next_word():
    """One step of a language model of LSTM layers, with their states."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.cells, self.out = torch.nn.Embedding(100, 32), torch.nn.LSTM(32, 64, 2, batch_first=True), torch.nn.Linear(64, 100)

        def forward(self, words, h, c):
            found, (h, c) = self.cells(self.table(words), (h, c))
            return self.out(found), h, c

    inputs = [(ids(*shape), image(2, shape[0], 64), image(2, shape[0], 64)) for shape in ((1, 7), (3, 12))]
    return Model(), ["words", "h", "c"], inputs, {"words": WORDS, "h": {1: "batch"}, "c": {1: "batch"}}
