//! The examples of `README.md` and of the guide, compiled and run from their very text.

#[doc = include_str!("../README.md")]
struct Readme;

#[doc = include_str!("../docs/guide/define.md")]
struct Define;

#[doc = include_str!("../docs/guide/call.md")]
struct Call;

#[doc = include_str!("../docs/guide/extend.md")]
struct Extend;
