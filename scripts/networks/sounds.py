"""Networks that read or write sound."""

from functools import partial

import torch

from .common import Flat, ids, image, network, of_words


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
def voice():
    from transformers import VitsConfig, VitsModel

    config = VitsConfig(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64, flow_size=32, spectrogram_bins=65, upsample_initial_channel=32, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8], use_stochastic_duration_prediction=False, noise_scale=0.0, noise_scale_duration=0.0)
    return of_words(VitsModel(config), ["waveform"], lengths=((1, 17), (1, 31)), below=40)


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


def of_sound(config, model, results, options, lengths=(8000, 12345), channel=False):
    import transformers

    module = Flat(getattr(transformers, model)(getattr(transformers, config)(**options)), ["input_values"], results)
    inputs = [(image(batch, 1, length) if channel else image(batch, length),) for batch, length in zip((1, 2), lengths)]
    return module, ["sound"], inputs, {"sound": {0: "batch", 2 if channel else 1: "samples"}}


WAVES = dict(vocab_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=[32] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
for each, arguments in {
    "hubert": ("HubertConfig", "HubertModel", ["last_hidden_state"], WAVES),
    "wavlm": ("WavLMConfig", "WavLMModel", ["last_hidden_state"], WAVES),
    "sew": ("SEWConfig", "SEWModel", ["last_hidden_state"], {**WAVES, "conv_dim": [32] * 13, "squeeze_factor": 2}),
}.items():
    network(partial(of_sound, *arguments), each)
network(partial(of_sound, "EncodecConfig", "EncodecModel", None, dict(num_filters=8, hidden_size=32, codebook_size=64, codebook_dim=32, upsampling_ratios=[4, 2]), channel=True), "encodec")
network(partial(of_sound, "DacConfig", "DacModel", ["audio_values"], dict(encoder_hidden_size=16, decoder_hidden_size=64, downsampling_ratios=[2, 4], upsampling_ratios=[4, 2], n_codebooks=3, codebook_size=64), lengths=(1600, 3200), channel=True), "dac")


@network
def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                           num_mel_bins=40, max_source_positions=100, use_cache=False, pad_token_id=1, decoder_start_token_id=2, bos_token_id=2, eos_token_id=3)
    names = ["input_features", "decoder_input_ids"]
    inputs = [(image(1, 40, 200), ids(1, 5)), (image(2, 40, 200), ids(2, 9))]
    return Flat(WhisperForConditionalGeneration(config), names, ["logits"]), names, inputs, {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "words"}}
