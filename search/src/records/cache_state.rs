//! Where the operands of a run are when it begins.

use std::fmt;

/// Where the operands of measured runs are when a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CacheState {
    /// In the caches, as far as they fit: a run follows another one of the same operands. That is right for operands that the
    /// operation before has just written or read.
    #[default]
    Warm,
    /// In memory only: they are evicted before each run. That is right for operands that are not touched between two calls while
    /// more passes than the caches hold, such as the weights of one of many layers.
    Cold,
}

impl CacheState {
    /// Both.
    pub const ALL: [CacheState; 2] = [CacheState::Warm, CacheState::Cold];

    /// `warm` or `cold`.
    pub const fn name(self) -> &'static str {
        match self {
            CacheState::Warm => "warm",
            CacheState::Cold => "cold",
        }
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Neither `warm` nor `cold`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no state of caches; expected `warm` or `cold`")]
pub struct UnknownCacheState(String);

impl std::str::FromStr for CacheState {
    type Err = UnknownCacheState;

    fn from_str(text: &str) -> Result<Self, UnknownCacheState> {
        let found = CacheState::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| UnknownCacheState(text.to_owned()))
    }
}
