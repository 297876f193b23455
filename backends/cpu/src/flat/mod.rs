//! How both code generators hold elements, beside the facts about flat programs that all backends share.

pub(crate) mod form;

pub(crate) use tilewright_core::flat::{access, lanes, value_number};
