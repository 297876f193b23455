//! Loads, stores, atomic operations, hints.

use super::{Row, row};
use crate::exec::build::memory::{atomic, hint, load, policy, store};

pub(super) const ROWS: &[Row] = &[
    row(
        "ld",
        "sem=weak? space=SPACE|param::entry|param::func? cop=CACHE_LOAD? EVICT? EVICT2? PREFETCH? \
         vec=v2|v4|v8? t=MEM",
        ">+t* [] <b64?",
        load,
    ),
    row("ld", "sem=volatile space=WHERE? PREFETCH? vec=v2|v4? t=MEM", ">+t* []", load),
    row(
        "ld",
        "sem=relaxed|acquire scope=SCOPE space=global|shared|shared::cta? EVICT? EVICT2? PREFETCH? vec=v2|v4|v8? t=MEM",
        ">+t* [] <b64?",
        load,
    ),
    row("ld", "sem=mmio relaxed sys space=global? t=MEM", ">+t* []", load),
    row(
        "ld",
        "space=global cop=ca|cg|cs? nc EVICT? EVICT2? PREFETCH? vec=v2|v4|v8? t=MEM",
        ">+t* [] <b64?",
        load,
    ),
    row("ldu", "space=global? vec=v2|v4? t=MEM", ">+t* []", load),
    row(
        "st",
        "sem=weak? space=global|shared|shared::cta|local|param|param::func? cop=CACHE_STORE? EVICT? EVICT2? \
         vec=v2|v4|v8? t=MEM",
        "[] <+t* <b64?",
        store,
    ),
    row("st", "sem=volatile space=WHERE? vec=v2|v4? t=MEM", "[] <+t*", store),
    row(
        "st",
        "sem=relaxed|release scope=SCOPE space=global|shared|shared::cta? EVICT? EVICT2? vec=v2|v4|v8? t=MEM",
        "[] <+t* <b64?",
        store,
    ),
    row("st", "sem=mmio relaxed sys space=global? t=MEM", "[] <+t*", store),
    row("atom", "sem=SEM? scope=SCOPE? space=WHERE? op=and|or|xor|exch t=b32|b64", ">t [] <t", atomic),
    row("atom", "sem=SEM? scope=SCOPE? space=WHERE? op=cas t=b16|b32|b64", ">t [] <t <t", atomic),
    row("atom", "sem=SEM? scope=SCOPE? space=WHERE? op=add t=u32|s32|u64|f32|f64", ">t [] <t", atomic),
    row("atom", "sem=SEM? scope=SCOPE? space=WHERE? op=inc|dec t=u32", ">t [] <t", atomic),
    row("atom", "sem=SEM? scope=SCOPE? space=WHERE? op=min|max t=u32|s32|u64|s64", ">t [] <t", atomic),
    row(
        "atom",
        "sem=SEM? scope=SCOPE? space=WHERE? op=add noftz t=f16|f16x2|bf16|bf16x2",
        ">t [] <t",
        atomic,
    ),
    row("atom", "sem=SEM? scope=SCOPE? space=global? op=add vec=v2|v4? t=f32", ">t* [] <t*", atomic),
    row(
        "atom",
        "sem=SEM? scope=SCOPE? space=global? op=add|min|max noftz vec=v2|v4|v8? t=f16|f16x2|bf16|bf16x2",
        ">t* [] <t*",
        atomic,
    ),
    row("red", "sem=relaxed|release? scope=SCOPE? space=WHERE? op=and|or|xor t=b32|b64", "[] <t", atomic),
    row(
        "red",
        "sem=relaxed|release? scope=SCOPE? space=WHERE? op=add t=u32|s32|u64|f32|f64",
        "[] <t",
        atomic,
    ),
    row("red", "sem=relaxed|release? scope=SCOPE? space=WHERE? op=inc|dec t=u32", "[] <t", atomic),
    row(
        "red",
        "sem=relaxed|release? scope=SCOPE? space=WHERE? op=min|max t=u32|s32|u64|s64",
        "[] <t",
        atomic,
    ),
    row(
        "red",
        "sem=relaxed|release? scope=SCOPE? space=WHERE? op=add noftz t=f16|f16x2|bf16|bf16x2",
        "[] <t",
        atomic,
    ),
    row("red", "sem=relaxed|release? scope=SCOPE? space=global? op=add vec=v2|v4? t=f32", "[] <t*", atomic),
    row(
        "red",
        "sem=relaxed|release? scope=SCOPE? space=global? op=add|min|max noftz vec=v2|v4|v8? t=f16|f16x2|bf16|bf16x2",
        "[] <t*",
        atomic,
    ),
    row("prefetch", "space=global|local? level=L1|L2", "[]", hint),
    row("prefetch", "global level=L2::evict_last|L2::evict_normal", "[]", hint),
    row("prefetchu", "L1", "[]", hint),
    row("applypriority", "global? L2::evict_normal", "[] #", hint),
    row("createpolicy", "fractional first=POLICY second=POLICY2? b64", ">b64 <f32?", policy),
    row("createpolicy", "range global? first=POLICY second=POLICY2? b64", ">b64 [] <u32 <u32", policy),
    row("createpolicy", "cvt L2 b64", ">b64 <b64", policy),
    row("discard", "global? L2", "[] #", hint),
];
