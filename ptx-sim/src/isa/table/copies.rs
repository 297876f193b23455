//! Asynchronous copies and mbarrier objects.

use super::{Row, row};
use crate::exec::build::copies::{arrive, commit, copy, copy_arrive, manage, pending, test, wait};

pub(super) const ROWS: &[Row] = &[
    row("cp", "async cop=ca|cg shared|shared::cta global PREFETCH?", "[] [] # ~?", copy),
    row("cp", "async cop=ca|cg shared|shared::cta global L2::cache_hint PREFETCH?", "[] [] # <b64", copy),
    row("cp", "async cop=ca|cg shared|shared::cta global L2::cache_hint PREFETCH?", "[] [] # ~ <b64", copy),
    row("cp", "async commit_group", "", commit),
    row("cp", "async wait_group", "#", wait),
    row("cp", "async wait_all", "", wait),
    row("cp", "async mbarrier arrive noinc? space=shared|shared::cta? b64", "[]", copy_arrive),
    row("mbarrier", "op=init space=shared|shared::cta? b64", "[] <u32", manage),
    row("mbarrier", "op=inval space=shared|shared::cta? b64", "[]", manage),
    row(
        "mbarrier",
        "op=expect_tx|complete_tx sem=relaxed? scope=cta|cluster? space=shared|shared::cta? b64",
        "[] <u32",
        manage,
    ),
    row(
        "mbarrier",
        "op=arrive|arrive_drop expect_tx? sem=release|relaxed? scope=cta|cluster? \
         space=shared|shared::cta? b64",
        ">b64 [] <u32?",
        arrive,
    ),
    row(
        "mbarrier",
        "op=arrive|arrive_drop noComplete sem=release? scope=cta? space=shared|shared::cta? b64",
        ">b64 [] <u32",
        arrive,
    ),
    row(
        "mbarrier",
        "op=test_wait|try_wait parity? sem=acquire|relaxed? scope=cta|cluster? space=shared|shared::cta? b64",
        ">pred [] ~ <u32?",
        test,
    ),
    row("mbarrier", "pending_count b64", ">u32 <b64", pending),
];
