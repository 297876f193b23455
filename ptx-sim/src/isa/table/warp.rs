//! Instructions between the lanes of a warp.

use super::{Row, row};
use crate::exec::build::warp::{active, elect, matching, reduce, shuffle, vote};

pub(super) const ROWS: &[Row] = &[
    row("shfl", "sync mode=up|down|bfly|idx b32", "~ <b32 <b32 <b32 <b32", shuffle),
    row("vote", "sync mode=all|any|uni pred", ">pred <!pred <b32", vote),
    row("vote", "sync mode=ballot b32", ">b32 <!pred <b32", vote),
    row("match", "mode=any sync t=b32|b64", ">b32 <t <b32", matching),
    row("match", "mode=all sync t=b32|b64", "~ <t <b32", matching),
    row("redux", "sync op=add|min|max t=u32|s32", ">t <t <b32", reduce),
    row("redux", "sync op=and|or|xor t=b32", ">t <t <b32", reduce),
    row("elect", "sync", "~ <b32", elect),
    row("activemask", "b32", ">b32", active),
];
