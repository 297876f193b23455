//! Recurrent layers.

mod activation;
mod cells;
mod layer;
mod quantised;

pub(crate) use cells::{dynamic_quantize_lstm, gru, lstm, rnn};
