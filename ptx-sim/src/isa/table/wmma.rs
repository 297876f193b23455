//! Products of matrices in fragments of an open layout.

use super::{Row, row};
use crate::exec::build::wmma::{product, transfer};

pub(super) const ROWS: &[Row] = &[
    row(
        "wmma",
        "load matrix=a|b sync aligned layout=row|col shape=m16n16k16|m32n8k16|m8n32k16 space=WHERE? t=f16|bf16|u8|s8",
        "{} [] <u32?",
        transfer,
    ),
    row(
        "wmma",
        "load matrix=a|b sync aligned layout=row|col shape=m16n16k8 space=WHERE? t=tf32",
        "{} [] <u32?",
        transfer,
    ),
    row(
        "wmma",
        "load matrix=a|b sync aligned layout=row|col shape=m8n8k4 space=WHERE? t=f64",
        "~ [] <u32?",
        transfer,
    ),
    row(
        "wmma",
        "load matrix=c sync aligned layout=row|col shape=m16n16k16|m32n8k16|m8n32k16|m16n16k8 space=WHERE? t=f16|f32|s32",
        "{} [] <u32?",
        transfer,
    ),
    row(
        "wmma",
        "load matrix=c sync aligned layout=row|col shape=m8n8k4 space=WHERE? t=f64",
        "{} [] <u32?",
        transfer,
    ),
    row(
        "wmma",
        "store matrix=d sync aligned layout=row|col shape=m16n16k16|m32n8k16|m8n32k16|m16n16k8 space=WHERE? t=f16|f32|s32",
        "[] {} <u32?",
        transfer,
    ),
    row(
        "wmma",
        "store matrix=d sync aligned layout=row|col shape=m8n8k4 space=WHERE? t=f64",
        "[] {} <u32?",
        transfer,
    ),
    row(
        "wmma",
        "mma sync aligned rows=row|col columns=row|col shape=m16n16k16|m32n8k16|m8n32k16 d=f16|f32 c=f16|f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "wmma",
        "mma sync aligned rows=row|col columns=row|col shape=m16n16k16|m32n8k16|m8n32k16 d=f32 a=bf16 b=bf16 c=f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "wmma",
        "mma sync aligned rows=row|col columns=row|col shape=m16n16k8 d=f32 a=tf32 b=tf32 c=f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "wmma",
        "mma sync aligned rows=row|col columns=row|col shape=m16n16k16|m32n8k16|m8n32k16 \
         d=s32 a=u8|s8 b=u8|s8 c=s32 satfinite?",
        "{} {} {} {}",
        product,
    ),
    row(
        "wmma",
        "mma sync aligned rows=row|col columns=row|col shape=m8n8k4 d=f64 a=f64 b=f64 c=f64 rnd=rn?",
        "{} ~ ~ {}",
        product,
    ),
];
