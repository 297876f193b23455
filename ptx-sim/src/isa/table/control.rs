//! Branches, calls, barriers.

use super::{Row, row};
use crate::exec::build::control::{
    barrier, branch, branch_table, call, exit, fence, nothing, ret, trap, warp_barrier,
};

pub(super) const ROWS: &[Row] = &[
    row("bra", "uni?", "@", branch),
    row("brx", "idx uni?", "<u32 @", branch_table),
    row("call", "uni?", "~ ~? ~? ~?", call),
    row("ret", "uni?", "", ret),
    row("exit", "", "", exit),
    row("trap", "", "", trap),
    row("brkpt", "", "", trap),
    row("nanosleep", "u32", "<u32", nothing),
    row("pmevent", "mask?", "#", nothing),
    row("setmaxnreg", "inc|dec sync aligned u32", "#", nothing),
    row("griddepcontrol", "launch_dependents|wait", "", nothing),
    row("bar", "cta? how=sync|arrive", "<u32 <u32?", barrier),
    row("bar", "cta? how=red red=popc u32", ">u32 <u32 ~ ~?", barrier),
    row("bar", "cta? how=red red=and|or pred", ">pred <u32 ~ ~?", barrier),
    row("bar", "warp sync", "<b32", warp_barrier),
    row("barrier", "cta? how=sync|arrive aligned?", "<u32 <u32?", barrier),
    row("barrier", "cta? how=red red=popc aligned? u32", ">u32 <u32 ~ ~?", barrier),
    row("barrier", "cta? how=red red=and|or aligned? pred", ">pred <u32 ~ ~?", barrier),
    row("membar", "cta|gl|sys", "", fence),
    row("fence", "sem=sc|acq_rel|acquire|release? scope=SCOPE", "", fence),
    row("fence", "proxy alias", "", nothing),
    row("fence", "proxy async space=global|shared::cta|shared::cluster?", "", nothing),
    row("fence", "mbarrier_init release cluster", "", fence),
];
